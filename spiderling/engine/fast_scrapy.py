"""An engine and a downloader of Scrapy's that make one task for a page, and no slot for a host.

Calls and results are those of Scrapy.  The setting DOWNLOADER names one part.  For engine and scraper `install` changes
the class of Scrapy's objects, unless they are of a subclass.  What that saves stands in
docs/performance.md.

This is the only module that uses private parts of Scrapy.  So it is used with releases alone that all tests have passed
with (TRIED), and not if the user's project names a DOWNLOADER; otherwise Scrapy's own parts run.  tests/test_plain.py
compares both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import logformatter_adapter
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from spiderling.base.machine import RESERVED, descriptor_limit, open_descriptors, raise_descriptor_limit

logger = logging.getLogger(__name__)


def install(crawler: Crawler) -> None:
    """Replace the parts of *crawler*, whose engine is made and has our downloader."""
    engine = crawler.engine
    if type(engine) is ExecutionEngine and type(engine.scraper) is Scraper:
        engine.__class__ = PlainEngine
        engine.scraper.__class__ = PlainScraper


_going: set[asyncio.Task[None]] = set()  # tasks of requests; the event loop itself holds tasks weakly


class PlainEngine(ExecutionEngine):
    """Makes one task for a page, from request to last item, where Scrapy makes five Deferreds and two tasks."""

    scraper: PlainScraper
    downloader: DirectDownloader

    def _start_scheduled_request(self) -> bool:
        assert self._slot is not None
        request = self._slot.scheduler.next_request()
        if request is None:
            self.signals.send_catch_log(signals.scheduler_empty)
            return False
        self._slot.add_request(request)
        self.downloader.active.add(request)  # at once: `needs_backout` is asked before the task has begun
        _going.add(task := asyncio.get_running_loop().create_task(self._go(request, self._slot)))
        task.add_done_callback(_going.discard)
        return True

    async def _go(self, request: Request, slot: Any) -> None:
        try:
            result = await self._fetch_page(request)
            slot.nextcall.schedule()
            if isinstance(result, Request):
                self.crawl(result)
            else:
                await self.scraper.scrape(result, request)
        except Exception:
            logger.error("Error while processing %s", request, exc_info=True, extra={"spider": self.spider})
        finally:
            slot.remove_request(request)
            slot.nextcall.schedule()

    async def download_async(self, request: Request) -> Response:
        """The answer to *request*, which passes through the downloader middlewares alone."""
        assert self._slot is not None
        self._slot.add_request(request)
        try:
            result = await self._fetch_page(request)
        finally:
            self._slot.remove_request(request)
            self._slot.nextcall.schedule()
        if isinstance(result, Failure):
            result.raiseException()
        return result if isinstance(result, Response) else await self.download_async(result)

    async def _fetch_page(self, request: Request) -> Response | Request | Failure:
        try:
            result = await self.downloader.fetch_page(request)
        except (Exception, asyncio.CancelledError):  # Scrapy makes a Failure of a middleware's CancelledError too
            return Failure()  # type: ignore[no-untyped-call]
        if isinstance(result, Response):
            result.request = result.request or request
            assert self.spider is not None
            line = self.logformatter.crawled(result.request, result, self.spider)
            if line is not None:
                logging.getLogger(ExecutionEngine.__module__).log(
                    *logformatter_adapter(line), extra={"spider": self.spider}
                )
            self.signals.send_catch_log(
                signals.response_received, response=result, request=result.request, spider=self.spider
            )
        return result


class PlainScraper(Scraper):
    """Scrapes in the caller's task, without a queue or Deferred before the callback."""

    async def scrape(self, result: Response | Failure, request: Request) -> None:
        """Pass *result* to the callback or errback of *request*, and what that yields to the pipelines."""
        slot = self.slot
        assert slot is not None
        slot.add_response_request(result, request)
        slot.next_response_request_deferred()
        try:
            await self._scrape(result, request)
        finally:
            slot.finish_response(result, request)
            self._check_if_closing()


class DirectDownloader(Downloader):
    """Scrapy's downloader without slots: the frontier has decided what is due, so nothing waits here again.

    A slot costs a queue, a Deferred, a task and a kilobyte for each host, and most hosts are asked once.
    ``DOWNLOAD_DELAY``, ``DOWNLOAD_SLOTS`` and limits by domain or IP have no effect.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._bound_concurrency()

    def _bound_concurrency(self) -> None:
        """Have no more requests at once than there are file descriptors for; a quarter is left to the live page."""
        raise_descriptor_limit()
        free = descriptor_limit() - RESERVED - open_descriptors()
        most = max(1, free * 3 // 4)
        if most < self.total_concurrency:
            logger.warning(
                "At most %d requests run at the same time, not CONCURRENT_REQUESTS=%d: this process may have %d files "
                "and sockets open (ulimit -n)", most, self.total_concurrency, descriptor_limit()
            )  # fmt: skip
            self.total_concurrency = most

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Send *request* through the downloader middlewares to the handler."""
        self.active.add(request)  # at once: the engine asks `needs_backout` before the task has begun
        return deferred_from_coro(self.fetch_page(request))

    async def fetch_page(self, request: Request) -> Response | Request:
        """`fetch` as a coroutine."""
        self.active.add(request)
        try:
            return await self.middleware.download_async(self._ask, request)
        finally:
            self.active.remove(request)

    async def _ask(self, request: Request) -> Response:
        send = self.signals.send_catch_log
        spider = self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            response = await self._ask_handler(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)

    def _ask_handler(self, request: Request) -> Awaitable[Response]:
        """The answer of the scheme's handler, which Scrapy finds by parsing the URL."""
        scheme = request.url.partition(":")[0]
        handler = self.handlers._handlers.get(scheme)
        if handler is None or scheme in self.handlers._old_style_handlers:
            return self.handlers.download_request_async(request)
        return handler.download_request(request)
