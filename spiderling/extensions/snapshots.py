"""Writes a snapshot of the near-duplicate filter from time to time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy import signals

from spiderling.engine.lookup import crawl_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from spiderling.crawl.crawl import Crawl


class Snapshots:
    """Bounds what has to be read again after a kill; the last snapshot is written as the crawl closes."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._task: asyncio.Task[None] | None = None
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Snapshots:
        return cls(crawler)

    def _opened(self, spider: Spider) -> None:
        crawl = crawl_of(self._crawler)
        if crawl is not None and crawl.near is not None:
            self._task = crawl.errors.watched(self._repeat(crawl), "the snapshots of the near-duplicate filter")

    def _closed(self, spider: Spider) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _repeat(self, crawl: Crawl) -> None:
        while True:
            await asyncio.sleep(crawl.options.dedup_snapshot_s)
            await crawl.snapshot()
