"""Hosts that are held back although they have work, so that the bandwidth goes where the text is.

A crawl that never leaves a request unmade spends most of its bytes on poor hosts, because
the rich ones may be asked every few seconds only.  So of all hosts with a place those of the
best ranks are at work, and of the others as many as make up a strategy's ``fewest``: each
rank is held back just so long that the number is right, and nobody longer than a day.

Hosts that promise a fourteenth of the best or less do not make up for a lack of better ones: together they have one
request for five of those; and where they are of the last rank, and promise less than a twelfth of what hosts with text
give, one for a hundred.  On a web of few hosts, with one in the wanted language, most bytes would else go to the rest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from spiderling.frontier.hosts import Host
from spiderling.frontier.priority import LAST_RANK, RANKS
from spiderling.frontier.strategies import Strategy

_NEAR = 1
"""Hosts of the best rank are never held back, nor those of so many ranks more."""
_FAR = 5
"""Ranks from the best one to hosts that are poor beside it."""
_OF_POOR, _OF_LAST = 1 / 5, 1 / 100
"""Requests to poor hosts, and to those of the last rank, for one that the better ones can take."""
_LONGEST_S = 86_400.0


class Holding:
    """Who is held back, by rank, and for how long at this moment."""

    def __init__(self, strategy: Strategy, interval_s: Callable[[], float]) -> None:
        """*interval_s*: between two requests to a host."""
        self._strategy, self._interval_s = strategy, interval_s
        self._at = [0] * RANKS
        """Hosts with a place, by rank."""
        self._holds_s = [0.0] * RANKS
        self._held: list[list[tuple[float, int, int, Host, str]]] = [[] for _ in range(RANKS)]
        """(due, serial number, ticket, host, address)"""
        self._serial = 0

    def count(self, host: Host, rank: int | None) -> None:
        """*host* has a place and this rank; None: no place any more."""
        strategy = self._strategy
        if host.standing == rank or not strategy.fewest:
            return
        if host.standing is not None:
            self._at[host.standing] -= 1
        if rank is not None:
            self._at[rank] += 1
        host.standing = rank
        self._hold()

    def _hold(self) -> None:
        """Work out for how long hosts of each rank are held back."""
        at, room, interval_s = self._at, self._strategy.fewest, self._interval_s()
        best = next((rank for rank, number in enumerate(at) if number), LAST_RANK)
        poor, last = best + _FAR, LAST_RANK if best + _NEAR < LAST_RANK else RANKS
        better = min(sum(at[: min(poor, last)]), room)
        for rank, number in enumerate(at):
            hold_s = 0.0
            if number > room and rank > best + _NEAR:
                hold_s = interval_s * (number / room - 1.0) if room > 0 else _LONGEST_S
            if rank >= min(poor, last):
                alike, share = (number, _OF_LAST) if rank >= last else (sum(at[poor:last]), _OF_POOR)
                hold_s = max(hold_s, interval_s * (alike / (share * better) - 1.0))
            self._holds_s[rank] = min(hold_s, _LONGEST_S)
            room -= number

    def keeps(self, host: Host, address: str, rank: int, now: float) -> bool:
        """Whether *host* of *rank*, which would be on the workbench under *address*, is held back instead at *now*."""
        hold_s = self._holds_s[rank]
        if not hold_s or host.due + hold_s <= now:
            return False
        host.ticket += 1
        self._serial += 1
        heapq.heappush(self._held[rank], (host.due, self._serial, host.ticket, host, address))
        return True

    def released(self, now: float) -> tuple[Host, str] | None:
        """A host of the best rank of those that are to go on the workbench at *now*, and its address.

        One in a call: better ones may be missing for a moment, and all would be let go at once.
        """
        for rank, held in enumerate(self._held):
            if held and (due := self._front(rank)) is not None and due <= now:
                return heapq.heappop(held)[3:]
        return None

    def next_due(self) -> float | None:
        """When ``released`` will next give one; None when nobody is held back."""
        dues = [due for rank, held in enumerate(self._held) if held and (due := self._front(rank)) is not None]
        return min(dues, default=None)

    def pop_worse(self, rank: int) -> Host | None:
        """A host of the worst rank that is held, if that is worse than *rank*; it leaves."""
        for worse in range(RANKS - 1, rank, -1):
            if self._held[worse] and self._front(worse) is not None:
                return heapq.heappop(self._held[worse])[3]
        return None

    def _front(self, rank: int) -> float | None:
        held = self._held[rank]
        while held and held[0][2] != held[0][3].ticket:
            heapq.heappop(held)
        return held[0][0] + self._holds_s[rank] if held else None
