"""Scrapy's downloader without its slots: the frontier has decided what is due, and nothing waits here a second time.

One method of Scrapy's class is replaced, ``_enqueue_request``; tests/test_downloader.py fails if that loses its
meaning.  A slot for each host is a queue, a Deferred, a task and a kilobyte for what is asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.core.downloader import Downloader

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class DirectDownloader(Downloader):
    """Sends the same signals; ``DOWNLOAD_DELAY``, ``DOWNLOAD_SLOTS`` and limits by domain or IP have no effect."""

    async def _enqueue_request(self, request: Request) -> Response:
        send, spider = self.signals.send_catch_log, self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            response = await self.handlers.download_request_async(request)
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)
