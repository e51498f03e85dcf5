"""What strategies give on generated and recorded webs, beside the papers' claims and our own.

    python -m benchmarks.strategies [--quick] [--data DIR] [--pages N] [--parts targets,speed,...] [--jobs N]
        [--webs thai,graph:pl,...] [--results DIR]

targets: the default under politeness on generated webs, the graph in DIR for four languages, and what real crawls of
   the bundled miniature web recorded for three: words for each downloaded MB at 25, 50, 75 and 90 % of the words,
   beside the yardstick (a clairvoyant that knows what each host gives) and the best rival; recall, and requests a
   page, those for site files among them.
somboonviwat-2006: the Thai-like web without politeness: harvest rate over the first fourteenth of the pages, coverage
   after 30 % of them, for LSWC with several S and T and its rivals.
suchomel-2012: the web with the yields of Suchomel & Pomikálek 2012, Table 1: what a threshold keeps, and yield rates.
schaefer-2014: block score and badness as predictors of a link's target, on the links of a real crawl of the miniature
   web, in-host and cross-host.
speed: CPU time of `bfs` on a web of ten times --pages (20,000 with --quick), while the other core is at work.

RESULT has the figures of targets by web; yield_vs_bfs is the yield rate of `yield` with the paper's
profile / that of `bfs`.
"""

from __future__ import annotations

import argparse
import math
import pickle
import random
import resource
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import ROOT, recorded_crawl, result, table
from benchmarks.page_graphs import page_graph
from simulator.clairvoyants import all_links
from simulator.comparison import (
    KNOWN_HOSTS,
    PERFECT_LANGUAGE,
    SHARES,
    Run,
    Task,
    Terms,
    crawl,
    make_web,
    summaries,
)
from simulator.graphs import of_crawl
from simulator.measures import at_pages, coverage
from simulator.pages import TEXT_SCORE, PageWeb

GENERATED = ("thai", "pt", "scarce", "w12", "hops", "platforms")
GRAPHS = ("graph:cs", "graph:de", "graph:pl", "graph:vi")
MINIWEBS = ("miniweb:cs", "miniweb:de", "miniweb:pl")
MINIWEB = ROOT / "examples/miniweb"
PORTAL = "http://portal.test/index.html"
"""The page of the miniature web that links to every host of it."""
SAMPLES = 2000
"""Samples of a crawl; what it gave at a share of the words is read between two of them."""
_LONGEST_HOURS = 24.0 * 60
"""Simulated hours at which any crawl ends: hosts that give little are asked once a day."""


class Job(NamedTuple):
    """One crawl to be simulated."""

    web: str
    """A recipe's name, ``graph:LANGUAGE`` or ``miniweb:LANGUAGE``."""
    pages: int
    """Of a generated web."""
    seed: int
    strategy: str
    rate: float = 20.0
    """Most requests a second."""
    word_share: float = 0.9
    """Share of the web's words at which it ends; above 1: when nothing is left."""


class Point(NamedTuple):
    """Where a crawl is when a share of the web's words is kept."""

    words_per_mb: float
    hours: float
    requests_per_page: float


class Result(NamedTuple):
    """What is kept of a crawl."""

    points: dict[str, Point]
    """By share of the words in per cent; those that were not reached are missing."""
    recall: float
    """Share of the web's words at the end."""
    words: int
    mb: float
    hours: float
    pages: int
    cpu_s: float

    def at(self, share: float) -> Point | None:
        return self.points.get(f"{100 * share:.0f}")


