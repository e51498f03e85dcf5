"""Hosts that are held back although they have work, so that the bandwidth goes where the text is.

A crawl that never leaves a request unmade spends most of its bytes on poor hosts, because
the rich ones may be asked every few seconds only; one that asks the best alone takes for
ever.  So time has a price in bytes: a strategy's ``haste`` is the number of hosts whose
bytes it is worth.  Text for bytes and time together is the most when a host is at work
exactly if its bytes give more than (all that the better ones give) / (their number + haste):
what a forager takes of the prey that it meets (Charnov 1976, Am. Nat. 110, 141-151).

What hosts give is counted for each rank, for those that were read and those that were not,
with what the ranks promise to begin with.  As that is an estimate, who is below the border
is not left out but asked the more seldom, and at least once a day.  Of the hosts that were
read, those that give a twelfth of the best together have one request for five of the better
ones with a haste of 100, and where they are of the last rank (of these also as long as
little is known) one for a hundred; so many times as many with more haste.  On a web of few
hosts, with one in the wanted language, most bytes would else go to the rest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from operator import mul

from spiderling.frontier.hosts.host import Host
from spiderling.frontier.hosts.ranks import LAST_RANK, RANKS
from spiderling.frontier.ranking.strategy import Strategy

_STEP = 1.7
"""What one rank promises over the next (ranking/worth.py)."""
_POWER = 3
"""Below the border, a kind's requests shrink with (value / border) to this power."""
_POOR = 1 / 12
"""A kind of hosts already read is poor if it yields less than this part of the best kind's text per byte."""
_LAST_KIND = 2 * LAST_RANK + 1
_OF_POOR = 1 / 500
"""At most this x haste requests to poor hosts per request to a better one."""
_OF_LAST = 1 / 10_000
"""At most this x haste requests to poor hosts of the last rank per request to a better one."""
_LONGEST_S = 86_400.0
_PROMISED_BYTES = 1_000_000
"""Weight of what a rank promises, in downloaded bytes."""
_COUNTED_BYTES = 30_000_000
"""Downloaded bytes of a kind after which its counts are halved."""
_OFTEN = 16
"""Requests between two estimates of what kinds give."""
_REMEMBERED = 10_000
"""Requests after which all counts are halved: a kind that is held back makes too few to correct its own."""
_KINDS = 2 * RANKS
_PROMISED = [_STEP ** -(kind >> 1) for kind in range(_KINDS)]


