"""Scrapy's downloader without its slots: the frontier has decided what is due, and nothing waits here a second time.

A slot for each host is a queue, a Deferred, a task and a kilobyte for what is asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.utils.defer import deferred_from_coro

if TYPE_CHECKING:
    from typing import Any

    from scrapy import Request, Spider
    from scrapy.http import Response
    from twisted.internet.defer import Deferred


class DirectDownloader(Downloader):
    """Sends the same signals; ``DOWNLOAD_DELAY``, ``DOWNLOAD_SLOTS`` and limits by domain or IP have no effect."""

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Through the downloader middlewares to the handler and back."""
        self.active.add(request)
        answer = deferred_from_coro(self.middleware.download_async(self._ask, request))
        return answer.addBoth(self._let_go, request)

    def _let_go(self, result: Any, request: Request) -> Any:
        self.active.remove(request)
        return result

    async def _ask(self, request: Request) -> Response:
        send, spider = self.signals.send_catch_log, self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            response = await self.handlers.download_request_async(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)
