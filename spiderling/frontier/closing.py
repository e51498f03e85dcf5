"""Hosts that are left alone and hosts that come back: retired by yield, blocked, forbidden, reopened."""

from __future__ import annotations

from collections.abc import Callable

from spiderling.frontier.admission import Admission
from spiderling.frontier.books import Books
from spiderling.frontier.hosts import CLOSED_STATES, Host, HostState
from spiderling.frontier.schedule import Schedule
from spiderling.frontier.store import UrlRow
from spiderling.frontier.tasks import RobotsTasks
from spiderling.frontier.yields import RetirementRule
from spiderling.options import Options


class Closing:
    """Closes and reopens; what becomes of the URLs is in books.py."""

    def __init__(
        self, options: Options, books: Books, admission: Admission, tasks: RobotsTasks, schedule: Schedule
    ) -> None:
        self.rule = RetirementRule(options.yield_factor(), options.yield_min_pages, options.yield_min_bytes)
        """May be changed while the crawl runs."""
        self._books = books
        self._admission = admission
        self._tasks = tasks
        self._schedule = schedule

    def close(self, host: Host, state: HostState) -> int:
        """RETIRED, BLOCKED or FORBIDDEN: no URL of *host* is handed out any more; returns how many ended.

        A closed host stays as it is, so that its URLs are reopened under the Reason that they ended with.
        """
        if host.is_closed:
            return 0
        host.state = state
        self._schedule.rest(host)
        self._tasks.drop(host)
        self._books.journal.hosts.add(host)
        return self._books.purge(host, CLOSED_STATES[state])

    def reopen(self, host: Host, parked: list[UrlRow], now: float) -> None:
        """Let a closed host go on with its *parked* URLs, all of them committed; it is not retired again."""
        if not host.is_closed:
            return
        self._books.reopen(host, parked)
        self._schedule.place(host, now)

    def block_where(self, is_blocked: Callable[[str], bool]) -> list[Host]:
        """Block every host, known or yet to come, whose name satisfies *is_blocked*; returns those newly blocked."""
        self._admission.is_blocked = is_blocked
        blocked = [host for host in self._books.hosts if not host.is_closed and is_blocked(host.name)]
        for host in blocked:
            self.close(host, HostState.BLOCKED)
        return blocked

    def retire_if_poor(self, host: Host) -> tuple[Host, ...]:
        """Retire *host*, and what is measured with it, if it has given too little; returns those retired."""
        hosts = self._books.hosts
        if host.is_closed or host.exempt or not self.rule.retires(hosts.account_of(host)):
            return ()
        unit = tuple(member for member in hosts.unit_of(host) if not (member.is_closed or member.exempt))
        for member in unit:
            self.close(member, HostState.RETIRED)
        return unit
