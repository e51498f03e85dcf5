"""Spider middleware: wakes the engine when the next host is due, and notices that the crawl is being stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from spiderling.engine.scheduler import WAKE_UP, Scheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_LONGEST_SLEEP_S = 5.0
_GATHERING_S = 0.01
"""Changes that come so close together wake the engine once; it also looks by itself at the end of each request."""


class WakeUp:
    """Keeps ``start`` alive until the crawl is finished: the spider is never idle while a host waits for its turn."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> WakeUp:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The spider's own seeds, then WAKE_UP whenever something is due."""
        scheduler = self._crawler.engine.scheduler
        if not isinstance(scheduler, Scheduler) or scheduler.crawl is None:
            return
        try:
            async for item_or_request in start:
                yield item_or_request
            while scheduler.has_pending_requests():
                await self._sleep(scheduler)
                yield WAKE_UP
        except (asyncio.CancelledError, GeneratorExit):
            scheduler.stop()
            raise

    async def _sleep(self, scheduler: Scheduler) -> None:
        """Until the next host is due, or a moment after the frontier changed."""
        crawl = scheduler.crawl
        assert crawl is not None
        due = None
        with crawl.errors.changing():
            due = crawl.frontier.next_due()
        pause = _LONGEST_SLEEP_S if due is None else min(max(due - crawl.clock.now(), 0.001), _LONGEST_SLEEP_S)
        scheduler.changed.clear()
        try:
            await asyncio.wait_for(scheduler.changed.wait(), pause)
        except asyncio.TimeoutError:
            return
        await asyncio.sleep(_GATHERING_S)
