"""A lane of the workbench: hosts with work, ordered by the time at which they are due; those that are due, by rank.

Two nested heaps, after BUbiNG (Boldi et al. 2018; Mercator's back queues before it):
addresses ordered by the later of their own due time and that of their first host;
in each address the hosts ordered by their due time.  So a thousand hosts on one
address cost one entry of the outer heap, or two: hosts that need a file of their site
first stand apart.  Addresses that are due stand in two heaps for each rank, that of
their first host.  A host that needs a file comes after those whose page is due, as if
it had come PATIENCE_S later: its page is not due before another interval is over, and
may never be wanted.

Invariant: an entry whose version is not the host's, or whose key is not the queue's, is
stale and skipped.  One whose address is due later by now gets its new place when it comes
to the front.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from spiderling.frontier.hosts.host import Host
from spiderling.frontier.hosts.ranks import RANKS

PATIENCE_S = 60.0
"""Seconds for which hosts that need a file let others pass; chosen: hosts of a rank still take turns."""


@dataclass(slots=True, eq=False)
class Address:
    """When an address may be connected to, whatever the host; times are the caller's."""

    name: str
    due: float = 0.0
    last_permitted: float = -math.inf
    """When a connection was last permitted or opened; -inf: never, or long ago."""
    last_started: float = -math.inf
    """When one was last opened."""
    opened_by: int = 0
    """The host for which that was, by id; 0: unknown."""


@dataclass(slots=True, eq=False)
class _Queue:
    """The hosts of one address that need a file first, or those that do not."""

    address: Address
    needs_file: bool
    key: float = -1.0
    """Its time in the outer heap; -1 when it is not there."""
    hosts: list[tuple[float, int, int, Host]] = field(default_factory=list)
    """(due, serial number, version, host)"""


Entry = tuple[float, int, _Queue]
"""(due, serial number, queue)"""


class Lane:
    """Hosts, each under the address of its next request."""

    def __init__(self, rank_of: Callable[[Host], int], serial: Callable[[], int]) -> None:
        """*serial* numbers the entries, so that of those due at one time the first is served first."""
        self._rank_of = rank_of
        self._serial = serial
        self._queues: dict[tuple[str, bool], _Queue] = {}
        self._heap: list[Entry] = []
        self._ready: list[tuple[list[Entry], list[Entry]]] = [([], []) for _ in range(RANKS)]
        """By rank: addresses with a page that is due, and those with a host that needs a file."""

    def add_host(self, host: Host, address: Address) -> None:
        """Add *host* under *address*; the caller must have renewed its version."""
        place = address.name, host.needs_file
        queue = self._queues.get(place)
        if queue is None:
            queue = self._queues[place] = _Queue(address, host.needs_file)
        heapq.heappush(queue.hosts, (host.due, self._serial(), host.version, host))
        self._schedule(queue)

    def ripen(self, now: float) -> list[int]:
        """Sort addresses that are due at *now* by rank; returns the ranks with a host that is due, best first."""
        ranks = [
            rank for rank, pair in enumerate(self._ready) if any([self._front(ready) is not None for ready in pair])
        ]  # before the loop: an address whose entry is stale goes back to the heap
        while (due := self._front(self._heap)) is not None and due <= now:
            entry = heapq.heappop(self._heap)
            rank = self._rank_of(entry[2].hosts[0][3])
            heapq.heappush(self._ready[rank][entry[2].needs_file], entry)
            if rank not in ranks:
                insort(ranks, rank)
        return ranks

    def waits_since(self, rank: int) -> tuple[float, int]:
        """(due, serial number) of the first address of *rank*; one must wait there."""
        return self._first(rank)[0][:2]

    def pop_rank(self, rank: int) -> tuple[Host, str]:
        """The host of *rank* that is next, and its address; it leaves.  One must wait there."""
        queue = heapq.heappop(self._first(rank))[2]
        queue.key = -1.0
        host = heapq.heappop(queue.hosts)[3]
        host.renew_version()
        self._schedule(queue)
        return host, queue.address.name

    def _first(self, rank: int) -> list[Entry]:
        """The addresses of *rank* of which the first is next; one must wait there."""
        pages, files = self._ready[rank]
        if self._front(pages) is None:
            return files
        is_file_late = self._front(files) is not None and _first_due(files) + PATIENCE_S < _first_due(pages)
        return files if is_file_late else pages

    def entries(self) -> Iterator[tuple[float, int, int, Host]]:
        """(Due, serial number, version, host) of each host."""
        for queue in self._queues.values():
            yield from (entry for entry in queue.hosts if entry[2] == entry[3].version)

    def next_due(self) -> float | None:
        """When it will next hold a host that is due; None when it holds none."""
        fronts = [self._front(ready) for pair in self._ready for ready in pair if ready]
        return min((due for due in (*fronts, self._front(self._heap)) if due is not None), default=None)

    def forget_empty(self) -> set[str]:
        """Drop addresses without hosts; returns the names of the others."""
        self._queues = {place: queue for place, queue in self._queues.items() if queue.hosts}
        return {name for name, _ in self._queues}

    def _front(self, heap: list[Entry]) -> float | None:
        """When the first of *heap* is due; stale entries before it are dropped."""
        while heap:
            due, _, queue = heap[0]
            if due == queue.key:
                _drop_stale(queue)
                if _key(queue) == due:
                    return due
                queue.key = -1.0
                self._schedule(queue)
            heapq.heappop(heap)
        return None

    def _schedule(self, queue: _Queue) -> None:
        _drop_stale(queue)
        key = _key(queue)
        if key != queue.key:
            queue.key = key
            if key >= 0:
                heapq.heappush(self._heap, (key, self._serial(), queue))


def _key(queue: _Queue) -> float:
    return max(queue.address.due, queue.hosts[0][0], 0.0) if queue.hosts else -1.0


def _first_due(ready: list[Entry]) -> float:
    """When the host that is first in *ready* was due; its address may have had other requests since."""
    return ready[0][2].hosts[0][0]


def _drop_stale(queue: _Queue) -> None:
    while queue.hosts and queue.hosts[0][2] != queue.hosts[0][3].version:
        heapq.heappop(queue.hosts)
