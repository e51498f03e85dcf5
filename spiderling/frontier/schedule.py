"""Where each host stands: on the workbench, waiting for its name's address, or at rest."""

from __future__ import annotations

import math
from collections.abc import Callable

from spiderling.frontier.hosts import Host, HostState
from spiderling.frontier.names import Name, Names, NameStatus
from spiderling.frontier.pace import Pace
from spiderling.frontier.workbench import NO_ADDRESS, Workbench
from spiderling.options import Options
from spiderling.urls import canonicalize

_RESOLVE_AHEAD_S = 60.0
"""Names of hosts that are due later than this are not resolved yet."""


class Schedule:
    """Names and workbench together; the intervals may be changed while the crawl runs."""

    def __init__(self, options: Options, allows: Callable[[str], bool]) -> None:
        self.host_interval_s = options.host_interval_s
        self.ip_interval_s = options.ip_interval_s
        self._names = Names(options, allows)
        self._workbench = Workbench()
        self._pace = Pace(options)
        self.quiet_until = -math.inf
        """After a restart no host is due before this, also one whose last request nobody remembers."""
        self.next_due = self._workbench.next_due
        self.names_wanted = self._names.take_wanted
        self.pop = self._workbench.pop
        self.forget_idle = self._workbench.forget_idle
        self.forget_addresses = self._names.forget

    def interval(self, host: Host) -> float:
        """Seconds between the starts of two requests to *host*."""
        return self._pace.interval(host, max(self.host_interval_s, host.crawl_delay_s))

    def name_of(self, url: str, now: float) -> Name:
        """What is known at *now* of the name in *url*, which is canonical or a server's spelling of it."""
        target = canonicalize(url)
        assert target is not None, "what waits in a queue can be parsed"
        return self._names.lookup(target.name, now)

    def resolved(self, name: str, addresses: tuple[str, ...], ttl_s: float, now: float) -> None:
        """The answer to a wanted name; the hosts that waited for it go on."""
        for host in self._names.resolved(name, addresses, ttl_s, now):
            self.place(host, now)

    def unresolved(self, name: str, permanent: bool, now: float) -> None:
        for host in self._names.unresolved(name, permanent, now):
            self.place(host, now)

    def place(self, host: Host, now: float) -> None:
        """Put *host* where it belongs; a host in transit is left alone until it is released."""
        if host.in_transit:
            return
        if host.is_closed or not host.has_work:
            self.rest(host)
            return
        url = host.next_up().url
        name = self.name_of(url, now)
        if name.status is NameStatus.UNKNOWN and host.due <= now + _RESOLVE_AHEAD_S:
            self._await_name(host, url)
            return
        if name.status is NameStatus.PAUSED:
            host.due = max(host.due, name.expires)
        self.wait_at(host, name.address if name.status is NameStatus.FRESH else NO_ADDRESS, now)

    def wake(self, host: Host, now: float) -> None:
        """*host* has new work: if it was at rest it is due from *now* on, behind those that have waited longer."""
        if host.state is HostState.EXHAUSTED:
            host.due = max(host.due, now, self.quiet_until)
            self.place(host, now)

    def wait_at(self, host: Host, address: str, now: float) -> None:
        """Put *host* on the workbench under *address*, until it and the address are due."""
        host.state = HostState.SNOOZED if host.due > now + self.interval(host) else HostState.READY
        self._workbench.add(host, address)

    def rest(self, host: Host) -> None:
        """*host* has no work or is closed."""
        if not host.is_closed:
            host.state = HostState.EXHAUSTED
        self._workbench.remove(host)

    def hand_out(self, host: Host, address: str, now: float) -> None:
        """A request to *host* at *address* was handed out: both are charged."""
        self._workbench.remove(host)
        self._workbench.charge(address, now + self.ip_interval_s)
        host.state = HostState.IN_PROCESS
        host.in_transit += 1
        host.address = address
        host.due = now + self.interval(host)

    def earliest_start(self, host: Host, address: str) -> float:
        """When the next connection to *host* at *address* may be opened."""
        return max(
            self._workbench.last_start(address) + self.ip_interval_s,
            host.last_start + self.interval(host),
        )

    def started(self, host: Host, address: str, now: float) -> None:
        """The connection is being opened: both intervals count from here."""
        host.last_start = now
        host.due = max(host.due, now + self.interval(host))
        self._workbench.start(address, now)
        self._workbench.charge(address, now + self.ip_interval_s)

    def answered(self, host: Host, now: float) -> None:
        """The answer to the request in transit is here, or will not come: a slow host rests for longer."""
        host.due = max(host.due, now + self._pace.rest_s(now - host.last_start))

    def heard(self, host: Host, status: int) -> None:
        """The status of an answer: a busy host's interval grows from its last start on."""
        self._pace.heard(host, status)
        host.due = max(host.due, host.last_start + self.interval(host))

    def may_also_start(self, address: str, now: float) -> bool:
        """Whether a request that was started elsewhere may be tried at *address* too; if so, it counts from here."""
        if self._workbench.last_start(address) + self.ip_interval_s > now:
            return False
        self._workbench.start(address, now)
        self._workbench.charge(address, now + self.ip_interval_s)
        return True

    def fallback_of(self, url: str, address: str) -> str:
        """The address of the other family that the name in *url* has besides *address*; '' for none."""
        target = canonicalize(url)
        return self._names.fallback(target.name, address) if target is not None else ""

    def release(self, host: Host, now: float) -> None:
        """The request in transit is over."""
        host.in_transit -= 1
        self.place(host, now)

    def _await_name(self, host: Host, url: str) -> None:
        target = canonicalize(url)
        assert target is not None
        host.state = HostState.RESOLVING
        self._workbench.remove(host)
        self._names.want(target.name, host)
