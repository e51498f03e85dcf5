"""How much of a web a crawl has: estimates by lists of pages beside the truth, and beside Chao's estimate by links.

    python -m benchmarks.coverage [--quick] [--data DIR] [--webs thai,graph:en,...]

Simulated crawls of generated webs, of what a real crawl of the bundled miniature web recorded, and of the graph in DIR
are stopped at 2, 5, 10, 25 and 50 % of the words.  Two lists of 500 pages each tell what they have: one drawn from all
pages alike, one from an index that prefers pages with many links to them (by the square root of their number).

Then the second list is one that follows from the crawl: the first pages of a random walk from its seeds.  What counts
there is whether a wrong interval is given, or nothing.

The peer is Chao's estimate of the number of hosts by those that one or two other hosts link to, without any list.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import result, table
from benchmarks.strategies import Job, open_web, record
from simulator.pages import BYTES_PER_WORD, Array, PageWeb
from simulator.replay import Replay, world
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, url_key
from spiderling.frontier.storage.protocol import Changes, StoredHost
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import UrlEnd, UrlLogBatch
from spiderling.jobdir.coverage import Coverage, LookedUp, PageList, coverage_of, estimate
from spiderling.jobdir.inspection import Inspection

GENERATED = ("thai", "thai-pure", "pt", "w12", "scarce", "many-hosts", "one-address", "hops", "platforms")
MINIWEBS = ("miniweb:cs", "miniweb:de", "miniweb:en")
GRAPHS = ("graph:en", "graph:de", "graph:fr", "graph:es")
STOPS = (0.02, 0.05, 0.1, 0.25, 0.5)
"""Shares of the words at which a crawl is looked at."""
STRATEGIES = ("spiderling", "bfs")
LISTED = 500  # pages of a list
KINDS = ("hosts", "pages", "words")
_ENDED = 200_000  # URLs of the state whose look-up is timed
_BATCH = 1_000  # of them in a batch


class Noting:
    """A web that notes which pages were fetched."""

    def __init__(self, web: PageWeb) -> None:
        self.fetched: list[int] = []
        self._web = web

    def __getattr__(self, name: str) -> Any:
        return getattr(self._web, name)

    def outcome(self, url_id: int, url: str) -> Any:
        self.fetched.append(self._web.find(url))
        return self._web.outcome(url_id, url)


class Crawls(NamedTuple):
    """What one crawl had fetched at each of STOPS."""

    web: PageWeb
    fetched: list[Array]


def crawled(web: PageWeb, strategy: str, seed: int) -> Crawls:
    noting = Noting(web)
    replay = Replay(noting, world(lang=web.languages[0], strategy=strategy, random_seed=seed), pages_per_s=20.0)
    fetched = []
    for at, stop in enumerate(STOPS):
        replay.run([] if at else web.seed_urls(), words=stop * web.truth.words, every=50)
        fetched.append(np.unique([page for page in noting.fetched if page >= 0]))
    return Crawls(web, fetched)


def walked(web: PageWeb, seed: int) -> Array:
    """The first pages with text of a random walk from the seeds of the crawl."""
    noting = Noting(web)
    options = world(lang=web.languages[0], strategy="random-walk", random_seed=seed, yield_profile="off")
    replay = Replay(noting, options, pages_per_s=20.0)
    wanted = web.new_kept_bytes > 0
    seeds = web.seed_urls()
    found: Array = np.array([], np.int64)
    before = -1
    while len(found) < LISTED and len(noting.fetched) > before:
        before = len(noting.fetched)
        replay.run(seeds, pages=replay.frontier.ledger.totals["pages"] + 200)
        seeds = []
        pages = np.array([page for page in noting.fetched if page >= 0])
        found = pages[wanted[pages]]
    return found[:LISTED]


def drawn(web: PageWeb, in_degree: Array, power: float, seed: int) -> Array:
    """Pages with text, by their number of links to the *power*."""
    weight = (in_degree + 1.0) ** power * (web.new_kept_bytes > 0)
    number = min(LISTED, int((weight > 0).sum()))
    return np.random.default_rng(seed).choice(len(weight), number, replace=False, p=weight / weight.sum())


class Truth(NamedTuple):
    """What a crawl has of a web, and how many hosts it has text of."""

    shares: dict[str, float]
    has: Array
    giving: Array


def truth_of(web: PageWeb, fetched: Array) -> Truth:
    wanted = web.new_kept_bytes > 0
    words = web.new_kept_bytes // BYTES_PER_WORD
    has = np.zeros(len(wanted), bool)
    has[fetched] = True
    giving = np.unique(web.pages.host[has & wanted])
    hosts = np.unique(web.pages.host[wanted])
    shares = {
        "hosts": len(giving) / len(hosts),
        "pages": float((has & wanted).sum() / wanted.sum()),
        "words": float(words[has].sum() / words.sum()),
    }
    return Truth(shares, has, giving)


def listed(web: PageWeb, pages: Array, truth: Truth, name: str) -> LookedUp:
    words = (web.new_kept_bytes // BYTES_PER_WORD)[pages].astype(float)
    host = web.pages.host[pages].astype(np.int64)
    return LookedUp(name, truth.has[pages], words, host, np.isin(host, truth.giving))


def by_links(web: PageWeb, fetched: Array, truth: Truth) -> float:
    """The share of the hosts by Chao's estimate: hosts that pages of one or of two other hosts link to."""
    host = web.pages.host
    linking: defaultdict[int, set[int]] = defaultdict(set)
    for page in fetched.tolist():
        for target in np.unique(host[web.links(page)[0]]).tolist():
            if target != host[page]:
                linking[target].add(int(host[page]))
    times = Counter(len(linking[one]) for one in truth.giving.tolist())
    unseen = times[1] * (times[1] - 1) / 2 / (times[2] + 1)
    return len(truth.giving) / (len(truth.giving) + unseen)


