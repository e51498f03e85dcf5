"""``scrapy crawl``: as in Scrapy, but a crawl that could not begin or go on exits with 1, without a network with 3."""

from __future__ import annotations

import argparse
import logging

from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.exceptions import UsageError
from scrapy.spiderloader import get_spider_loader

from spiderling.base.printing import nearest
from spiderling.engine.command import NO_NETWORK
from spiderling.engine.scheduler import FAILED_STAT, OFFLINE

_TALKATIVE = ("utils.log", "addons", "middleware", "crawler", "core.engine", "extensions.telnet")
"""Loggers of Scrapy that list its parts at the level INFO."""


class Command(ScrapyCrawl):
    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        if len(args) != 1:
            raise UsageError("name one spider: scrapy crawl spiderling -a lang=cs")
        names = get_spider_loader(self.settings).list()
        if args[0] not in names:
            near = nearest(args[0], names) or names
            raise UsageError(f"there is no spider {args[0]!r}; did you mean {' or '.join(near)}?", print_help=False)
        if not self.settings.getpriority("LOG_LEVEL") or self.settings["LOG_LEVEL"] != "DEBUG":
            _quieten()

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        process = self.crawler_process
        assert process is not None
        crawler = self._create_crawler(args[0])
        process.crawl(crawler, **opts.spargs)
        process.start()
        failed = crawler.stats.get_value(FAILED_STAT) if crawler._stats else None
        if process.bootstrap_failed or failed:
            self.exitcode = NO_NETWORK if failed == OFFLINE else 1


def _quieten() -> None:
    """Keep Scrapy's list of its parts from hiding the few lines that a person reads."""
    for name in _TALKATIVE:
        logging.getLogger(f"scrapy.{name}").addFilter(lambda record: record.levelno > logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.INFO)  # the add-on's LOG_LEVEL comes too late for its first line
