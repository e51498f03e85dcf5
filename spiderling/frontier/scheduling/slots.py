"""Starts at addresses that hosts of several shards may share: each is reserved before it is made.

All shards of a crawl reserve them in one place (cluster/slots.py), so that no two starts at an address are closer than
its interval.  A slot is for one request and lasts for a moment; who comes too late needs another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

LONGEST_S = 2.0
"""Seconds for which a slot is open at most (chosen: Redis may be a slow network away)."""


AHEAD_S = 5.0
"""Seconds ahead of which no slot is wanted; chosen: none is given away further ahead, and an interval may change."""


class Wanted(NamedTuple):
    """A start that is to be reserved."""

    host_id: int
    address: str
    after: float
    """It may not be earlier."""


class _Held(NamedTuple):
    address: str
    opens: float
    closes: float


class Slots:
    """The slots of the requests of one shard, at most one for each host; times are the caller's."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """*wake* is called when a slot is wanted."""
        self._wake = wake
        self._wanted: list[Wanted] = []
        self._asked: dict[int, str] = {}
        """Host -> address of its next request, for which a slot is wanted."""
        self._held: dict[int, _Held] = {}

    def opens(self, host_id: int, address: str, due: float, now: float) -> float:
        """When the next request to the host may start at *address*, *due* at the earliest; inf: not known yet."""
        held = self._held.get(host_id)
        if held is not None and held.address == address and max(due, now) <= held.closes:
            return max(due, held.opens)
        if due > now + AHEAD_S:
            return due
        if self._asked.get(host_id) != address:
            self._asked[host_id] = address
            self._wanted.append(Wanted(host_id, address, due))
            self._wake()
        return math.inf

    def take_wanted(self) -> list[Wanted]:
        """The slots to be reserved now; each is given out once."""
        wanted = self._wanted
        self._wanted = []
        return wanted

    def grant(self, wanted: Wanted, opens: float, closes: float) -> None:
        """The request for which a slot was *wanted* may start from *opens* to *closes*, in the shard's own time."""
        if self._asked.get(wanted.host_id) == wanted.address:
            del self._asked[wanted.host_id]
            self._held[wanted.host_id] = _Held(wanted.address, opens, closes)

    def drop(self, host_id: int) -> None:
        """The request to the host is over, or was not made."""
        self._asked.pop(host_id, None)
        self._held.pop(host_id, None)

    def forget(self) -> None:
        """Use none of the slots that are held: the clocks may have changed."""
        self._held.clear()
