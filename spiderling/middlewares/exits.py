"""Spider middleware: a response whose callback yields no page still ends its URL (no-page).

It also notes on Requests of a subclass which page they were found on, for their distance.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from scrapy import Request

from spiderling.base.reasons import Reason
from spiderling.engine.lookup import fetch_of
from spiderling.engine.outcomes import of_response
from spiderling.engine.payloads import PAGES
from spiderling.engine.scheduler import Scheduler
from spiderling.items import PageItem

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class ExitsMiddleware:
    """Counts what a callback yields for one response."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ExitsMiddleware:
        return cls(crawler)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        for entry in result:
            _note(response, entry)
            yield entry
        self._end(response)

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for entry in result:
            _note(response, entry)
            yield entry
        self._end(response)

    def _end(self, response: Response) -> None:
        scheduler = self._crawler.engine.scheduler
        paged = response.request is not None and response.request.meta.get(PAGES)
        if not paged and fetch_of(response.request) is not None and isinstance(scheduler, Scheduler):
            scheduler.settle(of_response(response, Reason.NO_PAGE))


def _note(response: Response, entry: Any) -> None:
    if isinstance(entry, PageItem) and response.request is not None:
        response.request.meta[PAGES] = response.request.meta.get(PAGES, 0) + 1
    elif isinstance(entry, Request):
        entry.meta["spiderling_source"] = response.url
