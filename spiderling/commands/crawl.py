"""``scrapy crawl``: as in Scrapy, but a crawl that could not begin or go on exits with 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.exceptions import UsageError

from spiderling.scheduler import FAILED_STAT

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCrawl):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("name one spider: scrapy crawl spiderling -a lang=cs")
        process = self.crawler_process
        assert process is not None
        crawler = process.create_crawler(args[0])
        process.crawl(crawler, **opts.spargs)
        process.start()
        failed = crawler.stats.get_value(FAILED_STAT) if crawler._stats else None
        if process.bootstrap_failed or failed:
            self.exitcode = 1
