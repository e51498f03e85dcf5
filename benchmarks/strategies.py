"""What strategies give on generated and recorded webs, beside the papers' claims and our own.

    python benchmarks/strategies.py [--quick] [--data DIR] [--pages N] [--seeds N]

1. The Thai-like web without politeness, as in Somboonviwat et al. 2006 (T06): harvest rate over the first fourteenth
   of the pages, coverage after 30 % of them, for LSWC with several S and T and its rivals.
2. The web with the yields of Suchomel & Pomikálek 2012, Table 1 (W12): what a threshold keeps, and yield rates.
3. Block score and badness as predictors of a link's target, after Schäfer et al. 2014 (F14), on the links that a real
   crawl of the bundled miniature web recorded, in-host and cross-host.
4. Words for each downloaded MB at 25, 50 and 75 % of the words, under politeness and 20 requests a second.

RESULT: yield_vs_bfs is the yield rate of `yield` with the paper's profile / that of `bfs` on the web of 2;
vs_best_rival and of_perfect are the least of `spiderling` / the best of its rivals, and / `perfect`, over the webs and
shares of 4; rivals are yield, heidix, and lswc with four S and T.  simulated_pages_per_s is CPU time of `bfs` on a web
of ten times --pages, with ten links each (20,000 with --quick).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, recorded_crawl, result, table  # noqa: I001
from spiderling.commands.simulate import print_table
from spiderling.linkoutput import LinkLine
from spiderling.simulation.comparison import (
    PERFECT, PERFECT_LANGUAGE, SHARES, Run, Summary, Task, Terms, compare, crawl, make_web, summaries,
)  # fmt: skip
from spiderling.simulation.generated import RECIPES
from spiderling.simulation.graphs import of_crawl
from spiderling.simulation.measures import at_pages, coverage
from spiderling.simulation.pages import TEXT_SCORE
from spiderling.simulation.reach import all_links

LSWC = tuple(f"lswc:s={s},t={t}" for s in (1, 3) for t in (1, 5))
RIVALS = ("yield", "heidix", *LSWC)
OURS = "spiderling"
FIRST_SEED = 21
"""Of the comparison of 4; those before it were looked at while constants were chosen."""
NO_POLITENESS = {"host_interval_s": 0.0, "ip_interval_s": 0.0, "delay_factor": 0.0, "trap_pages": 0}
GOOD_BADNESS = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="directory with graph/, for another web")
    parser.add_argument("--pages", type=float, default=1e5, help="pages of each generated web (default 1e5)")
    parser.add_argument("--seeds", type=int, default=5, help="webs of each kind (default 5)")
    options = parser.parse_args()
    pages, seeds = (4_000, 1) if options.quick else (int(options.pages), options.seeds)
    terms = Terms(pages=pages, word_share=0.8)
    like_t06(terms, range(1, (1 if options.quick else min(seeds, 2)) + 1))
    ratio = like_w12(terms, range(1, seeds + 1))
    lines = [] if options.quick else recorded_crawl(str(ROOT / "examples/miniweb"), "cs", "bfs").lines
    if lines:
        like_f14(lines)
    sys.stdout.flush()
    runs = rivals([*RECIPES, *([str(options.data / "graph")] if options.data else [])], terms, seeds)
    runs += [_recorded(lines, strategy, terms) for strategy in ("bfs", *RIVALS, OURS, PERFECT)] if lines else []
    means = summaries(runs)
    heading("words/MB, politeness, 20 requests a second, to 80 % of the words")
    print_table(means)
    rate, size, rss = speed(20_000 if options.quick else 10 * pages)
    print(f"\nSpeed: {rate:,.0f} pages/s of CPU time on {size:,} pages, {rss:,.0f} MB at most.")
    result(
        webs=len({summary.web for summary in means}), yield_vs_bfs=round(ratio, 2),
        vs_best_rival=least(means, RIVALS), of_perfect=least(means, (PERFECT,)), simulated_pages_per_s=round(rate),
    )  # fmt: skip


def heading(text: str) -> None:
    print(f"\n{text}\n")


def simulated(tasks: Sequence[Task], terms: Terms) -> list[Run]:
    runs = {run.task: run for run in compare(tasks, terms, 2, lambda pages: None)}
    return [runs[task] for task in tasks]


def like_t06(terms: Terms, seeds: range) -> None:
    heading("T06: the Thai-like web without politeness")
    terms = replace(terms, word_share=1.1, pages_per_s=0.0, concurrency=1, options=NO_POLITENESS)
    names = ["bfs", "soft", "hard", "distance", *LSWC, PERFECT_LANGUAGE]
    runs = simulated([Task("thai", name, seed) for name in names for seed in seeds], terms)
    rows = []
    for name in names:
        own = [run for run in runs if run.task.strategy == name]
        early = [at_pages(run.samples, terms.pages / 14).harvest_rate for run in own]
        third = [coverage(at_pages(run.samples, 0.3 * terms.pages), run.truth) for run in own]
        ends = [coverage(run.last, run.truth) for run in own]
        fetched = float(np.mean([run.last.pages / terms.pages for run in own]))
        rows.append((name, *(float(np.mean(values)) for values in (early, third, ends)), fetched))
    table(("strategy", "harvest, first 1/14", "coverage at 30 %", "at the end", "pages fetched"), rows)


def like_w12(terms: Terms, seeds: range) -> float:
    heading("W12: the web of Table 1 (a threshold of .0128 kept .737 of the text for .0665 of the download)")
    shares = []
    for seed in seeds:
        web = make_web("pt", seed, terms)
        kept, body = (np.bincount(web.pages.host, of) for of in (web.pages.kept_bytes, web.pages.body_bytes))
        above = kept / body > 0.0128
        shares.append((kept[above].sum() / kept.sum(), body[above].sum() / body.sum()))
    text, down = np.mean(shares, 0)
    print(f"Above .0128 stand {text:.3f} of the text and {down:.4f} of the bytes.\n")
    rates: dict[str, float] = {}
    rows = []
    whole = replace(terms, word_share=1.1)
    for name, profile in (("bfs", "off"), ("yield", "normal"), ("yield", "paper"), ("yield", "0.03")):
        run_terms = replace(whole, options={"yield_profile": profile})
        (mean,) = summaries(simulated([Task("pt", name, seed) for seed in seeds], run_terms))
        rates[f"{name} {profile}"] = mean.yield_rate
        rows.append((name, profile, round(mean.pages), f"{mean.yield_rate:.4f}", mean.word_coverage, mean.retired))
    table(("strategy", "profile", "pages", "yield rate", "of the words", "retired"), rows)
    return rates["yield paper"] / rates["bfs off"]


def like_f14(lines: Sequence[LinkLine]) -> None:
    heading("F14: predictors of good targets (there, cross-host: block P .590 R .640 F .614, badness .225 .530 .316)")
    web = of_crawl("miniweb", lines, "cs")
    starts, targets, scores = all_links(web)
    sources = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    good = web.pages.verdict[targets] == 0
    block, page = scores >= TEXT_SCORE, web.pages.badness[sources] <= GOOD_BADNESS
    page &= web.pages.kept_bytes[sources] > 0
    same = web.pages.host[sources] == web.pages.host[targets]
    rows: list[tuple[object, ...]] = []
    for where, chosen in (("in-host", same), ("cross-host", ~same)):
        for name, says in (("block score", block), ("badness of the page", page)):
            hits = float((says & good & chosen).sum())
            precision, recall = hits / max((says & chosen).sum(), 1), hits / max((good & chosen).sum(), 1)
            f1 = 2 * precision * recall / max(precision + recall, 1e-9)
            rows.append((where, name, int(chosen.sum()), float(good[chosen].mean()), precision, recall, f1))
    table(("links", "predictor", "number", "good", "P", "R", "F1"), rows)


def rivals(webs: Sequence[str], terms: Terms, seeds: int) -> list[Run]:
    """Each web of each seed in a process, which makes it once for all strategies."""
    with ProcessPoolExecutor(2) as pool:
        jobs = [pool.submit(_on_one_web, web, FIRST_SEED + at, terms) for web in webs for at in range(seeds)]
        return [run for job in jobs for run in job.result()]


def _on_one_web(name: str, seed: int, terms: Terms) -> list[Run]:
    web = make_web(name, seed, terms)
    names = ("bfs", *RIVALS, "cyclic:burn_in=5000,phase=10000", OURS, PERFECT)
    return [crawl(Task(name, strategy, seed), terms, web=web) for strategy in names]


def _recorded(lines: Sequence[LinkLine], strategy: str, terms: Terms) -> Run:
    return crawl(Task("miniweb", strategy, 1), terms, web=of_crawl("miniweb", lines, "cs"))


def least(means: Sequence[Summary], others: Sequence[str]) -> float:
    """The least of ours / the best of *others*, over all webs and shares; one that did not get there does not count."""
    found = {(mean.web, mean.strategy): mean.words_per_mb for mean in means}
    ratios = []
    for web in {mean.web for mean in means}:
        for at in range(len(SHARES)):
            best = max((found[web, name][at] or 0.0 for name in others), default=0.0)
            if best:
                ratios.append((found[web, OURS][at] or 0.0) / best)
    return round(min(ratios), 3)


def speed(pages: int) -> tuple[float, int, float]:
    """Pages a second of CPU time, how many, and the memory of this process in MB."""
    began = time.process_time()
    run = crawl(Task("thai", "bfs", 1), Terms(pages=pages, pages_per_s=0.0))
    took = time.process_time() - began
    return run.last.pages / took, run.last.pages, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
