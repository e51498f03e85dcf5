"""A look: another request for a URL that has ended.  It is no end, and the ledger of URLs knows nothing of it."""

from __future__ import annotations

from dataclasses import dataclass

from spiderling.base.urls import canonicalize_again
from spiderling.frontier.hosts.host import Host, QueuedUrl
from spiderling.frontier.hosts.ranks import LAST_RANK
from spiderling.frontier.watching.groups import WatchedPage
from spiderling.frontier.watching.policy import FEED, SITEMAP

PAYLOADS = {FEED: b"feed", SITEMAP: b"sitemap 1 50"}
"""Kind -> the mark by which discovery/sitemaps.py knows its file."""


@dataclass(slots=True, eq=False)
class Look(QueuedUrl):
    """A look that is planned or in transit; the page as it was known before."""

    page: WatchedPage | None = None
    paragraphs: bytes | None = None
    """8-byte digests of the paragraphs of its newest version; None: unknown."""
    first_seen: float = 0.0
    """When its first version ended, in seconds since 1970."""
    found: int = 0
    """Links that nobody had found before, as far as the look has come."""
    announced: int = 0
    """Watched pages that it says have changed."""
    newest_date: float = float("-inf")
    """The newest date that it gives to a page, in days since the watch began."""

    @property
    def known(self) -> WatchedPage:
        """The page."""
        assert self.page is not None
        return self.page


def look_at(page: WatchedPage, host: Host) -> Look | None:
    """The look at *page* of *host*, of which nothing else is known; None if its address is none any more."""
    target = canonicalize_again(page.url)
    if target is None:
        return None
    payload = PAYLOADS.get(page.kind)
    return Look(page.key, page.url, host, LAST_RANK, target, payload=payload, page=page)
