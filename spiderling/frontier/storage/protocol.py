"""What the frontier and its store (sqlite.py) give each other: rows, the batch of changes, what a restart reads.

How the store holds queues: A *slot* is one rank band of one host, ``host << 4 | band``.  The newest URLs of a
slot are its *tail*.  Tails are in memory and in the store's table ``log``.  A *flush* turns all tails into chunks
of up to 256 URLs and empties the log.  A chunk's id is ``slot << 34 | generation << 12 | part``, where
*generation* is the number of the flush.  So the chunks of a host are neighbours in the table, in the order in
which they are used.  The host's row says how many URLs of each band's first chunk are used up.  A URL in a queue
is one line of bytes (queues.py).

The crawl's totals are kept over time, from which reports draw how yield and speed changed.  A *tick* is ten seconds.
Each batch overwrites the row of its tick.  Old rows are thinned: one row a minute stays after an hour, one in ten
minutes after a day, one in two hours after thirty days.  A year takes under 10,000 rows of 100 bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from spiderling.base.errors import DamageError
from spiderling.frontier.hosts import RANKS
from spiderling.frontier.storage.url_log import UrlLogBatch

BAND_BITS = 4  # bits of a slot that hold the band; there are 10 bands
CHUNK_URLS = 256  # URLs of a chunk, unless a tail has too many for 4,096 chunks (chosen: a few kB, read in one piece)
_PART_BITS = 12  # bits of a chunk's id that hold its number within the flush of its slot
_GENERATION_BITS = 22  # bits of a chunk's id that hold the number of the flush: enough for 4 million flushes
_SLOT_SHIFT = _PART_BITS + _GENERATION_BITS
HOST_SHIFT = _SLOT_SHIFT + BAND_BITS  # a chunk's host is ``id >> HOST_SHIFT``


def slots_of_host(host_id: int) -> range:
    """The slots of a host, best band first."""
    first = host_id << BAND_BITS
    return range(first, first + RANKS)


def slot_of_chunk(chunk: int) -> int:
    return chunk >> _SLOT_SHIFT


def generation_of(chunk: int) -> int:
    return chunk >> _PART_BITS & (1 << _GENERATION_BITS) - 1


def used_of(host_id: int, positions: str) -> dict[int, int]:
    """Slot -> URLs of its first chunk that are used up, read from the column ``positions``; raises DamageError."""
    try:
        pairs = [tuple(map(int, pair.split(":"))) for pair in positions.split()]
        return {host_id << BAND_BITS | band: used for band, used in pairs}
    except ValueError as error:
        raise DamageError(f"the queue of host {host_id} is damaged: its positions are {positions[:80]!r}.") from error


def chunks_of(slot: int, generation: int, lines: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """(id, lines) of each chunk that the tail *lines* of *slot* becomes in the flush *generation*."""
    size = max(CHUNK_URLS, -(-len(lines) >> _PART_BITS))
    first = slot << _SLOT_SHIFT | generation << _PART_BITS
    for part, start in enumerate(range(0, len(lines), size)):
        yield first + part, lines[start : start + size]


class StoredHost(NamedTuple):
    """The columns of the table ``host``; the Host in memory has other names for some (host_table.py)."""

    id: int
    name: str
    state: str
    distance: int
    pages: int = 0
    documents: int = 0
    words: int = 0
    downloaded_bytes: int = 0
    kept_bytes: int = 0
    waiting: int = 0  # URLs in its queue, plus the one in transit; 0 if the host is closed
    parked: int = 0  # the same number for a closed host, whose URLs count as ended until it is reopened; else 0
    due: float = 0.0
    crawl_delay_s: float = 0.0
    slowdown: float = 1.0
    failures: int = 0
    exempt: int = 0  # 1: pinned open by the user; negative: reopened for lack of hosts (host_closing.py)
    address: str = ""
    positions: str = ""
    """``band:used`` for each band, separated by spaces: how many URLs of its first chunk are used up."""
    first: bytes = b""  # lines of URLs that were handed out and given back; they are handed out before those in chunks
    transit: bytes | None = None  # line of the URL in transit; after a kill it waits again


def lines_before_chunks(transit: bytes | None, first: bytes) -> list[bytes]:
    """The lines of a host's columns ``transit`` and ``first``: they are handed out before those in chunks."""
    return [line for line in (transit, *first.split(b"\n")) if line]


class RobotsRecord(NamedTuple):
    """What was learned of one file of an origin: a row of the table ``robots`` but for its key (known_files.py)."""

    status: str  # a RobotsStatus
    fetched: float  # when ``body`` was fetched; without one, when it was asked for
    expires: float
    failures: int = 0
    body: bytes = b""  # zlib-compressed text of the rules; empty if no answer ever came or counts


class ConsentRow(NamedTuple):
    """An answer of a site to a request for one of its opt-out files, given from the time ``first`` to ``last``."""

    origin: str
    file: str  # path of the file
    answer: str  # HTTP status, or the reason why there is none
    digest: str  # SHA-256 of the file, hexadecimal
    first: float
    last: float
    says: str  # the opt-outs that the file states for the front page


class SegmentRow(NamedTuple):
    """An output file and how much of it is committed; no two kinds have a file of the same name."""

    name: str
    length_bytes: int
    entries: int  # number of its documents, records or pages
    kind: str = "corpus"  # the directory that holds it (corpus/segments.py)


