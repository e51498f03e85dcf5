"""A spider that a command runs, waits for and then asks for its results."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from spiderling.base.errors import SpiderlingError
from spiderling.crawl.crawl import Crawl
from spiderling.engine import offline
from spiderling.engine.component import crawl_of, error_of, has_crawl

_OFFLINE_WAIT_S = 120.0
"""SPIDERLING_OFFLINE_WAIT_S of a command, unless it is given; chosen: a person waits, and the same command goes on."""
_FOR_LONG_CRAWLS = ("SPIDERLING_PAGE", "SPIDERLING_ALERT_URL", "SPIDERLING_ALERT_COMMAND")
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
        logging.getLogger(offline.__name__).addHandler(logging.StreamHandler())
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
