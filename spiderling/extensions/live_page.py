"""Serves the live page of the crawl (docs/live.md) if SPIDERLING_PAGE says where; else it imports nothing of it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.crawler import Crawler

from spiderling.base.errors import StorageError
from spiderling.base.machine import Histogram
from spiderling.base.option_values import PageAddress, parse_page
from spiderling.engine.component import Extension
from spiderling.extensions.progress import Bottleneck
from spiderling.jobdir.directory import PAGE_TOKEN
from spiderling.jobdir.status_schema import Running

if TYPE_CHECKING:
    from spiderling.live.server import Server

logger = logging.getLogger(__name__)

_LAG_S = 0.5  # seconds between two measurements of the loop's lag; chosen
_NAMED_S = 2.0  # seconds for which a bottleneck that was named holds; chosen


class LivePage(Extension):
    """Starts and ends the server; no trouble with it ends the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._server: Server | None = None
        crawler.signals.connect(self._end, signals.spider_closed)

    async def opened(self) -> None:
        address = parse_page(self.crawl.options.page)
        if address is None:
            return
        self._bottleneck = Bottleneck(self._crawler, self.dispatcher.shard)
        self._named = ""
        self._named_at = 0.0
        self._lag = Histogram()
        try:
            server = self._make_server(address)
            await server.start()
        except (OSError, StorageError) as error:
            why = getattr(error, "strerror", None) or error
            logger.warning(
                "There is no live page: SPIDERLING_PAGE=%s: %s; give another address", self.crawl.options.page, why
            )
            return
        self._server = server
        self._measured_at = asyncio.get_running_loop().time()
        self.repeat(self._measure_lag, _LAG_S, "the measurement of the loop's lag")
        token = self.crawl.jobdir.path / PAGE_TOKEN
        # of shards the terminal has warnings
        level = logging.INFO if self.dispatcher.shard is None else logging.WARNING
        words = "The live page: %s (to control the crawl, it asks for the token in %s)"
        logger.log(level, words, server.place, token)

    async def _end(self) -> None:
        if self._server is not None:
            await self._server.close()

    def _make_server(self, address: PageAddress) -> Server:
        # a crawl without a page does without a server
        from spiderling.live.metrics import CrawlCollector
        from spiderling.live.server import Server

        registry = CrawlCollector(self.crawl, self._crawler, self._running, self._lag).registry()
        is_shard = self.dispatcher.shard is not None
        return Server(address, self.crawl.jobdir.path, self._running, registry, is_shard)

    def _measure_lag(self) -> None:
        now = asyncio.get_running_loop().time()
        self._lag.add(max(0.0, now - self._measured_at - _LAG_S))
        self._measured_at = now

    def _name_bottleneck(self) -> str:
        now = time.monotonic()
        if now - self._named_at > _NAMED_S or not self._named:
            self._named = self._bottleneck.of(self.crawl)
            self._named_at = now
        return self._named

    def _running(self) -> Running:
        crawl = self.crawl
        frontier = crawl.frontier
        return Running(
            counts=frontier.ledger.counts(),
            hosts={state.value: number for state, number in frontier.host_states.hosts_by_state().items()},
            in_transit=frontier.ledger.in_transit,
            bottleneck=self._name_bottleneck(),
            trouble=frontier.network_trouble(),
            limits=crawl.budgets.limits,
            is_paused=crawl.is_paused,
            is_stopping=crawl.stopping,
            directory=str(crawl.jobdir.path),
        )
