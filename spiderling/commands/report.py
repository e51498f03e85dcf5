"""``scrapy report JOBDIR [-o FILE]``: a crawl as one HTML page."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from scrapy.exceptions import UsageError

from spiderling.base.errors import JobdirError
from spiderling.base.files import write_whole
from spiderling.base.machine import require
from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    """Thin shell around ``spiderling.reporting``."""

    arguments = "JOBDIR [-o FILE]"
    summary = "Show how a crawl went, and what to do next, as one HTML page"
    description = (
        "Write JOBDIR/report.html: what hosts cost and gave, what other thresholds would have meant, yield and "
        "speed over time, words by language, how URLs ended, and what to do next. The crawl may be running, paused "
        "or killed, and nothing in it is changed; the page needs no network. Example: scrapy report crawls/cs "
        "(docs/report.md explains what is on it)"
    )

    options = (option("-o", dest="out", metavar="FILE", help="file to write instead of JOBDIR/report.html"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) != 1:
            raise UsageError("say which crawl: scrapy report JOBDIR", print_help=False)
        require("report")
        from spiderling.jobdir.shards import opened
        from spiderling.reporting.material import material_of
        from spiderling.reporting.report import report

        out = Path(opts.out) if opts.out else Path(args[0], "report.html")
        try:
            with closing(opened(Path(args[0]))) as crawl:
                material = material_of(crawl)
        except sqlite3.Error as error:
            raise JobdirError(f"the state of {args[0]} cannot be read: {error}.") from error
        write_whole(out, report(material))
        yield f"The report is in {out}"
