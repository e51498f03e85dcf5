"""What strategies give on generated and recorded webs, beside the papers' claims and our own.

    python benchmarks/strategies.py [--quick] [--data DIR] [--pages N] [--parts targets,speed,...] [--jobs N]
        [--webs thai,graph:pl,...] [--results DIR]

targets: the default under politeness on generated webs, the graph in DIR for four languages, and what real crawls of
   the bundled miniature web recorded for three: words for each downloaded MB at 25, 50, 75 and 90 % of the words,
   beside the yardstick and the best rival, hours beside asking everybody, recall, and itself before (targets.py).
somboonviwat-2006: the Thai-like web without politeness: harvest rate over the first fourteenth of the pages, coverage
   after 30 % of them, for LSWC with several S and T and its rivals.
suchomel-2012: the web with the yields of Suchomel & Pomikálek 2012, Table 1: what a threshold keeps, and yield rates.
schaefer-2014: block score and badness as predictors of a link's target, on the links of a real crawl of the miniature
   web, in-host and cross-host.
cyclic: yield rate of the 1,000 pages before and after each change of phase (the same paper, section 3).
speed: CPU time of `bfs` on a web of ten times --pages (20,000 with --quick), while the other core is at work.

Simulated crawls of targets are kept in --results; one is made anew when the code that decides its fetches has changed
(simulated.py).  RESULT has the figures of targets by web; yield_vs_bfs is the yield rate of `yield` with the paper's
profile / that of `bfs`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import simulated, targets
from benchmarks.common import recorded_crawl, result, table
from simulator.clairvoyants import all_links
from simulator.comparison import PERFECT_LANGUAGE, Run, Task, Terms, crawl, make_web, summaries
from simulator.graphs import of_crawl
from simulator.measures import Sample, at_pages, coverage
from simulator.pages import TEXT_SCORE

NO_POLITENESS = {"host_interval_s": 0.0, "ip_interval_s": 0.0, "delay_factor": 0.0, "traps": "pages=0"}
GOOD_BADNESS = 10.0


class Bench(NamedTuple):
    """What all parts share."""

    pool: ProcessPoolExecutor
    pages: int
    seeds: int
    frame: targets.Frame
    crawls: simulated.Crawls
    jobs: int
    is_quick: bool

    def runs(self, web: str, seeds: Iterable[int], strategies: Sequence[str], terms: Terms) -> list[Future[list[Run]]]:
        """A web of each seed in a process, which makes it once for all strategies."""
        return [self.pool.submit(on_one_web, web, seed, strategies, terms) for seed in seeds]


def main() -> None:
    options = parsed()
    pages, seeds = (1_000, 1) if options.quick else (int(options.pages), options.seeds)
    names = ("thai", "pt") if options.quick else simulated.webs(options.data)
    webs = options.webs.split(",") if options.webs else names
    frame = targets.Frame(webs, pages, targets.CHOOSING[:seeds], targets.TEST[:seeds])
    crawls = simulated.Crawls(options.results, options.data)
    found: dict[str, Any] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        bench = Bench(pool, pages, seeds, frame, crawls, options.jobs, options.quick)
        begun = {name: part(bench) for name, part in PARTS.items() if name in options.parts.split(",")}
        for name in sorted(begun, key="speed".__eq__):
            found |= begun[name]()
            sys.stdout.flush()
    result(**found)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="directory with graph/, for other webs")
    parser.add_argument("--pages", type=float, default=1e5, help="pages of each generated web (default 1e5)")
    parser.add_argument("--seeds", type=int, default=5, help="webs of each kind, 5 at most (default 5)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of them, with commas (default all)")
    parser.add_argument("--webs", default="", help="those of targets, with commas (default all)")
    parser.add_argument("--jobs", type=int, default=2, help="crawls at once (default 2)")
    default = Path(tempfile.gettempdir(), "spiderling-strategies")
    parser.add_argument("--results", type=Path, default=default, help="where results are kept (default %(default)s)")
    return parser.parse_args()


def heading(text: str) -> None:
    print(f"\n{text}\n")


def on_one_web(name: str, seed: int, strategies: Sequence[str], terms: Terms) -> list[Run]:
    web = make_web(name, seed, terms)
    terms = replace(terms, options={"random_seed": seed, **terms.options})
    return [crawl(Task(name, strategy, seed), terms, web=web) for strategy in strategies]


Finish = Callable[[], dict[str, Any]]
"""Prints what came of a part, when that is there, and gives its figures of RESULT."""


def targets_of(bench: Bench) -> Finish:
    return lambda: targets.measure(bench.crawls, bench.frame, bench.jobs)


def like_somboonviwat(bench: Bench) -> Finish:
    pages = bench.pages // 2
    terms = Terms(pages=pages, word_share=1.1, pages_per_s=0.0, concurrency=1, options=NO_POLITENESS)
    names = {"thai": ("bfs", "soft", "hard", "distance", *targets.LSWC, PERFECT_LANGUAGE), "thai-pure": targets.LSWC}
    jobs = {web: bench.runs(web, range(1, min(bench.seeds, 4) + 1), names[web], terms) for web in names}

    def finish() -> dict[str, Any]:
        heading("Somboonviwat et al. 2006: the Thai-like web without politeness, and one where hosts are of two kinds")
        rows = []
        for of_one in (of_one for futures in jobs.values() for of_one in by_strategy(futures)):
            early = [at_pages(run.samples, pages / 14).harvest_rate for run in of_one]
            third = [coverage(at_pages(run.samples, 0.3 * pages), run.truth) for run in of_one]
            ends = [coverage(run.last, run.truth) for run in of_one]
            fetched = [run.last.pages / pages for run in of_one]
            spread = f"{statistics.fmean(third):.2f} ±{statistics.pstdev(third):.2f}"
            rows.append((*of_one[0].task[:2], statistics.fmean(early), spread, *map(statistics.fmean, (ends, fetched))))
        table(("web", "strategy", "harvest, first 1/14", "coverage at 30 %", "at the end", "pages fetched"), rows)
        return {}

    return finish


def by_strategy(futures: Iterable[Future[list[Run]]]) -> Iterable[tuple[Run, ...]]:
    """The runs of each strategy, one of each seed."""
    return zip(*(future.result() for future in futures), strict=True)


def like_suchomel(bench: Bench) -> Finish:
    terms, seeds = Terms(pages=2 * bench.pages, word_share=1.1), range(1, min(bench.seeds, 3) + 1)
    profiles = {"bfs": "off", "normal": "normal", "paper": "paper", "0.03": "0.03"}
    jobs = {
        profile: bench.runs(
            "w12", seeds, ["bfs" if name == "bfs" else "yield"], replace(terms, options={"yield_profile": profile})
        )
        for name, profile in profiles.items()
    }

    def finish() -> dict[str, Any]:
        heading(
            "Suchomel & Pomikálek 2012: the web of Table 1 (above .0128 stood .737 of the text, .0665 of the bytes)"
        )
        shares = []
        for seed in seeds:
            web = make_web("w12", seed, terms)
            kept, body = (np.bincount(web.pages.host, of) for of in (web.pages.kept_bytes, web.pages.body_bytes))
            above = kept / body > 0.0128
            shares.append((kept[above].sum() / kept.sum(), body[above].sum() / body.sum()))
        text, down = np.mean(shares, 0)
        print(f"Above .0128 stand {text:.3f} of the text and {down:.4f} of the bytes.\n")
        rates: dict[str, float] = {}
        rows = []
        for profile, futures in jobs.items():
            (mean,) = summaries(run for future in futures for run in future.result())
            rates[profile] = mean.yield_rate
            rate = f"{mean.yield_rate:.4f}"
            rows.append((mean.strategy, profile, round(mean.pages), rate, mean.word_coverage, mean.retired))
        table(("strategy", "profile", "pages", "yield rate", "of the words", "retired"), rows)
        return {"yield_vs_bfs": round(rates["paper"] / rates["off"], 2)}

    return finish


def like_schaefer(bench: Bench) -> Finish:
    def finish() -> dict[str, Any]:
        heading("Schäfer et al. 2014: predictors of good targets")
        print("Published for links across hosts: block .590 .640 .614, badness .225 .530 .316.\n")
        web = of_crawl("miniweb", recorded_crawl(str(simulated.MINIWEB), "cs", "bfs").lines, "cs")
        starts, targets, scores = all_links(web)
        sources = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        good = web.pages.verdict[targets] == 0
        block, page = scores >= TEXT_SCORE, web.pages.badness[sources] <= GOOD_BADNESS
        page &= web.pages.kept_bytes[sources] > 0
        same = web.pages.host[sources] == web.pages.host[targets]
        wanted = web.pages.language[sources] == 0
        rows: list[tuple[object, ...]] = []
        chosen_links = {"in-host": same, "in-host, of pages in Czech": same & wanted, "cross-host": ~same}
        for where, chosen in chosen_links.items():
            for name, says in (("block score", block), ("badness of the page", page)):
                hits = float((says & good & chosen).sum())
                precision, recall = hits / max((says & chosen).sum(), 1), hits / max((good & chosen).sum(), 1)
                f1 = 2 * precision * recall / max(precision + recall, 1e-9)
                rows.append((where, name, int(chosen.sum()), float(good[chosen].mean()), precision, recall, f1))
        table(("links", "predictor", "number", "good", "P", "R", "F1"), rows)
        return {}

    return dict if bench.is_quick else finish


def cyclic(bench: Bench) -> Finish:
    pages = bench.pages // 2
    burn_in, phase = pages * 2 // 25, pages // 25
    changes = [burn_in + number * phase for number in range(3)]
    terms = Terms(pages=pages, word_share=1.1, max_pages=changes[-1] + phase)
    jobs = bench.runs("thai", range(1, bench.seeds + 1), (f"cyclic:burn_in={burn_in},phase={phase}", "bfs"), terms)
    span = phase // 2

    def finish() -> dict[str, Any]:
        heading(f"Cyclic: yield rates of the {span:,} pages before and after a change of phase")
        rows = []
        for of_one in by_strategy(jobs):
            rates = [
                statistics.fmean(yield_between(run.samples, change + shift, change + shift + span) for run in of_one)
                for change in changes
                for shift in (-span, 0)
            ]
            rows.append((of_one[0].task.strategy, *(f"{rate:.4f}" for rate in rates)))
        table(("strategy", *(f"{side} {change:,}" for change in changes for side in ("before", "after"))), rows)
        return {}

    return finish


def yield_between(samples: Sequence[Sample], low: float, high: float) -> float:
    """Yield rate of the pages from *low* to *high*."""
    one, other = at_pages(samples, low), at_pages(samples, high)
    return (other.kept_bytes - one.kept_bytes) / max(other.downloaded_bytes - one.downloaded_bytes, 1)


def speed(bench: Bench) -> Finish:
    job = bench.pool.submit(_pages_per_s, 20_000 if bench.is_quick else 10 * bench.pages)

    def finish() -> dict[str, Any]:
        rate, size, rss = job.result()
        print(f"\nSpeed: {rate:,.0f} pages/s of CPU time on {size:,} pages, {rss:,.0f} MB at most.")
        return {"simulated_pages_per_s": round(rate)}

    return finish


def _pages_per_s(pages: int) -> tuple[float, int, float]:
    """Pages a second of CPU time, how many, and the memory of this process in MB."""
    began = time.process_time()
    run = crawl(Task("thai", "bfs", 1), Terms(pages=pages, pages_per_s=0.0))
    took = time.process_time() - began
    return run.last.pages / took, run.last.pages, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


PARTS = {
    "speed": speed,
    "targets": targets_of,
    "somboonviwat-2006": like_somboonviwat,
    "suchomel-2012": like_suchomel,
    "schaefer-2014": like_schaefer,
    "cyclic": cyclic,
}
"""As they are begun: the longest first, though it is told last."""


if __name__ == "__main__":
    main()
