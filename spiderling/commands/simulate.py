"""``scrapy simulate STRATEGY...``: crawls of the same webs without a network, by several strategies."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from spiderling.base.atomic_files import write_whole
from spiderling.base.errors import BadInput
from spiderling.base.extras import require
from spiderling.base.options import Options
from spiderling.base.printing import markdown_table
from spiderling.engine.command import SpiderlingCommand, named_values, option
from spiderling.engine.exit_codes import INTERRUPTED
from spiderling.simulation.comparison import (
    CLAIRVOYANT,
    KNOWN_HOSTS,
    PERFECT,
    SHARES,
    Run,
    Summary,
    Task,
    Terms,
    compare,
    summaries,
)
from spiderling.simulation.generated import RECIPES
from spiderling.simulation.measures import coverage, word_coverage

DEFAULT = ("bfs", "yield", "spiderling", PERFECT, KNOWN_HOSTS)
_HEAD = (
    "web",
    "strategy",
    "pages",
    "hours",
    "pages/s",
    "harvest",
    "coverage",
    "of words",
    "yield rate",
    "words/MB at 25 %",
    *(f"{100 * share:.0f} %" for share in SHARES[1:]),
    "retired",
)
_CSV_HEAD = (
    "web",
    "strategy",
    "seed",
    "hours",
    "pages",
    "relevant",
    "documents",
    "words",
    "downloaded_bytes",
    "kept_bytes",
    "waiting",
    "retired",
    "harvest_rate",
    "coverage",
    "word_coverage",
    "yield_rate",
    "words_per_mb",
    "pages_per_s",
)


class Command(SpiderlingCommand):
    """Thin shell around ``simulation/comparison.py``."""

    arguments = "[STRATEGY ...] [--web NAME_OR_DIRECTORY]"
    summary = "Try crawl strategies on generated or recorded webs, without a network"
    description = (
        "Let the frontier of a real crawl run on a virtual clock against a generated web "
        f"({', '.join(RECIPES)}), a recorded graph, or what an earlier crawl with SPIDERLING_LINKS=on met, once "
        "for each strategy and seed, and print what came of it (docs/simulator.md). STRATEGY is what -a strategy= "
        f"takes, or one that knows the web: {', '.join(CLAIRVOYANT)}; default: {' '.join(DEFAULT)}. Options of "
        "the crawl are given by -s. "
        "Example: scrapy simulate bfs lswc:s=3,t=5 spiderling --web thai --seeds 3 --html thai.html"
    )

    options = (
        option("-a", dest="spargs", action="append", default=[], metavar="NAME=VALUE", help="lang=CODE, for graphs"),
        option("--web", dest="webs", action="append", metavar="WEB", help="may be given several times (default thai)"),
        option("--pages", type=float, default=1e5, metavar="N", help="pages of a generated web (default 1e5)"),
        option("--links", type=float, default=10, metavar="N", help="links on each, in the mean (default 10)"),
        option("--seeds", type=int, default=1, metavar="N", help="webs, or starts, of each kind (default 1)"),
        option("--max-pages", type=float, default=float("inf"), metavar="N", help="a crawl ends after so many pages"),
        option(
            "--hours", type=float, default=float("inf"), metavar="N", help="a crawl ends after so many simulated hours"
        ),
        option("--concurrency", type=int, default=1000, metavar="N", help="requests open at once (default 1000)"),
        option("--rate", type=float, default=20, metavar="N", help="most requests a second; 0: no limit (default 20)"),
        option(
            "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="crawls at once (default: all cores)"
        ),
        option("--csv", metavar="FILE", help="write all curves as a table"),
        option("--html", metavar="FILE", help="write a page with tables and curves, which needs no network"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        terms = _terms(opts)
        tasks = _tasks(args, opts)
        outputs = _outputs(opts)
        runs: dict[Task, Run] = {}
        try:
            for run in _simulated(tasks, terms, opts.jobs):
                runs[run.task] = run
                for path, write in outputs:  # after each, so that what is done survives whatever comes
                    write(path, [runs[task] for task in tasks if task in runs], terms)
        except KeyboardInterrupt:
            self.fail(f"interrupted; {len(runs)} of {len(tasks)} crawls are done.", INTERRUPTED)
        yield from strategy_table(summaries(runs[task] for task in tasks if task in runs))
        for path, _ in outputs if runs else ():
            print(f"Written: {path}", file=sys.stderr)


def _tasks(strategies: Sequence[str], opts: argparse.Namespace) -> list[Task]:
    if opts.seeds < 1 or opts.jobs < 1:
        raise BadInput(f"--seeds and --jobs are 1 or more; not {opts.seeds}, {opts.jobs}.")
    return [
        Task(web, strategy, seed)
        for web in opts.webs or ["thai"]
        for strategy in strategies or DEFAULT
        for seed in range(1, opts.seeds + 1)
    ]


def _terms(opts: argparse.Namespace) -> Terms:
    arguments = named_values(opts.spargs)
    settings = named_values(opts.set)
    given = Options.from_settings(settings)
    for name in ("pages", "max_pages", "hours", "concurrency"):
        if not getattr(opts, name) > 0:  # not a number is not, either
            raise BadInput(f"--{name.replace('_', '-')} is above 0; not {getattr(opts, name):g}.")
    if not opts.rate >= 0 or opts.pages == float("inf"):
        raise BadInput(f"--pages is finite and --rate is 0 or more; not {opts.pages:,g}, {opts.rate:g}.")
    names = [name.removeprefix("SPIDERLING_").lower() for name in settings if name.startswith("SPIDERLING_")]
    return Terms(
        int(opts.pages),
        opts.links,
        arguments.get("lang", "cs"),
        opts.max_pages,
        opts.hours,
        concurrency=opts.concurrency,
        pages_per_s=opts.rate,
        options={name: getattr(given, name) for name in names},
    )


def _outputs(opts: argparse.Namespace) -> Sequence[tuple[Path, Callable[[Path, Sequence[Run], Terms], None]]]:
    """The files that are wanted, and what writes each; raises BadInput, before anything takes its time."""
    found = [(Path(name), write) for name, write in ((opts.csv, _write_csv), (opts.html, _write_page)) if name]
    for path, write in found:
        if write is _write_page:
            require("report")
        if not path.absolute().parent.is_dir():
            raise BadInput(f"cannot write {path}: there is no directory {path.parent}; name another file.")
    return found


def _simulated(tasks: list[Task], terms: Terms, jobs: int) -> Iterator[Run]:
    """The runs as they end, with a progress bar where somebody looks."""
    from tqdm import tqdm

    with closing(tqdm(unit=" pages", disable=None, file=sys.stderr, smoothing=0.1)) as bar:
        for number, run in enumerate(compare(tasks, terms, min(jobs, len(tasks)), bar.update), 1):
            bar.set_description(f"{number} of {len(tasks)} crawls")
            yield run


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


def _write_csv(path: Path, runs: Sequence[Run], terms: Terms) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(_CSV_HEAD)
    for run in runs:
        for at in run.samples:
            measures = at.harvest_rate, coverage(at, run.truth), word_coverage(at, run.truth)
            rates = at.yield_rate, at.words_per_mb, at.pages_per_s
            writer.writerow((*run.task, at.hours, *at[1:], *(f"{value:.6g}" for value in (*measures, *rates))))
    write_whole(path, file.getvalue())


def _write_page(path: Path, runs: Sequence[Run], terms: Terms) -> None:
    from spiderling.reporting.comparison import comparison_page  # heavy

    rate = f"at most {terms.pages_per_s:g} requests a second" if terms.pages_per_s else "no limit but politeness"
    generated = any(run.task.web in RECIPES for run in runs)
    webs = f"Generated webs of {terms.pages:,} pages" if generated else "Recorded webs"
    given = "".join(f", {name} = {value}" for name, value in terms.options.items())
    write_whole(path, comparison_page(runs, f"{webs}; {rate}{given}."))
