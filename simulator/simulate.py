"""``scrapy simulate STRATEGY...``: crawls of the same webs without a network, by several strategies.

Scrapy finds it where this distribution is installed; in a checkout ``python -m simulator`` runs it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.base.terminal import progress_bar
from spiderling.cli.command import SpiderlingCommand, named_values, option, program
from spiderling.engine.scheduler import INTERRUPTED

if TYPE_CHECKING:
    from simulator.comparison import Run, Task, Terms

MODULE = "python -m simulator"
"""The program's name where ``simulator/__main__.py`` runs the command."""


def called() -> str:
    """What is typed before the strategies."""
    return MODULE if sys.argv[0] == MODULE else f"{program()} simulate"


class Command(SpiderlingCommand):
    """Thin shell around ``comparison.py``."""

    arguments = "[STRATEGY ...] [--web NAME_OR_DIRECTORY]"
    summary = "Try crawl strategies on generated or recorded webs, without a network"
    options = (
        option(
            "-a", dest="spargs", action="append", default=[], metavar="NAME=VALUE", help="lang=CODE, for recorded webs"
        ),
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
    )

    def long_desc(self) -> str:
        # what simulates takes half a second to import, and Scrapy imports the commands to list them
        from simulator.comparison import CLAIRVOYANT, DEFAULT
        from simulator.generated import RECIPES
        from simulator.shapes import SHAPES

        return (
            "Let the frontier of a real crawl run on a virtual clock against a generated web "
            f"({', '.join([*RECIPES, *SHAPES])}), or what an earlier crawl with SPIDERLING_LINKS=on met, once "
            "for each strategy and seed, and print what came of it (docs/simulator.md). STRATEGY is what -a strategy= "
            f"takes, or one that knows the web: {', '.join(CLAIRVOYANT)}; default: {' '.join(DEFAULT)}. Options of "
            "the crawl are given by -s. "
            f"Example: {called()} bfs spiderling:thrift=3 spiderling --web thai --seeds 3 --csv thai.csv"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.usage = f"{called()} {self.arguments}"

    def warn(self, sentence: str) -> None:
        print(f"{called()}: {sentence}", file=sys.stderr)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        from simulator.comparison import strategy_table, summaries, write_csv

        terms = _terms(opts)
        tasks = _tasks(args, opts)
        curves = Path(opts.csv) if opts.csv else None
        if curves is not None and not curves.absolute().parent.is_dir():
            raise BadInput(f"cannot write {curves}: there is no directory {curves.parent}; name another file.")
        runs: dict[Task, Run] = {}
        try:
            for run in _simulated(tasks, terms, opts.jobs):
                runs[run.task] = run
                if curves is not None:  # after each, so that what is done survives whatever comes
                    write_csv(curves, [runs[task] for task in tasks if task in runs])
        except KeyboardInterrupt:
            self.fail(f"interrupted; {len(runs)} of {len(tasks)} crawls are done.", INTERRUPTED)
        yield from strategy_table(summaries(runs[task] for task in tasks if task in runs))
        if curves is not None and runs:
            print(f"Written: {curves}", file=sys.stderr)


def _tasks(strategies: Sequence[str], opts: argparse.Namespace) -> list[Task]:
    if opts.seeds < 1 or opts.jobs < 1:
        raise BadInput(f"--seeds and --jobs are 1 or more; not {opts.seeds}, {opts.jobs}.")
    from simulator.comparison import DEFAULT, Task

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
    from simulator.comparison import Terms

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


def _simulated(tasks: list[Task], terms: Terms, jobs: int) -> Iterator[Run]:
    """The runs as they end."""
    from simulator.comparison import compare

    with progress_bar("pages") as bar:
        bar.set_description(f"0 of {len(tasks)} crawls")
        for number, run in enumerate(compare(tasks, terms, min(jobs, len(tasks)), bar.update), 1):
            bar.set_description(f"{number} of {len(tasks)} crawls")
            yield run