class Tally:
    """Counts what became of estimates."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.answered = Counter[str]()
        self.within = Counter[str]()
        self.widths: defaultdict[str, list[float]] = defaultdict(list)
        self.errors: defaultdict[str, list[float]] = defaultdict(list)

    def note(self, found: Coverage, shares: dict[str, float], stop: float) -> None:
        for what in KINDS:
            one = getattr(found, what)
            self.asked[what] += 1
            if one is None:
                continue
            self.answered[what] += 1
            self.within[what] += one.low <= shares[what] <= one.high
            self.errors[what].append(abs(one.share - shares[what]))
            if stop == 0.25:
                self.widths[what].append(one.high - one.low)

    def rows(self, name: str) -> Iterator[tuple[object, ...]]:
        for what in KINDS:
            width = float(np.mean(self.widths[what])) if self.widths[what] else math.nan
            error = float(np.mean(self.errors[what])) if self.errors[what] else math.nan
            yield (
                name,
                what,
                self.asked[what],
                self.share(self.answered, self.asked, what),
                self.share(self.within, self.answered, what),
                error,
                width,
            )

    def share(self, part: Counter[str], whole: Counter[str], what: str) -> float:
        return part[what] / max(1, whole[what])


def looked_up_us() -> tuple[float, int]:
    """Microseconds of an hourly look for each URL that has ended, and bytes of memory that stay for each."""
    url = "https://host{}.example/page/{}".format
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory, "state", "frontier.sqlite")
        database.parent.mkdir()
        with closing(SqliteStore(database)) as store:
            names = [f"host{number}.example" for number in range(1, 1001)]
            hosts = [StoredHost(number, name, "ready", 0, documents=1) for number, name in enumerate(names, 1)]
            store.commit(Changes(hosts=hosts, meta={"options": "{}"}))
            for begin in range(0, _ENDED, _BATCH):
                found = [(number % 1000 + 1, url(number % 1000 + 1, number)) for number in range(begin, begin + _BATCH)]
                ends = [UrlEnd(url_key(host, one), one, Reason.KEPT.value, 1, 1) for host, one in found]
                store.commit(Changes(url_log=UrlLogBatch(0.0, ends=ends)))
        wanted = [url(number % 1000 + 1, number) for number in range(0, _ENDED, _ENDED // 5_000)]
        pages = PageList("list", {page.url: page for page in map(canonicalize, wanted) if page}, {})
        with closing(Inspection(Path(directory))) as crawl:
            began = time.process_time()
            coverage = coverage_of(crawl, [pages])
            spent = time.process_time() - began
    assert coverage.pages is not None and coverage.pages.share == 1.0, coverage
    return 1e6 * spent / _ENDED, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every third web, once")
    parser.add_argument("--data", type=Path, help="directory that holds graph/")
    parser.add_argument("--webs", help="these alone, with commas")
    options = parser.parse_args()
    seeds = (1,) if options.quick else (1, 2)
    webs = [*GENERATED, *MINIWEBS, *(GRAPHS if options.data else ())][:: 3 if options.quick else 1]
    webs = options.webs.split(",") if options.webs else webs
    both, copied = Tally(), Tally()
    naive: list[float] = []
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as directory:
        for name in webs:
            tally = Tally()
            if name.startswith("miniweb"):
                record(Path(directory), name)
            for seed in seeds:
                web = open_web(Job(name, 30_000, seed, "bfs"), Path(directory), options.data)
                links = [web.links(page)[0] for page in range(len(web.pages.host))]
                in_degree = np.bincount(np.concatenate(links), minlength=len(links))
                lists = {"any": drawn(web, in_degree, 0.0, seed), "index": drawn(web, in_degree, 0.5, seed + 100)}
                lists["walk"] = walked(web, seed + 200)
                for strategy in STRATEGIES:
                    for stop, fetched in zip(STOPS, crawled(web, strategy, seed).fetched, strict=True):
                        truth = truth_of(web, fetched)
                        told = {one: listed(web, pages, truth, one) for one, pages in lists.items()}
                        found = estimate([told["any"], told["index"]])
                        tally.note(found, truth.shares, stop)
                        both.note(found, truth.shares, stop)
                        copied.note(estimate([told["any"], told["walk"]]), truth.shares, stop)
                        naive.append(abs(by_links(web, fetched, truth) - truth.shares["hosts"]))
            rows += tally.rows(name)
            print(f"{name}: {[*tally.rows(name)]}", flush=True)  # it may be broken off
    rows += [*both.rows("all"), *copied.rows("all, one list copies the crawl")]
    table(("web", "what", "asked", "answered", "within", "mean error", "width at 25 %"), rows)
    us, kept = looked_up_us()
    error = float(np.mean(both.errors["hosts"]))
    table(
        ("hosts, mean error of the share", "value"), [("two lists", error), ("Chao, by links", float(np.mean(naive)))]
    )
    result(
        crawls=both.asked["pages"],
        **{f"answered_{what}": round(both.share(both.answered, both.asked, what), 3) for what in KINDS},
        **{f"within_{what}": round(both.share(both.within, both.answered, what), 3) for what in KINDS},
        **{f"width_{what}": round(float(np.mean(both.widths[what])), 3) for what in KINDS},
        **{f"copied_within_{what}": round(copied.share(copied.within, copied.answered, what), 3) for what in KINDS},
        error_hosts=round(error, 3),
        error_hosts_by_links=round(float(np.mean(naive)), 3),
        us_per_page=round(us, 3),
        bytes_per_url=kept,
    )


if __name__ == "__main__":
    main()
