"""``scrapy report JOBDIR [-o FILE]``: a crawl as one HTML page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from spiderling.base.files import write_whole
from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    arguments = "JOBDIR [-o FILE]"
    number = 1
    summary = "Show how a crawl went, and what to do next, as one HTML page"
    description = (
        "Write JOBDIR/report.html, the live page saved as one file: yield and speed over time, what hosts cost and "
        "gave, how URLs ended, what other thresholds would have meant, and what to do next. The crawl may be running, "
        "paused or killed, and nothing in it is changed; the page needs no network. Example: scrapy report crawls/cs "
        "(docs/report.md explains what is on it)"
    )

    options = (option("-o", dest="out", metavar="FILE", help="file to write instead of JOBDIR/report.html"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        from spiderling.jobdir.inspection import reading
        from spiderling.reporting.page import page_file

        out = Path(opts.out) if opts.out else Path(args[0], "report.html")
        with reading(Path(args[0])) as crawl:
            page = page_file(crawl)
        write_whole(out, page)
        yield f"The report is in {out}"
