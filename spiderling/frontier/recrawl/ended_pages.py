"""What an end makes of a URL that may be recrawled, and what the answer to a revisit makes of a page that is."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize_again, url_key
from spiderling.frontier.recrawl.pages import RecrawlPage, Standing, Validators, host_of
from spiderling.frontier.recrawl.policy import FEED, HUB, PAGE, SITEMAP
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.url_log import End, with_outcome

WITHOUT_TEXT = frozenset(
    reason.value
    for reason in (
        *(Reason.BOILERPLATE_ONLY, Reason.BAD_QUALITY, Reason.WRONG_LANGUAGE),
        *(Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.SOFT_NOT_FOUND),
    )
)
"""Ends of pages that are not in the corpus, but may list new ones."""
NOTED = frozenset({Reason.KEPT.value, Reason.SITEMAP.value}) | WITHOUT_TEXT  # ends of which validators are noted
HUB_LINKS = 10  # links that nobody had found before from which such a page is tried as a hub; chosen


class EndedPage(NamedTuple):
    """A URL that has ended, with the time of its batch."""

    end: End
    time: float


class Taken(NamedTuple):
    """What is recrawled of the URLs that have ended."""

    pages: list[RecrawlPage]
    first_words: dict[int, int]  # key -> words, of pages that were kept since the recrawl began


def pages_to_recrawl(
    ended: Iterable[EndedPage],
    validators: Mapping[int, Validators],
    links: Mapping[int, int],
    days_at: Callable[[float], float],
) -> Taken:
    """Kept pages, sitemaps, feeds, and pages that gave many new *links*.

    *days_at*: from seconds since 1970 to days since the recrawl began.
    """
    taken = Taken([], {})
    for end, time in ended:
        kind = _kind(end, links.get(end.key, 0))
        if kind is None or (kind in (PAGE, HUB) and not _is_plain(end)):
            continue
        days = days_at(time)
        page = RecrawlPage(end.key, end.url, days, days, validators.get(end.key, Validators()), kind)
        page.version = int(end.reason == Reason.KEPT.value)
        page.hub_score = HUB_CANDIDATE if kind == HUB else 0
        taken.pages.append(page)
        if page.version and days > 0:
            taken.first_words[end.key] = end.words
    return taken


def _kind(end: End, links: int) -> int | None:
    """What *end* is in the recrawl; None: nothing."""
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
    return target is not None and url_key(host_of(end.key), target.url) == end.key


GONE_DAYS = 7.0
"""Days between two answers of 404 after which a page counts as gone (chosen: servers are mended within a week)."""
_HUB_FOUND = 2
"""What a revisit that found a link adds to a page's score.  Chosen: one that found none takes 1 off, so one link of a
teaser makes no page a hub for long."""
_HUB_FROM = 2  # score from which a page is a hub; chosen
_HUB_MAX = 6  # highest score; chosen
HUB_CANDIDATE = 3  # score of a page that is not in the corpus: it is given up when it has fallen to 0
OPT_OUTS = frozenset(
    {
        *(Reason.NOINDEX, Reason.OPTED_OUT, Reason.SITE_OPTED_OUT, Reason.ROBOTS_FORBIDDEN),
        Reason.UNAVAILABLE_FOR_LEGAL_REASONS,
    }
)
"""Ways for a revisit to be over that say: this page may not be used any more."""


def is_answer(page: RecrawlPage, outcome: Outcome) -> bool:
    """Whether *outcome* says what stands on *page* now; a 304 says so only if it was asked for."""
    is_text = 200 <= outcome.status < 300 or (outcome.status == 304 and page.validators.are_sent)
    return is_text and outcome.reason not in OPT_OUTS


def unmade(page: RecrawlPage, reason: Reason, days: float) -> RecrawlPage:
    """*page* when a revisit of it was not made for *reason*."""
    after = replace(page, last=days)
    return replace(after, state=Standing.OPTED_OUT, since=days) if reason in OPT_OUTS else after


def after_revisit(page: RecrawlPage, outcome: Outcome, found: int, days: float) -> RecrawlPage:
    """*page* when a revisit of it was answered by *outcome* and *found* so many new links."""
    if outcome.status in (404, 410):
        return _missed(replace(page, last=days), outcome.status == 410, days)
    if not is_answer(page, outcome):
        return unmade(page, outcome.reason, days)
    after = replace(page, last=days, state=Standing.LIVE, since=0.0)
    if outcome.status != 304:
        after.validators = Validators(outcome.text_key, outcome.modified, outcome.etag)
    if outcome.reason is Reason.KEPT:
        after.version = min(255, after.version + 1)
    if after.kind in (PAGE, HUB):
        score = min(_HUB_MAX, after.hub_score + _HUB_FOUND) if found else max(0, after.hub_score - 1)
        after.hub_score = score
        after.kind = HUB if score >= _HUB_FROM or not after.version else PAGE
        if not (score or after.version):
            after.state = Standing.FRUITLESS
            after.since = days
    return after


def _missed(page: RecrawlPage, is_gone: bool, days: float) -> RecrawlPage:
    since = page.since if page.state is Standing.MISSED else days
    is_gone = is_gone or days - since >= GONE_DAYS
    return replace(page, state=Standing.GONE if is_gone else Standing.MISSED, since=since)


def with_outcomes(changes: Changes, told: Mapping[int, tuple[Outcome, int | None]]) -> Changes:
    """*changes* whose ends say what came of their requests, as *told* by URL key, with what they can be asked by."""
    ends = [with_outcome(end, *told[end.key]) if end.key in told else end for end in changes.url_log.ends]
    noted = [(end.key, told[end.key][0]) for end in ends if end.reason in NOTED and end.key in told]
    validators = [(key, Validators(out.text_key, out.modified, out.etag).packed()) for key, out in noted]
    return replace(changes, url_log=replace(changes.url_log, ends=ends, validators=validators))
