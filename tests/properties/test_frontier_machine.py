"""Random operations on a Frontier: nothing is lost or counted twice, and every committed prefix can be restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from unittest import mock

import pytest
from example_counts import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.base.urls import canonicalize, url_key
from spiderling.frontier import Fetch, Frontier, host_closing, intervals, known_files, next_fetch
from spiderling.frontier.hosts import CLOSED_STATES, Host, HostState, QueuedUrl
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore

OPTIONS = Options(
    host_interval_s=2.0, ip_interval_s=0.5, retries=1, max_distance=2,
    max_host_queue=5,
    yield_profile="0.9", active_hosts=2,
)  # fmt: skip
NAMES = ["a.cz", "www.a.cz", "b.a.cz", "c.cz", "c.cz:81", "d.cz"]
PATHS = ["/", "/1", "/2", "/3?utm_source=x", "/3", "/4;sid=1", "/x.zip", "/private"]
TARGETS = [
    target
    for name in NAMES
    for scheme in ("http", "https")
    for path in (*PATHS, *(f"/n{number}" for number in range(13)))
    if (target := canonicalize(f"{scheme}://{name}{path}"))
]
URLS = st.builds("{}://{}{}".format, st.sampled_from(["http", "https"]), st.sampled_from(NAMES), st.sampled_from(PATHS))
ANY_URLS = st.one_of(URLS, URLS, URLS, st.text(max_size=10))
ENDS = st.sampled_from([reason for reason in Reason if reason not in MENTIONS and reason is not Reason.REDIRECTED])
ROBOTS = st.sampled_from(
    [b"", b"User-agent: *\nDisallow: /private", b"User-agent: *\nCrawl-delay: 9", b"User-agent: *\nCrawl-delay: 31"]
)


CLOSED_BY_OTHERS = [state for state in CLOSED_STATES if state is not HostState.SPENT]
"""A host whose budget is not spent comes back by itself at a restart."""


@pytest.fixture(autouse=True, scope="module")
def soon_judged() -> Iterator[None]:
    with (
        mock.patch.multiple(host_closing, MIN_PAGES=2, MIN_BYTES=100),
        mock.patch.multiple(intervals, RETRY_DELAY_S=10.0),
        mock.patch.multiple(known_files, MAX_AGE_S=200.0),
        mock.patch.multiple(next_fetch, MAX_CRAWL_DELAY_S=30.0),
    ):
        yield


class FrontierMachine(RuleBasedStateMachine):
    """Asks nothing of the frontier's inside but its hosts; the store holds every batch in order."""

    def __init__(self) -> None:
        super().__init__()
        self.store = SqliteStore()
        self.frontier = Frontier(OPTIONS, store=self.store)
        self.batch: Changes | None = None
        self.is_written = False
        self.now = 0.0
        self.unanswered: list[str] = []
        self.fetches: list[Fetch] = []
        self.starts: dict[str, float] = {}

    # -- in

    @rule(url=ANY_URLS)
    def seed(self, url: str) -> None:
        self.frontier.put_seed(url, self.now)

    @rule(host=st.sampled_from(["http://a.cz", "http://c.cz", "https://d.cz"]), first=st.integers(0, 9))
    def seeds(self, host: str, first: int) -> None:
        for number in range(first, first + 4):
            self.frontier.put_seed(f"{host}/n{number}", self.now)

    @rule(url=ANY_URLS, salt=st.sampled_from([b"", b"POST"]), source=st.none() | URLS)
    def request(self, url: str, salt: bytes, source: str | None) -> None:
        self.frontier.put_request(url, b"payload", salt, source, self.now)

    # -- time and names

    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0, 5.0, 60.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_until_due(self) -> None:
        due = self.frontier.next_due()
        if due is not None:
            self.now = max(self.now, due)

    @rule(answer=st.sampled_from(["10.0.0.1", "10.0.0.1", "10.0.0.2", "temporary", "permanent"]))
    def names(self, answer: str) -> None:
        for name in self.frontier.names_wanted():
            if answer.startswith("10."):
                self.frontier.resolved(name, (answer,), 120.0, self.now)
            else:
                self.frontier.unresolved(name, answer == "permanent", self.now)

    # -- out and back

    @rule()
    def take(self) -> None:
        fetch = self.frontier.take(self.now)
        if fetch is not None:
            assert not fetch.host.is_closed
            assert fetch.host.name not in {other.host.name for other in self.fetches}, "one in transit per host"
            self.fetches.append(fetch)

    @rule(times=st.integers(1, 4))
    def go_on(self, times: int) -> None:
        """What the scheduler does all the time, so that walks get far."""
        for _ in range(times):
            self.names("10.0.0.1")
            self.wait_until_due()
            self.take()
        for fetch in [fetch for fetch in self.fetches if fetch.robots is not None][: times - 1]:
            self.fetches.remove(fetch)
            self.frontier.robots_answered(fetch, FileAnswer(404), self.now)

    @precondition(lambda self: self.fetches)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        fetch = data.draw(st.sampled_from(self.fetches))
        wait_s = self.frontier.may_start(fetch, self.now)
        assert (wait_s is None) == fetch.host.is_closed
        if wait_s == 0:
            for key, interval_s in ((fetch.host.name, 2.0), (fetch.address, 0.5)):
                assert self.now - self.starts.get(key, -9.0) >= interval_s
                self.starts[key] = self.now

    def pick(self, data: st.DataObject, robots: bool) -> Fetch | None:
        of_kind = [fetch for fetch in self.fetches if (fetch.robots is not None) is robots]
        if not of_kind:
            return None
        fetch = data.draw(st.sampled_from(of_kind))
        self.fetches.remove(fetch)
        return fetch

    @rule(data=st.data(), robots=st.booleans())
    def give_back(self, data: st.DataObject, robots: bool) -> None:
        if (fetch := self.pick(data, robots)) is not None:
            self.frontier.give_back(fetch, self.now)

    @rule(data=st.data(), status=st.sampled_from([200, 200, 404, 404, 500, 0]), body=ROBOTS, location=st.none() | URLS)
    def robots_answer(self, data: st.DataObject, status: int, body: bytes, location: str | None) -> None:
        if (fetch := self.pick(data, robots=True)) is not None:
            self.frontier.robots_answered(fetch, FileAnswer(status, body, location), self.now)

    @rule(data=st.data(), reason=ENDS, kept=st.sampled_from([0, 90]), links=st.lists(ANY_URLS, max_size=6))
    def page(self, data: st.DataObject, reason: Reason, kept: int, links: list[str]) -> None:
        if (fetch := self.pick(data, robots=False)) is not None:
            found = tuple(Link(url, text_block=bool(kept)) for url in links)
            self.report(fetch, Outcome(fetch.id, fetch.url, reason, 200, body_bytes=100, kept_bytes=kept, links=found))

    @rule(data=st.data(), retry_after=st.sampled_from([None, 0.0, 7200.0, float("nan"), float("inf")]))
    def failure(self, data: st.DataObject, retry_after: float | None) -> None:
        if (fetch := self.pick(data, robots=False)) is not None:
            outcome = Outcome(fetch.id, fetch.url, Reason.HTTP_ERROR, 503, may_pass=True, retry_after_s=retry_after)
            self.report(fetch, outcome)

    @rule(data=st.data(), location=st.none() | ANY_URLS)
    def redirect(self, data: st.DataObject, location: str | None) -> None:
        """None stands for the URL itself, spelled otherwise."""
        if (fetch := self.pick(data, robots=False)) is not None:
            target = location if location is not None else fetch.url + "&gclid=1"
            self.report(fetch, Outcome(fetch.id, fetch.url, Reason.REDIRECTED, 301, redirect_to=target))

    def report(self, fetch: Fetch, outcome: Outcome) -> None:
        before = self.frontier.ledger.in_transit
        report = self.frontier.report(outcome, self.now)
        assert self.frontier.ledger.in_transit == before - 1
        assert report.retired is None or (report.retired.state is HostState.RETIRED and not report.retired.waiting)

    # -- hosts

    def a_host(self, data: st.DataObject) -> Host | None:
        hosts = list(self.frontier.hosts)
        return data.draw(st.sampled_from(hosts)) if hosts else None

    @rule(data=st.data(), state=st.sampled_from(CLOSED_BY_OTHERS))
    def close(self, data: st.DataObject, state: HostState) -> None:
        if (host := self.a_host(data)) is not None:
            self.frontier.host_closing.close_host(host, state)

    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        if (host := self.a_host(data)) is not None:
            self.frontier.host_closing.reopen_host(host, self.now)

    @rule(name=st.sampled_from(["c.cz", "d.cz", ""]))
    def block(self, name: str) -> None:
        self.frontier.host_closing.block_where(lambda other: other == name)

    # -- the store

    @rule()
    def commit(self) -> None:
        self.finish_batch()
        self.begin_batch()
        self.finish_batch()

    @rule()
    def begin_batch(self) -> None:
        """While a batch is being written, the crawl goes on; one at a time."""
        if self.batch is None:
            self.batch, self.is_written = self.frontier.drain(self.now), False

    @rule()
    def write_batch(self) -> None:
        """The store shows it some time before the frontier hears of it."""
        if self.batch is not None and not self.is_written:
            self.store.commit(self.batch)
            self.is_written = True

    @rule()
    def finish_batch(self) -> None:
        self.write_batch()
        if self.batch is not None:
            self.batch = None
            self.frontier.committed()

    @rule()
    def resume_cleanly(self) -> None:
        for fetch in [fetch for fetch in self.fetches if fetch.host.is_closed]:
            self.fetches.remove(fetch)  # else its end is counted at the restart
            self.frontier.give_back(fetch, self.now)
        self.commit()
        before = self.frontier
        self.resume_after_a_kill()
        assert emptied(self.restored()) == emptied(before), "what was in transit waits, the rest is as it was"

    @rule()
    def resume_after_a_kill(self) -> None:
        """Whatever was not committed is as if it had never been."""
        self.batch = None
        self.frontier = self.restored()
        self.check_rows()
        self.fetches = []
        known = {host.name for host in self.frontier.hosts}
        self.starts = {key: time for key, time in self.starts.items() if key in known}
        assert self.frontier.ledger.in_transit == 0

    def restored(self) -> Frontier:
        """A new process' frontier."""
        frontier = Frontier(OPTIONS, store=self.store)
        frontier.restore(self.store.load(), self.now)
        return frontier

    def check_rows(self) -> None:
        """What people read in the rows is what stands in the queues."""
        frontier = self.restored()
        for host in frontier.hosts:
            row = self.store.host(host.id)
            assert row.waiting + row.parked == host.queued == len(taken_out(frontier, host))

    @invariant()
    def conservation(self) -> None:
        ledger = self.frontier.ledger
        assert ledger.balance.error == 0
        assert ledger.waiting == sum(host.waiting for host in self.frontier.hosts)
        assert ledger.in_transit == sum(fetch.robots is None for fetch in self.fetches)
        assert min(ledger.ends.values(), default=0) >= 0
        in_transit = Counter(fetch.host.name for fetch in self.fetches)
        assert all(host.in_transit == in_transit[host.name] for host in self.frontier.hosts)
        assert not any(host.is_closed and host.has_work for host in self.frontier.hosts)

    def teardown(self) -> None:
        """From wherever it stands, the crawl comes to its end."""
        for _ in range(3000):
            if self.frontier.is_finished:
                return
            self.conservation()
            for name in self.frontier.names_wanted():
                self.frontier.resolved(name, ("10.0.0.1",), 120.0, self.now)
            self.take()
            for fetch in self.fetches:
                if fetch.robots is not None:
                    self.frontier.robots_answered(fetch, FileAnswer(404), self.now)
                else:
                    self.frontier.report(Outcome(fetch.id, fetch.url, Reason.KEPT, 200), self.now)
            self.fetches = []
            self.now = max(self.now, self.frontier.next_due() or 0.0)
        raise AssertionError(f"{self.frontier.ledger.waiting} URLs wait for ever")


