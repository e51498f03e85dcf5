"""The simulator beside real crawls: the same strategies on the same web, once over sockets and once on a virtual clock.

    python benchmarks/live.py [--quick]

A web is served on loopback and crawled by the real spider with `bfs`, without retirement; what it recorded
(SPIDERLING_LINKS) is the simulator's web.  Then each strategy crawls both, with the same intervals and at the real
crawl's pace; compared are the bytes kept for each downloaded MB at the end, and at 25, 50 and 75 % of what `bfs` kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, Recorded, arguments, recorded_crawl, result, table
from spiderling.linkoutput import LinkLine
from spiderling.simulation.graphs import of_crawl
from spiderling.simulation.replay import Replay, world
from spiderling.simulation.synthetic import SyntheticWeb, read_words

STRATEGIES = ("bfs", "yield", "spiderling")
SHARES = (0.25, 0.5, 0.75)
LANG, HOSTS, HOST_INTERVAL_S, LATENCY_S, CONNECTIONS = "cs", 40, 0.05, 0.02, 16
OPTIONS: dict[str, object] = {
    "host_interval_s": HOST_INTERVAL_S, "ip_interval_s": 0.0, "delay_factor": 0.0, "yield_min_bytes": 100_000,
    "prefer_tlds": "", "retry_delay_s": 0.2, "crowd": "fixed",
}  # fmt: skip
REAL = {f"SPIDERLING_{name.upper()}": value for name, value in OPTIONS.items()} | {"CONCURRENT_REQUESTS": CONNECTIONS}


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


def main() -> None:
    quick = arguments(__doc__).quick
    synthetic = SyntheticWeb(HOSTS, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    webs: dict[str, tuple[str, list[str]]] = {"miniweb": (str(ROOT / "examples/miniweb"), [])}
    if not quick:
        webs["synthetic"] = f"synthetic:{HOSTS}:1", synthetic.seeds(5)
    rows: list[tuple[object, ...]] = []
    worst = 0.0
    for name, (web, seeds) in webs.items():
        found, worst_here = _compared(name, web, seeds)
        rows += found
        worst = max(worst, worst_here)
    head = ("web", "strategy", "pages real", "simulated", "kept/MB at 25 %: real", "simulated")
    table((*head, "50 %: real", "simulated", "75 %: real", "simulated", "end: real", "simulated"), rows)
    result(webs=len({row[0] for row in rows}), largest_difference=round(worst, 3))


def _compared(name: str, web: str, seeds: Sequence[str]) -> tuple[list[tuple[object, ...]], float]:
    """Rows of the table, and the largest relative difference among them."""
    whole = recorded_crawl(web, LANG, "bfs", seeds, {**REAL, "SPIDERLING_YIELD_PROFILE": "off"})
    most = curve(whole.lines)[-1].kept_bytes
    rows, worst = [], 0.0
    for strategy in STRATEGIES:
        run = whole if strategy == "bfs" else recorded_crawl(web, LANG, strategy, seeds, REAL)
        real, simulated = curve(run.lines), _simulated(name, whole, strategy, pace(run.lines))
        pairs = [[_at(points, share * most) for points in (real, simulated)] for share in SHARES]
        figures = [*(value for pair in pairs for value in pair), real[-1].kept_per_mb, simulated[-1].kept_per_mb]
        for one, other in zip(figures[::2], figures[1::2], strict=True):
            if one and other:
                worst = max(worst, abs(other / one - 1))
        rows.append(
            (name, strategy, real[-1].pages, simulated[-1].pages, *(f"{f:,.0f}" if f else "-" for f in figures))
        )
    return rows, worst


def pace(lines: Sequence[LinkLine]) -> float:
    """Pages a second of a real crawl, which the machine sets: the fewer, the more there is to choose from."""
    return len(lines) / max(lines[-1].time - lines[0].time, 1.0)


def _simulated(name: str, whole: Recorded, strategy: str, pages_per_s: float) -> list[Point]:
    web = of_crawl(name, whole.lines, LANG, whole.seeds)
    web.hosts.latency_s[:] = LATENCY_S
    profile = {"yield_profile": "off"} if strategy == "bfs" else {}
    options = world(**{**OPTIONS, **profile, "strategy": strategy, "lang": LANG})
    replay = Replay(web, options, concurrency=CONNECTIONS, pages_per_s=pages_per_s)
    replay.run(web.seed_urls(), every=1)
    return [Point(sample.pages, sample.downloaded_bytes, sample.kept_bytes) for sample in replay.samples]


def _at(points: Sequence[Point], kept: float) -> float | None:
    return next((point.kept_per_mb for point in points if point.kept_bytes >= kept), None)


if __name__ == "__main__":
    main()
