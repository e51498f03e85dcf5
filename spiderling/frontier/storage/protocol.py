"""What the frontier and its store say to each other: rows, batches of changes, and the two sides of the store.

Queues.  A *slot* is one rank band of one host: ``host << 4 | band``.  New URLs of a slot
are its *tail*: in memory, and in the store's log.  Now and then all tails are flushed
together: they become chunks of up to 256 URLs, and the log starts anew.  A chunk's id is
``slot << 34 | generation << 12 | part``, so the chunks of a host lie side by side in the
order in which they are used; the host's row holds how many URLs of the first chunk of
each band are used up.  A URL in a queue is one line of bytes (queue_lines.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from spiderling.base.errors import DamageError
from spiderling.frontier.hosts.host import HostColumns
from spiderling.frontier.storage.history import HistoryRow
from spiderling.frontier.storage.url_log import UrlLogBatch

BAND_BITS = 4
CHUNK_URLS = 256
_PART_BITS, _GENERATION_BITS = 12, 22
_SLOT_SHIFT = _PART_BITS + _GENERATION_BITS
HOST_SHIFT = _SLOT_SHIFT + BAND_BITS
"""A chunk's host is ``id >> HOST_SHIFT``."""


def slot_of_chunk(chunk: int) -> int:
    return chunk >> _SLOT_SHIFT


def generation_of(chunk: int) -> int:
    return chunk >> _PART_BITS & (1 << _GENERATION_BITS) - 1


def used_of(host_id: int, positions: str) -> dict[int, int]:
    """Slot -> how many URLs of its first chunk are used up, by the column ``positions``; raises DamageError."""
    try:
        pairs = [tuple(map(int, pair.split(":"))) for pair in positions.split()]
        return {host_id << BAND_BITS | band: used for band, used in pairs}
    except ValueError as error:
        raise DamageError(f"the queue of host {host_id} is damaged: its positions are {positions[:80]!r}.") from error


def chunks_of(slot: int, generation: int, lines: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """(id, lines) of the chunks that a tail becomes."""
    size = max(CHUNK_URLS, -(-len(lines) >> _PART_BITS))
    first = slot << _SLOT_SHIFT | generation << _PART_BITS
    for part, start in enumerate(range(0, len(lines), size)):
        yield first + part, lines[start : start + size]


class HostRow(NamedTuple):
    """One host record; the columns of table ``host``."""

    id: int
    name: str
    state: str
    distance: int
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    waiting: int
    """URLs in its queue, and the one in transit."""
    parked: int
    """The same of a closed host, whose URLs have ended for the time being."""
    due: float
    crawl_delay_s: float
    slowdown: float
    failures: int
    exempt: int
    """1: reopened by the user and not retired again; below 0: reopened so many times because the web ran dry."""
    address: str
    positions: str
    """``band:used`` of the first chunk of each band in use, with spaces."""
    first: bytes
    """Lines of URLs that come before those in chunks: handed out and given back."""
    transit: bytes | None
    """The line of the URL in transit; after a kill it waits again."""


class HostSummary(NamedTuple):
    """A host of which that is not all: asked before, closed, exempt or with a URL in transit."""

    id: int
    name: str
    state: str
    pages: int
    downloaded_bytes: int
    kept_bytes: int
    exempt: int
    in_transit: int


class RobotsRow(NamedTuple):
    origin: str
    status: str
    fetched: float
    expires: float
    failures: int
    body: bytes


class ConsentRow(NamedTuple):
    """What a site was asked, and what it answered from ``first`` to ``last``; a row for each different answer."""

    origin: str
    file: str
    """Path of the file that was asked for."""
    answer: str
    """HTTP status, or why there is none."""
    digest: str
    """SHA-256 of the file, hexadecimal."""
    first: float
    last: float
    says: str
    """Its opt-outs for the front page."""


class SegmentRow(NamedTuple):
    """A file of output; a name stands in one kind alone."""

    name: str
    length_bytes: int
    documents: int
    """Or whatever else its entries are: records, pages."""
    kind: str = "corpus"
    """The directory that holds it (corpus/segments.py)."""


class Flush(NamedTuple):
    """All tails at the moment of a batch; they become chunks of *generation* and the log is emptied."""

    generation: int
    tails: dict[int, list[bytes]]
    """Slot -> lines; nobody changes it until the batch is committed."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the last batch; counts are totals, not differences."""

    hosts: list[HostRow] = field(default_factory=list)
    host_updates: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(waiting, parked, distance, id) of other hosts whose queues have grown, or that are nearer now."""
    added: list[tuple[int, bytes]] = field(default_factory=list)
    """(slot, line) of URLs that came to the end of a tail."""
    popped: dict[int, int] = field(default_factory=dict)
    """Slot -> how many URLs left the front of its tail; applied after ``added``."""
    used: list[int] = field(default_factory=list)
    """Chunks of which every URL is used up."""
    dropped: list[int] = field(default_factory=list)
    """Hosts whose chunks are all deleted."""
    flush: Flush | None = None
    """It stands in place of ``added`` and ``popped``."""
    seen: Iterable[int] = ()
    digests: Iterable[int] = ()
    robots: list[RobotsRow] = field(default_factory=list)
    consent: list[ConsentRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    url_log: UrlLogBatch = field(default_factory=UrlLogBatch)
    history: HistoryRow | None = None
    """The totals at the moment of the batch."""


@dataclass(slots=True)
class State:
    """Everything that was committed, but for what is read when it is wanted (Shelf)."""

    tails: dict[int, list[bytes]] = field(default_factory=dict)
    """Slot -> lines, as the log has them."""
    seen: Iterable[int] = ()
    digests: Iterable[int] = ()
    segments: list[SegmentRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)


class Shelf(Protocol):
    """Where the frontier reads what it does not keep in memory; by one thread, also while another one commits."""

    def host(self, host_id: int) -> HostRow:
        """The committed row of a host; raises StorageError if there is none."""

    def host_columns(self) -> Iterator[HostColumns]:
        """All hosts from id 1 on, many at a time; raises JobdirError if one is missing."""

    def host_summaries(self) -> Iterator[HostSummary]:
        """Those with a mark, by id."""

    def chunk_ids(self, host_id: int) -> list[int]:
        """The chunks of a host in order."""

    def chunk(self, chunk_id: int) -> list[bytes]:
        """The lines of a chunk; raises StorageError if there is none."""

    def robots(self, key: str) -> RobotsRow | None:
        """The record of an origin's robots.txt, or of another file by its address."""


class Store(Shelf, Protocol):
    """The contract, tested by tests/contract/test_store.py for each implementation."""

    def load(self) -> State:
        """Everything committed so far; raises JobdirError if it cannot be read."""

    def commit(self, changes: Changes) -> None:
        """Apply all of *changes* or nothing; raises StorageError, after which the store must not be used."""

    def consents(self) -> list[ConsentRow]:
        """The consent ledger: what sites answered when they were asked, ordered by origin, file and time."""

    def close(self) -> None:
        """Release the file; committing afterwards raises StorageError."""


def replay(
    tails: dict[int, list[bytes]], added: Iterable[tuple[int, bytes]], popped: Iterable[tuple[int, int]]
) -> None:
    """Apply one batch of the log to *tails*; raises ValueError if more is popped than there is."""
    for slot, line in added:
        tails.setdefault(slot, []).append(line)
    for slot, number in popped:
        if not 0 <= number <= len(tails.get(slot, ())):
            raise ValueError(f"{number} URLs leave slot {slot}, which has fewer")
        del tails[slot][:number]
        if not tails[slot]:
            del tails[slot]
