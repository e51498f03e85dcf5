"""A miniature web in a dict, crawled by a real Frontier on a virtual clock; each event checks the invariants."""

from __future__ import annotations

import heapq
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch, Frontier, known_files
from spiderling.frontier.hosts import Host
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import ConsentRow
from spiderling.frontier.storage.sqlite import SqliteStore

DAY_S = 86400.0
_ROUNDING_S = 1e-6
_MAX_EVENTS = 200_000


@dataclass(frozen=True)
class Answer:
    """What a server says; ``status=0`` is a broken connection."""

    status: int = 200
    body_bytes: int = 1000
    kept_bytes: int = 500
    links: tuple[str | Link, ...] = ()
    location: str | None = None
    retry_after_s: float | None = None
    transit_s: float = 0.2
    body: bytes = b""  # the content of a robots.txt
    reason: Reason | None = None
    sketch: int = 0

    @property
    def outcome_reason(self) -> Reason:
        if self.reason is not None:
            return self.reason
        if self.status == 0:
            return Reason.CONNECTION
        if self.location is not None:
            return Reason.REDIRECTED
        if self.status != 200:
            return Reason.HTTP_ERROR
        return Reason.KEPT if self.kept_bytes else Reason.BOILERPLATE_ONLY

    @property
    def may_pass(self) -> bool:
        return self.status in (0, 429, 503)


class Resolution(NamedTuple):
    """An answer of the name servers; no addresses: it failed, ``permanent`` or not."""

    addresses: tuple[str, ...] = ()
    ttl_s: float = 300.0
    permanent: bool = False


class Done(NamedTuple):
    time: float
    host: str
    url: str
    answer: Answer
    is_robots: bool


class Start(NamedTuple):
    time: float
    host: str
    address: str
    url: str
    goes_on: bool = False  # whether it belongs to a visit that had begun


def page(*links: str | Link, **kwargs: Any) -> Answer:
    return Answer(links=links, **kwargs)


def robots(text: str, **kwargs: Any) -> Answer:
    return Answer(body=text.encode(), **kwargs)


def to(location: str, status: int = 301, **kwargs: Any) -> Answer:
    return Answer(status=status, location=location, kept_bytes=0, **kwargs)


def fold(url: str) -> str:
    """The host that an URL counts for, computed apart from the code under test."""
    parts = urlsplit(url)
    name = (parts.hostname or "").removeprefix("www.")
    return name if parts.port in (None, 80, 443) else f"{name}:{parts.port}"