class Crawls:
    """Simulated crawls, each made once."""

    def __init__(self, directory: Path, data: Path | None = None) -> None:
        """*data* holds ``graph/``; *directory* keeps the recorded webs."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._data = data
        self._known: dict[Job, Result] = {}

    def results(self, jobs: Iterable[Job], processes: int = 1) -> dict[Job, Result]:
        """The result of each job; those that are not known are simulated, a web of a seed in one process."""
        wanted = list(dict.fromkeys(jobs))
        missing: dict[tuple[str, int, int], list[Job]] = defaultdict(list)
        for job in wanted:
            if job not in self._known:
                missing[job.web, job.pages, job.seed].append(job)
        for name in sorted({web for web, _, _ in missing} & {*MINIWEBS}):
            record(self._directory, name)
        self._known |= _simulated(list(missing.values()), self._directory, self._data, processes)
        return {job: self._known[job] for job in wanted}


def _simulated(groups: Sequence[list[Job]], directory: Path, data: Path | None, processes: int) -> dict[Job, Result]:
    if processes == 1:
        return dict(found for group in groups for found in _on_one_web(group, directory, data))
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(_on_one_web, group, directory, data) for group in groups]
        return dict(found for future in futures for found in future.result())


def _on_one_web(jobs: list[Job], directory: Path, data: Path | None) -> list[tuple[Job, Result]]:
    web = open_web(jobs[0], directory, data)
    found = []
    for job in jobs:
        terms = Terms(
            hours=_LONGEST_HOURS,
            word_share=job.word_share,
            samples=SAMPLES,
            pages_per_s=job.rate,
            options={"random_seed": job.seed},
        )
        began = time.process_time()
        run = crawl(Task(job.web, job.strategy, job.seed), terms, web=web)
        found.append((job, summed_up(run, time.process_time() - began)))
    return found


def summed_up(run: Run, cpu_s: float) -> Result:
    """What is kept of *run*."""
    last = run.last
    points = {f"{100 * share:.0f}": point for share in SHARES if (point := _point(run, share)) is not None}
    recall = last.words / max(run.truth.words, 1)
    size = last.downloaded_bytes / 1e6
    return Result(points, recall, last.words, size, last.hours, last.pages, round(cpu_s, 2))


def _point(run: Run, share: float) -> Point | None:
    """Between the two samples around *share* of the words, in proportion."""
    wanted = share * run.truth.words
    words = size = seconds = requests = pages = 0.0
    for sample in run.samples:
        if sample.words >= wanted:
            part = (wanted - words) / max(sample.words - words, 1)
            size += part * (sample.downloaded_bytes - size)
            seconds += part * (sample.seconds - seconds)
            requests += part * (sample.requests - requests)
            pages += part * (sample.pages - pages)
            return Point(wanted / size * 1e6, seconds / 3600, requests / pages)
        words, size, seconds = sample.words, sample.downloaded_bytes, sample.seconds
        requests, pages = sample.requests, sample.pages
    return None


# -- webs


def open_web(job: Job, directory: Path, data: Path | None) -> PageWeb:
    """The web of *job*; *directory* keeps what was recorded, and *data* holds ``graph/``."""
    name = job.web
    kind, _, language = name.partition(":")
    if kind == "miniweb":
        with _recording(directory, name).open("rb") as file:
            lines = pickle.load(file)
        others = sorted({line.url for line in lines if line.url.count("/") == 3} - {PORTAL})
        return of_crawl(name, lines, language, [PORTAL, *random.Random(job.seed).sample(others, 2)])
    if kind == "graph" and data is not None:
        return page_graph(data / "graph", language, job.seed)
    return make_web(name, job.seed, Terms(pages=job.pages))


def webs_of(data: Path | None) -> tuple[str, ...]:
    """Those that can be had: graphs with *data* alone."""
    return (*GENERATED, *(GRAPHS if data else ()), *MINIWEBS)


def _recording(directory: Path, name: str) -> Path:
    return directory / f"{name.replace(':', '-')}.pickle"


def record(directory: Path, name: str) -> None:
    """Let a real crawl write the links of the miniature web, unless one has."""
    if not _recording(directory, name).exists():
        found = recorded_crawl(str(MINIWEB), name.partition(":")[2], "bfs")
        with _recording(directory, name).open("wb") as file:
            pickle.dump(found.lines, file)


DEFAULT = "spiderling"
THRIFT = "spiderling:thrift=6"
"""The default for a line that is paid by the gigabyte."""
LSWC = tuple(f"simulator.rivals.Lswc:s={s},t={t}" for s in (1, 3) for t in (1, 5))
FOCUSED = ("simulator.rivals.Hard", "simulator.rivals.Soft")
RIVALS = ("yield", "heidix", *LSWC, *FOCUSED)
CHOOSING = (31, 32, 33, 34, 35)
TEST = (41, 42, 43, 44, 45)
TO_THE_END = 1.1
"""A share of the words that no crawl reaches."""
_STAYS = 2 / 3
"""A rival with less than this part of the best one's score on the first seed is not tried on the others."""


