"""A crawl without a network: the very Frontier of a real crawl, on a virtual clock, against a web of answers.

The world is simulated: names resolve, answers take their time, and there are limits of requests
at once and of requests a second.  Politeness, queues, retirement and ranks are the frontier's
own.  No text is read: a web says what each page would have given.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from simulator.measures import Sample
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.hosts import HostState
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import Strategy

PAGES_PER_BATCH = 1000
"""Judged pages after which the state is committed (chosen)."""
WORLD = {"trail": "off"}
"""Options that differ from a real crawl's: no log of URLs is kept."""


class AnswerWeb(Protocol):
    """A web as the simulator asks it; answers depend on the URL alone."""

    def address(self, name: str) -> str:
        """The IP address of a host name."""

    def latency_s(self, url: str) -> float:
        """Seconds from a request to the end of its answer."""

    def site_file(self, url: str) -> tuple[int, bytes, str | None]:
        """Status, body and the target of a redirect of robots.txt, tdmrep.json or ai.txt."""

    def outcome(self, url_id: int, url: str) -> Outcome:
        """How a real crawl would judge the page."""


class Replay:
    """One crawl of a web; ``run`` may be called again, to go on."""

    def __init__(
        self,
        web: AnswerWeb,
        options: Options,
        *,
        concurrency: int = 1000,
        pages_per_s: float = 0.0,
        strategy: Strategy | None = None,
    ) -> None:
        """*pages_per_s*: most requests a second, 0 for no limit; *strategy*: in place of the options' one."""
        self.store = SqliteStore()
        self.frontier = Frontier(options, store=self.store, strategy=strategy)
        self.now = 0.0
        self.relevant = 0
        self.samples: list[Sample] = []
        self._web = web
        self._concurrency = concurrency
        self._step_s = 1 / pages_per_s if pages_per_s else 0.0
        self._free_at = 0.0
        self._events: list[tuple[float, int, Fetch]] = []
        self._serial = itertools.count()
        self._uncommitted = 0
        self._texts: set[int] = set()

    def run(
        self,
        seeds: Iterable[str] = (),
        pages: float = float("inf"),
        until: float = float("inf"),
        words: float = float("inf"),
        tick: Callable[[int], object] = lambda pages: None,
        every: int = 100,
    ) -> Sample:
        """Crawl until *pages* were judged, *words* were kept, the time is *until* (s), or no URL is left.

        Every *every* pages a sample is taken, and *tick* gets the number of pages since the last.  Returns the last
        sample.
        """
        for url in seeds:
            self.frontier.put_seed(url, self.now)
        totals = self.frontier.ledger.totals
        sampled = totals["pages"]
        while totals["pages"] < pages and self.now < until and self._step():
            if totals["pages"] >= sampled + every:
                if totals["words"] >= words:
                    break
                self.samples.append(self.sample())
                tick(totals["pages"] - sampled)
                sampled = totals["pages"]
        tick(totals["pages"] - sampled)
        self.samples.append(self.sample())
        return self.samples[-1]

    def sample(self) -> Sample:
        """Where the crawl stands."""
        totals = self.frontier.ledger.totals
        states = self.frontier.host_states.hosts_by_state()
        return Sample(
            self.now,
            totals["pages"],
            totals["requests"],
            self.relevant,
            totals["documents"],
            totals["words"],
            totals["downloaded_bytes"],
            totals["kept_bytes"],
            self.frontier.ledger.balance.waiting,
            states.get(HostState.RETIRED, 0),
        )

    def _step(self) -> bool:
        """Start a request, or let time pass up to the next thing that happens; False at the end."""
        events = self._events
        now = self.now
        if events and events[0][0] <= now:
            self._answer(heapq.heappop(events)[2])
            return True
        if now >= self._free_at and len(events) < self._concurrency:
            fetch = self.frontier.take(now)
            names = self.frontier.names_wanted()
            for name in names:
                self.frontier.resolved(name, (self._web.address(name),), 1e9, now)
            if fetch is not None:
                self.frontier.started(fetch, now)
                heapq.heappush(events, (now + self._web.latency_s(fetch.url), next(self._serial), fetch))
                self._free_at = now + self._step_s
            if fetch is not None or names:
                return True
        return self._wait()

    def _wait(self) -> bool:
        """Go on to the next event; False when there is none."""
        events = self._events
        due = events[0][0] if events else math.inf
        if due > self._free_at and len(events) < self._concurrency:
            next_due = self.frontier.next_due()
            due = due if next_due is None else min(due, max(next_due, self._free_at))
        if due == math.inf and self.now < self._free_at:
            due = self._free_at  # nothing is due, but names may be wanted, which ``take`` asks for
        if due == math.inf:
            return False
        self.now = max(self.now + 1e-6, due)
        return True

    def _answer(self, fetch: Fetch) -> None:
        frontier = self.frontier
        now = self.now
        frontier.intervals.answered(fetch.host, now)
        if fetch.robots is not None:
            frontier.robots_answered(fetch, FileAnswer(*self._web.site_file(fetch.url), is_open=True), now)
            return
        outcome = self._web.outcome(fetch.id, fetch.url)
        if outcome.text_key and outcome.reason is Reason.KEPT:
            if outcome.text_key in self._texts:
                outcome = replace(outcome, reason=Reason.DUPLICATE, kept_bytes=0, words=0, language=None)
            self._texts.add(outcome.text_key)
        self.relevant += outcome.relevant
        frontier.report(outcome, now)
        self._uncommitted += 1
        if self._uncommitted >= PAGES_PER_BATCH:
            self._uncommitted = 0
            self.store.commit(frontier.drain(now))
            frontier.committed()


def world(**options: Any) -> Options:
    """Options of a simulated crawl."""
    return Options(**{**WORLD, **options})
