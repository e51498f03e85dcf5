"""Simulates each strategy on each web with each seed, on all cores; sums the results up as a table and as curves."""

from __future__ import annotations

import csv
import gc
import io
import multiprocessing
import signal
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from simulator.clairvoyants import KnownHosts, Perfect, stages
from simulator.generated import RECIPES, generate
from simulator.graphs import of_crawl
from simulator.measures import Sample, Truth, at_words, coverage, word_coverage
from simulator.pages import PageWeb
from simulator.replay import Replay, world
from simulator.shapes import SHAPES
from spiderling.base.errors import BadInput
from spiderling.base.files import write_whole
from spiderling.base.terminal import markdown_table
from spiderling.frontier.strategies import parse
from spiderling.frontier.strategy import Strategy

PERFECT = "perfect"
"""A strategy of the simulator alone, as the papers have it: it knows the words of every page and follows links."""
PERFECT_LANGUAGE = "perfect-language"
"""Another: it knows the language of every page."""
KNOWN_HOSTS = "known-hosts"
"""The yardstick: it knows what every host gives for its bytes, and all URLs."""
CLAIRVOYANT = (PERFECT, PERFECT_LANGUAGE, KNOWN_HOSTS)
"""Strategies that know the web, which no real crawl does."""
DEFAULT = ("bfs", "yield", "spiderling", PERFECT, KNOWN_HOSTS)
"""Strategies that are compared if none is named."""
SHARES = (0.25, 0.5, 0.75, 0.9)
"""Shares of a web's words at which strategies are compared (chosen)."""
_POLL_S = 0.3
"""Seconds between two reports of progress (chosen)."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same for all crawls of a comparison."""

    pages: int = 100_000
    """Of each generated web."""
    links: float = 10.0
    """Mean number of links on its pages."""
    language: str = "cs"
    """The wanted language of a recorded web."""
    max_pages: float = float("inf")
    """Judged pages at which a crawl ends."""
    hours: float = float("inf")
    """Simulated hours at which a crawl ends."""
    word_share: float = 1.0
    """Share of the web's words at which a crawl ends."""
    samples: int = 300
    """Samples of a crawl of the whole web: the points of its curves."""
    concurrency: int = 1000
    """Requests open at once."""
    pages_per_s: float = 20.0
    """Most requests a second, as line and machine allow; 0: politeness alone sets the pace."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the crawl by their names in base/options.py."""


class Task(NamedTuple):
    """One crawl: a web by its name, a strategy, a seed."""

    web: str
    strategy: str
    seed: int


class Run(NamedTuple):
    """The result of a Task."""

    task: Task
    truth: Truth
    samples: list[Sample]

    @property
    def last(self) -> Sample:
        return self.samples[-1]


class Summary(NamedTuple):
    """Means over the seeds of one strategy on one web."""

    web: str
    strategy: str
    seeds: int
    pages: float
    hours: float
    harvest_rate: float
    coverage: float
    word_coverage: float
    yield_rate: float
    words_per_mb: tuple[float | None, ...]
    """Words for each downloaded MB when each of SHARES of the words is kept; None if not every crawl got there."""
    spreads: tuple[float | None, ...]
    """Their standard deviations over the seeds."""
    retired: float
    pages_per_s: float
    requests_per_page: float


def make_web(name: str, seed: int, terms: Terms) -> PageWeb:
    """A web by the name of its recipe or shape, or one that a crawl met, by its directory; else BadInput."""
    if name in RECIPES:
        return generate(replace(RECIPES[name], pages=terms.pages, links=terms.links, seed=seed))
    if name in SHAPES:
        return SHAPES[name](terms.pages, seed)
    directory = Path(name)
    if (directory / "links").is_dir():
        from spiderling.jobdir.inspection import links_of_crawl  # which needs SQLite

        return of_crawl(directory.name, links_of_crawl(directory), terms.language)
    raise BadInput(
        f"there is no web {name!r}: name {', '.join([*RECIPES, *SHAPES])}, or the directory of a crawl "
        "with SPIDERLING_LINKS=on."
    )


