"""Scrapy's downloader without its slots: the frontier has decided what is due, and nothing waits here a second time.

A slot for each host is a queue, a Deferred, a task and a kilobyte for what is asked once.  Nor has robots.txt a
callback: it goes through the downloader middlewares to the handler and past the rest of the engine.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from spiderling.plain import PlainMiddlewares

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred


class DirectDownloader(Downloader):
    """Sends the same signals; ``DOWNLOAD_DELAY``, ``DOWNLOAD_SLOTS`` and limits by domain or IP have no effect."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.middleware = PlainMiddlewares(*self.middleware.middlewares, crawler=crawler)
        self._files: set[asyncio.Task[None]] = set()

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Through the downloader middlewares to the handler and back."""
        return deferred_from_coro(self._fetch(request))

    def fetch_file(self, request: Request, over: Callable[[Request, Exception], None]) -> None:
        """The same without the engine, for what a downloader middleware takes; *over* gets the error that ends it."""
        task = asyncio.get_running_loop().create_task(self._fetch_file(request, over))
        self._files.add(task)
        task.add_done_callback(self._files.discard)

    async def files_over(self) -> None:
        """Return when no file is being fetched."""
        if self._files:
            await asyncio.wait(self._files)

    async def _fetch_file(self, request: Request, over: Callable[[Request, Exception], None]) -> None:
        try:
            answer = await self._fetch(request)
        except Exception as error:
            over(request, error)
        else:
            over(request, IgnoreRequest(f"a downloader middleware made {answer!r} of {request.url}"))

    async def _fetch(self, request: Request) -> Response | Request:
        self.active.add(request)
        try:
            return await self.middleware.download_async(self._ask, request)
        finally:
            self.active.remove(request)

    async def _ask(self, request: Request) -> Response:
        send, spider = self.signals.send_catch_log, self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            response = await self.handlers.download_request_async(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)
