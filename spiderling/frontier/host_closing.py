"""Closes hosts (as retired, spent, blocked, forbidden, mirrors, or because they refuse) and reopens them."""

from __future__ import annotations

import heapq
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spiderling.base.option_values import parse_yield_profile
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, origins_of
from spiderling.frontier import intervals
from spiderling.frontier.core import Core, Part
from spiderling.frontier.hosts import Host, HostState, YieldAccount
from spiderling.frontier.known_files import RobotsStatus
from spiderling.frontier.next_fetch import RobotsRequests
from spiderling.frontier.robots import REFUSING, Robots
from spiderling.frontier.storage.protocol import ConsentRow, RobotsRecord
from spiderling.frontier.storage.sqlite import SqliteStore

MIN_PAGES = 8  # judged responses before which no host is retired (SpiderLing)
MIN_BYTES = 512_000  # downloaded bytes before which no host is retired; both must be reached (SpiderLing: 512 kB)
_FAILURES_PER_RETRY = 3
"""A host's queue is purged after more than this x (retries + 1) failed requests in a row (chosen)."""


@dataclass(frozen=True, slots=True)
class RetirementRule:
    """When a host is retired; ``factor=None``: never.

    Suchomel & Pomikálek 2012, section 2 and Table 2: ``t(n) = 0.01 * (log10(n) - 1)`` for n downloaded documents, and
    never before 8 documents and 512 kB.  Here bytes are counted differently: both kept and downloaded bytes are those
    of UTF-8, so a text has the same yield in any encoding; every response's body counts as downloaded; only new text
    counts as kept.  The factor .01 is the paper's; the default profile has a lower one (base/options.py).
    """

    factor: float | None
    min_pages: int
    min_bytes: int

    def retires(self, account: YieldAccount) -> bool:
        """Whether the account's yield rate is below t(n) and both minima are reached."""
        if self.factor is None or account.pages < self.min_pages or account.downloaded_bytes < self.min_bytes:
            return False
        return account.rate < threshold(account.pages, self.factor)


def threshold(pages: int, factor: float) -> float:
    """t(n) for n judged responses; below 10 responses it is negative, so no yield rate is lower."""
    return factor * (math.log10(pages) - 1) if pages > 0 else -factor


