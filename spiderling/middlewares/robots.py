"""Downloader middleware: takes robots.txt, tdmrep.json and ai.txt to the frontier; none reaches the spider.

The frontier applies their rules when it hands out a URL (frontier/robots.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from spiderling.engine.component import Component
from spiderling.engine.outcomes import FileTaken, exchange_of
from spiderling.engine.requests import fetch_of
from spiderling.frontier import Fetch
from spiderling.frontier.hosts.host import RobotsRequest
from spiderling.frontier.site_files import MAX_FILE_BYTES, parsed
from spiderling.middlewares.limits import asked_to_wait_s, redirect_target

_SMALL_BYTES = 20_000
"""Files up to this size are parsed in the event loop, which takes some milliseconds; larger ones in a thread."""


class RobotsMiddleware(Component):
    """Stands nearer to the handler than LimitsMiddleware, so it sees redirects and error statuses too."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._one_at_a_time = asyncio.Lock()

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        fetch = fetch_of(request)
        if fetch is None or fetch.robots is None:
            return response
        return self._take(fetch, fetch.robots, request, response)

    async def _take(self, fetch: Fetch, asked: RobotsRequest, request: Request, response: Response) -> Response:
        crawl = self.crawl
        body = response.body[:MAX_FILE_BYTES]
        status = response.status
        if len(body) > _SMALL_BYTES and 200 <= status < 300:
            try:
                async with self._one_at_a_time:
                    rules = await asyncio.to_thread(parsed, asked.file, body, crawl.options)
                crawl.frontier.parsed_ahead(asked.file, body, rules)
            except Exception as error:
                crawl.errors.note(error, request.url)
                status = 0
        target = redirect_target(response)
        wait_s = asked_to_wait_s(response) or 0.0
        crawl.archive(exchange_of(request), {"reason": "site-file"})
        self.dispatcher.in_transit.settle_robots(fetch, status, response.body, target, wait_s)
        raise FileTaken(f"robots.txt of {asked.origin}")
