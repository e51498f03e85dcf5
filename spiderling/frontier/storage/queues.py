"""The queues of all hosts: heads in memory, the rest as chunks on the shelf, the newest URLs as tails.

What is promised of the order in which a host's URLs are handed out: first those given
back unmade; then of a band, one for each rank, that is drawn; within a band first in, first out.

A host has a Head only while it is in memory.  A band's URLs are used from its first
chunk on and then from its tail; a chunk is read when it is reached, and deleted when it
is used up.  When the tails hold FLUSH_URLS they are handed over to the store as chunks
of a new generation; until that is committed they are read from memory as if they were.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spiderling.base.errors import DamageError
from spiderling.frontier.hosts.host import Host, HostStates, QueuedUrl
from spiderling.frontier.hosts.ranks import RANKS
from spiderling.frontier.storage.protocol import (
    BAND_BITS,
    Flush,
    Shelf,
    chunks_of,
    generation_of,
    slot_of_chunk,
    used_of,
)
from spiderling.frontier.storage.queue_lines import line_of, stored_url

FLUSH_URLS = 200_000
_LET_GO_AT_ONCE = 4096
"""Slots of tails whose memory a batch gives back: that of all of them would stop the event loop for .1 s and more."""
_BAND_MASK = (1 << BAND_BITS) - 1


@dataclass(slots=True)
class Head:
    """What is in memory of one host's queue."""

    chunks: list[int]
    """Ids of the chunks that are not used up, in order."""
    generation: int
    """The last generation of which ``chunks`` holds everything."""
    used: dict[int, int] = field(default_factory=dict)
    """Slot -> URLs of its first chunk that are used up."""
    lines: dict[int, list[bytes]] = field(default_factory=dict)
    """Slot -> lines of its first chunk, if it was read."""
    first: list[QueuedUrl] = field(default_factory=list)
    next_up: QueuedUrl | None = None
    """What ``peek`` gave; None when it has to look again."""
    next_slot: int | None = None
    """Where that stands; None for ``first``."""


class QueueChanges:
    """What the store does not know of the queues yet."""

    def __init__(self) -> None:
        self.grown: set[int] = set()
        self.added: list[tuple[int, bytes]] = []
        self.popped: dict[int, int] = {}
        self.used: list[int] = []
        self.dropped: list[int] = []

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.popped or self.used or self.dropped)


