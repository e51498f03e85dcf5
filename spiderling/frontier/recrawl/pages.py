"""The pages of a recrawl: on disk a row of the table ``recrawled`` each, in memory columns of 18 bytes a page.

A row has 29 bytes beside ETag and address.  It is read when its page is to be revisited, and written when it was.  The
columns, in the order of the keys, host by host, hold what a sweep needs to judge all pages.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from binascii import Error as NoBase64
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, canonicalize_again, url_key
from spiderling.frontier.recrawl.policy import FEED, HUB, PAGE, SITEMAP
from spiderling.frontier.storage.url_log import UrlEnd

MAX_ETAG_BYTES = 40  # of an ETag; a longer one is not stored (chosen: those of usual servers have up to 35)
_FIXED = struct.Struct("<QIB")


class Validators(NamedTuple):
    """What is noted of one version of a page, by which it can be asked for again (RFC 9110, 8.8)."""

    text_key: int = 0  # 64 bits of the digest of its text; 0: unknown
    modified: int = 0  # Last-Modified, seconds since 1970; 0: none
    etag: bytes = b""

    @property
    def are_sent(self) -> bool:
        """Whether there is something by which a server can say that the page is as it was."""
        return bool(self.etag or self.modified)

    def pack(self) -> bytes:
        return _FIXED.pack(self.text_key, self.modified, len(self.etag)) + self.etag


def validators_of(outcome: Outcome) -> Validators:
    return Validators(outcome.text_key, outcome.modified, outcome.etag)


def unpacked_validators(packed: bytes) -> Iterator[Validators]:
    """The validators whose packed forms stand in a row; raises DamageError."""
    at = 0
    while at < len(packed):
        try:
            text_key, modified, length = _FIXED.unpack_from(packed, at)
        except struct.error as error:
            raise DamageError(f"validators of pages are damaged: {error}.") from None
        at += _FIXED.size + length
        yield Validators(text_key, modified, packed[at - length : at])


_ROW = struct.Struct("<fffQI5B")  # of a page, but for its ETag and its address
_ANNOUNCED = 0x80  # the bit of ``kind``, in a row, that says ``is_announced``


class Standing(IntEnum):
    """What is known of a page that is revisited."""

    LIVE = 0
    MISSED = 1  # its last answer was 404, first at the time ``since``
    GONE = 2  # 410, or 404 at two revisits a week apart; it is not revisited any more
    OPTED_OUT = 3  # it may not be used, since then; it is not revisited any more
    FRUITLESS = 4  # it is not in the corpus, and several revisits found no link: it is not revisited any more


@dataclass(slots=True)
class RecrawlPage:
    """A page, hub, feed or sitemap that has ended; times are days since the recrawl began."""

    key: int
    url: str
    found_at: float  # when it was first fetched
    last: float
    validators: Validators
    kind: int = PAGE
    state: Standing = Standing.LIVE
    since: float = 0.0  # since when it stands so, unless it is live
    hub_score: int = 0  # what revisits of it found of late (recrawl.py)
    version: int = 0  # documents that were kept of it, at most 255; 0: it is not in the corpus
    is_announced: bool = False  # whether a date says that it has changed

    def pack(self) -> bytes:
        text_key, modified, etag = self.validators
        kind = self.kind | _ANNOUNCED * self.is_announced
        states = kind, self.state, self.hub_score, min(255, self.version), len(etag)
        return _ROW.pack(self.found_at, self.last, self.since, text_key, modified, *states) + etag + self.url.encode()

    @classmethod
    def unpack(cls, key: int, row: bytes) -> RecrawlPage:
        """The page of a row; raises DamageError for what ``pack`` cannot have made."""
        try:
            found_at, last, since, text_key, modified, kind, state, score, version, length = _ROW.unpack_from(row)
            url = row[_ROW.size + length :].decode()
            validators = Validators(text_key, modified, row[_ROW.size : _ROW.size + length])
            known = Standing(state), since, score, version, kind >= _ANNOUNCED
            return cls(key, url, found_at, last, validators, kind & ~_ANNOUNCED, *known)
        except (struct.error, ValueError) as error:
            raise DamageError(
                f"a row of recrawled pages is damaged: {error}; see `scrapy inspect JOBDIR --check`."
            ) from None


_PAGE = np.dtype([("key", "u8"), ("found_at", "f4"), ("last", "f4"), ("kind", "u1"), ("flags", "u1")])
ANNOUNCED = 1  # flag: a date says that it has changed
PLANNED = 2  # flag: a revisit is planned or in transit
MISSED = 4  # flag: its last answer was 404
OVER = 8  # flag: it is not revisited any more
_KEY_MASK = (1 << 64) - 1
_BLOCK_PAGES = 20_000  # pages that one step of a sweep judges, in some milliseconds (chosen)
_BLOCK_HOSTS = 5_000  # and most hosts, each of which costs some 2 microseconds; chosen


class Columns:
    """All recrawled pages in memory, by key; added ones count from the next ``merge`` on."""

    def __init__(self) -> None:
        self.rows: NDArray[np.void] = np.empty(0, _PAGE)
        self._added: list[NDArray[np.void]] = []
        self.over = 0  # pages that are not revisited any more

    def __len__(self) -> int:
        return len(self.rows) + sum(map(len, self._added))

    @property
    def live(self) -> int:
        return len(self) - self.over

    def add(self, pages: Iterable[RecrawlPage]) -> None:
        values = ((p.key & _KEY_MASK, p.found_at, p.last, p.kind, flags_of(p)) for p in pages)
        rows = np.fromiter(values, _PAGE)
        self.over += int(np.count_nonzero(rows["flags"] & OVER))
        self._added.append(rows)

    def merge(self) -> None:
        """Bring the added pages into order."""
        if self._added:
            rows = np.concatenate([self.rows, *self._added])
            self._added = []
            self.rows = rows[np.argsort(rows["key"], kind="stable")]

    def find(self, key: int) -> int | None:
        """The place of a page; None if it is not recrawled, or not merged yet."""
        # numpy's own search would copy the whole column first, as its numbers do not lie side by side
        at = bisect_left(self.rows["key"], np.uint64(key & _KEY_MASK))
        return at if at < len(self.rows) and self.rows["key"][at] == np.uint64(key & _KEY_MASK) else None

    def flag(self, at: int, flag: int, is_set: bool) -> None:
        """Set a flag of the page at a place."""
        flags = self.rows["flags"]
        flags[at] = flags[at] | flag if is_set else flags[at] & (255 - flag)

    def update(self, at: int, page: RecrawlPage, planned: int = 0) -> None:
        """Take in what has changed; the page is not *planned* any more, unless that is PLANNED."""
        row = self.rows[at]
        was_over = bool(row["flags"] & OVER)
        row["last"] = page.last
        row["kind"] = page.kind
        row["flags"] = flags_of(page) | planned
        self.over += bool(row["flags"] & OVER) - was_over

    def blocks(self) -> Iterator[tuple[int, int]]:
        """(first, behind the last) of parts that hold whole hosts, but for hosts larger than a part."""
        hosts = self.rows["key"] >> np.uint64(HASH_BITS)
        starts = np.flatnonzero(hosts[1:] != hosts[:-1]) + 1
        bounds = np.append(starts, len(hosts))
        begin = 0
        while begin < len(hosts):
            following, behind = np.searchsorted(bounds, (begin, begin + _BLOCK_PAGES), "right")
            last = min(following + _BLOCK_HOSTS, max(following + 1, behind)) - 1
            end = min(int(bounds[last]), begin + _BLOCK_PAGES)
            yield begin, end
            begin = end


def flags_of(page: RecrawlPage) -> int:
    """The flags of a page that is not planned."""
    announced = ANNOUNCED * page.is_announced
    if page.state is Standing.MISSED:
        return MISSED | announced
    return announced if page.state is Standing.LIVE else OVER


def host_of(key: int) -> int:
    return key >> HASH_BITS & MAX_HOST_ID


def hosts_of(rows: NDArray[np.void]) -> NDArray[np.int64]:
    return (rows["key"] >> np.uint64(HASH_BITS)).astype(np.int64)


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


def pages_to_recrawl(
    ended: Iterable[tuple[UrlEnd, float]],
    validators: Mapping[int, Validators],
    links: Mapping[int, int],
    days_at: Callable[[float], float],
) -> tuple[list[RecrawlPage], dict[int, int]]:
    """Kept pages, sitemaps, feeds, and pages that gave many new *links*; with the words of new ones, by key.

    *ended*: ends with the times of their batches.  New are pages that were kept since the recrawl began.  *days_at*:
    from seconds since 1970 to days since then.
    """
    pages = []
    first_words = {}
    for end, time in ended:
        kind = _kind(end, links.get(end.key, 0))
        if kind is None or (kind in (PAGE, HUB) and not _is_plain(end)):
            continue
        days = days_at(time)
        page = RecrawlPage(end.key, end.url, days, days, validators.get(end.key, Validators()), kind)
        page.version = int(end.reason == Reason.KEPT.value)
        page.hub_score = HUB_CANDIDATE if kind == HUB else 0
        pages.append(page)
        if page.version and days > 0:
            first_words[end.key] = end.words
    return pages, first_words


def _kind(end: UrlEnd, links: int) -> int | None:
    """What *end* is in the recrawl; None: nothing."""
    if end.reason == Reason.KEPT.value:
        return PAGE
    if end.reason == Reason.SITEMAP.value:
        return (FEED if _mark(end) == b"feed" else SITEMAP) if 200 <= end.status < 300 else None
    return HUB if end.reason in WITHOUT_TEXT and links >= HUB_LINKS and not end.payload else None


def _mark(end: UrlEnd) -> bytes:
    try:
        return b64decode(end.payload)
    except NoBase64:
        return b""


def _is_plain(end: UrlEnd) -> bool:
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
        return _note_missing(replace(page, last=days), outcome.status == 410, days)
    if not is_answer(page, outcome):
        return unmade(page, outcome.reason, days)
    after = replace(page, last=days, state=Standing.LIVE, since=0.0)
    if outcome.status != 304:
        after.validators = validators_of(outcome)
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


def _note_missing(page: RecrawlPage, is_gone: bool, days: float) -> RecrawlPage:
    since = page.since if page.state is Standing.MISSED else days
    is_gone = is_gone or days - since >= GONE_DAYS
    return replace(page, state=Standing.GONE if is_gone else Standing.MISSED, since=since)
