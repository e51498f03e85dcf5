"""Discovery by sitemaps: the files that a robots.txt names, and the URLs that they hold (text/sitemap.py reads them).

A sitemap is a URL in its host's queue with a payload of ours, so all that holds for pages holds for it: robots.txt,
opt-outs, politeness, limits, retries, restarts, a full account of its bytes.  It ends as ``sitemap`` and does not count
as a page.  By its rank it waits, as its URLs do, behind the links of pages with text.  URLs of other hosts are refused,
since only the robots.txt of such a host could allow them (cross submits).

For each robots.txt at most MAX_FILES sitemaps are fetched, those in indexes included.  The payload of an index says how
many it may name, so that nothing need be counted over restarts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, url_key
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.discovery.core import Core, Fetch
from spiderling.frontier.hosts.host import Host
from spiderling.frontier.hosts.ranks import SITEMAP_RANK

MAX_FILES = 50
"""Sitemaps that are fetched for one robots.txt; chosen."""
MAX_DEPTH = 2
"""Levels of indexes that are followed: an index may name an index, which names sitemaps (chosen)."""
FEED = b"feed"
"""The payload of a feed."""
_FEED_SALT = b"feed"
"""Tells a feed apart from the page at its address: many pages link to their feed too, and it may have ended as such."""
MAX_FEEDS = 4
"""Feeds that are taken from one page; chosen: most pages name one or two, for texts and for comments."""
_PAYLOAD = re.compile(rb"sitemap (\d) (\d+)")
"""The payload: levels of indexes that may follow, and sitemaps that this one may name."""


def is_sitemap(fetch: Fetch) -> bool:
    """Whether *fetch* is for a sitemap or a feed that this module put into the queue."""
    return fetch.payload is not None and (is_feed(fetch) or _PAYLOAD.fullmatch(fetch.payload) is not None)


def is_feed(fetch: Fetch) -> bool:
    """Whether *fetch* is for a feed."""
    return fetch.payload == FEED


class Sitemaps:
    """Accepts what robots.txt and sitemaps name, when ``SPIDERLING_SITEMAPS`` is on."""

    def __init__(self, core: Core) -> None:
        self._is_on = core.options.sitemaps == "on"
        self._core = core

    def put_named(self, host: Host, addresses: list[str], now: float) -> None:
        """Queue the sitemaps at *addresses*, which a robots.txt of *host* names."""
        if self._is_on and addresses:
            self._put_files(host, addresses, MAX_DEPTH, MAX_FILES, 0, now)

    def put_files(self, fetch: Fetch, addresses: list[str], now: float) -> None:
        """Queue the sitemaps at *addresses*, which the fetched index names."""
        place = _PAYLOAD.fullmatch(fetch.payload or b"")
        if place is not None and addresses:
            self._put_files(fetch.host, addresses, int(place[1]) - 1, int(place[2]), fetch.id, now)

    def put_feeds(self, page: str, addresses: Iterable[str], now: float) -> None:
        """Queue the feeds of its host that the page at the URL *page* names, when the crawl is watched."""
        target = canonicalize(page)
        host = self._core.url_states.hosts.get(target.host) if target is not None else None
        if host is not None and target is not None and self._core.watch.is_on:
            for address in list(dict.fromkeys(addresses))[:MAX_FEEDS]:
                self._put(host, address, url_key(host.id, target.url), now, FEED, _FEED_SALT)

    def put_urls(self, fetch: Fetch, entries: Iterable[tuple[str, float | None]], now: float) -> None:
        """Accept the URLs which the fetched sitemap or feed names; give few in a call, since each takes its time.

        *entries*: (URL, seconds since 1970 at which it changed, or None).
        """
        look = fetch.look
        for url, date in entries:
            refusal = self._put(fetch.host, url, fetch.id, now)
            if look is not None and refusal is None:
                look.found += 1
            elif look is not None and refusal is Reason.SEEN and date is not None and date <= now:
                target = canonicalize(url)
                if target is not None:
                    self._core.watch.announce(look, url_key(fetch.host.id, target.url), date)

    def left_out(self, number: int) -> None:
        """Count URLs that are left out as too many."""
        if number:
            self._core.admission.refuse(Reason.TOO_MANY_LINKS, number)

    def opted_out(self, number: int) -> None:
        """Count entries of a feed whose licences refuse the purpose of the crawl."""
        if number:
            self._core.admission.refuse(Reason.OPTED_OUT, number)

    def _put_files(self, host: Host, addresses: list[str], depth: int, most: int, page: int, now: float) -> None:
        """Queue as many of *addresses* as *depth* and *most* allow; what is left of *most* they share evenly."""
        files = list(dict.fromkeys(addresses))
        chosen = files[:most] if depth >= 0 else []
        self.left_out(len(files) - len(chosen))
        for address in chosen:
            payload = b"sitemap %d %d" % (depth, (most - len(chosen)) // len(chosen))
            self._put(host, address, page, now, payload)

    def _put(
        self, host: Host, url: str, page: int, now: float, payload: bytes | None = None, salt: bytes = b""
    ) -> Reason | None:
        target = canonicalize(url)
        if target is None or target.host != host.name:
            return self._core.admission.refuse(Reason.BAD_URL if target is None else Reason.CROSS_SUBMIT)
        return self._core.put(Mention(target, host.distance, SITEMAP_RANK, page, payload, salt), now)
