"""Spider middleware: ends the URL of a response whose callback yields no page (no-page).

It also notes on each Request which page it was found on, from which the frontier takes its distance.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from scrapy.http import Request, Response

from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.meta_keys import PAGES, SOURCE
from spiderling.engine.outcomes import of_response
from spiderling.engine.requests import fetch_of
from spiderling.items import PageItem


class ExitsMiddleware(Component):
    """Counts the pages that a callback yields for one response."""

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
        has_pages = response.request is not None and response.request.meta.get(PAGES)
        if not has_pages and fetch_of(response.request) is not None:
            self.dispatcher.in_transit.settle(of_response(response, Reason.NO_PAGE))


def _note(response: Response, entry: Any) -> None:
    if isinstance(entry, PageItem) and response.request is not None:
        response.request.meta[PAGES] = response.request.meta.get(PAGES, 0) + 1
    elif isinstance(entry, Request):
        entry.meta[SOURCE] = response.url
