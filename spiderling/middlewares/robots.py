"""Downloader middleware that takes robots.txt responses to the frontier, which judges by them.

The rules are applied when a URL is handed out (frontier/robots.py), so nothing is left
to be asked here; a robots.txt never reaches the spider.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from spiderling.engine.lookup import fetch_of
from spiderling.engine.outcomes import FileTaken, exchange_of
from spiderling.engine.scheduler import Scheduler
from spiderling.frontier.site_files import MAX_FILE_BYTES, parsed
from spiderling.middlewares.limits import asked_to_wait_s, redirect_target

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from spiderling.crawl.crawl import Crawl
    from spiderling.frontier import Fetch

_SMALL_BYTES = 20_000
"""Up to this size a file is parsed where it is wanted, in some milliseconds; a larger one in a thread."""


class RobotsMiddleware:
    """Sits inside LimitsMiddleware, so that it sees every answer to a robots.txt request first."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMiddleware:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        fetch, scheduler = fetch_of(request), self._crawler.engine.scheduler
        if fetch is None or fetch.robots is None or not isinstance(scheduler, Scheduler) or scheduler.crawl is None:
            return response
        return self._take(scheduler, scheduler.crawl, fetch, request, response)

    async def _take(
        self, scheduler: Scheduler, crawl: Crawl, fetch: Fetch, request: Request, response: Response
    ) -> Response:
        assert fetch.robots is not None
        body, status = response.body[:MAX_FILE_BYTES], response.status
        if len(body) > _SMALL_BYTES and 200 <= status < 300:
            try:
                async with self._one_at_a_time:
                    rules = await asyncio.to_thread(parsed, fetch.robots.file, body, crawl.options)
                crawl.frontier.parsed_ahead(fetch.robots.file, body, rules)
            except Exception as error:
                crawl.errors.note(error, request.url)
                status = 0
        target, wait_s = redirect_target(response), asked_to_wait_s(response) or 0.0
        crawl.archive(exchange_of(request), {"reason": "site-file"})
        scheduler.settle_robots(fetch, status, response.body, target, wait_s)
        raise FileTaken(f"robots.txt of {fetch.robots.origin}")
