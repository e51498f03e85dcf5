"""What strategies give on generated and recorded webs, beside the papers' claims and our own.

    python benchmarks/strategies.py [--quick] [--data DIR] [--pages N] [--seeds N] [--parts ours,t06,...]

ours: words for each downloaded MB at 25, 50 and 75 % of the words, under politeness and 20 requests a second, on three
   generated webs, the graph in DIR, and what a real `bfs` crawl of the bundled miniature web recorded.
t06: the Thai-like web without politeness, as in Somboonviwat et al. 2006: harvest rate over the first fourteenth
   of the pages, coverage after 30 % of them, for LSWC with several S and T and its rivals.
w12: the web with the yields of Suchomel & Pomikálek 2012, Table 1: what a threshold keeps, and yield rates.
f14: block score and badness as predictors of a link's target, after Schäfer et al. 2014, on the links of that
   real crawl, in-host and cross-host.
cyclic: yield rate of the 1,000 pages before and after each change of phase (the same paper, section 3).
speed: CPU time of `bfs` on a web of ten times --pages (20,000 with --quick), while the other core is at work.

Each web of each seed is crawled in a process, two at once; each part's table is printed when it is there.  All parts
take some 25 minutes on two cores.  RESULT: yield_vs_bfs is the yield rate of `yield` with the paper's profile / that of
`bfs` in w12; vs_best_rival and of_perfect are the least of `spiderling` / the best of its rivals, and / `perfect`,
over the webs and shares of ours; rivals are yield, heidix, and lswc with four S and T.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, recorded_crawl, result, table  # noqa: I001
from spiderling.commands.simulate import strategy_table
from spiderling.corpus.links import LinkLine
from spiderling.simulation.comparison import (
    PERFECT, PERFECT_LANGUAGE, SHARES, Run, Summary, Task, Terms, crawl, make_web, summaries,
)  # fmt: skip
from spiderling.simulation.graphs import of_crawl
from spiderling.simulation.measures import Sample, at_pages, at_words, coverage
from spiderling.simulation.pages import TEXT_SCORE
from spiderling.simulation.reach import all_links

WEBS = ("thai", "pt", "scarce")
LSWC = tuple(f"lswc:s={s},t={t}" for s in (1, 3) for t in (1, 5))
RIVALS = ("yield", "heidix", *LSWC)
OURS = "spiderling:haste=100"
"""As many hosts as a line of 20 requests a second keeps busy (docs/strategies.md)."""
RECORDED = "miniweb"
FIRST_SEED = 21
"""Of the comparison of ours; those before (for haste some of these too) were looked at while constants were chosen."""
NO_POLITENESS = {"host_interval_s": 0.0, "ip_interval_s": 0.0, "delay_factor": 0.0, "trap_pages": 0}
GOOD_BADNESS = 10.0


class Bench(NamedTuple):
    """What all parts share."""

    pool: ProcessPoolExecutor
    pages: int
    seeds: int
    lines: Sequence[LinkLine]
    """Of the real crawl; none with --quick."""
    data: Path | None

    def runs(self, web: str, seeds: Iterable[int], strategies: Sequence[str], terms: Terms) -> list[Future[list[Run]]]:
        """A web of each seed in a process, which makes it once for all strategies."""
        lines = self.lines if web == RECORDED else ()
        return [self.pool.submit(on_one_web, web, seed, strategies, terms, lines) for seed in seeds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="directory with graph/, for another web")
    parser.add_argument("--pages", type=float, default=1e5, help="pages of each generated web (default 1e5)")
    parser.add_argument("--seeds", type=int, default=5, help="webs of each kind (default 5)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of them, with commas (default all)")
    options = parser.parse_args()
    pages, seeds = (4_000, 1) if options.quick else (int(options.pages), options.seeds)
    lines = [] if options.quick else recorded_crawl(str(ROOT / "examples/miniweb"), "cs", "bfs").lines
    found: dict[str, float] = {}
    with ProcessPoolExecutor(2) as pool:
        bench = Bench(pool, pages, seeds, lines, options.data)
        begun = {name: part(bench) for name, part in PARTS.items() if name in options.parts.split(",")}
        for name in sorted(begun, key="speed".__eq__):
            found |= begun[name]()
            sys.stdout.flush()
    result(**found)


def heading(text: str) -> None:
    print(f"\n{text}\n")


def on_one_web(name: str, seed: int, strategies: Sequence[str], terms: Terms, lines: Sequence[LinkLine]) -> list[Run]:
    web = of_crawl(name, lines, "cs") if lines else make_web(name, seed, terms)
    terms = replace(terms, options={"random_seed": seed, **terms.options})
    return [crawl(Task(name, strategy, seed), terms, web=web) for strategy in strategies]


Finish = Callable[[], dict[str, float]]
"""Prints what came of a part, when that is there, and gives its figures of RESULT."""


def ours(bench: Bench) -> Finish:
    webs = [*WEBS, *([str(bench.data / "graph")] if bench.data else []), *([RECORDED] if bench.lines else [])]
    terms = Terms(pages=bench.pages, word_share=SHARES[-1])
    seeds = range(FIRST_SEED, FIRST_SEED + bench.seeds)
    jobs = {web: bench.runs(web, seeds, ("bfs", *RIVALS, OURS, PERFECT), terms) for web in webs}

    def finish() -> dict[str, float]:
        rows, least = [], {RIVALS: 9.0, (PERFECT,): 9.0}
        for web, futures in jobs.items():
            runs = [run for future in futures for run in future.result()]
            means = summaries(run._replace(task=run.task._replace(web=Path(web).name)) for run in runs)
            heading(f"{means[0].web}: words/MB, politeness, 20 requests a second, to 75 % of the words")
            print("\n".join(strategy_table(means)))
            sys.stdout.flush()
            row: list[str] = [means[0].web]
            for others in least:
                for share in range(len(SHARES)):
                    ratio, spread, name = against(runs, means, others, share)
                    least[others] = min(least[others], ratio)
                    row.append(f"{ratio:.2f} ±{spread:.2f}" + (f" {name}" if others is RIVALS else ""))
            rows.append(row)
        heading("spiderling / the best of its rivals, and / perfect (± of the seeds one by one)")
        points = [f"{100 * share:.0f} %" for share in SHARES]
        table(("web", *points, *(f"of perfect, {point}" for point in points)), rows)
        return {"webs": len(rows), "vs_best_rival": round(least[RIVALS], 3), "of_perfect": round(least[PERFECT,], 3)}

    return finish


def against(
    runs: Sequence[Run], means: Sequence[Summary], others: Sequence[str], share: int
) -> tuple[float, float, str]:
    """Ours / the best of *others* in words per MB at a share: of the means, deviation of single seeds, and who it is.

    One that did not get there from every seed does not count; 0 if ours did not.
    """
    rates = {mean.strategy: mean.words_per_mb[share] or 0.0 for mean in means}
    best = max(others, key=lambda name: rates[name])
    single = {
        (run.task.strategy, run.task.seed): sample.words_per_mb
        for run in runs
        if (sample := at_words(run.samples, SHARES[share] * run.truth.words))
    }
    seeds = {run.task.seed for run in runs}
    ratios = [single.get((OURS, seed), 0.0) / single[best, seed] for seed in seeds if (best, seed) in single]
    return rates[OURS] / max(rates[best], 1e-9), statistics.pstdev(ratios), best


def like_t06(bench: Bench) -> Finish:
    pages = bench.pages // 2
    terms = Terms(pages=pages, word_share=1.1, pages_per_s=0.0, concurrency=1, options=NO_POLITENESS)
    names = {"thai": ("bfs", "soft", "hard", "distance", *LSWC, PERFECT_LANGUAGE), "thai-pure": LSWC}
    jobs = {web: bench.runs(web, range(1, min(bench.seeds, 4) + 1), names[web], terms) for web in names}

    def finish() -> dict[str, float]:
        heading("T06: the Thai-like web without politeness, and one where hosts are of two kinds")
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


def like_w12(bench: Bench) -> Finish:
    terms, seeds = Terms(pages=2 * bench.pages, word_share=1.1), range(1, min(bench.seeds, 3) + 1)
    profiles = {"bfs": "off", "normal": "normal", "paper": "paper", "0.03": "0.03"}
    jobs = {
        profile: bench.runs(
            "w12", seeds, ["bfs" if name == "bfs" else "yield"], replace(terms, options={"yield_profile": profile})
        )
        for name, profile in profiles.items()
    }

    def finish() -> dict[str, float]:
        heading("W12: the web of Table 1 (a threshold of .0128 kept .737 of the text for .0665 of the download)")
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


def like_f14(bench: Bench) -> Finish:
    def finish() -> dict[str, float]:
        heading("F14: predictors of good targets (there, cross-host, block .590 .640 .614, badness .225 .530 .316)")
        web = of_crawl(RECORDED, bench.lines, "cs")
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

    return finish if bench.lines else dict


def cyclic(bench: Bench) -> Finish:
    pages = bench.pages // 2
    burn_in, phase = pages * 2 // 25, pages // 25
    changes = [burn_in + number * phase for number in range(3)]
    terms = Terms(pages=pages, word_share=1.1, max_pages=changes[-1] + phase)
    jobs = bench.runs("thai", range(1, bench.seeds + 1), (f"cyclic:burn_in={burn_in},phase={phase}", "bfs"), terms)
    span = phase // 2

    def finish() -> dict[str, float]:
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
    job = bench.pool.submit(_pages_per_s, 20_000 if bench.pages < 10_000 else 10 * bench.pages)

    def finish() -> dict[str, float]:
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


PARTS = {"speed": speed, "ours": ours, "t06": like_t06, "w12": like_w12, "f14": like_f14, "cyclic": cyclic}
"""As they are begun: the longest first, though it is told last."""


if __name__ == "__main__":
    main()