class Holding:
    """Who is held back, by kind, and for how long at this moment.

    A kind is twice a rank, and one more for hosts that were read.
    """

    def __init__(self, strategy: Strategy, interval_s: Callable[[], float]) -> None:
        """*interval_s*: between two requests to a host."""
        self._haste = strategy.haste
        self._interval_s = interval_s
        self._at = [0] * _KINDS
        """Hosts with a place."""
        self._kept = [0.0] * _KINDS
        self._downloaded = [0.0] * _KINDS
        self._learnt = 0
        self._values = _PROMISED
        """Text for bytes, in any unit."""
        self._best_first = list(range(_KINDS))
        self._holds_s = [0.0] * _KINDS
        self._held: list[list[tuple[float, int, int, Host, str]]] = [[] for _ in range(_KINDS)]
        """(due, serial number, version, host, address)"""
        self._serial = 0

    def count(self, host: Host, rank: int | None) -> None:
        """*host* has a place and this rank; None: no place any more."""
        kind = None if rank is None else _kind(host, rank)
        if host.rank_group == kind or not self._haste:
            return
        if host.rank_group is not None:
            self._at[host.rank_group] -= 1
        if kind is not None:
            self._at[kind] += 1
        host.rank_group = kind
        self._hold()

    def learn(self, host: Host, kept_bytes: int, downloaded_bytes: int) -> None:
        """What *host* gave by one request."""
        kind = host.rank_group
        if kind is None or not downloaded_bytes:
            return
        self._kept[kind] += kept_bytes
        self._downloaded[kind] += downloaded_bytes
        self._learnt += 1
        if self._downloaded[kind] > _COUNTED_BYTES:
            self._halve([kind])
        if self._learnt % _REMEMBERED == 0:
            self._halve(range(_KINDS))
        if self._learnt % _OFTEN == 0:
            self._judge()

    def _halve(self, kinds: Iterable[int]) -> None:
        """What these gave counts half."""
        for kind in kinds:
            self._kept[kind] /= 2
            self._downloaded[kind] /= 2

    def _judge(self) -> None:
        """Work out what hosts of each kind give."""
        kept = self._kept
        downloaded = self._downloaded
        promised = math.fsum(map(mul, downloaded, _PROMISED))
        unit = _PROMISED_BYTES * (math.fsum(kept) + 1.0) / (promised + 1.0)  # as much as all hosts together did give
        self._values = [
            (given + unit * value) / (size + _PROMISED_BYTES)
            for given, size, value in zip(kept, downloaded, _PROMISED, strict=True)
        ]
        self._best_first.sort(key=self._values.__getitem__, reverse=True)
        self._hold()

    def _hold(self) -> None:
        """Work out for how long hosts of each kind are held back."""
        at = self._at
        values = self._values
        interval_s = self._interval_s()
        haste = self._haste
        self._holds_s = [0.0] * _KINDS
        kinds = [kind for kind in self._best_first if at[kind]]
        if not kinds:
            return
        poor = {kind for kind in kinds if kind & 1 and values[kind] < _POOR * values[kinds[0]]}
        if self._downloaded[_LAST_KIND] < _PROMISED_BYTES and min(kinds) < 2 * (LAST_RANK - 1):
            poor |= {_LAST_KIND}.intersection(kinds[1:])  # each of them has shown that it gives little
        poor_ones = sum(at[kind] for kind in poor if kind != _LAST_KIND)
        hosts = better = given = 0.0
        """Per interval, over the kinds so far: requests, requests to kinds that are not poor, expected text."""
        for kind in sorted(kinds, key=poor.__contains__):
            number = at[kind]
            value = values[kind]
            border = given / (hosts + haste)
            work = float(number)
            if value < border:
                work = min(work, (hosts + haste) * (value / border) ** _POWER)
            if kind not in poor:
                better += work
            else:
                share = _OF_LAST if kind == _LAST_KIND else _OF_POOR * number / poor_ones
                work = min(work, better * haste * share)
            self._holds_s[kind] = min(interval_s * (number / work - 1.0), _LONGEST_S) if work else _LONGEST_S
            hosts += work
            given += work * value

    def number(self, now: float) -> int:
        """Hosts that could be asked at *now*, and are held back."""
        return sum(due <= now and host.version == version for held in self._held for due, _, version, host, _ in held)

    def keeps(self, host: Host, address: str, rank: int, now: float) -> bool:
        """Whether *host* of *rank*, which would be on the workbench under *address*, is held back instead at *now*."""
        kind = _kind(host, rank)
        hold_s = self._holds_s[kind]
        if not hold_s or host.due + hold_s <= now:
            return False
        host.renew_version()
        self._serial += 1
        heapq.heappush(self._held[kind], (host.due, self._serial, host.version, host, address))
        return True

    def released(self, now: float) -> tuple[Host, str] | None:
        """A host of those that are to go on the workbench at *now*, the best rank first, and its address.

        One in a call: better ones may be missing for a moment, and all would be let go at once.
        """
        for kind, held in enumerate(self._held):
            if held and (due := self._front(kind)) is not None and due <= now:
                return heapq.heappop(held)[3:]
        return None

    def next_due(self) -> float | None:
        """When ``released`` will next give one; None when nobody is held back."""
        dues = [due for kind, held in enumerate(self._held) if held and (due := self._front(kind)) is not None]
        return min(dues, default=None)

    def pop_worse(self, rank: int) -> Host | None:
        """A host of the worst rank that is held, if that is worse than *rank*; it leaves."""
        for worse in range(_KINDS - 1, 2 * rank + 1, -1):
            if self._held[worse] and self._front(worse) is not None:
                return heapq.heappop(self._held[worse])[3]
        return None

    def _front(self, kind: int) -> float | None:
        held = self._held[kind]
        while held and held[0][2] != held[0][3].version:
            heapq.heappop(held)
        return held[0][0] + self._holds_s[kind] if held else None


def _kind(host: Host, rank: int) -> int:
    return 2 * rank + (host.account.pages > 0)
