"""The pages of a recrawl: on disk groups of up to 64 pages of a host, in memory columns of 20 bytes a page.

A group is a compressed row of the table ``recrawled``.  Pages of a host have similar URLs, so a page takes some 40
bytes beside its ETag.  A row is read when one of its pages is to be revisited, and written when one was.  The columns,
in the order of the keys, host by host, hold what a sweep needs to judge all pages.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError, StorageError
from spiderling.base.files import frame_packer, zstd
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID
from spiderling.frontier.recrawl.policy import PAGE
from spiderling.frontier.storage.protocol import Store

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


GROUP_PAGES = 64  # pages of a full group (chosen: a few kB, about a page of SQLite)
PART_BITS = 16  # bits of a group's id that hold its number within its host; those above are the host's id
MAX_PARTS = 1 << PART_BITS
_LEVEL = 3
_COLUMNS = (
    *(("key", "<i8"), ("found_at", "<f4"), ("last", "<f4"), ("since", "<f4"), ("text_key", "<u8")),
    *(("modified", "<u4"), ("kind", "u1"), ("state", "u1"), ("hub_score", "u1"), ("version", "u1")),
)
_ROW_BYTES = sum(np.dtype(kind).itemsize for _, kind in _COLUMNS)


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


def group_id(host: int, part: int) -> int:
    """The id of a row of the table ``recrawled``."""
    return host << PART_BITS | part


def host_and_part(group: int) -> tuple[int, int]:
    return group >> PART_BITS, group & MAX_PARTS - 1


class Group:
    """The pages of one group, column by column, since similar values compress better together."""

    def __init__(self, columns: list[NDArray[Any]], lines: list[bytes]) -> None:
        self._columns = columns
        self._lines = lines  # addresses, and behind them ETags

    @classmethod
    def of(cls, pages: Sequence[RecrawlPage]) -> Group:
        """A group of *pages*."""
        numbers = zip(*map(_values, pages), strict=True)
        columns = [np.array(values, kind) for values, (_, kind) in zip(numbers, _COLUMNS, strict=True)]
        return cls(columns, [*(page.url.encode() for page in pages), *(page.validators.etag for page in pages)])

    @classmethod
    def unpacked(cls, row: bytes) -> Group:
        """The group of a row; raises DamageError for what ``packed`` cannot have made."""
        try:
            data = bytearray(zstd.decompress(row))
            number = int.from_bytes(data[:2], "little")
            lines = bytes(data[2 + number * _ROW_BYTES :]).split(b"\n")
            if len(lines) != 2 * number or not number:
                raise ValueError(f"{number} pages have {len(lines)} lines")
            at = 2
            columns = []
            for _, kind in _COLUMNS:
                columns.append(np.frombuffer(data, kind, number, at))
                at += columns[-1].nbytes
            return cls(columns, lines)
        except (zstd.ZstdError, ValueError) as error:
            raise _damage(error) from None

    def packed(self) -> bytes:
        """The row."""
        columns = (column.tobytes() for column in self._columns)
        data = b"".join([len(self).to_bytes(2, "little"), *columns, b"\n".join(self._lines)])
        return frame_packer(_LEVEL, has_checksum=False)(data)

    def __len__(self) -> int:
        return len(self._lines) // 2

    def pages(self) -> list[RecrawlPage]:
        """All of them; raises DamageError, as `page` does."""
        return [self._page(at) for at in range(len(self))]

    def page(self, key: int) -> RecrawlPage:
        """The page with this key, which the group must hold."""
        return self._page(self._place(key))

    def put(self, page: RecrawlPage) -> None:
        """*page*, which the group must hold, has changed; its address never does."""
        at = self._place(page.key)
        for column, value in zip(self._columns, _values(page), strict=True):
            column[at] = value
        self._lines[len(self) + at] = page.validators.etag

    def _place(self, key: int) -> int:
        try:
            keys: list[int] = self._columns[0].tolist()
            return keys.index(key)
        except ValueError:
            raise _damage(f"page {key} is not there") from None

    def _page(self, at: int) -> RecrawlPage:
        key, found, last, since, text_key, modified, *states, version = (column[at].item() for column in self._columns)
        kind, state, score = states
        validators = Validators(text_key, modified, self._lines[len(self) + at])
        try:
            url = self._lines[at].decode()
            return RecrawlPage(key, url, found, last, validators, kind, Standing(state), since, score, version)
        except ValueError as error:
            raise _damage(error) from None


def _values(page: RecrawlPage) -> tuple[float, ...]:
    """What the columns have of it."""
    validators = page.validators
    times = page.key, page.found_at, page.last, page.since
    return *times, *validators[:2], page.kind, page.state, page.hub_score, min(255, page.version)


def _damage(error: Exception | str) -> DamageError:
    return DamageError(f"a row of recrawled pages is damaged: {error}; see `scrapy inspect JOBDIR --check`.")


_TABLE = "recrawled"


class Blobs:
    """Rows of one of ``Changes.blobs``: those that the store has, and those that it does not have yet."""

    def __init__(self, store: Store, table: str) -> None:
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


class Groups:
    """Groups that were read or changed since the last batch, and the others as the store has them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows = Blobs(store, _TABLE)
        self._open: dict[int, Group] = {}  # those that were read or changed
        self._changed: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._changed)

    def stored(self) -> Iterator[tuple[int, list[RecrawlPage]]]:
        """All groups as the store has them."""
        for group, row in self._store.blobs(_TABLE):
            yield group, Group.unpacked(row).pages()

    def get(self, group: int) -> Group:
        """The pages of a group, which must exist."""
        if group not in self._open:
            row = self._rows.get(group)
            if row is None:
                raise StorageError(f"the state is damaged: the recrawled pages {group} are missing.")
            self._open[group] = Group.unpacked(row)
        return self._open[group]

    def replace(self, group: int, page: RecrawlPage) -> None:
        """*page* of the group has changed."""
        self.get(group).put(page)
        self._changed.add(group)

    def add(self, host: int, pages: list[RecrawlPage], columns: Columns) -> None:
        """Recrawl *pages* of *host*, none of which is in *columns*: its last group is filled up first."""
        first, behind = (columns.place(number << HASH_BITS) for number in (host, host + 1))
        parts = columns.rows["part"][first:behind]
        part = int(parts.max()) if len(parts) else 0
        group = self.get(group_id(host, part)).pages() if len(parts) else []
        while pages:
            room = GROUP_PAGES - len(group)
            if room > 0:
                self._open[group_id(host, part)] = Group.of([*group, *pages[:room]])
                self._changed.add(group_id(host, part))
                columns.add(pages[:room], part)
                pages = pages[room:]
            part += 1
            group = []

    def drain(self) -> dict[int, bytes]:
        """The rows of the groups that have changed since the last call."""
        for group in self._changed:
            self._rows.put(group, self._open[group].packed())
        self._open.clear()
        self._changed.clear()
        return self._rows.drain()

    def committed(self) -> None:
        """The store has what was drained last."""
        self._rows.committed()


_PAGE = np.dtype([("key", "u8"), ("found_at", "f4"), ("last", "f4"), ("part", "u2"), ("kind", "u1"), ("flags", "u1")])
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

    def add(self, pages: Iterable[RecrawlPage], part: int) -> None:
        """Add *pages* of one group."""
        values = [(p.key & _KEY_MASK, p.found_at, p.last, part, p.kind, flags_of(p.state)) for p in pages]
        self.over += sum(bool(flags & OVER) for *_, flags in values)
        self._added.append(np.array(values, _PAGE))

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
