"""A backlog in which hosts wait apart from the common line while their group holds its share of the places.

A group is an address or a registrable domain (shares.py; its share: places.py).  Each such group has a backlog of its
own, 4 bytes a host, so a farm of 20,000 hosts does not fill the line.  When the group may have another place, its first
host comes back to the end of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spiderling.frontier.hosts.ranks import RANKS
from spiderling.frontier.scheduling.backlog import Backlog
from spiderling.frontier.scheduling.shares import Group


class FairBacklog:
    """A ``Backlog`` in which a group waits apart while it holds its share of places."""

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
