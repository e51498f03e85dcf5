"""Probes: requests that ask whether a host answers, while the network seems to be away (reachability.py).

A probe keeps both intervals, and is the host's one request in transit.
"""

from __future__ import annotations

import math

from spiderling.frontier.discovery.admission import Admission
from spiderling.frontier.hosts.host import Host, HostState
from spiderling.frontier.scheduling.backlog import LONG_S
from spiderling.frontier.scheduling.intervals import SLOT_PAUSE_S
from spiderling.frontier.scheduling.schedule import Schedule


class Probes:
    """When a host may be probed, and that it is."""

    def __init__(self, admission: Admission, schedule: Schedule) -> None:
        self._admission = admission
        self._schedule = schedule
        self._intervals = schedule.intervals

    def may_ask(self, host: Host) -> bool:
        """Whether *host* may be probed; it may be retired, but not blocked or forbidden, nor refuse us."""
        left_alone = (HostState.BLOCKED, HostState.FORBIDDEN, HostState.REFUSED)
        return host.state not in left_alone and not self._admission.is_blocked(host.name)

    def due_in(self, host: Host, address: str, now: float) -> float | None:
        """Seconds until *host* may be probed at *address*; None if it is in transit or not due within a minute."""
        if host.in_transit or host.due > now + LONG_S:
            return None
        due = max(host.due, self._intervals.earliest_start(host, address, now))
        if due == math.inf:
            return SLOT_PAUSE_S
        return None if due > now + LONG_S else max(0.0, due - now)

    def begin(self, host: Host, address: str, now: float) -> None:
        """A probe of *host* begins; until ``end`` it is the host's request in transit."""
        self._schedule.workbench.remove(host)
        host.in_transit += 1
        self._intervals.started(host, address, now)

    def end(self, host: Host, address: str, now: float) -> None:
        """The probe is over; both intervals begin at *now*, since its connection was opened after ``begin``."""
        self._intervals.started(host, address, now)
        self._schedule.release(host, now)