def crawl(
    task: Task, terms: Terms, tick: Callable[[int], object] = lambda pages: None, web: PageWeb | None = None
) -> Run:
    """Simulate one crawl, of *web* or else of the task's; *tick* gets the number of new pages."""
    web = web or make_web(task.web, task.seed, terms)
    strategy = _clairvoyant(task.strategy, web) if task.strategy in CLAIRVOYANT else None
    options = {"lang": web.languages[0], **terms.options} | ({} if strategy else {"strategy": task.strategy})
    replay = Replay(
        web, world(**options), concurrency=terms.concurrency, pages_per_s=terms.pages_per_s, strategy=strategy
    )
    truth = web.truth
    every = max(5, int(min(truth.pages, terms.max_pages)) // terms.samples)
    words = terms.word_share * truth.words
    with _no_garbage_collection():
        for urls in stages(web, SHARES) if task.strategy == KNOWN_HOSTS else [web.seed_urls()]:
            last = replay.run(urls, terms.max_pages, terms.hours * 3600, words, tick, every)
            if last.words >= words:
                break
    return Run(task, truth, replay.samples)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A simulated crawl leaves no cycles behind; looking for some takes a fourteenth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _clairvoyant(name: str, web: PageWeb) -> Strategy:
    return KnownHosts() if name == KNOWN_HOSTS else Perfect.of(web, name == PERFECT_LANGUAGE)


def compare(tasks: Sequence[Task], terms: Terms, jobs: int, tick: Callable[[int], object]) -> Iterator[Run]:
    """Yields runs as they end, *jobs* at once, each in a process of its own; raises BadInput for a strategy.

    *tick* gets the number of new pages of all runs together.
    """
    for task in tasks:
        if task.strategy not in CLAIRVOYANT:
            parse(task.strategy)
    if jobs == 1:
        yield from (crawl(task, terms, tick) for task in tasks)
        return
    count = multiprocessing.Value("q", 0)
    is_over = multiprocessing.Event()
    told = 0
    with ProcessPoolExecutor(jobs, initializer=_share, initargs=(count, is_over)) as pool:
        left: set[Future[Run]] = {pool.submit(_counted, task, terms) for task in tasks}
        try:
            while left:
                done, left = wait(left, _POLL_S, FIRST_COMPLETED)
                counted = count.get_obj().value  # without its lock, which Ctrl-C could leave taken for ever
                tick(counted - told)
                told = counted
                yield from (future.result() for future in done)
        finally:
            is_over.set()
            pool.shutdown(cancel_futures=True)


_shared: list[tuple[Synchronized[int], Event]] = []
"""In a process of the pool: the pages of all crawls together, and an event that tells it to stop."""


def _share(count: Synchronized[int], is_over: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides
    _shared[:] = [(count, is_over)]


def _counted(task: Task, terms: Terms) -> Run:
    count, is_over = _shared[0]

    def tick(pages: int) -> None:
        if is_over.is_set():
            raise InterruptedError
        with count.get_lock():
            count.value += pages

    return crawl(task, terms, tick)


def summaries(runs: Iterable[Run]) -> list[Summary]:
    """One for each web and strategy, in the order in which they come."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.task.web, run.task.strategy), []).append(run)
    return [_summary(group) for group in groups.values()]


def _summary(runs: list[Run]) -> Summary:
    def mean(of: Callable[[Run], float]) -> float:
        return statistics.fmean(map(of, runs))

    per_mb = [[_per_mb(run, share) for run in runs] for share in SHARES]
    reached = [[value for value in values if value is not None] for values in per_mb]
    whole = [len(values) == len(runs) for values in reached]
    return Summary(
        runs[0].task.web,
        runs[0].task.strategy,
        len(runs),
        mean(lambda run: run.last.pages),
        mean(lambda run: run.last.hours),
        mean(lambda run: run.last.harvest_rate),
        mean(lambda run: coverage(run.last, run.truth)),
        mean(lambda run: word_coverage(run.last, run.truth)),
        mean(lambda run: run.last.yield_rate),
        tuple(statistics.fmean(values) if all_ else None for values, all_ in zip(reached, whole, strict=True)),
        tuple(statistics.pstdev(values) if all_ else None for values, all_ in zip(reached, whole, strict=True)),
        mean(lambda run: run.last.retired),
        mean(lambda run: run.last.pages_per_s),
        mean(lambda run: run.last.requests_per_page),
    )


def _per_mb(run: Run, share: float) -> float | None:
    sample = at_words(run.samples, share * run.truth.words)
    return None if sample is None else sample.words_per_mb


_MEASURES = (
    "web", "strategy", "pages", "requests/page", "hours", "pages/s", "harvest", "coverage", "of words", "yield rate",
)  # fmt: skip
_HEAD = (*_MEASURES, "words/MB at 25 %", *(f"{100 * share:.0f} %" for share in SHARES[1:]), "retired")
_CSV_HEAD = (
    "web", "strategy", "seed", "hours", "pages", "requests", "relevant", "documents", "words", "downloaded_bytes",
    "kept_bytes", "waiting", "retired", "harvest_rate", "coverage", "word_coverage", "yield_rate", "words_per_mb",
    "pages_per_s",
)  # fmt: skip


def row(summary: Summary) -> tuple[str, ...]:
    """What the table says of one strategy on one web."""
    rates = [
        "-" if mean is None else f"{mean:,.0f}" + (f" ±{spread:,.0f}" if summary.seeds > 1 else "")
        for mean, spread in zip(summary.words_per_mb, summary.spreads, strict=True)
    ]
    return (
        summary.web,
        summary.strategy,
        f"{summary.pages:,.0f}",
        f"{summary.requests_per_page:.2f}",
        f"{summary.hours:.1f}",
        f"{summary.pages_per_s:.1f}",
        f"{summary.harvest_rate:.3f}",
        f"{summary.coverage:.3f}",
        f"{summary.word_coverage:.3f}",
        f"{summary.yield_rate:.4f}",
        *rates,
        f"{summary.retired:,.0f}",
    )


def strategy_table(means: Iterable[Summary]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    return markdown_table(_HEAD, map(row, means))


def write_csv(path: Path, runs: Sequence[Run]) -> None:
    """Write the curves of *runs* as a table."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(_CSV_HEAD)
    for run in runs:
        for at in run.samples:
            measures = at.harvest_rate, coverage(at, run.truth), word_coverage(at, run.truth)
            rates = at.yield_rate, at.words_per_mb, at.pages_per_s
            writer.writerow((*run.task, at.hours, *at[1:], *(f"{value:.6g}" for value in (*measures, *rates))))
    write_whole(path, file.getvalue())
