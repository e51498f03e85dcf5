"""Hosts that have URLs and no place on the workbench: first come, first served, 4 bytes each.

After BUbiNG's virtualiser (Boldi et al. 2018), which keeps the queues of most hosts on
disk; here the hosts themselves are there as well.  Who is due much later waits apart.
"""

from __future__ import annotations

import heapq
from array import array

_APART_AFTER_S = 60.0
_COMPACT_ABOVE = 1024


class Backlog:
    """Ids of hosts in the order in which they came."""

    def __init__(self) -> None:
        self._ring = array("I")
        self._used = 0
        self._snoozed: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._ring) - self._used + len(self._snoozed)

    def push(self, host_id: int, due: float, now: float) -> None:
        """*host_id* comes to the end; a host that is not due for a minute comes back when it is."""
        if due > now + _APART_AFTER_S:
            heapq.heappush(self._snoozed, (due, host_id))
        else:
            self._ring.append(host_id)

    def pop(self, now: float) -> int | None:
        """The host that is next at *now*."""
        if self._snoozed and self._snoozed[0][0] <= now:
            return heapq.heappop(self._snoozed)[1]
        if self._used == len(self._ring):
            return None
        host_id = self._ring[self._used]
        self._used += 1
        if self._used > _COMPACT_ABOVE and 2 * self._used > len(self._ring):
            del self._ring[: self._used]
            self._used = 0
        return host_id

    def next_due(self) -> float | None:
        """When ``pop`` will next give a host: 0 at once."""
        if self._used < len(self._ring):
            return 0.0
        return self._snoozed[0][0] if self._snoozed else None
