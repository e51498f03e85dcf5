"""Spider middleware: wakes the engine when the next host is due, and stops the crawl with the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from spiderling.engine.component import Component
from spiderling.engine.dispatcher import WAKE_UP, Dispatcher

_LONGEST_SLEEP_S = 5.0
"""Longest sleep, in seconds: after that Scrapy's engine looks for requests by itself."""
_GATHERING_S = 0.01
"""Seconds within which changes wake the engine once.  Chosen; the engine also looks at the end of each request."""


class WakeUp(Component):
    """Keeps ``start`` alive until the crawl is finished: the spider is never idle while a host waits for its turn."""

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The spider's own seeds, then WAKE_UP whenever something is due."""
        if not self.has_crawl:
            return
        dispatcher = self.dispatcher
        try:
            async for item_or_request in start:
                yield item_or_request
            if dispatcher.shard is not None:
                dispatcher.shard.has_begun = True
            while not dispatcher.crawl.is_finished:
                await self._sleep(dispatcher)
                yield WAKE_UP
        except (asyncio.CancelledError, GeneratorExit):
            dispatcher.stop()
            raise

    async def _sleep(self, dispatcher: Dispatcher) -> None:
        """Sleep until the next host is due, or until a moment after the frontier changed."""
        due_in = dispatcher.due_in()
        pause = _LONGEST_SLEEP_S if due_in is None else min(max(due_in, 0.001), _LONGEST_SLEEP_S)
        dispatcher.changed.clear()
        try:
            await asyncio.wait_for(dispatcher.changed.wait(), pause)
        except TimeoutError:
            return
        await asyncio.sleep(_GATHERING_S)