class Frame(NamedTuple):
    """What is compared."""

    webs: Sequence[str]
    pages: int
    choosing: Sequence[int]
    test: Sequence[int]


def jobs_of(frame: Frame, strategy: str, share: float = 0.9) -> list[Job]:
    """One on each web and seed of the test."""
    return [Job(web, frame.pages, seed, strategy, word_share=share) for web in frame.webs for seed in frame.test]


def best_rivals(crawls: Crawls, frame: Frame, processes: int) -> dict[str, str]:
    """For each web the rival with the highest words/MB over SHARES; one that does not get to a share has none there."""
    first, *others = frame.choosing
    found = crawls.results([Job(web, frame.pages, first, name) for web in frame.webs for name in RIVALS], processes)
    left: dict[str, list[str]] = {}
    for web in frame.webs:
        scores = {name: _score([found[Job(web, frame.pages, first, name)]]) for name in RIVALS}
        left[web] = [name for name in RIVALS if scores[name] >= _STAYS * max(scores.values())]
    jobs = [Job(web, frame.pages, seed, name) for web in frame.webs for name in left[web] for seed in others]
    found |= crawls.results(jobs, processes)
    return {
        web: max(left[web], key=lambda name: _score([found[Job(web, frame.pages, s, name)] for s in frame.choosing]))
        for web in frame.webs
    }


def _score(results: Sequence[Result]) -> float:
    points = (result.at(share) for result in results for share in SHARES)
    return sum(point.words_per_mb if point else 0.0 for point in points)


def measure(crawls: Crawls, frame: Frame, processes: int) -> dict[str, dict[str, Any]]:
    """Print the tables, and give the figures of RESULT."""
    rivals = best_rivals(crawls, frame, processes)
    jobs = {
        DEFAULT: jobs_of(frame, DEFAULT, TO_THE_END),
        THRIFT: jobs_of(frame, THRIFT),
        KNOWN_HOSTS: jobs_of(frame, KNOWN_HOSTS),
        "bfs": jobs_of(frame, "bfs", TO_THE_END),
        "rival": [Job(web, frame.pages, seed, rivals[web]) for web in frame.webs for seed in frame.test],
    }
    results = crawls.results([job for group in jobs.values() for job in group], processes)
    for web in frame.webs:
        print(f"\n{web}: means of {len(frame.test)} seeds, 20 requests a second\n")
        shown = {group: [job for job in jobs[group] if job.web == web] for group in jobs}
        lines = [_row(group, [results[job] for job in group], group[0].strategy) for group in shown.values()]
        points = [f"{100 * share:.0f} %" for share in SHARES]
        last = "hours to 75 %", "90 %", "requests/page at 75 %", "of the words"
        table(("strategy", "words/MB at " + points[0], *points[1:], *last), lines)
    return _targets(frame, jobs, results, rivals)


def _row(group: object, results: Sequence[Result], name: str) -> tuple[str, ...]:
    rates = (_mean([result.at(share) for result in results], 0) for share in SHARES)
    hours = (_mean([result.at(share) for result in results], 1) for share in SHARES[-2:])
    requests = _mean([result.at(0.75) for result in results], 2)
    recall = statistics.fmean(result.recall for result in results)
    return (
        name,
        *("-" if rate is None else f"{rate:,.0f}" for rate in rates),
        *("-" if value is None else f"{value:.2f}" for value in (*hours, requests)),
        f"{recall:.3f}",
    )


def _mean(points: Sequence[Point | None], at: int) -> float | None:
    """None if not every crawl got there."""
    known = [point[at] for point in points if point]
    return statistics.fmean(known) if len(known) == len(points) else None


