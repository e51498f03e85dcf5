"""``scrapy extract FILE...|-``: the text of pages and documents, without a crawl."""

from __future__ import annotations

import argparse
import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from spiderling.base.errors import SpiderlingError
from spiderling.base.files import saving
from spiderling.base.machine import usable_cores
from spiderling.base.option_values import COMMENT, parse_paragraph_kinds
from spiderling.base.options import Options
from spiderling.base.terminal import with_progress
from spiderling.cli.command import SpiderlingCommand, option, read_input

if TYPE_CHECKING:
    from spiderling.text import Page
    from spiderling.workers.pool import WorkerPool
    from spiderling.workers.process import WorkerConfig

_AHEAD = 3  # files for each process that are read ahead; chosen: no process waits, and few files are in memory


class Command(SpiderlingCommand):
    arguments = "FILE...|- [--target-language cs] [--output-format json]"
    summary = "Write the text of pages and documents, without a crawl"
    description = (
        "Write the text of HTML, PDF, Word, OpenDocument and EPUB files (- is standard input), or what of it is in "
        "some languages, by the text chain of a crawl and on all cores. Files that cannot be read are named, the "
        "others are done, and the exit code is 1. Example: scrapy extract page.html --target-language cs"
    )

    options = (
        option("--target-language", "--lang", dest="lang", default="", metavar="CODES", help="languages to keep (all)"),
        option("-o", "--output-dir", dest="out", metavar="DIR", help="write a file for each under DIR"),
        option("--url", default="", help="address of the page; with one file"),
        option("--no-comments", action="store_true", help="leave the comments of readers out"),
        option("--parallel", type=int, default=0, metavar="N", help="processes (one for each core)"),
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        from spiderling.library import FORMATS

        parser.add_argument(
            "--output-format", "--format", dest="format", choices=FORMATS, default="txt", help="form (txt)"
        )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if not args:
            raise UsageError("name files, or - for standard input: scrapy extract page.html")
        if len(args) > 1 and (opts.url or (opts.format == "xmltei" and not opts.out)):
            raise UsageError("with several files there is no --url, and xmltei needs --output-dir", print_help=False)
        from spiderling.export.formats import ENDINGS
        from spiderling.library import FORMATS, config_of, document_of

        ending = next(ending for ending, name in ENDINGS.items() if name == FORMATS[opts.format])
        kinds = parse_paragraph_kinds(Options().paragraph_kinds) - ({COMMENT} if opts.no_comments else set())
        places = {} if not opts.out else {name: _place(Path(opts.out), name, ending) for name in args}
        if len({*places.values()}) < len(places):
            raise UsageError(f"of two files the texts would have one name in {opts.out}; give them one by one")
        config = config_of(opts.lang, ",".join(sorted(kinds)))
        processes = min(opts.parallel if opts.parallel > 0 else usable_cores(), len(args))
        for name, page in with_progress(_pages(args, config, processes), "files", len(args)):
            if isinstance(page, SpiderlingError):
                self.fail(str(page), 1)
                continue
            text = document_of(page, opts.url, config.options.accepted).to(opts.format)
            if opts.out:
                place = places[name]
                with saving(place):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(text, encoding="utf-8")
            else:
                yield from text.removesuffix("\n").split("\n")


def _place(directory: Path, name: str, ending: str) -> Path:
    """Where the text of the file *name* is written: files of the same name in different directories are kept apart."""
    parts = [part for part in Path("stdin" if name == "-" else name).parts if part not in ("/", "..")] or [""]
    return directory.joinpath(*parts).with_name(f"{parts[-1]}{ending}")


def _pages(names: Sequence[str], config: WorkerConfig, processes: int) -> Iterator[tuple[str, Page | SpiderlingError]]:
    """Each of the files *names* with its Page, or with what went wrong, in their order."""
    from spiderling.workers.pool import WorkerPool
    from spiderling.workers.process import PAGE_TIMEOUT_S

    pool = WorkerPool(processes, config, PAGE_TIMEOUT_S)
    with asyncio.Runner() as runner:
        try:
            runner.run(pool.start())
            tasks = ((name, runner.get_loop().create_task(_page(name, pool))) for name in names)
            going = deque(islice(tasks, _AHEAD * processes))
            while going:
                name, task = going.popleft()
                yield name, runner.run(asyncio.wait_for(task, None))  # the runner takes no task, but a coroutine
                going.extend(islice(tasks, 1))
        finally:
            runner.run(pool.stop())


async def _page(name: str, pool: WorkerPool) -> Page | SpiderlingError:
    from spiderling.library import NO_URL
    from spiderling.workers.process import Task

    try:
        return await pool.process(Task(read_input(name, "or - for standard input"), NO_URL))
    except SpiderlingError as error:
        return error
