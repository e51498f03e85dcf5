"""Hosts that have URLs and no place on the workbench: by rank, then first come, first served; 4 bytes each.

After BUbiNG's virtualiser (Boldi et al. 2018), which keeps the queues of most hosts on disk; here
the records of the hosts are there too.  A host that is not due within a minute waits apart until it is.
Hosts under a preferred top-level domain (``SPIDERLING_PREFER_TLDS``) have a line of their own, which is
served three times out of four while hosts wait in both.  Each of the two is made of one line for each
rank, and which rank is served is drawn (ranking/strategy.py).
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Sequence

import numpy as np

from spiderling.frontier.hosts import RANKS
from spiderling.frontier.scheduling.workbench import Group

LONG_S = 60.0
"""Seconds; a host that is due later than this is not waited for: it waits apart, and needs neither place nor address
(chosen: twelve intervals of a host)."""
PREFERRED_TURNS = 4
"""While hosts wait in both lines, every fourth turn goes to one outside the preferred domains (chosen)."""
_RANKS_IN = [[rank for rank in range(RANKS) if mask >> rank & 1] for mask in range(1 << RANKS)]
"""Bit mask -> the ranks that it stands for, bit n for rank n."""


class _Line:
    """Ids in the order in which they came."""

    def __init__(self) -> None:
        self.last = array("I")
        """Those that came last."""
        self._first = array("I")
        """Those before them, backwards."""

    def __len__(self) -> int:
        return len(self._first) + len(self.last)

    def pop(self) -> int:
        if not self._first:
            self._first = self.last[::-1]
            self.last = array("I")
        return self._first.pop()


class Backlog:
    """Ids of hosts, each line in the order in which they came.

    A host whose rank has changed must be pushed again; its former entry is then skipped.
    """

    def __init__(
        self,
        prefers: Callable[[int], int] = lambda host_id: 0,
        rank_of: Callable[[int], int] = lambda host_id: 0,
        draw: Callable[[Sequence[int]], int] = min,
    ) -> None:
        self._prefers = prefers
        self._rank_of = rank_of
        self._draw = draw
        self._lines = [[_Line() for _ in range(RANKS)] for _ in range(2)]
        """The line of the others and that of preferred hosts, each by rank."""
        self._waited_in = [0, 0]
        """For each of the two, a bit mask of the ranks whose line is not empty: it is needed often."""
        self._number = 0
        self._turn = 0
        self._snoozed: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return self._number + len(self._snoozed)

    def push(self, host_id: int, due: float, now: float) -> None:
        """Add *host_id* to the end of its line, or apart if it is not due within a minute."""
        if due > now + LONG_S:
            heapq.heappush(self._snoozed, (due, host_id))
        else:
            which = self._prefers(host_id)
            rank = self._rank_of(host_id)
            self._lines[which][rank].last.append(host_id)
            self._waited_in[which] |= 1 << rank
            self._number += 1

    def extend(self, host_ids: Sequence[int]) -> None:
        """Add these to the ends of their lines, in this order."""
        ids = np.array(host_ids, np.uint32)
        preferred, ranks = (np.fromiter(map(of, host_ids), np.uint8, len(ids)) for of in (self._prefers, self._rank_of))
        for which, lines in enumerate(self._lines):
            for rank, line in enumerate(lines):
                line.last.frombytes(ids[(preferred == which) & (ranks == rank)].tobytes())
                self._waited_in[which] |= bool(len(line)) << rank
        self._number += len(host_ids)

    def pop(self, now: float) -> int | None:
        """Take out the host that is next at *now*; None if none is."""
        if self._snoozed and self._snoozed[0][0] <= now:
            return heapq.heappop(self._snoozed)[1]
        others, preferred = self._waited_in
        while others or preferred:
            which = int(not others)
            if others and preferred:
                self._turn = (self._turn + 1) % PREFERRED_TURNS
                which = int(self._turn > 0)
            rank = self._draw(_RANKS_IN[self._waited_in[which]])
            line = self._lines[which][rank]
            host_id = line.pop()
            self._number -= 1
            if not len(line):
                self._waited_in[which] &= ~(1 << rank)
            if self._rank_of(host_id) == rank:
                return host_id
            others, preferred = self._waited_in
        return None

    def hasten(self, now: float) -> None:
        """Take out all that wait apart from *now* on: the caller pushes them again that are not due."""
        self._snoozed = [(min(due, now), host_id) for due, host_id in self._snoozed]

    def best_rank(self) -> int:
        """The best rank in the lines; RANKS if they are empty."""
        mask = self._waited_in[0] | self._waited_in[1] | 1 << RANKS
        return (mask & -mask).bit_length() - 1

    def next_due(self) -> float | None:
        """When a host can next be taken out; 0: at once; None: none waits."""
        if self.best_rank() < RANKS:
            return 0.0
        return self._snoozed[0][0] if self._snoozed else None


class FairBacklog:
    """A ``Backlog`` in which hosts wait apart from the common line while their group holds its share of the places.

    A group is an address or a registrable domain (workbench.Shares; its share: schedule.Places).  Each such group has a
    backlog of its own, 4 bytes a host, so a farm of 20,000 hosts does not fill the line.  When the group may have
    another place, its first host comes back to the end of the line.
    """

    def __init__(self, new_line: Callable[[], Backlog], is_full: Callable[[Group, int], bool]) -> None:
        """*is_full*: whether a group, with a number of further places, would hold its share."""
        self._new_line = new_line
        self._is_full = is_full
        self._line = new_line()
        self._apart: dict[Group, Backlog] = {}
        self._called: dict[int, Group] = {}
        """Id of a host that has come back into the line -> the group with which it waited apart."""

    def __len__(self) -> int:
        return len(self._line) + sum(map(len, self._apart.values()))

    def push(self, host_id: int, due: float, now: float) -> None:
        """Add *host_id* to the end of the line (``Backlog.push``)."""
        self._line.push(host_id, due, now)

    def extend(self, host_ids: Sequence[int]) -> None:
        """Add these to the end of the line, in this order."""
        self._line.extend(host_ids)

    def has_others(self, now: float) -> bool:
        """Whether at *now* a host waits in the line."""
        due = self._line.next_due()
        return due is not None and due <= now

    def set_apart(self, group: Group, host_id: int, due: float, now: float) -> None:
        """*host_id* waits apart, behind the others of *group*, which holds its share of places."""
        line = self._apart.get(group)
        if line is None:
            line = self._apart[group] = self._new_line()
        line.push(host_id, due, now)

    def pop(self, now: float) -> int | None:
        """Take out the next host of the line; None if it is empty."""
        self._call(now)
        host_id = self._line.pop(now)
        if host_id is not None:
            self._called.pop(host_id, None)
        return host_id

    def pop_apart(self, now: float) -> int | None:
        """Take out a host that waits apart, for a place that no host in the line needs; groups take turns."""
        for group in list(self._apart):
            line = self._apart.pop(group)
            host_id = line.pop(now)
            if len(line):
                self._apart[group] = line
            if host_id is not None:
                return host_id
        return None

    def _call(self, now: float) -> None:
        """Move the first host of one group to the end of the line if the group may have another place."""
        if not self._apart:
            return
        group = next(iter(self._apart))
        line = self._apart.pop(group)
        called = list(self._called.values()).count(group)
        if not self._is_full(group, called) and (host_id := line.pop(now)) is not None:
            self._called[host_id] = group
            self._line.push(host_id, now, now)
        if len(line):
            self._apart[group] = line

    def hasten(self, now: float) -> None:
        """`Backlog.hasten`, for all lines."""
        for line in (self._line, *self._apart.values()):
            line.hasten(now)

    def best_rank(self) -> int:
        """The best rank in the line, or of the hosts apart if the line is empty; RANKS if no host waits."""
        best = self._line.best_rank()
        return min((line.best_rank() for line in self._apart.values()), default=RANKS) if best == RANKS else best

    def next_due(self) -> float | None:
        """When a host can next be taken out; 0: at once; None: none waits."""
        dues = [line.next_due() for line in (self._line, *self._apart.values())]
        return min((due for due in dues if due is not None), default=None)
