"""Asks hosts of little yield more seldom, so that the bandwidth goes where the text is.

A crawl that never leaves a request unmade spends most of its bytes on poor hosts, because the rich ones may be asked
every few seconds only.  So the hosts at work are put into classes: by rank, and by whether nothing of them is read,
pages in other languages alone, or others.  The crawl measures the yield rate of each class.  The *bar* is a share of
the crawl's own yield rate.  Hosts of a class above the bar are asked at every interval; below it, they are asked (yield
rate of the class / bar)^POWER as often, and once a day at least.

Idle time has a price as well: while the crawl gets less text a second than it did, the bar is lower, down to a floor.
At its start a crawl knows little of what hosts give: home pages, from which it begins, hold the least text.  So the bar
grows with the first text that is kept.  Hosts whose pages were in another language have no such allowance.  On webs of
few hosts there is always idle time, and these hosts took half of the bytes of the first half of the text.

`Opened` bounds how many new hosts are asked for the files of their sites ahead of their first page.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import accumulate, chain
from operator import mul

from spiderling.frontier.hosts import RANKS, STEP, Host
from spiderling.frontier.workbench import LONG_S
from spiderling.frontier.worth import EVIDENCE_BYTES, USUAL_RATE

BAR = 0.3  # the bar / the crawl's yield rate (measured: benchmarks/strategies.py)
LOWEST = 0.2  # the lowest bar of idle times / the usual one (measured)
POWER = 3  # how fast requests to a class fall below the bar, and the bar with the text a second (measured)
_OFTEN = 4  # pages between two estimates of what the classes give (measured: with 16, poor hosts are asked in bursts)
_DAY_S = 86_400.0
"""Seconds for which a host waits at most, and over which the text a second is taken with which that of the last minute
is compared (chosen)."""
FILES = 3  # requests of a visit to a site's files: robots.txt, tdmrep.json and ai.txt
FEW_OPENED = 64  # opened hosts that any crawl may have (measured in the simulator)
_UNREAD, _READ, _FOREIGN = range(3)
_PROMISES = (1.0, 1.0, 0.01)
"""What a host of each of these kinds promises / what its rank promises (measured; what such hosts give corrects it)."""
_KINDS = len(_PROMISES)
_CLASSES = _KINDS * RANKS
_PROMISED = [promise * STEP**-rank for rank in range(RANKS) for promise in _PROMISES]


class _Flow:
    """Bytes a second, as a mean over the last seconds that forgets exponentially."""

    def __init__(self, over_s: float) -> None:
        self._over_s = over_s
        self._sum = 0.0
        self._now = 0.0
        self._since = math.nan

    def add(self, size: int, now: float) -> None:
        if math.isnan(self._since):
            self._since = self._now = now
        self._sum = self._sum * math.exp((self._now - now) / self._over_s) + size / self._over_s
        self._now = now

    def per_second(self, now: float) -> float:
        """0 before anything was added."""
        if not self._sum:
            return 0.0
        seen = -math.expm1((self._since - now) / self._over_s)  # the mean's weight that lies behind the first page
        return self._sum * math.exp((self._now - now) / self._over_s) / max(seen, 1e-3)


class Opened:
    """How many hosts are *opened*: the rules of their sites are known, and their first page is to be asked for.

    Who opens a host whenever nothing better is due asks most hosts for their files alone: better links come meanwhile.
    So a host is opened only while the opened ones of its rank and better ranks are fewer than FEW_OPENED, or than the
    requests of an interval could open at the present rate, if that is more.
    """

    def __init__(self, interval_s: Callable[[], float]) -> None:
        """*interval_s*: between two requests to a host."""
        self._interval_s = interval_s
        self._numbers = [0] * RANKS
        self._requests = _Flow(LONG_S)
        self._enough = FEW_OPENED
        self._full_from = RANKS  # the best rank at which enough hosts are opened

    def count_request(self, now: float) -> None:
        """A request is handed out."""
        self._requests.add(1, now)
        enough = max(FEW_OPENED, int(self._requests.per_second(now) * self._interval_s() / FILES))
        if enough != self._enough:
            self._enough = enough
            self._settle()

    def note(self, host: Host, rank: int | None) -> None:
        """*host* is opened and has *rank*; None: it is not opened, or no longer."""
        if host.opened_in == rank:
            return
        if host.opened_in is not None:
            self._numbers[host.opened_in] -= 1
        if rank is not None:
            self._numbers[rank] += 1
        host.opened_in = rank
        self._settle()

    def _settle(self) -> None:
        """Work out from which rank on enough hosts are opened."""
        so_far = accumulate(self._numbers)
        self._full_from = next((rank for rank, number in enumerate(so_far) if number >= self._enough), RANKS)

    def has_room(self, rank: int) -> bool:
        """Whether a host of *rank* may be opened."""
        return rank < self._full_from


class Throttle:
    """The classes of hosts, what each gives, and for how long its hosts wait beyond their interval."""

    def __init__(self, thrift: float, is_foreign: Callable[[Host], bool], interval_s: Callable[[], float]) -> None:
        """*thrift*: factor on the bar; 0: every host is asked at each interval.

        *is_foreign*: whether a host gave pages in other languages alone.  *interval_s*: between two requests to a host.
        """
        self._thrift = thrift
        self._is_foreign = is_foreign
        self._interval_s = interval_s
        self._totals = [0, 0]  # kept and downloaded bytes
        self._hosts = [0] * _CLASSES  # hosts with a place
        self._kept = [0.0] * _CLASSES
        """Bytes.  A page counts for its host's class, and for the class in which its host stood when it was unread."""
        self._downloaded = [0.0] * _CLASSES
        self._pages = 0
        self._rates = _PROMISED  # estimated yield rate of each class
        self._waits_s = [0.0] * _CLASSES
        self._waiting: list[list[tuple[float, int, int, Host, str]]] = [[] for _ in range(_CLASSES)]
        """(due, serial number, version, host, address)"""
        self._serial = 0
        self._moment = _Flow(LONG_S)
        self._long = _Flow(_DAY_S)
        self._now = 0.0  # when the last page came

    def count(self, host: Host, rank: int | None) -> None:
        """*host* has a place and this rank; None: no place any more."""
        at = None if rank is None or not self._thrift else _KINDS * rank + self._kind_of(host)
        before = host.throttle_class
        if before == at:
            return
        host.throttle_class = at
        if before is not None:
            self._hosts[before] -= 1
        if at is not None:
            self._hosts[at] += 1
        if (before is not None and not self._hosts[before]) or (at is not None and self._hosts[at] == 1):
            self.set_waits()

    def learn(self, host: Host, kept_bytes: int, downloaded_bytes: int, now: float) -> None:
        """What *host* gave by one request."""
        at = host.throttle_class
        if at is None or not downloaded_bytes:
            return
        if at % _KINDS == _UNREAD and host.entered_class is None:
            host.entered_class = at
        self._totals = [self._totals[0] + kept_bytes, self._totals[1] + downloaded_bytes]
        self._moment.add(kept_bytes, now)
        self._long.add(kept_bytes, now)
        for counted in {at, at if host.entered_class is None else host.entered_class}:
            self._kept[counted] += kept_bytes
            self._downloaded[counted] += downloaded_bytes
        self._now = now
        self._pages += 1
        if self._pages % _OFTEN == 0:
            self._estimate()

    def _estimate(self) -> None:
        """Work out the yield rate of each class."""
        promised = math.fsum(map(mul, self._downloaded, _PROMISED))
        unit = (math.fsum(self._kept) + 1.0) / (promised + 1.0)  # so that all classes together promise what they gave
        self._rates = [
            (given + EVIDENCE_BYTES * unit * promise) / (size + EVIDENCE_BYTES)
            for given, size, promise in zip(self._kept, self._downloaded, _PROMISED, strict=True)
        ]
        self.set_waits()

    def set_waits(self) -> None:
        """Work out for how long the hosts of each class wait."""
        self._waits_s = [0.0] * _CLASSES
        at_work = [at for at, number in enumerate(self._hosts) if number]
        if not at_work:
            return
        interval_s = self._interval_s()
        bar = self._bar()
        bars = bar, bar, self._full_bar(USUAL_RATE)  # by kind
        best = max(at_work, key=self._rates.__getitem__)
        for at in at_work:
            wanted = bars[at % _KINDS]
            is_free = at == best or self._rates[at] >= wanted
            share = 1.0 if is_free else (self._rates[at] / wanted) ** POWER
            self._waits_s[at] = min(interval_s * (1.0 / max(share, 1e-9) - 1.0), _DAY_S)

    def _full_bar(self, usual: float = 0.0) -> float:
        """The bar of a crawl that has text and is not idle; *usual*: the yield rate that it is taken to have at first.

        Hosts with foreign pages are held to it at any time.
        """
        kept, downloaded = self._totals
        return self._thrift * BAR * (kept + usual * EVIDENCE_BYTES) / (downloaded + EVIDENCE_BYTES)

    def _bar(self) -> float:
        """The yield rate from which on a class is asked at every interval."""
        long = self._long.per_second(self._now)
        busy = min(1.0, self._moment.per_second(self._now) / long) if long else 1.0
        known = min(1.0, self._totals[0] / EVIDENCE_BYTES)
        return self._full_bar() * known * max(LOWEST, busy**POWER)

    def hosts(self) -> list[Host]:
        """The hosts that wait, in the order in which they were due."""
        return [entry[3] for entry in sorted(chain.from_iterable(self._waiting)) if entry[2] == entry[3].version]

    def number(self, now: float) -> int:
        """Hosts that could be asked at *now*, and wait."""
        entries = chain.from_iterable(self._waiting)
        return sum(due <= now and host.version == version for due, _, version, host, _ in entries)

    def keeps(self, host: Host, address: str, rank: int, now: float) -> bool:
        """Whether *host* of *rank*, which would be on the workbench under *address*, waits here instead at *now*."""
        if not self._thrift:
            return False
        at = _KINDS * rank + self._kind_of(host)
        wait_s = self._waits_s[at]
        if not wait_s or host.due + wait_s <= now:
            return False
        host.version += 1
        self._serial += 1
        heapq.heappush(self._waiting[at], (host.due, self._serial, host.version, host, address))
        return True

    def released(self, now: float) -> tuple[Host, str] | None:
        """A host that has waited long enough at *now*, of the best class, and its address.

        One in a call: better ones may be missing for a moment, and all would be let go at once.
        """
        for at, waiting in enumerate(self._waiting):
            if waiting and (due := self._front(at)) is not None and due <= now:
                return heapq.heappop(waiting)[3:]
        return None

    def next_due(self) -> float | None:
        """When ``released`` will next give one; None when nobody waits."""
        dues = [due for at, waiting in enumerate(self._waiting) if waiting and (due := self._front(at)) is not None]
        return min(dues, default=None)

    def pop_worse(self, rank: int, wait_s: float) -> Host | None:
        """A host of the worst class that waits for *wait_s* or longer, if its rank is worse than *rank*; it leaves."""
        for worse in range(_CLASSES - 1, _KINDS * (rank + 1) - 1, -1):
            if self._waits_s[worse] >= wait_s and self._front(worse) is not None:
                return heapq.heappop(self._waiting[worse])[3]
        return None

    def _front(self, at: int) -> float | None:
        waiting = self._waiting[at]
        while waiting and waiting[0][2] != waiting[0][3].version:
            heapq.heappop(waiting)
        return waiting[0][0] + self._waits_s[at] if waiting else None

    def _kind_of(self, host: Host) -> int:
        if not host.account.pages:
            return _UNREAD
        return _FOREIGN if not host.documents and self._is_foreign(host) else _READ
