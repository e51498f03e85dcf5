"""How many places on the workbench each address and each registrable domain holds, and how many it may (shares.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from spiderling.frontier.hosts.host import Host
from spiderling.frontier.scheduling.shares import Group

_LEAST = 8
"""Places that any group may hold, however few there are (chosen: a tenth of ten would be one host an address)."""


class Places:
    """The places that are taken; only groups that hold some are counted."""

    def __init__(self, number: int, share: float, usable: Callable[[], float]) -> None:
        """*number* of places; *share* of them that one group may hold, 0 to 1; *usable*: those that an address can use.

        An address holds twice as many as it can use at most, and _LEAST besides.
        """
        self._most = max(_LEAST, share * number)
        self._usable = usable
        self.held: Counter[Group] = Counter()
        """Places by group."""

    def acquire(self, host: Host) -> None:
        """*host* gets a place, under the address that it had last."""
        self._count(host.domain, 1)
        self.move(host, host.address)

    def release(self, host: Host) -> None:
        """*host* gives its place up."""
        self._count(host.domain, -1)
        self.move(host, "")

    def move(self, host: Host, address: str) -> None:
        """Count the place of *host* under *address* from now on."""
        self._count(host.place, -1)
        self._count(address, 1)
        host.place = address

    def is_full(self, group: Group, more: int = 0) -> bool:
        """Whether *group*, with *more* further places, would hold as many as it may, or more."""
        held = self.held.get(group, 0) + more
        return held >= self._most or (isinstance(group, str) and held >= 2 * self._usable() + _LEAST)

    def full_group(self, host: Host) -> Group | None:
        """The group of *host* that holds its share of the places; None if neither does."""
        return next((group for group in (host.domain, host.address) if self.is_full(group)), None)

    def has_too_many(self, host: Host) -> bool:
        """Whether a group of *host*, which holds a place, has more than its share, since no other host needed it."""
        return self.is_full(host.domain, -1) or self.is_full(host.place, -1)

    def _count(self, group: Group, change: int) -> None:
        if group:
            self.held[group] += change
            if not self.held[group]:
                del self.held[group]
