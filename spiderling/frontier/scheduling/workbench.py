"""The workbench: hosts with work, in lanes (lane.py), and the times at which their addresses may be connected to.

All hosts stand in one lane until a group has had more than its share of the requests (shares.py).  Then its hosts come
into a lane of their own, which is passed over while another lane holds a host that is due.  Which rank is next is drawn
(ranking/draws.py), among all lanes that may be served.

Invariant: a host stands on the workbench at most once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from spiderling.frontier.hosts.host import Host
from spiderling.frontier.scheduling import shares
from spiderling.frontier.scheduling.lane import Address, Lane
from spiderling.frontier.scheduling.shares import Shares

NO_ADDRESS = ""
"""The address of hosts whose next step needs no connection (dead names, names to be asked again)."""

_COMMON: shares.Lane = ()


class Workbench:
    """Hosts leave with ``pop`` and come with ``add_host``; times are the caller's."""

    def __init__(
        self,
        draw: Callable[[Sequence[int]], int] = min,
        rank_of: Callable[[Host], int] = lambda host: 0,
        most: float = 1.0,
    ) -> None:
        """*draw* chooses one of several ranks; *most*: the share of one address and of one domain."""
        self._draw = draw
        self._rank_of = rank_of
        self.shares = Shares(most)
        self._addresses: dict[str, Address] = {}
        self._serial = itertools.count(1).__next__
        self._common = Lane(rank_of, self._serial)
        self._lanes = {_COMMON: self._common}
        self._prune_above = shares.PRUNE_ABOVE

    def add_host(self, host: Host, address: str) -> None:
        """Put *host* under *address*, to be popped when both are due; it leaves its former place."""
        host.renew_version()
        self._lane(self.shares.lane(host.domain, address)).add_host(host, self.address(address))

    def remove(self, host: Host) -> None:
        """Take *host* off; nothing happens if it is not there."""
        host.renew_version()

    def postpone(self, address: str, due: float) -> None:
        """No host of *address* is popped before *due*."""
        entry = self.address(address)
        entry.due = max(entry.due, due)  # the lanes see it when the address comes to the front

    def pop(self, now: float) -> tuple[Host, str] | None:
        """A host that is due at *now*, the one of its rank that has waited longest, and its address; it leaves."""
        while (found := self._next(now)) is not None:
            groups, rank = found
            host, address = self._lanes[groups].pop_rank(rank)
            if self.shares.lane(host.domain, address) == groups:
                return host, address
            self.add_host(host, address)  # since it came, its watched groups have changed
        return None

    def _next(self, now: float) -> tuple[shares.Lane, int] | None:
        """The lane and the rank that are to be served at *now*."""
        if len(self._lanes) == 1:
            ranks = self._common.ripen(now)
            return (_COMMON, self._draw(ranks)) if ranks else None
        waited_in = {groups: ranks for groups, lane in self._lanes.items() if (ranks := lane.ripen(now))}
        if not waited_in:
            return None
        excess = {groups: self.shares.excess(groups) for groups in waited_in}
        least = min(excess.values())
        served = [groups for groups in waited_in if excess[groups] == least]
        rank = self._draw(sorted({rank for groups in served for rank in waited_in[groups]}))
        lanes = [groups for groups in served if rank in waited_in[groups]]
        return min(lanes, key=lambda groups: self._lanes[groups].waits_since(rank)), rank

    def hasten(self, latest: float) -> None:
        """No address is due later than at the time *latest*; its hosts must be added again."""
        for entry in self._addresses.values():
            entry.due = min(entry.due, latest)

    def hosts(self) -> list[Host]:
        """All hosts on it, in the order in which they would be due."""
        return [entry[3] for entry in sorted(entry for lane in self._lanes.values() for entry in lane.entries())]

    def next_due(self) -> float | None:
        """When ``pop`` will next give a host; None when it holds none."""
        dues = [lane.next_due() for lane in self._lanes.values()]
        return min((due for due in dues if due is not None), default=None)

    def forget_idle(self, now: float) -> None:
        """Drop lanes without hosts, and addresses without hosts whose interval is over.

        All addresses are looked through only when their number has doubled since the last time.
        """
        if len(self._lanes) > 1:
            self._lanes = {
                groups: lane for groups, lane in self._lanes.items() if not groups or lane.next_due() is not None
            }
        if len(self._addresses) < self._prune_above:
            return
        held = {name for lane in self._lanes.values() for name in lane.forget_empty()}
        self._addresses = {name: entry for name, entry in self._addresses.items() if name in held or entry.due > now}
        self._prune_above = max(shares.PRUNE_ABOVE, 2 * len(self._addresses))

    def address(self, name: str) -> Address:
        """The record of an address; what was noted there is forgotten when its interval is over."""
        entry = self._addresses.get(name)
        if entry is None:
            entry = self._addresses[name] = Address(name)
        return entry

    def _lane(self, groups: shares.Lane) -> Lane:
        lane = self._lanes.get(groups)
        if lane is None:
            lane = self._lanes[groups] = Lane(self._rank_of, self._serial)
        return lane