def emptied(frontier: Frontier) -> object:
    """What a crawl was, apart from times and the order in its queues; *frontier* is of no more use."""
    hosts, counts = {}, {key: number for key, number in frontier.ledger.counts().items() if number}
    seen = frontier.url_states.seen
    for host in frontier.hosts:
        urls = [*taken_out(frontier, host), *([host.fetching] if host.fetching else [])]
        assert all(url.key in seen for url in urls)
        hosts[host.name] = (
            host.id, host.distance, host.state if host.is_closed else None, host.account, host.documents, host.pinned,
            host.crawl_delay_s, host.failures, sorted((u.key, u.url, u.rank, u.redirects, u.payload) for u in urls),
        )  # fmt: skip
    keys = [
        url_key(frontier.hosts.find(target.host), target.url, salt) for target in TARGETS for salt in (b"", b"POST")
    ]
    return hosts, counts, len(seen), [key in seen for key in keys]


def taken_out(frontier: Frontier, host: Host) -> list[QueuedUrl]:
    """The queue of *host*, which is empty afterwards."""
    return [frontier.url_states.queues.pop(host) for _ in range(host.queued)]


@pytest.fixture(autouse=True)
def small_tails_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that queues go through every stage within a few steps."""
    monkeypatch.setattr("spiderling.frontier.storage.queues.FLUSH_URLS", 1)
    monkeypatch.setattr("spiderling.frontier.storage.protocol.CHUNK_URLS", 2)


FrontierMachine.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=60, suppress_health_check=list(HealthCheck)
)
TestFrontier = pytest.mark.usefixtures("small_tails_and_chunks")(FrontierMachine.TestCase)
