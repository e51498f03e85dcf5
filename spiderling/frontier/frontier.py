"""The frontier's door: ``put``, ``take``, ``resolved``, ``report``.  The package's docstring holds the map."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from spiderling.base.link_batch import Link, LinkBatch, batch_of
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize, canonicalize_again
from spiderling.frontier.discovery.admission import Admission
from spiderling.frontier.discovery.archive_pages import ArchivePages
from spiderling.frontier.discovery.link_intake import Intake
from spiderling.frontier.discovery.redirects import Redirects
from spiderling.frontier.discovery.robots_requests import RobotsRequests
from spiderling.frontier.discovery.traps import Visit
from spiderling.frontier.host_closing import HostClosing
from spiderling.frontier.hosts.host import Host, HostState, QueuedUrl, RobotsTask, identity
from spiderling.frontier.hosts.ranks import REQUEST_RANK, SEED_RANK
from spiderling.frontier.lifecycle.ask_again import AskedAgain, ask_again
from spiderling.frontier.lifecycle.failed_seeds import FailedSeeds
from spiderling.frontier.lifecycle.ledger import Ledger
from spiderling.frontier.lifecycle.url_states import UrlStates
from spiderling.frontier.ranking.strategies import LinkingPage, parse
from spiderling.frontier.ranking.strategy import Strategy
from spiderling.frontier.reachability import Reachability
from spiderling.frontier.robots import ENDS, Robots, RobotsRecord, RobotsVerdict, raised, robots_of
from spiderling.frontier.scheduling.names import NameStatus
from spiderling.frontier.scheduling.schedule import Schedule, next_up
from spiderling.frontier.storage.memory import MemoryStore
from spiderling.frontier.storage.protocol import Changes, Shelf, State
from spiderling.frontier.storage.url_log import End
from spiderling.frontier.values import Fetch, Report

_MAX_ENDS_PER_STEP = 100
"""URLs that may end while one host is looked through, so that no call takes long."""
_STEP_PAUSE_S = 0.01


class Frontier:
    """All URLs and hosts of one crawl; ``drain`` gives what the store must learn.

    No method reads a clock: ``now`` is the caller's, in seconds, and never goes back.
    """

    def __init__(
        self, options: Options, allows: Callable[[str], bool] = lambda address: True, shelf: Shelf | None = None,
        strategy: Strategy | None = None, failed_on: Callable[[Exception, str], None] = raised,
    ) -> None:  # fmt: skip
        """*allows* judges an address that a name resolved to (SSRF guard); *shelf* holds what does not fit in memory.

        Without a shelf nothing may be ``committed``, and everything stays in memory.  *strategy*: in place of the
        one that the options name.  *failed_on* hears of errors of ours that end the file of a site (robots.py).
        """
        self.strategy = strategy or parse(options.strategy)
        self._options = options
        self._shelf: Shelf = MemoryStore() if shelf is None else shelf
        self._url_states = UrlStates(options, self._shelf, self.strategy)
        self.strategy.begin(self._url_states, options)
        self._admission = Admission(options, self._url_states, self.strategy)
        self._traps = self._admission.traps
        self._robots = rules = Robots(options, self._stored_robots, failed_on)
        self._allows = allows
        self._is_blocked_address: Callable[[str], bool] = lambda address: False
        self.shunned: frozenset[int | str | None] = frozenset()
        """URLs and files of sites (by `identity`) on which the crawl has failed: they end when it is their turn."""
        self.examined: QueuedUrl | RobotsTask | None = None
        """What ``take`` looked at last: to blame if it raised an error."""
        self._queues = self._url_states.queues
        self.hosts = self._url_states.hosts
        self.pending_changes = self._url_states.pending_changes
        self.schedule = Schedule(
            options, self._url_states.hosts, self._queues, self.may_connect,
            lambda host: self.host_closing.vet(host),
            lambda: self.ledger.yield_rate if self.strategy.retires else math.inf,
            self.strategy,
        )  # fmt: skip
        self._intake = Intake(self._url_states, self._admission, self.schedule)
        self._robots_requests = RobotsRequests(
            options, self._robots, self._admission, self.schedule, self._url_states.hosts
        )
        self.statements, self.sitemaps, self.parsed_ahead = rules.statements_of, rules.sitemaps, rules.parsed_ahead
        self.host_closing = HostClosing(
            options, self._url_states, self._admission, self._robots_requests, self.schedule, self.strategy
        )
        self.close = self.host_closing.close
        self.reopen = self.host_closing.reopen
        self.block_where = self.host_closing.block_where
        self.crawl_only, self.discovery = self._admission.crawl_only, self._robots_requests.sitemaps
        self.reachability = Reachability()
        self._failed_seeds = FailedSeeds(self._url_states, rules, self.schedule)
        self._redirects = Redirects(self._url_states, self._admission, self._accept, options.max_redirects)
        self.archive_pages = ArchivePages(self._url_states, self._admission, rules)

    @property
    def ledger(self) -> Ledger:
        """The counts; ``ledger.imbalance`` is 0 unless there is a bug."""
        return self._url_states.ledger

    @property
    def is_finished(self) -> bool:
        """Whether nothing waits and nothing is in transit."""
        return not (self.ledger.waiting or self.ledger.in_transit)

    # -- URLs come in

    def put_seed(self, url: str, now: float, distance: int = 0) -> Reason | None:
        """Accept a seed; returns why it was refused, or None."""
        target = canonicalize(url)
        if target is None:
            return self._admission.refuse(Reason.BAD_URL)
        if url in self.shunned:
            return Reason.INTERNAL_ERROR
        return None if self._failed_seeds.again(target, now) else self._accept(target, distance, SEED_RANK, now)

    def put_request(self, url: str, payload: bytes, salt: bytes, source: str | None, now: float) -> Reason | None:
        """Accept a request of a subclass, whatever its file type or form; *source* is the page it was found on.

        *payload* comes back with the Fetch; *salt* tells apart requests for one URL.
        """
        target = canonicalize(url)
        if target is None or url in self.shunned:
            return Reason.INTERNAL_ERROR if target else self._admission.refuse(Reason.BAD_URL)
        distance, page = self._admission.found_on(source, target)
        return self._accept(target, distance, REQUEST_RANK, now, payload=payload, salt=salt, page=page)

    def put_links(
        self, linking: LinkingPage, links: LinkBatch | Iterable[Link], now: float, page: int = 0,
        visit: Visit | None = None,
    ) -> None:  # fmt: skip
        """Accept the links of one page as a batch; *page* is its key."""
        self._intake.put(linking, batch_of(links), self.strategy.batch_ranker(linking), now, page, visit)

    def _accept(
        self, target: CanonicalUrl, distance: int, rank: int, now: float,
        redirects: int = 0, payload: bytes | None = None, salt: bytes = b"", page: int = 0,
    ) -> Reason | None:  # fmt: skip
        accepted = self._admission.accept(target, distance, rank, redirects, payload, salt, page)
        if isinstance(accepted, Reason):
            return accepted
        self.schedule.wake(accepted, now, rank)
        return None

    # -- URLs go out

    def next_due(self) -> float | None:
        """When ``take`` will next have something to look at; None when nothing waits for a time."""
        return None if self.reachability.is_away else self.schedule.next_due()

    def names_wanted(self) -> list[str]:
        """Names to be resolved now; each is to be answered with ``resolved`` or ``unresolved``."""
        return self.schedule.names_wanted()

    def take(self, now: float) -> Fetch | None:
        """A request whose host and address are due at *now*: handed out, in transit, its address charged."""
        while not self.reachability.is_away and (place := self.schedule.pop(now)) is not None:
            host, address = place
            fetch = self._next_fetch(host, address, now)
            if fetch is not None:
                return self._hand_out(fetch, now)
        self.host_closing.relax(now)
        return None

    def _next_fetch(self, host: Host, address: str, now: float) -> Fetch | None:
        """The host's first robots.txt or URL that may be fetched from *address*; without one the host is placed."""
        for _ in range(_MAX_ENDS_PER_STEP):
            if host.is_closed or not host.has_work:
                self.schedule.rest(host)
                return None
            step = self._examine(host, now)
            if step is None:
                continue
            if isinstance(step, Host):
                return None
            if step.address == address:
                return step
            self.schedule.wait_at(host, step.address, now)
            return None
        host.postpone(now + _STEP_PAUSE_S)
        self.schedule.wait_at(host, address, now)
        return None

    def _examine(self, host: Host, now: float) -> Fetch | Host | None:
        """A Fetch for the head of the queue; the host when it has to wait; None when the head ended."""
        self.examined = None
        head = self.examined = next_up(host, self._queues)
        if self.shunned and not self.shunned.isdisjoint(identity(head)):
            self._end_head(host, Reason.INTERNAL_ERROR, now)
            return None
        name = self.schedule.lookup(head, now)
        if name.status in (NameStatus.UNKNOWN, NameStatus.PAUSED):
            self.schedule.place(host, now)
            return host
        if name.status is not NameStatus.FRESH:
            self._end_head(host, Reason.DNS if name.status is NameStatus.DEAD else Reason.ADDRESS_FORBIDDEN, now)
            return None
        if isinstance(head, RobotsTask):
            return Fetch(0, head.url, name.address, host, robots=head)
        return self._judge(head, name.address, now)

    def _judge(self, url: QueuedUrl, address: str, now: float) -> Fetch | Host | None:
        """What is known of traps and what robots.txt says of *url*, as in ``_examine``."""
        target = url.target
        if (end := self._admission.left_out(url)) is not None:
            self._end_head(url.host, end, now)
            return None
        verdict = self._robots.judge(target.origin, target.url, now)
        if verdict is RobotsVerdict.ALLOWED:
            return Fetch(url.key, url.url, address, url.host, url.payload)
        if verdict is RobotsVerdict.MISSING:
            return None if self._robots_requests.ask(url.host, target, now) else url.host
        if verdict is RobotsVerdict.PAUSED:
            url.host.postpone(self._robots.records[target.origin].expires)
            self.schedule.wait_at(url.host, address, now)
            return url.host
        self._end_head(url.host, ENDS[verdict], now)
        return None

    def _end_head(self, host: Host, reason: Reason, now: float) -> None:
        if host.tasks:
            self._robots_requests.fail(host.tasks.popleft(), now)
        else:
            self._url_states.end_head(host, reason)

    def _hand_out(self, fetch: Fetch, now: float) -> Fetch:
        host = fetch.host
        if fetch.robots is not None:
            host.asking = host.tasks.popleft()
        else:
            self._url_states.hand_out(host)
        self.schedule.hand_out(host, fetch.address, now)
        self.ledger.totals["requests"] += 1
        return fetch

    def may_start(self, fetch: Fetch, now: float) -> float | None:
        """The last gate: 0 when the request may start now, else seconds to wait; None when the host was closed."""
        if fetch.host.is_closed or not self.may_connect(fetch.address):
            return None
        due = self.schedule.earliest_start(fetch.host, fetch.address)
        if due > now:
            return due - now
        self.schedule.granted(fetch.host, fetch.address, now)
        return 0.0

    def started(self, fetch: Fetch, now: float) -> None:
        """The request's connection is being opened: both intervals count from here."""
        self.schedule.started(fetch.host, fetch.address, now)

    def answered(self, fetch: Fetch, now: float) -> None:
        """The server's answer is complete, or will not come: a slow host rests for longer."""
        self.schedule.answered(fetch.host, now)

    def give_back(self, fetch: Fetch, now: float) -> None:
        """A fetch that was handed out and not made: it waits again, or ends if its host was closed meanwhile."""
        host, url = fetch.host, self._url_states.take_back(fetch.id)
        if fetch.robots is not None and fetch.robots is host.asking:
            host.tasks.appendleft(fetch.robots)
            host.asking = None
        elif url is not None:
            self._url_states.wait_again(url, first=True)
        else:
            return
        if host.is_closed:
            self._robots_requests.drop(host)
        self.schedule.release(host, now)

    # -- answers come back

    def is_copy(self, url: str, sketch: int) -> bool:
        """Whether a page at *url* with this sketch says what enough pages of its domain have said (traps.py)."""
        target = canonicalize_again(url)
        return target is not None and self._traps.is_copy(target.host, sketch)

    def resolved(self, name: str, addresses: tuple[str, ...], ttl_s: float, now: float) -> None:
        """*name* has *addresses* for *ttl_s* seconds; the first allowed one is used."""
        self.schedule.resolved(name, addresses, ttl_s, now)

    def unresolved(self, name: str, permanent: bool, now: float) -> None:
        """*name* does not exist (*permanent*), or its servers do not answer for now."""
        self.schedule.unresolved(name, permanent, now)

    def robots_answered(
        self, fetch: Fetch, status: int, body: bytes, location: str | None, now: float, retry_after_s: float = 0.0
    ) -> None:
        """The answer to a robots.txt request; status 0 means that none came; *location* is a redirect's target."""
        task, host = fetch.robots, fetch.host
        if task is None or task is not host.asking:
            return
        if 200 <= status < 300:
            self._robots.read(task.origin, task.file, body)  # before anything changes
        host.asking = None
        self.hosts.count_bytes(host, 0, len(body), 0)
        self.ledger.totals["downloaded_bytes"] += len(body)
        self.ledger.totals["robots"] += 1
        if status:
            self.reachability.answered(task.origin, host.last_start, now)
        self.schedule.heard(host, status, now + min(retry_after_s, self._options.max_snooze_s))
        too_slow = self._robots_requests.answered(task, status, body, location, now, retry_after_s)
        if too_slow is not None:
            self.close(too_slow, HostState.FORBIDDEN)
        self.schedule.release(host, now)

    def report(self, outcome: Outcome, now: float) -> Report:
        """Account for a finished request: sizes, links, the URL's end or next attempt, the host's release."""
        links = batch_of(outcome.links)
        url = self._url_states.take_back(outcome.url_id)
        target = url.target if url else canonicalize(outcome.url)
        host = url.host if url else self.hosts.get(target.host) if target else None
        self.ledger.add(outcome)
        if host is None:
            return Report(None)
        if target is not None and (outcome.status or outcome.wire_bytes):
            self.reachability.answered(target.origin, host.last_start, now)
        self._account(host, outcome)
        end = self._end_or_wait(url, outcome, now) if url else None
        visit = None
        if url is not None and end is not None and target is not None and not url.payload:
            visit = self._traps.visit(host, target.path, outcome)
        linking = LinkingPage.of(host, url.rank if url else SEED_RANK, outcome, self.ledger.totals["pages"])
        if end is not None and target is not None:
            self.strategy.learn(linking, target, outcome)
        self.put_links(linking, links, now, outcome.url_id or 0, visit)
        if visit is not None and (mirror := self._traps.leave(visit)) is not None:
            self.pending_changes.event(now, f"{mirror.name} is left alone: a mirror of another host")
            self.close(mirror, HostState.MIRROR)
        retired = self.host_closing.review(host)
        if url is not None:
            self.schedule.release(host, now)
        return Report(end, retired)

    def _account(self, host: Host, outcome: Outcome) -> None:
        self.hosts.count_bytes(host, outcome.is_judged, outcome.body_bytes, outcome.kept_bytes)
        host.documents += outcome.reason is Reason.KEPT
        host.words += outcome.words
        self.schedule.heard(host, outcome.status)
        self.schedule.gave(host, outcome.kept_bytes, outcome.body_bytes)

    def _end_or_wait(self, url: QueuedUrl, outcome: Outcome, now: float) -> Reason | None:
        """End *url*, and say how; or let it wait for another attempt."""
        if outcome.may_pass:
            self.host_closing.back_off(url.host, outcome, now)
            if url.tries < self._options.retries and not url.host.is_closed:
                url.tries += 1
                self._url_states.wait_again(url, first=False)
                return None
        else:
            url.host.clear_failures()
        reason: Reason | None = outcome.reason
        if reason is Reason.REDIRECTED and outcome.redirect_to is not None:
            reason = self._redirects.follow(url, outcome.redirect_to, outcome.redirect_payload, now)
        if reason is not None:
            self._url_states.end_in_transit(url, reason)
        return reason

    def ask_again(self, ends: Iterable[End], now: float) -> AskedAgain:
        """Let URLs wait again that ended as *ends* say, whatever the Reason; none of them may wait already."""
        return ask_again(self._url_states, self.schedule, ends, now)

    # -- hosts

    def block_addresses(self, is_blocked: Callable[[str], bool]) -> None:
        """Connect to no address that satisfies *is_blocked*; all names are asked for and judged again."""
        self._is_blocked_address = is_blocked
        self.schedule.forget_addresses()

    def may_probe(self, host: Host) -> bool:
        """Whether *host*, retired or not, may be asked if it is there."""
        return host.state not in (HostState.BLOCKED, HostState.FORBIDDEN) and not self._admission.is_blocked(host.name)

    def may_connect(self, address: str) -> bool:
        """Whether neither the options nor the user forbid *address*."""
        return self._allows(address) and not self._is_blocked_address(address)

    # -- the store

    def _stored_robots(self, origin: str) -> RobotsRecord | None:
        row = self._shelf.robots(origin)
        return robots_of(row) if row is not None else None

    def drain(self, now: float) -> Changes:
        """What the store must learn since the last call, as one immutable batch."""
        self.schedule.forget_idle(now)
        changes = self.pending_changes.drain(self._url_states.seen, self._robots, self.ledger)
        meta = self.strategy.state() | self.reachability.state() | self._failed_seeds.state()
        return replace(changes, url_log=self._url_states.url_log.drain(now), meta=meta)

    def restore(self, state: State, now: float) -> None:
        """Take up what was committed; no host, known or new, is due before *now* plus the intervals."""
        self.strategy.restore(state.meta)
        self.reachability.restore(state.meta)
        self._failed_seeds.restore(state.meta)
        self._robots.look_in_store()
        self.schedule.restore(self._url_states.restore(state, self._shelf), now)
        self.host_closing.restore(self._shelf, now)

    def committed(self) -> None:
        """What ``drain`` gave last is on the shelf: what is not needed in memory leaves it."""
        self._queues.note_commit()
        self.hosts.note_commit()
        self._robots.forget()
