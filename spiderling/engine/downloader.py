"""Scrapy's downloader without slots: the frontier has decided what is due, so nothing waits here again.

A slot costs a queue, a Deferred, a task and a kilobyte for each host, and most hosts are asked once.  A site file has
no callback: it passes through the downloader middlewares and the handler, but not the rest of the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, _InvalidOutput
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, ensure_awaitable
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from spiderling.base.machine import RESERVED, descriptor_limit, open_descriptors, raise_descriptor_limit

logger = logging.getLogger(__name__)


class DirectDownloader(Downloader):
    """Sends Scrapy's signals; ``DOWNLOAD_DELAY``, ``DOWNLOAD_SLOTS`` and limits by domain or IP have no effect."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.middleware = PlainMiddlewares(*self.middleware.middlewares, crawler=crawler)
        self._files: set[asyncio.Task[None]] = set()
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
        return deferred_from_coro(self.fetched(request))

    def fetch_file(self, request: Request, over: Callable[[Request, BaseException], None]) -> None:
        """Fetch a site file without the engine; *over* gets the error that ends it, FileTaken after success."""
        self.active.add(request)
        task = asyncio.get_running_loop().create_task(self._fetch_file(request, over))
        self._files.add(task)
        task.add_done_callback(self._files.discard)

    async def files_over(self) -> None:
        """Return when no file is being fetched."""
        if self._files:
            await asyncio.wait(self._files)

    async def _fetch_file(self, request: Request, over: Callable[[Request, BaseException], None]) -> None:
        try:
            answer = await self.fetched(request)
        except (Exception, asyncio.CancelledError) as error:
            over(request, error)
        else:
            over(request, IgnoreRequest(f"a downloader middleware made {answer!r} of {request.url}"))

    async def fetched(self, request: Request) -> Response | Request:
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
            response = await self._handled(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)

    def _handled(self, request: Request) -> Awaitable[Response]:
        """The answer of the scheme's handler, which Scrapy finds by parsing the URL."""
        scheme = request.url.partition(":")[0]
        handler = self.handlers._handlers.get(scheme)
        if handler is None or scheme in self.handlers._old_style_handlers:
            return self.handlers.download_request_async(request)
        return handler.download_request(request)


class PlainMiddlewares(DownloaderMiddlewareManager):
    """Runs the downloader middlewares, without a coroutine for one that answers at once."""

    def _handle_mw_method(self, method: Callable[..., Any], **values: Any) -> Any:
        is_new = not self._mw_methods_requiring_spider
        return method(**values) if is_new else super()._handle_mw_method(method, **values)

    async def _process_request(self, request: Request, download_func: Any) -> Response | Request:
        for method in self.methods["process_request"]:
            answer = self._handle_mw_method(method, request=request)  # type: ignore[arg-type]
            if answer is not None and (answer := await _judged(method, answer, is_optional=True)) is not None:
                return cast("Response | Request", answer)
        return cast("Response", await download_func(request))

    async def _process_response(self, response: Response | Request, request: Request) -> Response | Request:
        for method in self.methods["process_response"]:
            if isinstance(response, Request):
                break
            answer = self._handle_mw_method(method, request=request, response=response)  # type: ignore[arg-type]
            response = answer if answer is response else await _judged(method, answer)
        return response


async def _judged(method: Any, answer: Any, is_optional: bool = False) -> Any:
    """The answer of a middleware's *method*, awaited if need be; raises _InvalidOutput."""
    if not isinstance(answer, (Response, Request)):
        answer = await ensure_awaitable(answer, _warn=global_object_name(method))
    if isinstance(answer, (Response, Request)) or (is_optional and answer is None):
        return answer
    raise _InvalidOutput(f"Middleware {method.__qualname__} must return a Response or Request, got {answer!r}")