class HostClosing(Part):
    """Closes and reopens hosts; what becomes of their URLs is in frontier/url_states.py.

    ``review`` decides after each page, when Frontier reports it, whether its host is retired.
    """

    def __init__(self, core: Core, robots_requests: RobotsRequests) -> None:
        super().__init__(core)
        self._gives_up = core.strategy.gives_up
        self._own_factor = parse_yield_profile(core.options.yield_profile) if core.strategy.retires else None
        self.judge_by(None)
        self._reopened: list[Host] = []
        self._floor = max(core.options.min_active_hosts, int(core.strategy.reopens))
        self._retired: list[tuple[float, int]] = []  # a heap of hosts that may be reopened: (-yield rate, id)
        self._robots_requests = robots_requests
        self.refusals = Refusals(core.robots)
        self._refused: list[tuple[float, int]] = []
        """A heap of the hosts that refuse: (when their robots.txt is tried again, id)."""

    def judge_by(self, profile: str | None) -> None:
        """Set the yield profile; None: that of the options, or none if the strategy retires no host."""
        factor = self._own_factor if profile is None else parse_yield_profile(profile)
        self.rule = RetirementRule(factor, MIN_PAGES, MIN_BYTES)

    def close_host(self, host: Host, state: HostState) -> int:
        """Give *host* a closed *state*: none of its URLs is handed out; returns how many URLs ended.

        A host that is closed already keeps its state, which names the Reason with which its URLs ended.
        """
        if host.is_closed:
            return 0
        number = self._url_states.close_queue(host, state)
        self._schedule.rest(host)
        self._robots_requests.drop(host)
        return number

    def reopen_host(self, host: Host, now: float, is_pinned: bool = True) -> int:
        """Reopen a closed host; returns how many parked URLs wait again.  *is_pinned*: it is not retired again."""
        if not host.is_closed:
            return 0
        if host.state is HostState.REFUSED:
            self.refusals.retry(host, now)
        number = self._url_states.reopen_queue(host, is_pinned)
        self._schedule.wake(host.id, now)
        return number

    def refuse(self, host: Host, now: float) -> None:
        """Close *host*, which refuses us, until its robots.txt is to be tried again; also one that the user pinned."""
        if host.is_closed:
            return
        days = self.refusals.begin(host, now) / 86_400
        number = self.close_host(host, HostState.REFUSED)
        heapq.heappush(self._refused, (self.refusals.until(host.name), host.id))
        self._url_states.totals["refusals"] += 1
        what = f"{host.name} refuses: {number} URLs are parked, its robots.txt is tried again after {days:.0f} days"
        self._url_states.note_event(now, what)

    def vet(self, host: Host) -> None:
        """Close *host*, which is to get a place, if the user blocked its name meanwhile and did not reopen it."""
        if not host.pinned and self._admission.is_blocked(host.name):
            self.close_host(host, HostState.BLOCKED)

    def block_where(self, is_blocked: Callable[[str], bool]) -> list[Host]:
        """Block every host, known or yet to come, whose name satisfies *is_blocked*; returns those newly blocked.

        Hosts that are not in memory are blocked when their turn comes.
        """
        self._admission.is_blocked = is_blocked
        hosts = self._url_states.hosts
        reopened = [hosts.by_id(host_id) for host_id in hosts.pinned]  # ``vet`` lets them pass
        known = {*hosts.in_memory(), *reopened}
        blocked = sorted((h for h in known if not h.is_closed and is_blocked(h.name)), key=lambda host: host.id)
        for host in blocked:
            self.close_host(host, HostState.BLOCKED)
        return blocked

    def back_off(self, host: Host, outcome: Outcome, now: float) -> None:
        """Postpone *host* after a failure; purge its queue after too many failures in a row."""
        host.failures += 1
        pause = intervals.RETRY_DELAY_S * 2.0 ** min(host.failures - 1, 20)
        if outcome.retry_after_s is not None:
            pause = outcome.retry_after_s
        host.postpone(now + min(pause, intervals.MAX_PAUSE_S))
        if host.failures > _FAILURES_PER_RETRY * (self._options.retries + 1):
            self._url_states.purge(host, outcome.reason)

    def review(self, host: Host) -> bool:
        """Retire *host* if the strategy gives it up or its yield is too low, or close it if its budget is spent.

        Returns whether it was retired.
        """
        if host.is_closed:
            return False
        is_poor = self._gives_up(host) or (not host.has_second_chance and self.rule.retires(host.account))
        if is_poor and not host.pinned:
            self.close_host(host, HostState.RETIRED)
            self._note_retired(host.id, host.account, host.has_second_chance)
            return True
        self.close_if_spent(host)
        return False

    def close_if_spent(self, host: Host) -> None:
        """Close *host* if it has reached one of the budgets for a host."""
        if self.is_spent(host):
            self.close_host(host, HostState.SPENT)

    def is_spent(self, host: Host) -> bool:
        """Whether *host* has reached one of the budgets for a host; 0 is no limit."""
        documents = self._options.max_host_documents
        downloaded = self._options.max_host_bytes
        return 0 < documents <= host.documents or 0 < downloaded <= host.account.downloaded_bytes

    def restore(self, store: SqliteStore, meta: Mapping[str, str], now: float) -> None:
        """After a restart: reopen hosts whose budget has grown, or that a milder profile than the last one spares.

        Those that refuse are tried again at once if a robots.txt can no longer refuse.  Other retired ones are noted
        for a second chance.  *meta* has the options of the last run.
        """
        last = json.loads(meta.get("options", "{}"))
        former = parse_yield_profile(str(last.get("yield_profile", "off")))
        is_forgiving = self._options.refused_robots == "allow" and last.get("refused_robots") == "leave"
        is_milder = former is not None and (self._own_factor is None or self._own_factor < former)
        hosts = self._url_states.hosts
        spent: list[int] = []
        spared: list[int] = []
        states = self._url_states.host_states.hosts_by_state()
        is_asked = {HostState.SPENT, HostState.REFUSED} & states.keys() or (
            HostState.RETIRED in states and (self._floor or is_milder)
        )
        for row in store.used_hosts() if is_asked else ():
            if row.state == HostState.SPENT.value:
                spent.append(row.id)
            elif row.state == HostState.REFUSED.value:
                heapq.heappush(self._refused, (0.0 if is_forgiving else self.refusals.until(row.name), row.id))
            elif row.state == HostState.RETIRED.value:
                account = YieldAccount(row.pages, row.downloaded_bytes, row.kept_bytes)
                if is_milder and not self.rule.retires(account):
                    spared.append(row.id)
                else:
                    self._note_retired(row.id, account, row.exempt < 0)
        for host_id in spent:
            host = hosts.by_id(host_id)
            if not self.is_spent(host):
                self.reopen_host(host, now, is_pinned=host.pinned)
        for host in map(hosts.by_id, spared):
            if not self._gives_up(host):
                number = self.reopen_host(host, now, is_pinned=False)
                what = f"the yield profile is milder: reopened {host.name}, with {number} URLs"
                self._url_states.note_event(now, what)

    def relax(self, now: float) -> None:
        """While too few hosts are at work, reopen retired ones, the best yield rate first; they are read to their end.

        Their accounts stay as they are, and the URL log keeps the ends of their URLs.  Hosts that refused are tried
        again when their pause is over, however many are at work.
        """
        while self._refused and self._refused[0][0] <= now:
            refused = self._url_states.hosts.by_id(heapq.heappop(self._refused)[1])
            if refused.state is HostState.REFUSED:
                self.reopen_host(refused, now, is_pinned=refused.pinned)
        while self._retired and self._url_states.host_states.at_work() < self._floor:
            host = self._url_states.hosts.by_id(heapq.heappop(self._retired)[1])
            if host.state is HostState.RETIRED and host.queued:
                self._give_chance(host, now)

    def take_reopened(self) -> list[Host]:
        """Hosts that got a second chance since the last call."""
        reopened = self._reopened
        self._reopened = []
        return reopened

    def _give_chance(self, host: Host, now: float) -> None:
        host.has_second_chance = True
        number = self.reopen_host(host, now, is_pinned=False)
        what = f"too few hosts: reopened {host.name}, yield rate {host.account.rate:.4f}, with {number} URLs"
        self._url_states.note_event(now, what)
        self._reopened.append(host)

    def _note_retired(self, host_id: int, account: YieldAccount, had_chance: bool) -> None:
        if self._floor and account.kept_bytes and not had_chance:
            heapq.heappush(self._retired, (-account.rate, host_id))


