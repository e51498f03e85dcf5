"""What the commands that run a spider share: formats of ``-o``, quiet logs, and how a failed crawl is told."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import Spider
from scrapy.addons import AddonManager
from scrapy.commands import BaseRunSpiderCommand
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from spiderling.base import interrupts
from spiderling.base.errors import BadInput, JobdirError, SpiderlingError
from spiderling.base.extras import missing
from spiderling.cli.command import OwnCommand
from spiderling.engine.component import crawl_of, error_of, has_crawl
from spiderling.engine.scheduler import FAILED_STAT, NO_NETWORK, NOT_OPENED, OFFLINE, Opening

if TYPE_CHECKING:  # what is typed wrong is refused before what a crawl needs is imported
    from spiderling.crawl.crawl import Crawl

logger = logging.getLogger(__name__)

_TALKATIVE = ("utils.log", "addons", "middleware", "crawler", "core.engine", "extensions.telnet")
"""Loggers of Scrapy that list its parts at the level INFO."""


class CrawlCommand(OwnCommand, BaseRunSpiderCommand):
    """Exits with 1 if the crawl could not begin or go on, and with 3 without a network.  Scrapy's class follows it."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        interrupts.end_at_once(NOT_OPENED)
        assert self.settings is not None
        AddonManager.load_pre_crawler_settings(self.settings)  # -o is judged by the formats of add-ons too
        super().process_options(args, opts)
        if any(feed.get("format") == "parquet" for feed in self.settings["FEEDS"].values()) and missing("parquet"):
            raise UsageError(f"{missing('parquet')}.", print_help=False)
        if not self.settings.getpriority("LOG_LEVEL") or self.settings["LOG_LEVEL"] != "DEBUG":
            _quieten()

    def check_arguments(self, crawler: Crawler, arguments: Mapping[str, str]) -> None:
        """Raise BadInput for arguments of the spider that cannot be, before an engine is made."""

    def has_run_shards(self, args: list[str]) -> bool:
        """Whether other processes were the shards of the crawl, and have ended; raises BadInput or JobdirError."""
        return False

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.spider_arguments = opts.spargs
        try:
            if self.has_run_shards(args):
                return
            if isinstance(self.crawler_process, AsyncCrawlerProcess):
                # the first thing that the event loop does
                asyncio.get_event_loop().call_soon(lambda: Opening(self._made))
            super().run(args, opts)  # type: ignore[safe-super]
        except (BadInput, JobdirError) as error:
            logger.error("The crawl stops: %s", error)
            self.exitcode = 1
            return
        finally:
            interrupts.ignore()
        engine = self._made._engine
        if engine is not None and engine.spider is not None and not self.exitcode:
            logger.warning("Stopped at once by a second signal; the same command goes on and fetches what is lost")
        failed = self._made.stats.get_value(FAILED_STAT) if self._made._stats else None
        if failed:
            self.exitcode = NO_NETWORK if failed == OFFLINE else 1

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self._made = super()._create_crawler(spidercls)
        self.check_arguments(self._made, self.spider_arguments)
        return self._made


def _quieten() -> None:
    """Keep Scrapy's list of its parts from hiding the few lines that a person reads."""
    for name in _TALKATIVE:
        logging.getLogger(f"scrapy.{name}").addFilter(lambda record: record.levelno > logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.INFO)  # the add-on's LOG_LEVEL comes too late for its first line


_OFFLINE_WAIT_S = 120.0
"""SPIDERLING_OFFLINE_WAIT_S of a command, unless it is given; chosen: a person waits, and the same command goes on."""
_FOR_LONG_CRAWLS = ("SPIDERLING_PAGE", "SPIDERLING_ALERT_COMMAND")
_SpiderT = TypeVar("_SpiderT", bound="AskedSpider")


class AskedSpider(Spider):
    """A spider that a command runs and then asks for its results."""

    failure: SpiderlingError | None = None
    """Why the crawl could not begin or go on, or gave nothing."""

    def closed(self, reason: str) -> None:
        """Note the results while the crawl is still open."""
        self.failure = error_of(self.crawler)
        if has_crawl(self.crawler):
            self.note_crawl(crawl_of(self.crawler), reason)

    def note_crawl(self, crawl: Crawl, reason: str) -> None:
        """Note the results of *crawl*, which ends for *reason*; none here."""


def run_spider(spider_class: type[_SpiderT], settings: Settings, **arguments: Any) -> _SpiderT:
    """Crawl with a spider of *spider_class* until it ends; raises SpiderlingError if it fails or never begins.

    Somebody waits for it: where nothing answers, that is told on standard error, and the end comes soon.
    """
    if "SpiderlingAddon" not in str(list(settings["ADDONS"])):  # outside of a project, or in one of something else
        settings["ADDONS"].set("spiderling.addon.SpiderlingAddon", 300, priority="cmdline")
    if not settings.getpriority("SPIDERLING_OFFLINE_WAIT_S"):
        settings.set("SPIDERLING_OFFLINE_WAIT_S", _OFFLINE_WAIT_S, priority="cmdline")
    # the live page and alerts are about crawls that nobody waits for
    settings.setdict(dict.fromkeys(_FOR_LONG_CRAWLS), priority="cmdline")
    if not settings.getbool("LOG_ENABLED"):
        # by its name, since the module takes long to import
        logging.getLogger("spiderling.engine.offline").addHandler(logging.StreamHandler())
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(spider_class)
    process.crawl(crawler, **arguments)
    process.start()
    spider = crawler.spider
    if isinstance(spider, spider_class) and spider.failure is not None:
        raise spider.failure
    if process.bootstrap_failed or not isinstance(spider, spider_class):
        raise SpiderlingError("the command could not begin; -s LOG_ENABLED=1 shows why.")
    return spider
