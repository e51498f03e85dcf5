"""Which of the URLs that have ended are watched, as the URL log has them."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, canonicalize_again, url_key
from spiderling.frontier.storage.url_log import End
from spiderling.frontier.watching.answered import HUB_CANDIDATE
from spiderling.frontier.watching.groups import WatchedPage
from spiderling.frontier.watching.policy import FEED, HUB, PAGE, SITEMAP
from spiderling.frontier.watching.validators import Validators

WITHOUT_TEXT = frozenset(
    reason.value
    for reason in (
        *(Reason.BOILERPLATE_ONLY, Reason.BAD_QUALITY, Reason.WRONG_LANGUAGE),
        *(Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.SOFT_NOT_FOUND),
    )
)
"""Ends of pages that are not in the corpus, but may list new ones."""
NOTED = frozenset({Reason.KEPT.value, Reason.SITEMAP.value}) | WITHOUT_TEXT
"""Ends of which validators are noted."""
HUB_LINKS = 10
"""Links that nobody had found before from which such a page is tried as a hub.  Chosen."""


class EndedPage(NamedTuple):
    """A URL that has ended, with the time of its batch."""

    end: End
    time: float


class Taken(NamedTuple):
    """What is watched of the URLs that have ended."""

    pages: list[WatchedPage]
    first_words: dict[int, int]
    """Key -> words, of pages that were kept since the watch began."""


def to_be_watched(
    ended: Iterable[EndedPage],
    validators: Mapping[int, Validators],
    links: Mapping[int, int],
    days_at: Callable[[float], float],
) -> Taken:
    """Kept pages, sitemaps, feeds, and pages that gave many new *links*.

    *days_at*: from seconds since 1970 to days since the watch began.
    """
    taken = Taken([], {})
    for end, time in ended:
        kind = _kind(end, links.get(end.key, 0))
        if kind is None or (kind in (PAGE, HUB) and not _is_plain(end)):
            continue
        days = days_at(time)
        page = WatchedPage(end.key, end.url, days, days, validators.get(end.key, Validators()), kind)
        page.version = int(end.reason == Reason.KEPT.value)
        page.hub_score = HUB_CANDIDATE if kind == HUB else 0
        taken.pages.append(page)
        if page.version and days > 0:
            taken.first_words[end.key] = end.words
    return taken


def _kind(end: End, links: int) -> int | None:
    """What *end* is to be watched as; None: it is not."""
    if end.reason == Reason.KEPT.value:
        return PAGE
    if end.reason == Reason.SITEMAP.value:
        return (FEED if _mark(end) == b"feed" else SITEMAP) if 200 <= end.status < 300 else None
    return HUB if end.reason in WITHOUT_TEXT and links >= HUB_LINKS and not end.payload else None


def _mark(end: End) -> bytes:
    try:
        return b64decode(end.payload)
    except NoBase64:
        return b""


def _is_plain(end: End) -> bool:
    """Whether its address alone says what was asked for: no method, body or header of a spider's own."""
    target = canonicalize_again(end.url)
    return target is not None and url_key(end.key >> HASH_BITS & MAX_HOST_ID, target.url) == end.key