IN_A_ROW = 5
"""Refusing answers in a row on different paths after which a host refuses (chosen: one part of a site may need a
password)."""
PAUSES_S = (86_400.0, 604_800.0, 2_592_000.0)
"""Seconds until robots.txt is tried again: a day, a week, then every 30 days (chosen)."""
_MAX_COUNTED = 20_000
"""Hosts whose refusing answers are counted at once, some 500 bytes each; those that refused longest ago are left out.
Chosen."""


class Refusals:
    """Which hosts refuse us, and when their robots.txt is asked for again.

    A host *refuses* when its robots.txt answers 401, 402, 403, 451 or with a challenge, or when IN_A_ROW answers in a
    row do, on different paths.  Then nothing of it is fetched.  After a pause its robots.txt alone is tried; if that
    does not refuse, its URLs wait again.  Each further refusal makes the pause longer, until a page is given.

    RFC 9309, 2.3.1.3, lets a crawler take a robots.txt of status 401 or 403 for none, and fetch everything.  But who
    shuts a crawler out of the file in which he could allow something has not allowed anything.

    Refusing answers are counted in memory; what a refusal leads to is kept as a record under the host's name.
    """

    def __init__(self, robots: Robots) -> None:
        self._robots = robots
        self._paths: OrderedDict[int, set[str]] = OrderedDict()  # host id -> paths of its refusing answers in a row
        self._retried: set[int] = set()  # hosts that were reopened and have given no page since

    def page_answered(self, host: Host, target: CanonicalUrl, outcome: Outcome, now: float) -> bool:
        """Count the answer to a page's request; returns whether *host* refuses from now on."""
        if host.last_start < 0:
            return False  # nothing was asked: the page is an archive's
        if outcome.status not in REFUSING and outcome.reason is not Reason.CHALLENGED:
            if (self._paths or self._retried) and outcome.is_judged:
                self._paths.pop(host.id, None)
                if host.id in self._retried:  # it has given a page again: its next refusal begins with a short pause
                    self._retried.discard(host.id)
                    self._robots.files.records.put(host.name, RobotsRecord(RobotsStatus.NO_RULES, 0.0, 0.0))
            return False
        paths = self._paths.setdefault(host.id, set())
        self._paths.move_to_end(host.id)
        paths.add(target.path.partition("?")[0])
        if len(paths) < IN_A_ROW:
            if len(self._paths) > _MAX_COUNTED:
                self._paths.popitem(last=False)
            return False
        answer = f"{outcome.status} {outcome.detail}".strip()
        said = ConsentRow(target.origin, "/", answer, "", now, now, f"refuses {IN_A_ROW} pages in a row")
        self._robots.files.ledger.append(said)
        return True

    def begin(self, host: Host, now: float) -> float:
        """*host* refuses: note when its robots.txt is to be tried again; returns the seconds until then."""
        former = self._robots.files.records.get(host.name)
        times = 1 + (former.failures if former else 0)
        pause = PAUSES_S[min(times, len(PAUSES_S)) - 1]
        self._robots.files.records.put(host.name, RobotsRecord(RobotsStatus.REFUSED, now, now + pause, times))
        self._paths.pop(host.id, None)
        return pause

    def until(self, name: str) -> float:
        """When the robots.txt of the host *name*, which refuses, is to be tried again."""
        record = self._robots.files.records.get(name)
        return record.expires if record else 0.0

    def retry(self, host: Host, now: float) -> None:
        """*host* is reopened: its robots.txt comes first, whatever is known of it."""
        self._retried.add(host.id)
        for origin in origins_of(host.name):
            self._robots.expire(origin, now)
