"""What more a crawl gets from a small web: hosts at work as many as can be served, and second chances when it is dry.

    python benchmarks/dry.py [--quick]

The real frontier on a virtual clock crawls a generated web from 475 seed hosts (as many
as the Tajik crawl of Suchomel & Pomikálek 2012 had), with the intervals of a live crawl
and room for ten requests a second: once with thousands of other hosts within reach, so
that there is too much to do, and once the seed hosts alone, which run dry.
Words kept are text bytes in the target language / 7.
"""

from __future__ import annotations

import heapq
import itertools
import re
import sys
from pathlib import Path
from urllib.parse import urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, result, table
from spiderling.frontier import Fetch, Frontier
from spiderling.frontier.hosts import HostState
from spiderling.frontier.memory import MemoryStore
from spiderling.items import Link, Outcome
from spiderling.options import Options
from spiderling.reasons import Reason
from spiderling.simulation.synthetic import SyntheticWeb, read_words

SEEDS, TARGET, HOSTS, PAGES_PER_S = 475, "cs", 4000, 10.0
PROFILE = "0.03"
"""A strict threshold, t(100) = .03: more than lists of links are retired."""
BYTES_PER_WORD = 7
_LINK = re.compile(r'href="(https?://[^"]+|/[^"]*)"')
_TEXT = re.compile(r"<p>(.*?)</p>")
FLOOR = 50
CASES: dict[str, tuple[dict[str, object], tuple[int, ...]]] = {
    "4,000 hosts, fixed crowd": ({"crowd": "fixed"}, (300, 900)),
    "4,000 hosts, adaptive crowd": ({"crowd": "adaptive"}, (300, 900)),
    "475 hosts, no second chances": ({"max_distance": 0}, (1200, 5400)),
    "475 hosts, second chances": ({"max_distance": 0, "min_active_hosts": FLOOR}, (1200, 5400)),
}
"""Name -> options, and the seconds at which is counted."""


class Replay:
    """One crawl of *web* on a virtual clock; requests start at least ``1 / pages_per_s`` apart."""

    def __init__(self, web: SyntheticWeb, pages_per_s: float, **options: object) -> None:
        self.store = MemoryStore()
        settings = {"optouts": "tdm-file=ignore,ai-txt=ignore", "ip_interval_s": 0.0, **options}
        self.frontier = Frontier(Options(**settings), lambda address: True, self.store)  # type: ignore[arg-type]
        self.now = 0.0
        self._web = web
        self._step_s = 1 / pages_per_s
        self._events: list[tuple[float, int, Fetch]] = []
        self._serial = itertools.count()

    def run(self, seeds: list[str], until: float) -> None:
        """Crawl to the time *until*, or to the end."""
        for url in seeds:
            self.frontier.put_seed(url, self.now)
        while self.now < until:
            fetch = self.frontier.take(self.now)
            names = self.frontier.names_wanted()
            for name in names:
                self.frontier.resolved(name, (_address(name),), 1e9, self.now)
            if fetch is not None:
                heapq.heappush(self._events, (self.now + 0.5, next(self._serial), fetch))
                self.frontier.started(fetch, self.now)
                self.now += self._step_s
            elif not names and not self._wait():
                break
            self._answer_due()
            self.store.commit(self.frontier.drain(self.now))
            self.frontier.committed()

    def _wait(self) -> bool:
        """Go on to the next event; False when there is none."""
        due = [self._events[0][0]] if self._events else []
        next_due = self.frontier.next_due()
        if next_due is not None:
            due.append(next_due)
        self.now = max(self.now + 1e-3, min(due)) if due else self.now
        return bool(due)

    def _answer_due(self) -> None:
        while self._events and self._events[0][0] <= self.now:
            self._answer(heapq.heappop(self._events)[2])

    def _answer(self, fetch: Fetch) -> None:
        parts = urlsplit(fetch.url)
        host = parts.hostname or ""
        answer = self._web.respond(host, parts.path)
        location = answer.headers.get("Location")
        if fetch.robots is not None:
            self.frontier.robots_answered(fetch, answer.status, answer.body, location, self.now)
            return
        text = answer.body.decode() if answer.status == 200 else ""
        kept = 0
        if self._web.language_of(host, parts.path) == TARGET:
            kept = sum(len(paragraph.encode()) for paragraph in _TEXT.findall(text) if len(paragraph) > 200)
        reason = Reason.KEPT if kept else Reason.WRONG_LANGUAGE if text else Reason.HTTP_ERROR
        links = tuple(Link(urljoin(fetch.url, link)) for link in _LINK.findall(text))
        self.frontier.report(
            Outcome(
                fetch.id, fetch.url, Reason.REDIRECTED if location else reason, answer.status, redirect_to=location,
                body_bytes=len(answer.body), kept_bytes=kept, words=kept // BYTES_PER_WORD, links=links,
            ),
            self.now,
        )  # fmt: skip


def _address(name: str) -> str:
    return "127.0.0." + name.rpartition(".")[0][-2:].lstrip("0-").rjust(1, "0")


def main() -> None:
    options = arguments(__doc__)
    web = SyntheticWeb(HOSTS, 1, read_words(ROOT / "models"), median_pages=5, mean_page_bytes=15_000)
    seeds = web.seeds(SEEDS, TARGET)
    rows, words = [], {}
    for name, (settings, marks) in CASES.items():
        replay = Replay(web, PAGES_PER_S, yield_profile=PROFILE, **settings)
        for until in (60, 180) if options.quick else marks:
            replay.run(seeds if replay.now == 0 else [], until)
            totals, states = replay.frontier.ledger.totals, replay.frontier.hosts.marks.hosts_by_state()
            rate, retired = f"{replay.frontier.ledger.yield_rate:.4f}", states.get(HostState.RETIRED, 0)
            rows.append((name, until, f"{totals['pages']:,}", f"{totals['words']:,}", rate, retired))
            words[name] = totals["words"]
    table(("web and variant", "second", "pages", "words kept", "yield rate", "hosts retired"), rows)
    fixed, adaptive, without, chances = words.values()
    result(
        fixed=fixed, adaptive=adaptive, gain_adaptive=round(adaptive / fixed, 3),
        without=without, second_chances=chances, gain_second_chances=round(chances / without, 3),
    )  # fmt: skip


if __name__ == "__main__":
    main()
