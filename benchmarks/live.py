"""The simulator beside real crawls: the same strategies on the same web, once over sockets and once on a virtual clock.

    python -m benchmarks.live [--quick] [--interval 0.05] [--webs miniweb,synthetic] [--strategies bfs,spiderling]

A web is served on loopback and crawled by the real spider with `bfs`, without retirement and with mirrors; what it
recorded (SPIDERLING_LINKS) is the simulator's web.  Then each strategy crawls both, with the same intervals and as many
connections, robots.txt and slow servers as they are; compared are the means, over three random seeds (one with
--quick), of the bytes kept for each MB downloaded, at the end and at 25, 50 and 75 % of what `bfs` kept.  A request of
the real crawl is open until its page is judged, which the machine sets: the simulated ones are open for as long as
that crawl's connections / pages a second (Little's law).  On a machine that is busy with other things the processor
decides who is asked; with an --interval of half a second it does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from statistics import fmean, pstdev
from typing import NamedTuple

from benchmarks.common import ROOT, Recorded, recorded_crawl, result, table
from simulator.graphs import of_crawl
from simulator.pages import PageWeb
from simulator.replay import WORLD, Replay, world
from spiderling.corpus.links import LinkLine
from webs.server import open_web
from webs.synthetic import SyntheticWeb, read_words

STRATEGIES = ("bfs", "yield", "spiderling")
SHARES = (0.25, 0.5, 0.75)
LANG, HOSTS, CONNECTIONS = "cs", 40, 16
OPTIONS: dict[str, object] = {
    "host_interval_s": 0.05, "ip_interval_s": 0.0, "delay_factor": 0.0,
    "prefer_tlds": "", **WORLD,
}  # fmt: skip
ALL: dict[str, object] = {"yield_profile": "off", "traps": "mirror=0"}
"""Options of a `bfs` that leaves out as little as it can."""


class Point(NamedTuple):
    """Sums at one moment of a crawl."""

    pages: int
    downloaded_bytes: int
    kept_bytes: int

    @property
    def kept_per_mb(self) -> float:
        return 1e6 * self.kept_bytes / max(self.downloaded_bytes, 1)


def curve(lines: Iterable[LinkLine]) -> list[Point]:
    """What a real crawl had reached after each of its pages."""
    points = [Point(0, 0, 0)]
    for line in lines:
        pages, down, kept = points[-1]
        points.append(Point(pages + 1, down + line.downloaded_bytes, kept + line.kept_bytes))
    return points


class AsServed:
    """A recorded web with the addresses, robots.txt and slowness of the one that was served."""

    def __init__(self, recorded: PageWeb, served: str, seconds: float) -> None:
        self._served, self._seconds, self.outcome = open_web(served), seconds, recorded.outcome
        self._addresses = self._served.hosts()
        self._slow = {host: self._served.respond(host, "/").delay_s for host in self._addresses}

    def address(self, name: str) -> str:
        return self._addresses.get(name, "127.0.0.1")

    def latency_s(self, url: str) -> float:
        return self._seconds + self._slow.get(url.split("/", 3)[2], 0.0)

    def site_file(self, url: str) -> tuple[int, bytes, str | None]:
        _, _, host, path = url.split("/", 3)
        answer = self._served.respond(host, "/" + path)
        return answer.status, answer.body, answer.headers.get("Location")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the miniature web alone, one random seed")
    parser.add_argument("--data", help="not needed")
    parser.add_argument("--interval", type=float, default=0.05, help="seconds between requests to a host (default .05)")
    parser.add_argument("--webs", default="miniweb,synthetic", help="both by default")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="all by default")
    options = parser.parse_args()
    OPTIONS["host_interval_s"] = options.interval
    quick = options.quick
    synthetic = SyntheticWeb(HOSTS, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    webs: dict[str, tuple[str, list[str]]] = {
        "miniweb": (str(ROOT / "examples/miniweb"), []),
        "synthetic": (f"synthetic:{HOSTS}:1", synthetic.seeds(5)),
    }
    chosen = ["miniweb"] if quick else options.webs.split(",")
    head = ("web", "strategy", "pages real", "simulated", "kept/MB at 25 %: real", "simulated")
    table((*head, "50 %: real", "simulated", "75 %: real", "simulated", "end: real", "simulated"), [])
    strategies = options.strategies.split(",")
    worst = [_compared(name, *webs[name], strategies, 1 if quick else 3) for name in chosen]
    result(webs=len(chosen), largest_difference=round(max(worst), 3))


def _compared(name: str, web: str, seeds: Sequence[str], strategies: Sequence[str], repeats: int) -> float:
    """Prints rows of the table as they are there; gives the largest relative difference among them."""
    whole = _real(web, "bfs", seeds, 1)
    most = curve(whole.lines)[-1].kept_bytes
    seconds = CONNECTIONS / pace(whole.lines)
    worst = 0.0
    for strategy in strategies:
        draws = range(1, repeats + 1)
        real = [curve((whole if strategy == "bfs" else _real(web, strategy, seeds, draw)).lines) for draw in draws]
        simulated = [_simulated(web, whole, strategy, seconds, draw) for draw in draws]
        row: list[object] = [
            name,
            strategy,
            *(round(fmean(run[-1].pages for run in runs)) for runs in (real, simulated)),
        ]
        for kept in (*(share * most for share in SHARES), None):
            one, other = ([_at(run, kept) for run in runs] for runs in (real, simulated))
            worst = max(worst, abs(fmean(other) / max(fmean(one), 1e-9) - 1))
            row += [f"{fmean(values):,.0f} ±{pstdev(values):,.0f}" for values in (one, other)]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return worst


def pace(lines: Sequence[LinkLine]) -> float:
    """Pages a second of a real crawl."""
    return len(lines) / max(lines[-1].time - lines[0].time, 1.0)


def _options(strategy: str, draw: int) -> dict[str, object]:
    return {**OPTIONS, **(ALL if strategy == "bfs" else {}), "strategy": strategy, "random_seed": draw}


def _real(web: str, strategy: str, seeds: Sequence[str], draw: int) -> Recorded:
    settings = {f"SPIDERLING_{name.upper()}": value for name, value in _options(strategy, draw).items()}
    return recorded_crawl(web, LANG, strategy, seeds, {**settings, "CONCURRENT_REQUESTS": CONNECTIONS})


def _simulated(served: str, whole: Recorded, strategy: str, seconds: float, draw: int) -> list[Point]:
    """*seconds*: from a request to its page's verdict."""
    web = of_crawl("recorded", whole.lines, LANG, whole.seeds)
    options = world(**_options(strategy, draw), lang=LANG)
    replay = Replay(AsServed(web, served, seconds), options, concurrency=CONNECTIONS)
    replay.run(web.seed_urls(), every=1)
    return [Point(sample.pages, sample.downloaded_bytes, sample.kept_bytes) for sample in replay.samples]


def _at(points: Sequence[Point], kept: float | None) -> float:
    """When so much was *kept*, or at the end."""
    last = points[-1]
    return next((point for point in points if kept is not None and point.kept_bytes >= kept), last).kept_per_mb


if __name__ == "__main__":
    main()
