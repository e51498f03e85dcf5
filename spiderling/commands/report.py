"""``scrapy report JOBDIR [-o FILE]``: a crawl as one HTML page."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from spiderling.base.atomic_files import write_whole
from spiderling.base.errors import JobdirError, SpiderlingError
from spiderling.jobdir.inspection import Inspection
from spiderling.reporting.material import material_of
from spiderling.reporting.report import report

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Thin shell around ``spiderling.reporting``."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    def syntax(self) -> str:
        return "JOBDIR [-o FILE]"

    def short_desc(self) -> str:
        return "Show how a crawl went, and what to do next, as one HTML page"

    def long_desc(self) -> str:
        return (
            "Write JOBDIR/report.html: what hosts cost and gave, what other thresholds would have meant, yield and "
            "speed over time, words by language, how URLs ended, and what to do next. The crawl may be running, paused "
            "or killed, and nothing in it is changed; the page needs no network. Example: scrapy report crawls/cs "
            "(docs/report.md explains what is on it)"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-o", dest="out", metavar="FILE", help="file to write instead of JOBDIR/report.html")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("say which crawl: scrapy report JOBDIR", print_help=False)
        try:
            out = Path(opts.out) if opts.out else Path(args[0], "report.html")
            write_whole(out, _report(Path(args[0])))
            print(f"The report is in {out}")
        except SpiderlingError as error:
            print(f"scrapy report: {error}", file=sys.stderr)
            self.exitcode = 1


def _report(directory: Path) -> str:
    try:
        with closing(Inspection(directory)) as crawl:
            material = material_of(crawl)
    except sqlite3.Error as error:
        raise JobdirError(f"the state of {directory} cannot be read: {error}.") from error
    return report(material)