EPOCH_BITS = 32
"""Bits of a message's number within its epoch, which stands above them: how often the sender was taken over from a
snapshot.  Chosen: 4,000 million messages, and numbers below 2**52 in a million epochs."""


class OutboxRow(NamedTuple):
    """A message to another shard (cluster/), which stays until that shard has committed what it took from it."""

    shard: int
    number: int  # the messages to one shard are numbered from 1 on, without gaps, and in each epoch anew
    time: float  # when it was begun
    links: int  # links and single URLs in it
    message: bytes


class PeerRow(NamedTuple):
    """How far the exchange with another shard has come."""

    shard: int
    sent: int = 0  # number of the newest message to it
    received: int = 0  # number of the last message from it whose content was taken in


TICK_S = 10
_HOUR = 3600 // TICK_S  # an hour, in ticks
_THINNED = ((_HOUR, _HOUR // 60), (24 * _HOUR, _HOUR // 6), (30 * 24 * _HOUR, 2 * _HOUR))
"""(age, step), both in ticks: of rows older than *age* the last one of each *step* stays."""


class HistoryRow(NamedTuple):
    """Totals of the crawl at the end of one tick; the columns of table ``history``."""

    tick: int
    time: float
    time_s: int  # running time over all sessions
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    discovered: int
    waiting: int
    hosts: int
    at_work: int  # hosts with URLs to be fetched
    retired: int


def thinning(row: HistoryRow) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Conditions (SQL, values) of the rows to delete after *row* was written, at every sixth tick."""
    for age, step in () if row.tick % 6 else _THINNED:
        condition = (
            "tick < ? AND EXISTS (SELECT 1 FROM history AS later "
            "WHERE later.tick > history.tick AND later.tick < (history.tick / ? + 1) * ?)"
        )
        yield condition, (row.tick - age, step, step)


class Flush(NamedTuple):
    """All tails at the moment of a batch: the store makes them chunks of *generation* and empties the log."""

    generation: int
    tails: dict[int, list[bytes]]  # slot -> lines; must not be changed until the batch is committed


@dataclass(frozen=True, slots=True)
class Changes:
    """One batch: it holds what changed since the last one.  ``counts`` are totals, not differences."""

    hosts: list[StoredHost] = field(default_factory=list)  # new rows and rows that replace their former ones
    host_updates: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(waiting, parked, distance, id) of hosts of which nothing else changed."""
    added: list[tuple[int, bytes]] = field(default_factory=list)  # (slot, line) of URLs that were added to a tail
    popped: dict[int, int] = field(default_factory=dict)
    """Slot -> number of URLs that left the front of its tail; applied after ``added``."""
    used: list[int] = field(default_factory=list)  # ids of chunks to delete, because every URL of them is used up
    dropped: list[int] = field(default_factory=list)  # ids of hosts whose chunks are all to be deleted
    flush: Flush | None = None  # if given, it is applied instead of ``added`` and ``popped``
    seen: Iterable[int] = ()  # keys of URLs that were discovered
    digests: Iterable[int] = ()  # digests of pages and texts that were kept
    robots: dict[str, RobotsRecord] = field(default_factory=dict)  # by origin, or by the address of another file
    consent: list[ConsentRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    url_log: UrlLogBatch = field(default_factory=UrlLogBatch)
    history: HistoryRow | None = None  # the crawl's totals at the moment of the batch
    outbox: list[OutboxRow] = field(default_factory=list)
    """New messages to other shards, and longer ones that replace their former ones."""
    acknowledged: dict[int, int] = field(default_factory=dict)
    """Shard -> number up to which it has committed the messages to it, which are deleted."""
    peers: list[PeerRow] = field(default_factory=list)
    blobs: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """Table (tables.BLOBS) -> id -> content, which replaces that of before."""
    rewritten: Mapping[str, Iterable[Sequence[Any]]] = field(default_factory=dict)
    """Table -> rows, which take the place of all that it has; of a numbered table without their numbers."""


@dataclass(slots=True)
class State:
    """All committed data except what the other methods of the store read on demand."""

    tails: dict[int, list[bytes]] = field(default_factory=dict)  # slot -> lines, replayed from the log
    seen: array[int] = field(default_factory=partial(array, "q"))
    digests: array[int] = field(default_factory=partial(array, "q"))
    segments: list[SegmentRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    peers: list[PeerRow] = field(default_factory=list)
    outboxes: dict[int, int] = field(default_factory=dict)  # shard -> number of the first message that waits for it


Key = TypeVar("Key")
Row = TypeVar("Row")


class Rows(Generic[Key, Row]):
    """Rows of a table by key: those that the store has, and those that it does not have yet."""

    def __init__(self, lookup: Callable[[Key], Row | None]) -> None:
        """*lookup* gives a row that the store has."""
        self._lookup = lookup
        self._new: dict[Key, Row] = {}
        self._draining: dict[Key, Row] = {}  # those of a batch that is not committed yet

    def __bool__(self) -> bool:
        """Whether the store has something to learn."""
        return bool(self._new)

    def put(self, key: Key, row: Row) -> None:
        self._new[key] = row

    def get(self, key: Key) -> Row | None:
        return self._new.get(key) or self._draining.get(key) or self._stored(key)

    def _stored(self, key: Key) -> Row | None:
        return self._lookup(key)

    def drain(self) -> dict[Key, Row]:
        """The rows that have changed since the last call."""
        self._draining, self._new = self._new, {}
        return self._draining

    def committed(self) -> None:
        """The store has what was drained last."""
        self._draining = {}
