"""Downloader middleware: reads sitemaps and takes their URLs to the frontier; no sitemap reaches the spider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Component
from spiderling.engine.outcomes import FileTaken, exchange_of, of_response
from spiderling.engine.requests import fetch_of
from spiderling.frontier import Fetch
from spiderling.frontier.discovery.sitemaps import is_sitemap
from spiderling.middlewares.limits import may_pass, redirect_target
from spiderling.text.sitemap import Sitemap, read_sitemap

_BATCH_URLS = 200
"""URLs that the frontier takes in one turn of the event loop, some milliseconds.  Chosen."""


class SitemapMiddleware(Component):
    """Leaves to LimitsMiddleware only redirects within the host and failures that may pass.

    Sitemaps are read one at a time, to save memory, and in a thread, to keep the event loop free.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._one_at_a_time = asyncio.Lock()

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        fetch = fetch_of(request)
        if fetch is None or not is_sitemap(fetch):
            return response
        return self._settle(self.crawl, fetch, request, response)

    async def _settle(self, crawl: Crawl, fetch: Fetch, request: Request, response: Response) -> Response:
        redirect = canonicalize(redirect_target(response) or "")
        if may_pass(response) or (redirect is not None and redirect.host == fetch.host.name):
            return response
        detail = f"HTTP {response.status}"
        reason = Reason.SITEMAP
        if 200 <= response.status < 300:
            async with self._one_at_a_time:
                try:
                    sitemap = await asyncio.to_thread(read_sitemap, response.body)
                except Exception as error:
                    crawl.errors.note(error, request.url)
                    detail = f"{type(error).__name__}: {error}"
                    reason = Reason.INTERNAL_ERROR
                else:
                    detail = await self._take(crawl, fetch, sitemap)
        outcome = of_response(response, reason)  # of a response that has no request yet
        outcome = replace(outcome, url_id=fetch.id, detail=detail, exchange=exchange_of(request))
        self.dispatcher.in_transit.settle(outcome)
        raise FileTaken(f"{request.url} is a sitemap")

    async def _take(self, crawl: Crawl, fetch: Fetch, sitemap: Sitemap) -> str:
        """Give the frontier the URLs of *sitemap*, and say how many.  After a kill the sitemap is read again."""
        sitemaps = crawl.frontier.sitemaps
        urls = sitemap.urls
        with crawl.errors.changing(fetch.url, fetch.id):
            if sitemap.is_index:
                sitemaps.put_files(fetch, urls, crawl.clock.now())
            else:
                for start in range(0, len(urls), _BATCH_URLS):
                    sitemaps.put_urls(fetch, urls[start : start + _BATCH_URLS], crawl.clock.now())
                    await asyncio.sleep(0)
            sitemaps.left_out(sitemap.left_out)
        return f"{len(urls)} {'sitemaps' if sitemap.is_index else 'URLs'}"
