"""Hosts that have URLs and no place on the workbench: first come, first served, 4 bytes each.

After BUbiNG's virtualiser (Boldi et al. 2018), which keeps the queues of most hosts on
disk; here the hosts themselves are there as well.  Who is due much later waits apart, and
those that are preferred (``SPIDERLING_PREFER_TLDS``) have a line of their own, which is
served three times of four while both are waited in: nobody waits for ever.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable

_APART_AFTER_S = 60.0
_COMPACT_ABOVE = 1024
PREFERRED_TURNS = 4
"""Of so many hosts, one comes from the line of the others."""


class _Line:
    """Ids in the order in which they came."""

    def __init__(self) -> None:
        self.ring = array("I")
        self._used = 0

    def __len__(self) -> int:
        return len(self.ring) - self._used

    def pop(self) -> int:
        host_id = self.ring[self._used]
        self._used += 1
        if self._used > _COMPACT_ABOVE and 2 * self._used > len(self.ring):
            del self.ring[: self._used]
            self._used = 0
        return host_id


class Backlog:
    """Ids of hosts, each line in the order in which they came."""

    def __init__(self, prefers: Callable[[int], bool] = lambda host_id: False) -> None:
        self._prefers = prefers
        self._others, self._preferred = _Line(), _Line()
        self._turn = 0
        self._snoozed: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._others) + len(self._preferred) + len(self._snoozed)

    def push(self, host_id: int, due: float, now: float) -> None:
        """*host_id* comes to the end; a host that is not due for a minute comes back when it is."""
        if due > now + _APART_AFTER_S:
            heapq.heappush(self._snoozed, (due, host_id))
        else:
            line = self._preferred if self._prefers(host_id) else self._others
            line.ring.append(host_id)

    def pop(self, now: float) -> int | None:
        """The host that is next at *now*."""
        if self._snoozed and self._snoozed[0][0] <= now:
            return heapq.heappop(self._snoozed)[1]
        if not self._preferred or not self._others:
            line = self._preferred or self._others
            return line.pop() if line else None
        self._turn = (self._turn + 1) % PREFERRED_TURNS
        return (self._preferred if self._turn else self._others).pop()

    def next_due(self) -> float | None:
        """When ``pop`` will next give a host: 0 at once."""
        if self._preferred or self._others:
            return 0.0
        return self._snoozed[0][0] if self._snoozed else None
