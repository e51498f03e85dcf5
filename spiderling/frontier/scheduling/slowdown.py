"""How a host's own answers slow the crawl of it down, beyond the fixed intervals.

After a slow answer the host rests for ``delay_factor`` times the answer's time, at most
``max_slowdown_s`` (Heritrix's DispositionProcessor: 5 times, at most 30 s, at least 3 s;
ours differs in that the intervals between starts are the lower bound).  A 429 or 503
doubles the host's interval, and every other answer takes a tenth off again.
"""

from __future__ import annotations

from spiderling.base.options import Options
from spiderling.frontier.hosts.host import Host

BUSY_STATUSES = frozenset({429, 503})
_SLOWER = 2.0
"""Factor on a host's interval for each answer that says that it is busy; chosen: as TCP backs off."""
_FASTER = 0.9
"""The same for every other answer; chosen."""
_MAX_SLOWDOWN = 1024.0
"""Largest product of these factors: ten busy answers in a row; chosen."""


class Slowdown:
    """The rule of one crawl; all that it remembers of a host is ``Host.slowdown``."""

    def __init__(self, options: Options) -> None:
        self._factor = options.delay_factor
        self._max_s = options.max_slowdown_s

    def rest_s(self, answer_s: float) -> float:
        """Seconds that a host is left alone after an answer that took *answer_s*."""
        return min(self._factor * answer_s, self._max_s)

    def interval(self, host: Host, interval_s: float) -> float:
        """*interval_s*, stretched while the host is busy; never shortened."""
        return max(interval_s, min(interval_s * host.slowdown, self._max_s))

    def note_status(self, host: Host, status: int) -> None:
        """Take in the status of an answer; 0 means that none came, which tells nothing."""
        if status in BUSY_STATUSES:
            host.slowdown = min(host.slowdown * _SLOWER, _MAX_SLOWDOWN)
        elif status:
            host.slowdown = max(host.slowdown * _FASTER, 1.0)
