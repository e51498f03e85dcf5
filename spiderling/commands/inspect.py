"""``scrapy inspect JOBDIR [host NAME | url URL | gone]``, with options: the state of a crawl."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from spiderling.base.option_values import PREFIX
from spiderling.cli.command import SpiderlingCommand, option

if TYPE_CHECKING:
    from spiderling.jobdir.inspection import AnyCrawl

_USAGE = "say scrapy inspect JOBDIR, or that with host NAME, with url URL, or with gone behind it"


def _mistake(args: list[str], opts: argparse.Namespace) -> str:
    """What does not go together; '' if all does."""
    if not (len(args) == 1 or args[1:] == ["gone"] or (len(args) == 3 and args[1] in ("host", "url"))):
        return _USAGE
    asked = [name for name in ("rebuild", "check", "coverage", "json") if getattr(opts, name)]
    if asked and len(args) > 1:
        return f"--{asked[0]} tells of the whole crawl: say scrapy inspect JOBDIR --{asked[0]}"
    mistakes = {
        "--missing goes with --coverage LIST,...": opts.missing and not opts.coverage,
        f"--{' and --'.join(asked)} are several commands; give one after the other": len(asked) > 1,
        "--urls goes with host NAME": opts.urls and args[1:2] != ["host"],
    }
    return next((said for said, is_made in mistakes.items() if is_made), "")


class Command(SpiderlingCommand):
    """Shows what ``Inspection`` finds; ``jobdir/as_text.py`` makes text of it."""

    arguments = "JOBDIR [host NAME | url URL | gone]"
    summary = "Show the state of a crawl, of one host, or why a URL is in the corpus or not"
    description = (
        "Show what a crawl's directory holds, of a crawl of shards the sums; it may be running, paused or killed, and "
        "nothing is changed. "
        "'host NAME' shows one host, with --urls also its queue; 'url URL' tells where the URL was found, and "
        "whether and why it waits, was kept or was not; 'gone' lists kept pages that are gone or have opted out since "
        "(docs/recrawl.md). --json tells a program the whole "
        "(docs/status.md). --check proves that the books balance, that every segment can be read, and that corpus and "
        "state agree. --coverage LIST estimates how much of the web's text it has, by pages that were found in other "
        "ways (docs/coverage.md). --rebuild makes a lost or damaged state anew from corpus/ "
        "(docs/durability.md). Example: scrapy inspect crawls/cs url https://a.example/"
    )

    options = (
        option("--urls", action="store_true", help="with a host: its waiting URLs, best first"),
        option("--json", action="store_true", help="the state of the crawl for programs (docs/status.md)"),
        option("--coverage", metavar="LIST,...", help="files of pages, a URL a line, by which coverage is estimated"),
        option("--missing", action="store_true", help="with --coverage: the listed pages that the crawl has not"),
        option("--check", action="store_true", help="look for damage; exit with 1 if there is any"),
        option("--rebuild", action="store_true", help="make the state of a crawl anew from its output"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if mistake := _mistake(args, opts):
            raise UsageError(mistake, print_help=False)
        # what reads a crawl takes half a second to import, and Scrapy imports the commands to list them
        from spiderling.jobdir.as_text import no_longer_there, of_host, of_url, overview
        from spiderling.jobdir.inspection import reading
        from spiderling.jobdir.status import status_of

        directory = Path(args[0])
        if opts.rebuild:
            yield from self._rebuild(directory)
        elif opts.check:
            yield from self._check(directory)
        elif opts.coverage:
            yield from self._coverage(directory, opts.coverage, opts.missing)
        else:
            with reading(directory) as crawl:
                if len(args) == 1:
                    status = status_of(crawl)
                    yield from [status.to_json()] if opts.json else overview(status)
                elif args[1] == "gone":
                    self._tell_missing(crawl)
                    yield from no_longer_there(crawl)
                elif args[1] == "host":
                    yield from of_host(crawl, args[2], opts.urls)
                else:
                    yield from of_url(crawl, args[2])

    def _rebuild(self, directory: Path) -> Iterator[str]:
        from spiderling.jobdir.damage import rebuild

        settings = self.given_settings
        given = {key: settings[key] for key in settings if str(key).startswith(PREFIX)}
        return rebuild(directory, given, time.time())

    def _coverage(self, directory: Path, paths: str, missing: bool) -> Iterator[str]:
        from spiderling.jobdir.coverage import estimate, in_words, look_up, read_lists
        from spiderling.jobdir.inspection import reading

        lists = read_lists(paths)
        with reading(directory) as crawl:
            found = [look_up(crawl, pages) for pages in lists]
            self._tell_missing(crawl)
        if missing:
            yield from dict.fromkeys(url for _, urls in found for url in urls)
        else:
            coverage = estimate([listed for listed, _ in found])
            if said := in_words(coverage.shares()):
                yield f"The crawl has {said}. The truth is within the brackets nine times in ten."
            if coverage.why:
                yield f"Not estimated: {coverage.why}."

    def _tell_missing(self, crawl: AnyCrawl) -> None:
        if crawl.note:
            self.warn(f"{crawl.note}.")

    def _check(self, directory: Path) -> Iterator[str]:
        from spiderling.jobdir.damage import problems
        from spiderling.jobdir.inspection import reading

        found: list[str] = []
        with reading(directory) as crawl:
            for part in crawl.parts:
                shard = "" if part.directory == directory else f"{part.directory.name}: "
                found += [f"{shard}{line}" for line in problems(part)]
        self.exitcode = 1 if found else 0
        yield from found or ["The crawl is whole."]
        if crawl.note:
            yield f"But {crawl.note}."