def _targets(
    frame: Frame, jobs: dict[str, list[Job]], results: dict[Job, Result], rivals: dict[str, str]
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {
        name: {} for name in ("of_known_hosts", "vs_best_rival", "recall", "requests_per_page")
    }
    rows, versus = [], []
    for web in frame.webs:
        by_seed = {group: {j.seed: results[j] for j in jobs[group] if j.web == web} for group in jobs}
        own, known, rival, bfs = (by_seed[name] for name in (DEFAULT, KNOWN_HOSTS, "rival", "bfs"))
        of_known = {name: _ratios(by_seed[name], known, 0.75) for name in (DEFAULT, THRIFT)}
        found["of_known_hosts"][web] = {name: _round(_fmean(ratios)) for name, ratios in of_known.items()}
        per_share = {f"{100 * share:.0f}": _ratios(own, rival, share) for share in SHARES}
        told = {share: [_round(_fmean(ratios)), _round(error_of(ratios))] for share, ratios in per_share.items()}
        found["vs_best_rival"][web] = {"rival": rivals[web], **told}
        recall = statistics.fmean(own[seed].recall / max(bfs[seed].recall, 1e-9) for seed in frame.test)
        found["recall"][web] = _round(recall)
        found["requests_per_page"][web] = _mean([result.at(0.75) for result in own.values()], 2)
        versus.append((web, rivals[web], *(f"{_text(mean)} ±{_text(error)}" for mean, error in told.values())))
        rows.append((web, *map(_text, found["of_known_hosts"][web].values()), _text(recall)))
    print(f"\n{DEFAULT} / the best rival in words/MB, seed by seed (± standard error)\n")
    table(("web", "rival", *(f"{100 * share:.0f} %" for share in SHARES)), versus)
    print(f"\n{DEFAULT}: of the yardstick, and recall\n")
    table(("web", "of known-hosts at 75 %", f"the same of {THRIFT}", "words at the end / bfs'"), rows)
    return found


def _ratios(own: dict[int, Result], others: dict[int, Result], share: float) -> list[float]:
    """Words/MB beside another strategy's where that one got there; 0 where only it did."""
    pairs = ((own[seed].at(share), other.at(share)) for seed, other in others.items())
    return [(mine.words_per_mb if mine else 0.0) / theirs.words_per_mb for mine, theirs in pairs if theirs]


def _fmean(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.fmean(known) if known else math.nan


def error_of(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def _round(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)


def _text(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


NO_POLITENESS = {"host_interval_s": 0.0, "ip_interval_s": 0.0, "delay_factor": 0.0, "traps": "pages=0"}
GOOD_BADNESS = 10.0


class Bench(NamedTuple):
    """What all parts share."""

    pool: ProcessPoolExecutor
    pages: int
    seeds: int
    frame: Frame
    crawls: Crawls
    jobs: int
    is_quick: bool

    def runs(self, web: str, seeds: Iterable[int], strategies: Sequence[str], terms: Terms) -> list[Future[list[Run]]]:
        """A web of each seed in a process, which makes it once for all strategies."""
        return [self.pool.submit(on_one_web, web, seed, strategies, terms) for seed in seeds]


def main() -> None:
    options = parsed()
    pages, seeds = (1_000, 1) if options.quick else (int(options.pages), options.seeds)
    names = ("thai", "pt") if options.quick else webs_of(options.data)
    webs = options.webs.split(",") if options.webs else names
    frame = Frame(webs, pages, CHOOSING[:seeds], TEST[:seeds])
    crawls = Crawls(options.results, options.data)
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
    parser.add_argument("--results", type=Path, default=default, help="for recorded webs (default %(default)s)")
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
    return lambda: measure(bench.crawls, bench.frame, bench.jobs)


def like_somboonviwat(bench: Bench) -> Finish:
    pages = bench.pages // 2
    terms = Terms(pages=pages, word_share=1.1, pages_per_s=0.0, concurrency=1, options=NO_POLITENESS)
    names = {"thai": ("bfs", *FOCUSED, *LSWC, PERFECT_LANGUAGE), "thai-pure": LSWC}
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
        web = of_crawl("miniweb", recorded_crawl(str(MINIWEB), "cs", "bfs").lines, "cs")
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
}
"""As they are begun: the longest first, though it is told last."""


if __name__ == "__main__":
    main()
