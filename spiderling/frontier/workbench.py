"""The workbench: hosts with work, ordered by the time they are due, and of those that are due by rank.

Two nested heaps, after BUbiNG (Boldi et al. 2018; Mercator's back queues before it):
addresses ordered by the later of their own due time and that of their first host;
in each address the hosts ordered by their due time.  So a thousand hosts on one
address cost one entry of the outer heap.  Addresses that are due stand in a heap for
each rank, that of their first host; which rank is next is drawn (draws.py).

Invariants: a host stands on the workbench at most once; an entry whose ticket is
not the host's, or whose key is not the address's, is stale and skipped.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spiderling.frontier.hosts import Host
from spiderling.frontier.priority import RANKS

Heap = list[tuple[float, int, str]]
"""(due, serial number, address)"""

NO_ADDRESS = ""
"""Hosts whose next step needs no connection (dead names, names to be asked again)."""

_PRUNE_ABOVE = 1000


@dataclass(slots=True, eq=False)
class _Address:
    due: float = 0.0
    last_start: float = -math.inf
    last_connect: float = -math.inf
    key: float = -1.0
    """Its time in the outer heap; -1 when it is not there."""
    hosts: list[tuple[float, int, int, Host]] = field(default_factory=list)


class Workbench:
    """Acquire with ``pop``, give back with ``add``; times are the caller's."""

    def __init__(
        self, draw: Callable[[Sequence[int]], int] = min, rank_of: Callable[[Host], int] = lambda host: 0
    ) -> None:
        """*draw* chooses one of several ranks."""
        self._draw, self._rank_of = draw, rank_of
        self._addresses: dict[str, _Address] = {}
        self._heap: Heap = []
        self._ready: list[Heap] = [[] for _ in range(RANKS)]
        self._serial = 0
        self._prune_above = _PRUNE_ABOVE

    def add(self, host: Host, address: str) -> None:
        """Put *host* under *address*, to be popped when both are due; it leaves its former place."""
        host.ticket += 1
        entry = self._addresses.setdefault(address, _Address())
        self._serial += 1
        heapq.heappush(entry.hosts, (host.due, self._serial, host.ticket, host))
        self._schedule(address, entry)

    def remove(self, host: Host) -> None:
        """Take *host* off; nothing happens if it is not there."""
        host.ticket += 1

    def charge(self, address: str, due: float) -> None:
        """No host of *address* is popped before *due*."""
        entry = self._addresses.setdefault(address, _Address())
        if due > entry.due:
            entry.due = due
            self._schedule(address, entry)

    def start(self, address: str, now: float) -> None:
        """A connection to *address* may be opened."""
        self._addresses.setdefault(address, _Address()).last_start = now

    def connect(self, address: str, now: float) -> None:
        """A connection to *address* is being opened."""
        entry = self._addresses.setdefault(address, _Address())
        entry.last_start = entry.last_connect = now

    def last_start(self, address: str) -> float:
        """When a connection to *address* was last allowed or opened; -inf once that is over by its interval."""
        entry = self._addresses.get(address)
        return entry.last_start if entry else -math.inf

    def last_connect(self, address: str) -> float:
        """When a connection to *address* was last opened, as in ``last_start``."""
        entry = self._addresses.get(address)
        return entry.last_connect if entry else -math.inf

    def pop(self, now: float) -> tuple[Host, str] | None:
        """A host that is due at *now*, of its rank the one that has waited longest, and its address; it leaves."""
        ranks = self._waited_in()  # who stands there no more goes back to the heap, maybe to be due at once
        while (due := self._front(self._heap)) is not None and due <= now:
            entry = heapq.heappop(self._heap)
            rank = self._rank_of(self._addresses[entry[2]].hosts[0][3])
            heapq.heappush(self._ready[rank], entry)
            if rank not in ranks:
                insort(ranks, rank)
        return self._take(self._draw(ranks)) if ranks else None

    def pop_worse(self, rank: int) -> Host | None:
        """A host of the worst rank that was due at the last ``pop``, if that is worse than *rank*; it leaves."""
        ranks = self._waited_in(rank + 1)
        return self._take(ranks[-1])[0] if ranks else None

    def _take(self, rank: int) -> tuple[Host, str]:
        address = heapq.heappop(self._ready[rank])[2]
        entry = self._addresses[address]
        entry.key = -1.0
        host = heapq.heappop(entry.hosts)[3]
        host.ticket += 1
        self._schedule(address, entry)
        return host, address

    def next_due(self) -> float | None:
        """When ``pop`` will next give a host; None when it holds none."""
        dues = [self._ready[rank][0][0] for rank in self._waited_in()]
        later = self._front(self._heap)
        return min(dues if later is None else [*dues, later], default=None)

    def _waited_in(self, first: int = 0) -> list[int]:
        """The ranks from *first* on that hold a host."""
        ready = self._ready
        return [rank for rank in range(first, RANKS) if ready[rank] and self._front(ready[rank]) is not None]

    def _front(self, heap: Heap) -> float | None:
        """When the first of *heap* is due, once those are dropped that stand elsewhere by now."""
        while heap:
            due, _, address = heap[0]
            entry = self._addresses.get(address)
            if entry is not None and due == entry.key:
                self._drop_stale(entry)
                if self._key(entry) == due:
                    return due
                entry.key = -1.0
                self._schedule(address, entry)
            heapq.heappop(heap)
        return None

    def forget_idle(self, now: float) -> None:
        """Drop addresses without hosts whose interval has passed, so that memory follows the active hosts.

        Looks through all of them only when their number has doubled since.
        """
        if len(self._addresses) < self._prune_above:
            return
        idle = [name for name, entry in self._addresses.items() if not entry.hosts and entry.due <= now]
        for address in idle:
            del self._addresses[address]
        self._prune_above = max(_PRUNE_ABOVE, 2 * len(self._addresses))

    def _schedule(self, address: str, entry: _Address) -> None:
        self._drop_stale(entry)
        key = self._key(entry)
        if key != entry.key:
            entry.key = key
            if key >= 0:
                self._serial += 1
                heapq.heappush(self._heap, (key, self._serial, address))

    @staticmethod
    def _key(entry: _Address) -> float:
        return max(entry.due, entry.hosts[0][0], 0.0) if entry.hosts else -1.0

    @staticmethod
    def _drop_stale(entry: _Address) -> None:
        while entry.hosts and entry.hosts[0][2] != entry.hosts[0][3].ticket:
            heapq.heappop(entry.hosts)
