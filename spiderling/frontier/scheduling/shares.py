"""The share of the requests that may go to one group of hosts while hosts of other groups are due.

A group is an address, or a registrable domain: a link farm has thousands of hosts, each of which looks like any
other, but they stand on one address or under one domain.  Each request counts for both.  A group may have
``SPIDERLING_MAX_SHARE`` of the requests, and BURST beyond.  A group that has had more is passed over while a host of
any other group is due.  When none is, it is served at full pace, and that is not held against it (workbench.py).
This is a token bucket whose clock is the number of requests (ITU-T I.371, the generic cell rate algorithm).

A domain is identified by 16 bits of its name's hash (``Host.domain``), so one in
65,536 hosts is taken for one of a farm.
"""

from __future__ import annotations

BURST = 100
"""Requests beyond its share that a group may have (chosen: a crawl that begins with few hosts is not held up)."""
PRUNE_ABOVE = 1000
"""Groups, or addresses, above which those that are idle are dropped (chosen: looking through them takes .1 ms)."""

Group = int | str
"""The mark of a domain, or an address."""
Lane = tuple[Group, ...]
"""The watched groups that a host belongs to, none, one or two of them."""


class Shares:
    """The requests that each group had lately; a group is kept until these are within its share."""

    def __init__(self, most: float) -> None:
        """*most*: the share of one group, above 0 and up to 1, which means no bound."""
        self._price = 1 / most
        self._credit = BURST / most
        self._number = 0
        """Requests handed out."""
        self._paid_at: dict[Group, float] = {}
        """Group -> number of requests, of all groups, after which those that it had are within its share."""
        self._watched: set[Group] = set()
        """Groups that had more than share and BURST, until what they had is within the share."""
        self._prune_above = PRUNE_ABOVE

    def __len__(self) -> int:
        return len(self._paid_at)

    def charge(self, domain: int, address: str) -> None:
        """A request to a host of *domain* at *address* is handed out."""
        self._number += 1
        limit = self._number + self._credit
        for group in (domain, address):
            if not group:
                continue
            paid_at = max(self._paid_at.get(group, 0.0), self._number) + self._price
            if paid_at > limit:
                paid_at = limit + self._price  # what it had while nobody else was due is forgiven
                self._watched.add(group)
            self._paid_at[group] = paid_at
        if len(self._paid_at) > self._prune_above:
            self._prune()

    def lane(self, domain: int, address: str) -> Lane:
        """The watched groups of a host."""
        watched = self._watched
        return tuple(group for group in (domain, address) if group in watched) if watched else ()

    def excess(self, lane: Lane) -> int:
        """How many of these groups have had more than their share and BURST."""
        limit = self._number + self._credit
        return sum(self._paid_at.get(group, 0.0) > limit for group in lane)

    def _prune(self) -> None:
        self._paid_at = {group: paid_at for group, paid_at in self._paid_at.items() if paid_at > self._number}
        self._watched &= self._paid_at.keys()
        self._prune_above = max(PRUNE_ABOVE, 2 * len(self._paid_at))