class Queues:
    """Every queue by its host's id; ``states.queued`` holds their lengths."""

    def __init__(self, shelf: Shelf, states: HostStates, draw: Callable[[Sequence[int]], int] = min) -> None:
        """*draw* chooses one of several ranks."""
        self.shelf, self._draw = shelf, draw
        self._states = states
        self._heads: dict[int, Head] = {}
        self._tails: dict[int, list[bytes]] = {}
        self._in_tails = 0
        self._flushing: dict[int, list[bytes]] = {}
        self._written: dict[int, list[bytes]] = {}
        """What is left of tails that the shelf has, and nobody reads."""
        self.generation = 0
        """Of the last flush that was begun."""
        self._committed = 0
        """Of the last flush that the shelf shows."""
        self._changes = QueueChanges()

    def load_tails(self, tails: dict[int, list[bytes]], generation: int) -> None:
        """Take up the tails that the log held."""
        self._tails, self._in_tails = tails, sum(map(len, tails.values()))
        self.generation = self._committed = generation

    # -- hosts come into memory and leave it

    def load_head(
        self, host: Host, positions: str = "", first: list[bytes] | None = None, is_new: bool = False
    ) -> None:
        """*host* is in memory from now on; *positions* and *first* are its row's."""
        head = Head([], self.generation if is_new else -1)
        head.used = used_of(host.id, positions)
        head.first = [stored_url(line, host) for line in first or []]
        self._heads[host.id] = head

    def release_head(self, host_id: int) -> None:
        """The host leaves memory; the store knows all of its queue."""
        del self._heads[host_id]

    def positions(self, host_id: int) -> str:
        """The column ``positions`` of a host in memory."""
        used = self._heads[host_id].used
        return " ".join(f"{slot & _BAND_MASK}:{number}" for slot, number in used.items() if number)

    def first_lines(self, host_id: int) -> list[bytes]:
        return [line_of(url) for url in self._heads[host_id].first]

    # -- in and out

    def push(self, host_id: int, rank: int, line: bytes) -> None:
        """A URL comes to the end of its band."""
        self.push_all(host_id, ((rank, line, None),))

    def push_all(self, host_id: int, entries: Sequence[tuple[int, bytes, object]]) -> None:
        """URLs of one host (rank, line, whatever) come to the ends of their bands."""
        tails, added, first, best = self._tails, self._changes.added, host_id << BAND_BITS, 1 << 62
        for rank, line, _ in entries:
            slot = first | rank
            tail = tails.get(slot)
            if tail is None:
                tails[slot] = [line]
            else:
                tail.append(line)
            added.append((slot, line))
            if slot < best:
                best = slot
        self._in_tails += len(entries)
        self._states.queued[host_id] += len(entries)
        self._changes.grown.add(host_id)
        head = self._heads.get(host_id)
        if head is not None and head.next_slot is not None and best < head.next_slot:
            head.next_up = head.next_slot = None

    def push_front(self, url: QueuedUrl) -> None:
        """A URL that was handed out and came back is the next one."""
        head = self._heads[url.host.id]
        head.first.insert(0, url)
        head.next_up = head.next_slot = None
        self._states.queued[url.host.id] += 1

    def peek(self, host: Host) -> QueuedUrl:
        """The URL that is next; it stays where it is.  There must be one."""
        head = self._heads[host.id]
        if head.next_up is None:
            if head.first:
                head.next_up = head.first[0]
            else:
                first = host.id << BAND_BITS
                head.next_slot = first | self._draw([slot & _BAND_MASK for slot in self._filled(host, head)])
                head.next_up = stored_url(self._front(head, head.next_slot), host)
        return head.next_up

    def pop(self, host: Host) -> QueuedUrl:
        """The URL that is next leaves the queue."""
        url, head = self.peek(host), self._heads[host.id]
        self._remove(head, head.next_slot)
        self._states.queued[host.id] -= 1
        return url

    def worst_band(self, host: Host) -> int:
        """The last band that holds a URL; 0 for an empty queue."""
        return max(self._slots(host.id, self._heads[host.id]), default=0) & _BAND_MASK

    def drop_worst_url(self, host: Host) -> QueuedUrl:
        """The URL of the last band that has waited longest leaves the queue."""
        head = self._heads[host.id]
        slot = max(self._filled(host, head))
        url = stored_url(self._front(head, slot), host)
        self._remove(head, slot)
        self._states.queued[host.id] -= 1
        return url

    def drop_queue(self, host: Host) -> int:
        """The whole queue is given up; returns its length.  The work does not depend on it."""
        number, head = self._states.queued[host.id], self._heads[host.id]
        for slot in range(host.id << BAND_BITS, (host.id << BAND_BITS) + RANKS):
            tail = self._tails.pop(slot, None)
            if tail is not None:
                self._in_tails -= len(tail)
                self._changes.popped[slot] = self._changes.popped.get(slot, 0) + len(tail)
        self._heads[host.id] = Head([], self.generation)
        if head.chunks or head.generation != self.generation:
            self._changes.dropped.append(host.id)
        self._states.queued[host.id] = 0
        return number

    def _filled(self, host: Host, head: Head) -> list[int]:
        """``_slots`` of a host that counts URLs; raises DamageError if none is there."""
        slots = self._slots(host.id, head)
        if not slots:
            number = self._states.queued[host.id]
            raise DamageError(f"the queue of {host.name} is damaged: {number} URLs wait in it, and none is there.")
        return slots

    def _slots(self, host_id: int, head: Head) -> list[int]:
        """The slots that hold URLs, best first."""
        self._find_chunks(host_id, head)
        first = host_id << BAND_BITS
        slots = [slot for slot in range(first, first + RANKS) if slot in self._tails]
        if not head.chunks:
            return slots
        at = 0
        while at < len(head.chunks):
            slots.append(slot_of_chunk(head.chunks[at]))
            at = bisect_left(head.chunks, slots[-1] + 1, at, key=slot_of_chunk)
        return sorted({*slots})

    def _find_chunks(self, host_id: int, head: Head) -> None:
        """Take in the chunks that came since the last look."""
        if head.generation == self.generation:
            return
        if head.generation < self._committed:
            for chunk in self.shelf.chunk_ids(host_id):
                if head.generation < generation_of(chunk) <= self._committed:
                    insort(head.chunks, chunk)
        if self._flushing and self.generation > self._committed:
            first = host_id << BAND_BITS
            for slot in range(first, first + RANKS):
                for chunk, _ in chunks_of(slot, self.generation, self._flushing.get(slot, [])):
                    insort(head.chunks, chunk)
        head.generation = self.generation

    def _first_chunk(self, head: Head, slot: int) -> int | None:
        at = bisect_left(head.chunks, slot, key=slot_of_chunk)
        return at if at < len(head.chunks) and slot_of_chunk(head.chunks[at]) == slot else None

    def _front(self, head: Head, slot: int) -> bytes:
        """The line that is next in *slot*."""
        at = self._first_chunk(head, slot)
        return self._tails[slot][0] if at is None else self._lines(head, slot, at)[head.used.get(slot, 0)]

    def _lines(self, head: Head, slot: int, at: int) -> list[bytes]:
        lines = head.lines.get(slot)
        if lines is None:
            chunk = head.chunks[at]
            if generation_of(chunk) > self._committed:
                lines = dict(chunks_of(slot, self.generation, self._flushing[slot]))[chunk]
            else:
                lines = self.shelf.chunk(chunk)
            if not 0 <= head.used.get(slot, 0) < len(lines):
                raise DamageError(f"chunk {chunk} of a queue is damaged: it has fewer URLs than were taken from it.")
            head.lines[slot] = lines
        return lines

    def _remove(self, head: Head, slot: int | None) -> None:
        """The front of *slot*, or of ``first``, is used up."""
        head.next_up = head.next_slot = None
        if slot is None:
            head.first.pop(0)
            return
        at = self._first_chunk(head, slot)
        if at is None:
            self._shorten_tail(slot)
            return
        used = head.used.get(slot, 0) + 1
        if used < len(self._lines(head, slot, at)):
            head.used[slot] = used
            return
        self._changes.used.append(head.chunks.pop(at))
        head.used.pop(slot, None)
        del head.lines[slot]

    def _shorten_tail(self, slot: int) -> None:
        tail = self._tails[slot]
        del tail[0]
        if not tail:
            del self._tails[slot]
        self._in_tails -= 1
        self._changes.popped[slot] = self._changes.popped.get(slot, 0) + 1

    # -- the store

    @property
    def has_changed(self) -> bool:
        return not self._changes.is_empty

    def drain_changes(self) -> tuple[QueueChanges, Flush | None]:
        """What changed since the last call; with a Flush when the tails are long enough and the last one is over."""
        changes, self._changes = self._changes, QueueChanges()
        for _ in range(min(_LET_GO_AT_ONCE, len(self._written))):
            self._written.popitem()
        if self._in_tails < FLUSH_URLS or self.generation > self._committed:
            return changes, None
        self.generation += 1
        self._flushing, self._tails, self._in_tails = self._tails, {}, 0
        for head in self._heads.values():  # what stood in a tail stands in a chunk now
            head.next_up = head.next_slot = None
        return changes, Flush(self.generation, self._flushing)

    def note_commit(self) -> None:
        """The batch that was drained last is on the shelf."""
        if self._flushing:
            self._written, self._flushing = self._flushing, {}
        self._committed = self.generation