class VirtualCrawl:
    """Answers every request of the frontier from *web*; a list of answers is given out one by one, its last for ever.

    Names resolve to an address of their own unless *dns* says otherwise; a robots.txt that *web* does not hold is 404.
    tdmrep.json and ai.txt are asked for only when ``optouts`` says so.  *keeps_open*: servers leave connections open.
    """

    def __init__(
        self,
        web: Mapping[str, Answer | list[Answer]],
        dns: Mapping[str, Resolution | list[Resolution]] | None = None,
        *,
        dns_s: float = 0.05,
        start_delay_s: Callable[[Fetch], float] | None = None,
        connect_delay_s: Callable[[Fetch], float] | None = None,
        allows: Callable[[str], bool] = lambda address: True,
        now: float = 1000.0,
        keeps_open: bool = False,
        **options: Any,
    ) -> None:
        self.options = Options(**{"optouts": "tdm-file=ignore,ai-txt=ignore", **options})
        self._last = self.options
        self._store, self._allows = SqliteStore(), allows
        self.frontier = Frontier(self.options, allows, self._store)
        self.now = now
        self.starts: list[Start] = []
        self.answers: list[Done] = []
        self.ended: dict[str, Reason] = {}
        self.questions: Counter[str] = Counter()
        self.waits_at_gate = 0
        self.web, self._dns = web, dns or {}
        self._dns_s, self.start_delay_s, self._connect_delay_s = dns_s, start_delay_s, connect_delay_s
        self._keeps_open = keeps_open
        self._asked: Counter[str] = Counter()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = itertools.count()
        self._addresses: dict[str, tuple[str, float]] = {}
        self._robots_known: dict[str, float] = {}
        self.busy: set[str] = set()  # names of hosts with a request in transit
        self._visited: set[str] = set()  # those that were asked for a file, and may be asked for another one at once

    # -- driving

    def commit(self) -> None:
        """A checkpoint."""
        self._store.commit(self.frontier.drain(self.now))
        self.frontier.committed()

    def kill_and_resume(self) -> None:
        """All that was not committed is lost, and every answer that was on its way; the options may be others."""
        state = self._store.load()
        state.meta.update({"options": json.dumps(self._last.on_record())})
        self._last = self.options
        self.frontier = Frontier(self.options, self._allows, self._store)
        self.frontier.restore(state, self.now)
        self._events.clear()
        self._addresses.clear()
        self.busy.clear()

    def restart(self, after_s: float = 0.0) -> None:
        """A checkpoint, and a new process *after_s* seconds later."""
        self.commit()
        self.now += after_s
        self.kill_and_resume()

    def run(self, *seeds: str, until: float | None = None) -> VirtualCrawl:
        """Put *seeds* and go on until nothing is left to be done, or to the time *until*."""
        for url in seeds:
            self.frontier.put_seed(url, self.now)
        for _ in range(_MAX_EVENTS):
            self._settle()
            due = [self._events[0][0]] if self._events else []
            if (next_due := self.frontier.next_due()) is not None:
                due.append(next_due)
            if not due or (until is not None and min(due) > until):
                self.now = until if until is not None else self.now
                return self
            self.now = max(self.now, min(due))
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
                self.check()
        raise AssertionError("the crawl does not come to an end")

    def check(self) -> None:
        """The invariants that hold at every moment."""
        ledger, hosts = self.frontier.ledger, list(self.frontier.hosts)
        assert ledger.balance.error == 0
        assert ledger.waiting == sum(host.waiting for host in hosts)
        in_transit = {host.name for host in hosts if host.in_transit}
        assert all(host.in_transit <= 1 for host in hosts) and self.busy <= in_transit <= self.busy | self._visited
        assert not any(host.is_closed and host.has_work for host in hosts)

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay_s, next(self._serial), call))

    def _settle(self) -> None:
        """Everything that the frontier wants at this moment."""
        for _ in range(_MAX_EVENTS):
            fetch = self.frontier.take(self.now)
            self.check_after_take(fetch)
            for name in self.frontier.names_wanted():
                self.questions[name] += 1
                self._later(self._dns_s, lambda name=name: self._resolve(name))  # type: ignore[misc]
            if fetch is None:
                self._visited.clear()
                return
            delay_s = self.start_delay_s(fetch) if self.start_delay_s else 0.0
            self._later(delay_s, lambda fetch=fetch: self._gate(fetch))  # type: ignore[misc]
        raise AssertionError("take() hands out without end")

    def check_after_take(self, fetch: Fetch | None) -> None:
        if fetch is not None:
            parts = urlsplit(fetch.url)
            address, expires = self._addresses[parts.hostname or ""]
            assert fetch.address == address, "it is the address that the name has now"
            assert expires > self.now, "no stale address is handed out"
            assert fetch.host.name not in self.busy, "one request in transit per host"
            assert fetch.host.name == fold(fetch.url)
            if fetch.robots is None:
                origin = f"{parts.scheme}://{parts.netloc}"
                assert self._robots_known[origin] + known_files.MAX_AGE_S > self.now, "robots.txt comes first"
            self.busy.add(fetch.host.name)
        self.check()

    def _resolve(self, name: str) -> None:
        answer = self.answer_of(self._dns, name, Resolution((f"10.0.0.{1 + len(self._addresses)}",)))
        if name not in self._dns and name in self._addresses:
            answer = Resolution((self._addresses[name][0],))
        if answer.addresses:
            address = next(filter(self._allows, answer.addresses), "")
            self._addresses[name] = (address, self.now + answer.ttl_s)
            self.frontier.resolved(name, answer.addresses, answer.ttl_s, self.now)
        else:
            self.frontier.unresolved(name, answer.permanent, self.now)

    def _gate(self, fetch: Fetch) -> None:
        wait_s = self.frontier.may_start(fetch, self.now)
        if wait_s is None:
            self.busy.discard(fetch.host.name)
            self.frontier.give_back(fetch, self.now)
        elif wait_s > 0:
            self.waits_at_gate += wait_s > _ROUNDING_S
            assert self.start_delay_s or wait_s <= _ROUNDING_S, (
                "the gate is for late starts: take() keeps the intervals"
            )
            self._later(max(wait_s, _ROUNDING_S / 10), lambda: self._gate(fetch))
        elif self._connect_delay_s:
            self._later(self._connect_delay_s(fetch), lambda: self._connect(fetch))
        else:
            self._connect(fetch)

    def _connect(self, fetch: Fetch) -> None:
        """What was granted is opened, maybe later; ``connect_in`` keeps it from others that were late."""
        wait_s = self.frontier.intervals.connect_in(fetch.host, fetch.address, self.now, fetch.goes_on)
        if wait_s > 0:
            self._later(max(wait_s, _ROUNDING_S / 10), lambda: self._connect(fetch))
            return
        self.frontier.started(fetch, self.now)
        self.starts.append(Start(self.now, fold(fetch.url), fetch.address, fetch.url, fetch.goes_on))
        default = Answer(status=404, kept_bytes=0)
        answer = self.answer_of(self.web, fetch.url, default)
        self._later(answer.transit_s, lambda: self.answer(fetch, answer))

    def answer(self, fetch: Fetch, answer: Answer) -> None:
        """*answer* to *fetch* has come."""
        self.busy.discard(fetch.host.name)
        self.frontier.intervals.answered(fetch.host, self.now)
        self.answers.append(Done(self.now, fold(fetch.url), fetch.url, answer, fetch.robots is not None))
        if fetch.robots is not None:
            self._robots_known[fetch.robots.origin] = self.now
            wait_s = answer.retry_after_s or 0.0
            is_open = self._keeps_open and answer.status > 0
            self._visited.add(fetch.host.name)
            file_answer = FileAnswer(answer.status, answer.body, answer.location, wait_s, is_open=is_open)
            self.frontier.robots_answered(fetch, file_answer, self.now)
        elif self.frontier.report(self.outcome(fetch, answer, answer.outcome_reason), self.now).end is not None:
            self.ended[fetch.url] = answer.outcome_reason

    def outcome(self, fetch: Fetch, answer: Answer, reason: Reason) -> Outcome:
        """What a page leaves behind that ends as *reason*."""
        return Outcome(
            url_id=fetch.id,
            url=fetch.url,
            reason=reason,
            status=answer.status,
            may_pass=answer.may_pass,
            retry_after_s=answer.retry_after_s,
            redirect_to=answer.location,
            body_bytes=answer.body_bytes,
            kept_bytes=answer.kept_bytes if reason is Reason.KEPT else 0,
            sketch=answer.sketch,
            text_key=answer.sketch,
            links=tuple(link if isinstance(link, Link) else Link(link) for link in answer.links),
        )

    def answer_of(self, table: Mapping[str, Any], key: str, default: Any) -> Any:
        answers = table.get(key, default)
        if isinstance(answers, list):
            number = self._asked[key]
            self._asked[key] += 1
            return answers[min(number, len(answers) - 1)]
        return answers

    # -- what happened

    @property
    def ends(self) -> dict[Reason, int]:
        return {reason: number for reason, number in self.frontier.ledger.ends.items() if number}

    @property
    def mentions(self) -> dict[Reason, int]:
        return {reason: number for reason, number in self.frontier.ledger.refused_links.items() if number}

    @property
    def distances(self) -> dict[str, int]:
        return {host.name: host.distance for host in self.frontier.hosts}

    def consents(self) -> list[ConsentRow]:
        """The consent ledger, after a checkpoint."""
        self.commit()
        return self._store.consents()

    def fetched(self, of: str = "") -> list[str]:
        """The pages asked for in order, robots.txt left out; those of the host *of*."""
        return [s.url for s in self.starts if not s.url.endswith("/robots.txt") and s.host.startswith(of)]

    def robots_fetched(self) -> list[str]:
        return [start.url for start in self.starts if start.url.endswith("/robots.txt")]

    def host(self, name: str) -> Host:
        host = self.frontier.hosts.get(name)
        assert host is not None
        return host

    def pauses(self, pages_only: bool = True) -> list[float]:
        """Times between the starts of requests."""
        times = [start.time for start in self.starts if not (pages_only and start.url.endswith("/robots.txt"))]
        return [b - a for a, b in itertools.pairwise(times)]

    def gaps(self, by: str) -> dict[str, float]:
        """The shortest time between two starts of each host or address (*by*)."""
        times = defaultdict(list)
        for start in self.starts:
            times[getattr(start, by)].append(start.time)
        return {key: min((b - a for a, b in itertools.pairwise(group)), default=DAY_S) for key, group in times.items()}

    def assert_polite(self, host_s: float, ip_s: float) -> None:
        for by, interval_s in (("host", host_s), ("address", ip_s)):
            for key, gap in self.gaps(by).items():
                assert gap >= interval_s - _ROUNDING_S, f"{key}: {gap} s"
