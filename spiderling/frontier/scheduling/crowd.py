"""How many hosts are at work at once, and for how long each keeps its place.

Suchomel & Pomikálek 2012, 4.2: with a thousand hosts and more at once the rich ones wait
behind the young.  So the crowd follows what can be served: while hosts are asked later
than they are due, hosts that are not rich lose their place when their next request
ends; while all are asked in time, places are added.  A host that gives more text for
its bytes than the crawl as a whole keeps its place longer.  Nobody keeps it for ever,
and every host in the backlog has its turn.
"""

from __future__ import annotations

from collections.abc import Callable

from spiderling.frontier.hosts.host import Host

TURNS = 16
"""Requests after which a host gives its place to one in the backlog (chosen)."""
RICH_TURNS = 256
"""The same for a rich host (chosen)."""
MIN_PAGES = 8
"""Judged responses before which no host is rich; those before which none is retired (Suchomel & Pomikálek 2012)."""
_FEWEST = 32
"""Places that are never taken away (chosen)."""
_SAMPLE = 64
"""Requests between two changes of the number of places (chosen)."""
_LATE = 1.0
"""Mean lateness, in intervals of a host, above which places are taken away (chosen)."""
_EARLY = 0.25
"""Mean lateness, in intervals of a host, below which places are added (chosen)."""
_SHRINK = 0.9
"""Factor on the number of places when hosts are late (chosen)."""
_GROW = 1.1
"""The same when they are not (chosen)."""


class Crowd:
    """The number of places on the workbench, and who makes room."""

    def __init__(self, most: int, adapts: bool, yield_rate: Callable[[], float]) -> None:
        """*most* places, fewer if it *adapts*; *yield_rate*: that of the whole crawl at this moment."""
        self.places = self._most = most
        self._adapts = adapts
        self._yield_rate = yield_rate
        self._late_s = 0.0
        self._asked = 0

    def is_rich(self, host: Host) -> bool:
        """Whether *host* gives more text for its bytes than the crawl as a whole; False where places are fixed."""
        account = host.account
        return self._adapts and account.pages >= MIN_PAGES and account.rate > self._yield_rate()

    def makes_room(self, host: Host, used: int, others_wait: bool) -> bool:
        """Whether *host*, whose request is over, gives up its place; *used* places are taken."""
        if used > self.places and not self.is_rich(host):
            return True
        return others_wait and host.turns >= TURNS and (host.turns >= RICH_TURNS or not self.is_rich(host))

    def asked(self, late_s: float, interval_s: float, used: int) -> None:
        """A host is asked *late_s* after it was due; *used* places are taken."""
        if not self._adapts:
            return
        self._late_s += max(late_s, 0.0)
        self._asked += 1
        if self._asked < _SAMPLE:
            return
        mean_s = self._late_s / self._asked
        self._late_s = 0.0
        self._asked = 0
        if mean_s > _LATE * interval_s:
            self.places = max(min(_FEWEST, self._most), int(min(used, self.places) * _SHRINK))
        elif mean_s < _EARLY * interval_s and used >= self.places:
            self.places = min(self._most, int(self.places * _GROW) + 1)
