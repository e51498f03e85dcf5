"""The frontier's door: ``put_seed``, ``take``, ``resolved``, ``report`` and what else its users call.

Code outside the package uses these methods and properties, and of its parts what tests/test_frontier_door.py lists.
The package's docstring lists the modules.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from spiderling.base.addresses import DropList
from spiderling.base.link_batch import Link, LinkBatch, batch_of
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.frontier import intervals
from spiderling.frontier.admission import Admission, Mention
from spiderling.frontier.core import Core, Elsewhere, Fetch, Report
from spiderling.frontier.host_closing import HostClosing
from spiderling.frontier.hosts import REQUEST_RANK, SEED_RANK, Host, HostState, QueuedUrl, RobotsRequest
from spiderling.frontier.intake import ArchivePages, Intake, Sitemaps
from spiderling.frontier.intervals import BUSY_STATUSES, Slots
from spiderling.frontier.next_fetch import NextFetch, RobotsRequests
from spiderling.frontier.reachability import Probes, Reachability
from spiderling.frontier.recrawl.pages import NOTED, validators_of
from spiderling.frontier.recrawl.recrawl import Recrawl, Revisit
from spiderling.frontier.redirects import Redirects, salt_of_redirect
from spiderling.frontier.robots import Robots, raised
from spiderling.frontier.schedule import Schedule
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import TICK_S, Changes, HistoryRow, State
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import UrlEnd
from spiderling.frontier.strategies import parse
from spiderling.frontier.strategy import LinkingPage, Strategy
from spiderling.frontier.url_states import Ledger, UrlStates


class Frontier:
    """All URLs and hosts of one crawl; ``drain`` gives what the store must learn.

    No method reads a clock: the caller gives ``now`` in seconds, and it never decreases.
    """

    def __init__(
        self,
        options: Options,
        allows: Callable[[str], bool] = lambda address: True,
        store: SqliteStore | None = None,
        strategy: Strategy | None = None,
        failed_on: Callable[[Exception, str], None] = raised,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """*allows*: whether an address may be connected to (SSRF guard).  *strategy* replaces that of the options.

        Without a *store* everything stays in memory.  *failed_on* is called when
        a parser of ours fails on a site's file (robots.py).  *elsewhere*: the other shards of the crawl, if it has any.
        """
        self.strategy = strategy or parse(options.strategy)
        self._store: SqliteStore = SqliteStore() if store is None else store
        self._allows = allows
        self._is_blocked_address: Callable[[str], bool] = lambda address: False
        self.url_states = UrlStates(options, self._store, self.strategy)
        self.strategy.begin(self.url_states, options)
        self.hosts = self.url_states.hosts
        self.host_states = self.url_states.host_states
        self._admission = Admission(options, self.url_states)
        self.robots = Robots(options, self._store.robots, failed_on)
        self.schedule = Schedule(
            options,
            self.hosts,
            self.url_states.queues,
            self.may_connect,
            lambda host: self.host_closing.vet(host),  # it is made after the schedule
            self.strategy,
            self.robots.knows_rules,
        )
        self.intervals = self.schedule.intervals
        self._elsewhere = elsewhere
        self.recrawl = Recrawl(options, self.url_states, self.schedule, self._store)
        parts = self.strategy, self.url_states, self._admission, self.robots, self.schedule, self.recrawl
        self._core = core = Core(options, *parts, elsewhere)
        self.sitemaps = Sitemaps(core)
        self._robots_requests = RobotsRequests(core, self.sitemaps)
        self.host_closing = HostClosing(core, self._robots_requests)
        self.reachability = Reachability()
        self.probes = Probes(self._admission, self.schedule)
        self.archive_pages = ArchivePages(core)
        self._intake = Intake(core)
        self._redirects = Redirects(core)
        self.next_fetch = NextFetch(core, self._robots_requests, self._redirects)
        self._visits: deque[Fetch] = deque()
        """Files that were answered over connections that are open; their hosts are in transit until then."""

    # -- URLs come in

    def is_elsewhere(self, host: str) -> bool:
        return self._core.is_elsewhere(host)

    def put_seed(self, url: str, now: float, distance: int = 0) -> Reason | None:
        """Accept a seed; returns why it was refused, or None.  Each shard gets all seeds, and takes its own."""
        target = canonicalize(url)
        if target is None:
            return self._admission.refuse(Reason.BAD_URL)
        if self._core.is_elsewhere(target.host):
            return None
        if url in self.next_fetch.shunned:
            return Reason.INTERNAL_ERROR
        if host_id := self.url_states.requeue_failed_seed(target):
            self.robots.ask_again(target.origin)
            self.schedule.wake(host_id, now, SEED_RANK)
            return None
        return self._core.put(Mention(target, distance, SEED_RANK), now)

    def put_request(self, url: str, payload: bytes, salt: bytes, source: str | None, now: float) -> Reason | None:
        """Accept a request that a subclass of the spider makes; returns why it was refused, or None.

        *payload* comes back with the Fetch; *salt* distinguishes requests for one URL; *source*: URL of the page.  File
        type and form of the URL do not matter, and it is no link for the option ``follow``.  As with seeds, each shard
        takes its own of those without a *source*.
        """
        target = canonicalize(url)
        if target is None or url in self.next_fetch.shunned:
            return Reason.INTERNAL_ERROR if target else self._admission.refuse(Reason.BAD_URL)
        if source is None and self._core.is_elsewhere(target.host):
            return None
        distance, page = self._admission.found_on(source, target)
        return self._core.put(Mention(target, distance, REQUEST_RANK, page, payload, salt), now)

    def put_links(self, linking: LinkingPage, links: LinkBatch | Iterable[Link], now: float, page: int = 0) -> None:
        """Accept the links of one page as a batch; *page* is its key."""
        self._intake.put(linking, batch_of(links), now, page, None)

    def put_found(self, mention: Mention, now: float) -> Reason | None:
        """Accept a URL that another shard found; returns why it was refused, or None."""
        return self._core.put(mention, now)

    def ask_again(self, ends: Iterable[UrlEnd], now: float) -> tuple[int, int]:
        """Let the URLs of *ends* wait again, whatever their Reason; none of them may be waiting already.

        A seed that was named again meanwhile is left out.  Returns how many are asked again, and how many of these
        wait; the others, of closed hosts and full queues, have ended once more.
        """
        asked = waiting = 0
        for end in ends:
            host_id = self.url_states.wait_once_more(end)
            asked += host_id is not None
            if host_id:
                waiting += 1
                self.schedule.wake(host_id, now, end.rank)
        return asked, waiting

    # -- URLs go out

    def next_due(self) -> float | None:
        """When ``take`` is to be called next; None if nothing waits for a point in time."""
        if self.reachability.is_away:
            return None
        return 0.0 if self._visits else self.schedule.next_due()

    def names_wanted(self) -> list[str]:
        """Names to be resolved now; each is to be answered with ``resolved`` or ``unresolved``."""
        return self.schedule.names.take_wanted()

    def take(self, now: float) -> Fetch | None:
        """Hand out a request whose host and address are due at *now*; None if there is none.

        Four calls choose it: `Schedule.pop` lets hosts in from throttle and backlog, `Workbench.pop` picks the host,
        `Queues.next_up` its URL, `NextFetch.of_host` checks that it is allowed.
        """
        while not self.reachability.is_away:
            if self._visits:
                fetch = self._next_file(self._visits.popleft(), now)
            elif (place := self.schedule.pop(now)) is not None:
                fetch = self.next_fetch.of_host(*place, now)
            else:
                break
            if fetch is None:
                continue
            host = fetch.host
            if fetch.robots is not None:
                host.asking = host.robots_requests.popleft()
            elif fetch.revisit is not None:
                self.recrawl.hand_out(fetch.revisit)
            else:
                self.url_states.hand_out(host)
            self.schedule.hand_out(host, fetch.address, now, fetch.goes_on)
            self.ledger.totals["requests"] += 1
            return fetch
        self.host_closing.relax(now)
        return None

    def _next_file(self, last: Fetch, now: float) -> Fetch | None:
        """The next file of the visit whose file *last* was answered; if that was the last one, its host waits."""
        host = last.host
        self.schedule.end_request(host)
        fetch = self.next_fetch.of_host(host, last.address, now)
        if fetch is None:
            return None
        asked, before = fetch.robots, last.robots
        if asked is not None and before is not None and asked.is_at_home and asked.origin == before.origin:
            return fetch._replace(goes_on=True)
        self.schedule.place(host, now)
        return None

    def may_start(self, fetch: Fetch, now: float) -> float | None:
        """The last gate: 0 if the request may start now, else seconds to wait; None if it may not start at all.

        inf: until a slot is granted.
        """
        if fetch.host.is_closed or not self.may_connect(fetch.address):
            return None
        due = self.intervals.earliest_start(fetch.host, fetch.address, now, fetch.goes_on)
        if due > now:
            return due - now
        self.intervals.permitted(fetch.host, fetch.address, now)
        return 0.0

    def reserve_starts(self, wake: Callable[[], None]) -> Slots:
        """From now on each request needs a slot; *wake* is called when one is wanted."""
        self.intervals.slots = Slots(wake)
        return self.intervals.slots

    def started(self, fetch: Fetch, now: float, address: str = "") -> None:
        """The connection for *fetch* is being opened, to *address* if given: both intervals begin at *now*."""
        self.intervals.started(fetch.host, address or fetch.address, now)

    def asked_again_in(self, fetch: Fetch, now: float) -> float:
        """Seconds until the host of *fetch* is due again, by its interval; inf if nothing of it waits."""
        host = fetch.host
        return max(0.0, host.last_start + self.intervals.of(host) - now) if host.waiting else math.inf

    # -- answers come back

    def resolved(self, name: str, addresses: tuple[str, ...], ttl_s: float, now: float) -> None:
        """*name* has *addresses* for *ttl_s* seconds; the first allowed one is used."""
        for host in self.schedule.names.resolved(name, addresses, ttl_s, now):
            self.schedule.place(host, now)

    def unresolved(self, name: str, permanent: bool, now: float) -> None:
        """*name* does not exist (*permanent*), or its servers do not answer for now."""
        for host in self.schedule.names.unresolved(name, permanent, now):
            self.schedule.place(host, now)

    def give_back(self, fetch: Fetch, now: float) -> None:
        """Requeue a fetch that was handed out and not made, or is to be made again.

        It ends if its host was closed meanwhile.
        """
        host = fetch.host
        url = self.url_states.take_back(fetch.id)
        if fetch.robots is not None and fetch.robots is host.asking:
            host.robots_requests.appendleft(fetch.robots)
            host.asking = None
        elif url is not None:
            self.url_states.wait_again(url, first=True)
        elif self.recrawl.give_back(fetch.id) is None:
            return
        if host.is_closed:
            self._robots_requests.drop(host)
        self.schedule.release(host, now)

    def robots_answered(self, fetch: Fetch, answer: FileAnswer, now: float) -> None:
        """Note the answer to a request for a file of a site."""
        request = fetch.robots
        host = fetch.host
        if request is None or request is not host.asking:
            return
        if answer.has_file and request.asker is None:
            self.robots.files.read(request.origin, request.file, answer)  # first, since it may raise
        host.asking = None
        ledger = self.url_states.ledger
        self.url_states.hosts.count_bytes(host, 0, len(answer.body), 0)
        ledger.totals["downloaded_bytes"] += len(answer.body)
        ledger.totals["robots"] += 1
        if answer.status:
            self.reachability.host_answered(request.origin, host.last_start, now)
        pause_s = min(answer.retry_after_s, intervals.MAX_PAUSE_S)
        self.schedule.intervals.note_status(host, answer.status, now + pause_s)
        self._note_file(request, answer, now)
        if answer.is_open and fetch.keeps_open and answer.status not in BUSY_STATUSES:
            self._visits.append(fetch)
        else:
            self.schedule.release(host, now)

    def put_file_request(self, request: RobotsRequest, distance: int, now: float) -> None:
        """Fetch a file of one of our hosts for another shard, which finds that host at *distance*."""
        self._robots_requests.ask_for_another(request, distance, now)

    def file_answered(self, request: RobotsRequest, answer: FileAnswer, now: float) -> None:
        """Note the answer to a *request* that another shard was given."""
        if answer.has_file:
            self.robots.files.read(request.origin, request.file, answer)
        self._note_file(request, answer, now)

    def _note_file(self, request: RobotsRequest, answer: FileAnswer, now: float) -> None:
        closed = self._robots_requests.take_answer(request, answer, now)
        if closed is not None and closed[1] is HostState.REFUSED:
            self.host_closing.refuse(closed[0], now)
        elif closed is not None:
            self.host_closing.close_host(*closed)

    def report(self, outcome: Outcome, now: float) -> Report:
        """Account for a finished request: count sizes, admit links, end or requeue the URL, release the host."""
        revisit = self.recrawl.take_back(outcome.url_id)
        report = self._end_page(outcome, now) if revisit is None else self._end_revisit(revisit, outcome, now)
        self.url_states.url_log.documents += outcome.document is not None
        if outcome.feeds:
            self.sitemaps.put_feeds(outcome.url, outcome.feeds, now)
        return report

    def pass_document(self) -> None:
        """The batch has a document of which no outcome is reported."""
        self.url_states.url_log.documents += 1

    def _end_page(self, outcome: Outcome, now: float) -> Report:
        links = batch_of(outcome.links)
        url = self.url_states.take_back(outcome.url_id)
        target = url.target if url else canonicalize(outcome.url)
        host = url.host if url else self.url_states.hosts.get(target.host) if target else None
        ledger = self.url_states.ledger
        ledger.count_outcome(outcome)
        if host is None or target is None:
            return Report(None)
        self.url_states.hosts.count_bytes(host, outcome.is_judged, outcome.body_bytes, outcome.kept_bytes)
        self._note_answer(host, target, outcome, now)
        self.schedule.count_yield(host, outcome.kept_bytes, outcome.body_bytes, now)
        end = self._end_or_wait(url, outcome, now) if url else None
        visit = None
        if url is not None and end is not None and not url.payload:
            visit = self._admission.traps.visit(host, target.path, outcome)
        if self.host_closing.refusals.page_answered(host, target, outcome, now):
            self.host_closing.refuse(host, now)
        linking = LinkingPage.of(host, url.rank if url else SEED_RANK, outcome)
        if end is not None:
            self.strategy.learn(linking, target, outcome)
        self._intake.put(linking, links, now, outcome.url_id or 0, visit)
        if visit is not None:
            self._close_mirror(self._admission.traps.leave(visit), now)
            if self._elsewhere is not None and self._admission.traps.compares(visit):
                self._elsewhere.tell_visit(*visit.keys)
        is_retired = self.host_closing.review(host)
        if url is not None:
            self.schedule.release(host, now)
        return Report(end, host if is_retired else None)

    def put_visits(self, visits: Iterable[Sequence[int]], now: float) -> None:
        """Take what another shard tells of its pages (`Visit.keys`), which may show a mirror."""
        for host, page in visits:
            self._close_mirror(self._admission.traps.visit_elsewhere(host, page), now)

    def _close_mirror(self, host: Host | None, now: float) -> None:
        if host is not None:
            self.url_states.note_event(now, f"{host.name} is left alone: a mirror of another host")
            self.host_closing.close_host(host, HostState.MIRROR)

    def _end_revisit(self, revisit: Revisit, outcome: Outcome, now: float) -> Report:
        """A revisit is over.  It counts for no yield, since most of them find nothing; its new links are admitted."""
        host = revisit.host
        ledger = self.url_states.ledger
        ledger.count_revisit(outcome)
        self._note_answer(host, revisit.target, outcome, now)
        if outcome.may_pass:
            self.host_closing.back_off(host, outcome, now)
        else:
            host.failures = 0
        if self.host_closing.refusals.page_answered(host, revisit.target, outcome, now):
            self.host_closing.refuse(host, now)
        if self._redirects.follow_back(revisit, outcome):
            self.recrawl.plan_again(revisit)
            self.schedule.release(host, now)
            return Report(None)
        self._redirects.forget(revisit.key)
        known = ledger.discovered
        if outcome.redirect_to is not None and (target := canonicalize(outcome.redirect_to)) is not None:
            salt = b"" if revisit.payload is None else salt_of_redirect(revisit.key)
            self._core.put(Mention(target, host.distance, REQUEST_RANK, revisit.key, revisit.payload, salt, 1), now)
        linking = LinkingPage.of(host, SEED_RANK, outcome)
        if revisit.page.version:  # that nothing on it is new says nothing of its links
            linking = linking._replace(reason=Reason.KEPT)
        self._intake.put(linking, batch_of(outcome.links), now, revisit.key, None)
        revisit.found += ledger.discovered - known
        self.recrawl.over(revisit, outcome, now)
        self.host_closing.close_if_spent(host)
        self.schedule.release(host, now)
        return Report(None)

    def _note_answer(self, host: Host, target: CanonicalUrl, outcome: Outcome, now: float) -> None:
        """Take in what the answer says of its host, and keep the paragraphs of the page."""
        host.documents += outcome.reason is Reason.KEPT
        host.words += outcome.words
        self.url_states.hosts.changed.add(host)
        if outcome.status or outcome.wire_bytes:
            self.reachability.host_answered(target.origin, host.last_start, now)
        self.schedule.intervals.note_status(host, outcome.status)
        if outcome.paragraphs and outcome.url_id is not None:
            self.recrawl.paragraphs.put(outcome.url_id, outcome.paragraphs)

    def _end_or_wait(self, url: QueuedUrl, outcome: Outcome, now: float) -> Reason | None:
        """End *url* and return its Reason; None if it waits for another attempt."""
        if outcome.may_pass:
            self.host_closing.back_off(url.host, outcome, now)
            if url.tries < self._core.options.retries and not url.host.is_closed:
                url.tries += 1
                self.url_states.wait_again(url, first=False)
                return None
        else:
            url.host.failures = 0
        reason: Reason | None = outcome.reason
        if reason is Reason.REDIRECTED and outcome.redirect_to is not None:
            reason = self._redirects.follow(url, outcome, outcome.redirect_to, now)
        if reason is not None:
            self._redirects.forget(url.key)
            self.url_states.end_in_transit(url, reason, outcome)
            if reason.value in NOTED:
                self.url_states.url_log.log_validators(url.key, validators_of(outcome).pack())
        return reason

    # -- what is known of a page

    def is_copy(self, host_name: str, sketch: int) -> bool:
        """Whether the host's domain has as many pages with this *sketch* as may be kept (traps.py)."""
        return self._admission.traps.is_copy(host_name, sketch)

    # -- hosts

    def host(self, name: str) -> Host | None:
        return self.hosts.get(name)

    def network_trouble(self) -> str:
        """A message for the user: how many hosts fail, and how; '' unless the network is away."""
        return self.reachability.summary(self.host_states.at_work())

    def others_answered(self, now: float) -> None:
        """Other shards of the crawl have got answers lately, or have nothing left to ask for."""
        self.reachability.others_answered(now)

    def throttled(self, now: float) -> tuple[int, int]:
        """(hosts that would be due at *now* and wait since they yield little, places in use)."""
        return self.schedule.throttle.number(now), self.schedule.places_used

    def block_addresses(self, is_blocked: Callable[[str], bool]) -> None:
        """Connect to no address that satisfies *is_blocked*; all names are resolved and judged again."""
        self._is_blocked_address = is_blocked
        self.schedule.names.forget()

    def crawl_only(self, is_wanted: Callable[[str], bool]) -> None:
        """From now on only URLs of hosts whose name satisfies *is_wanted* are accepted."""
        self._admission.is_wanted = is_wanted

    def leave_out(self, taken_down: DropList) -> None:
        """From now on no URL that *taken_down* lists is fetched."""
        self._admission.taken_down = taken_down

    def may_connect(self, address: str) -> bool:
        """Whether neither the options nor the user forbid *address*."""
        return self._allows(address) and not self._is_blocked_address(address)

    # -- counts

    @property
    def ledger(self) -> Ledger:
        """The counts; outside the package only totals and ``refused_links`` are changed."""
        return self.url_states.ledger

    @property
    def is_finished(self) -> bool:
        """Whether nothing waits and nothing is in transit."""
        return not (self.ledger.waiting or self.ledger.in_transit)

    # -- the store

    def note_event(self, now: float, what: str) -> None:
        """Record what a person did or should know; the store gets it with the next batch."""
        self.url_states.note_event(now, what)

    @property
    def has_changes(self) -> bool:
        return (
            self.url_states.has_changes
            or self.recrawl.has_changes
            or (self._elsewhere is not None and self._elsewhere.has_changes)
        )

    def history(self, now: float) -> HistoryRow:
        """The totals at *now*, as a row of the table ``history``."""
        totals = self.ledger.totals
        return HistoryRow(
            int(now // TICK_S),
            now,
            totals["time_s"],
            totals["pages"],
            totals["documents"],
            totals["words"],
            totals["downloaded_bytes"],
            totals["kept_bytes"],
            self.ledger.discovered,
            self.ledger.waiting + self.ledger.in_transit,
            len(self.hosts),
            self.host_states.at_work(),
            self.host_states.hosts_by_state().get(HostState.RETIRED, 0),
        )

    def drain(self, now: float) -> Changes:
        """What the store must learn since the last call, as one immutable batch."""
        self.intervals.forget_idle(now)
        url_states = self.url_states
        changes = url_states.drain(self.robots)
        blobs, of_recrawl = self.recrawl.drain()
        meta = self.strategy.state() | self.reachability.state() | url_states.failed_seeds.state() | of_recrawl
        changes = replace(changes, url_log=url_states.url_log.drain(now), meta=meta, blobs=blobs)
        return changes if self._elsewhere is None else self._elsewhere.drain(changes, now)

    def restore(self, state: State, now: float) -> None:
        """Take up what was committed; no host, known or new, is due before *now* plus the intervals."""
        self.strategy.restore(state.meta)
        self.reachability.restore(state.meta)
        self.url_states.failed_seeds.restore(state.meta)
        self.robots.files.records.look_in_store()
        self.schedule.restore(self.url_states.restore(state, self._store), now)
        self.host_closing.restore(self._store, state.meta, now)
        self.recrawl.restore(state.meta)
        if self._elsewhere is not None:
            self._elsewhere.restore(state)

    def committed(self) -> None:
        """The store has committed what ``drain`` returned last; drop from memory what only the store needs now."""
        self.url_states.queues.note_commit()
        self.hosts.note_commit()
        self.robots.files.records.committed()
        self.recrawl.committed()
        if self._elsewhere is not None:
            self._elsewhere.committed()
