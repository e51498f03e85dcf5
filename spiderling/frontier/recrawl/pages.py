"""The pages of a recrawl: on disk a row of the table ``recrawled`` each, in memory columns of 18 bytes a page.

A row has 29 bytes beside ETag and address.  It is read when its page is to be revisited, and written when it was.  The
columns, in the order of the keys, host by host, hold what a sweep needs to judge all pages.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID
from spiderling.frontier.recrawl.policy import PAGE
from spiderling.frontier.storage.sqlite import SqliteStore

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

    def packed(self) -> bytes:
        return _FIXED.pack(self.text_key, self.modified, len(self.etag)) + self.etag


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

    def packed(self) -> bytes:
        """Its row in the table ``recrawled``."""
        text_key, modified, etag = self.validators
        states = self.kind, self.state, self.hub_score, min(255, self.version), len(etag)
        return _ROW.pack(self.found_at, self.last, self.since, text_key, modified, *states) + etag + self.url.encode()

    @classmethod
    def unpacked(cls, key: int, row: bytes) -> RecrawlPage:
        """The page of a row; raises DamageError for what ``packed`` cannot have made."""
        try:
            found_at, last, since, text_key, modified, kind, state, score, version, length = _ROW.unpack_from(row)
            url = row[_ROW.size + length :].decode()
            validators = Validators(text_key, modified, row[_ROW.size : _ROW.size + length])
            return cls(key, url, found_at, last, validators, kind, Standing(state), since, score, version)
        except (struct.error, ValueError) as error:
            raise DamageError(
                f"a row of recrawled pages is damaged: {error}; see `scrapy inspect JOBDIR --check`."
            ) from None


class Blobs:
    """Rows of one of ``Changes.blobs``: those that the store has, and those that it does not have yet."""

    def __init__(self, store: SqliteStore, table: str) -> None:
        self._store = store
        self._table = table
        self._new: dict[int, bytes] = {}
        self._draining: dict[int, bytes] = {}  # those of a batch that is not committed yet

    def __bool__(self) -> bool:
        """Whether the store has something to learn."""
        return bool(self._new)

    def put(self, row: int, content: bytes) -> None:
        self._new[row] = content

    def get(self, row: int) -> bytes | None:
        return self._new.get(row) or self._draining.get(row) or self._store.blob(self._table, row)

    def drain(self) -> dict[int, bytes]:
        """What the store must learn."""
        self._draining, self._new = self._new, {}
        return self._draining

    def committed(self) -> None:
        """The store has what was drained last."""
        self._draining = {}


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
        """Pages that are revisited."""
        return len(self) - self.over

    def add(self, pages: Iterable[RecrawlPage]) -> None:
        """Add *pages*."""
        values = ((p.key & _KEY_MASK, p.found_at, p.last, p.kind, flags_of(p.state)) for p in pages)
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
        at = self.place(key)
        return at if at < len(self.rows) and self.rows["key"][at] == np.uint64(key & _KEY_MASK) else None

    def place(self, key: int) -> int:
        """Where a page with this key stands, or would stand."""
        # numpy's own search would copy the whole column first, as its numbers do not lie side by side
        return bisect_left(self.rows["key"], np.uint64(key & _KEY_MASK))

    def flag(self, at: int, flag: int, is_set: bool) -> None:
        """Set a flag of the page at a place."""
        flags = self.rows["flags"]
        flags[at] = flags[at] | flag if is_set else flags[at] & (255 - flag)

    def update(self, at: int, page: RecrawlPage) -> None:
        """Take in what a revisit has changed; the page is not planned any more."""
        row = self.rows[at]
        was_over = bool(row["flags"] & OVER)
        row["last"] = page.last
        row["kind"] = page.kind
        row["flags"] = flags_of(page.state)
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


def flags_of(state: Standing) -> int:
    """The flags of a page that is not planned."""
    if state is Standing.MISSED:
        return MISSED
    return 0 if state is Standing.LIVE else OVER


def host_of(key: int) -> int:
    """The id of the host of a URL key."""
    return key >> HASH_BITS & MAX_HOST_ID


def hosts_of(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """The ids of the hosts of *rows*."""
    hosts: NDArray[np.int64] = (rows["key"] >> np.uint64(HASH_BITS)).astype(np.int64)
    return hosts
