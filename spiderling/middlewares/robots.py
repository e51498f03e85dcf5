"""Downloader middleware that takes robots.txt responses to the frontier, which judges by them.

The rules are applied when a URL is handed out (frontier/robots.py), so nothing is left
to be asked here; a robots.txt never reaches the spider.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from spiderling.engine.component import Component
from spiderling.engine.outcomes import FileTaken, exchange_of
from spiderling.engine.requests import fetch_of
from spiderling.frontier.site_files import MAX_FILE_BYTES, parsed
from spiderling.middlewares.limits import asked_to_wait_s, redirect_target

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from spiderling.frontier import Fetch
    from spiderling.frontier.hosts.host import RobotsTask

_SMALL_BYTES = 20_000
"""Up to this size a file is parsed where it is wanted, in some milliseconds; a larger one in a thread."""


class RobotsMiddleware(Component):
    """Sits inside LimitsMiddleware, so that it sees every answer to a robots.txt request first."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._one_at_a_time = asyncio.Lock()

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        fetch = fetch_of(request)
        if fetch is None or fetch.robots is None:
            return response
        return self._take(fetch, fetch.robots, request, response)

    async def _take(self, fetch: Fetch, task: RobotsTask, request: Request, response: Response) -> Response:
        crawl = self.crawl
        body = response.body[:MAX_FILE_BYTES]
        status = response.status
        if len(body) > _SMALL_BYTES and 200 <= status < 300:
            try:
                async with self._one_at_a_time:
                    rules = await asyncio.to_thread(parsed, task.file, body, crawl.options)
                crawl.frontier.parsed_ahead(task.file, body, rules)
            except Exception as error:
                crawl.errors.note(error, request.url)
                status = 0
        target = redirect_target(response)
        wait_s = asked_to_wait_s(response) or 0.0
        crawl.archive(exchange_of(request), {"reason": "site-file"})
        self.dispatcher.in_transit.settle_robots(fetch, status, response.body, target, wait_s)
        raise FileTaken(f"robots.txt of {task.origin}")
