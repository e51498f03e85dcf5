"""Stops the crawl, to be gone on with, when a budget is spent (crawl/budgets.py)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy import signals

from spiderling.crawl.budgets import Budgets
from spiderling.engine.lookup import crawl_of
from spiderling.engine.scheduler import Scheduler

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from spiderling.crawl.crawl import Crawl

_TICK_S = 1.0


class Budget:
    """Counts the running time, and looks at the budgets every second and with every response.

    What is in transit at that moment may still come, so a little more than the budget is kept.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._task: asyncio.Task[None] | None = None
        self._budgets: Budgets | None = None
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)
        crawler.signals.connect(self._look, signals.item_scraped)
        crawler.signals.connect(self._look, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Budget:
        return cls(crawler)

    def _opened(self, spider: Spider) -> None:
        crawl = crawl_of(self._crawler)
        if crawl is not None:
            self._budgets = Budgets(crawl.options, crawl.marginal_marks)
            self._task = crawl.errors.watched(self._tick(crawl), "the budgets' clock")
            self._look()

    def _closed(self, spider: Spider) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _tick(self, crawl: Crawl) -> None:
        while True:
            began = crawl.clock.now()
            await asyncio.sleep(_TICK_S)
            crawl.frontier.count("time_s", round(crawl.clock.now() - began))
            self._look()

    def _look(self) -> None:
        crawl, scheduler = crawl_of(self._crawler), self._crawler.engine.scheduler
        if crawl is None or self._budgets is None or crawl.stopping or not isinstance(scheduler, Scheduler):
            return
        marks = list(self._budgets.marks)
        spent = self._budgets.spent(crawl.frontier.totals)
        if marks != list(self._budgets.marks):
            crawl.checkpoint.note("marginal", list(self._budgets.marks))
        if spent is not None:
            crawl.event(spent.message)
            scheduler.stop()
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=spent.reason))
