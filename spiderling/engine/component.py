"""Base classes of our Scrapy components: how they find the crawl, and what they do without one.

If no crawl could be opened (bad input, or a command of Scrapy's own that names no language), the spider is closed at
once.  No request or item is made, extensions stay off, and only what runs at the opening asks `has_crawl`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.crawler import Crawler

from spiderling.base.errors import BadInput
from spiderling.engine.scheduler import Scheduler

if TYPE_CHECKING:
    from spiderling.crawl.crawl import Crawl
    from spiderling.engine.dispatcher import Dispatcher


def crawl_of(crawler: Crawler) -> Crawl:
    """The open crawl; raises the SpiderlingError that says why there is none."""
    return dispatcher_of(crawler).crawl


def dispatcher_of(crawler: Crawler) -> Dispatcher:
    scheduler = scheduler_of(crawler)
    if scheduler.dispatcher is None:
        raise scheduler.error or BadInput("no crawl is open yet: ask for it when the spider is opened, or later.")
    return scheduler.dispatcher


def scheduler_of(crawler: Crawler) -> Scheduler:
    """Its ``error`` says why the crawl could not be opened or had to stop; it has a ``dispatcher`` if it was opened."""
    scheduler = crawler.engine.scheduler
    if not isinstance(scheduler, Scheduler):
        raise BadInput(f"SCHEDULER is {type(scheduler).__name__}; the components of a crawl need {Scheduler.__name__}.")
    return scheduler


class Component:
    """A middleware, pipeline or extension of one crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def has_crawl(self) -> bool:
        """Whether a crawl could be opened."""
        return scheduler_of(self._crawler).dispatcher is not None

    @cached_property
    def crawl(self) -> Crawl:
        """The open crawl."""
        return self.dispatcher.crawl

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """What hands out the requests of the open crawl."""
        return dispatcher_of(self._crawler)


class Extension(Component):
    """An extension that works while the spider is open; without a crawl neither `opened` nor `closed` is called."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._tasks: list[asyncio.Task[None]] = []
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    def opened(self) -> Awaitable[None] | None:
        """Called when the spider is open; the first request waits for what it returns.  An error stops the crawl."""
        raise NotImplementedError

    def closed(self, reason: str) -> Awaitable[None] | None:
        """Called when the spider is closed for *reason* and everything is durable; Scrapy waits for what it returns."""

    def repeat(self, action: Callable[[], Awaitable[None] | None], every_s: float, what: str) -> None:
        """Call *action* every *every_s* seconds until the spider is closed, first after that time.

        If it fails, the crawl stops and names *what* failed.
        """
        self._tasks.append(self.crawl.errors.watch_task(_repeat(action, every_s), what))

    def _spider_opened(self) -> Awaitable[None] | None:
        if not self.has_crawl:
            return None
        try:
            answer = self.opened()
        except Exception as error:
            self._stop(error)
            return None
        return None if answer is None else self._wait_for(answer)

    async def _wait_for(self, answer: Awaitable[None]) -> None:
        try:
            await answer
        except Exception as error:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        """Stop the crawl: Scrapy would log the error and go on without what the extension does."""
        self.crawl.errors.stop(error, task=f"the start of {type(self).__name__}")

    def _spider_closed(self, reason: str) -> Awaitable[None] | None:
        for task in self._tasks:
            task.cancel()
        return self.closed(reason) if self.has_crawl else None


async def _repeat(action: Callable[[], Awaitable[None] | None], every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        answer = action()
        if answer is not None:
            await answer
