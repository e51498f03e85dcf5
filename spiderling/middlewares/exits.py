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
from spiderling.items import PageItem


class ExitsMiddleware(Component):
    """Counts the pages that a callback yields for one response."""

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        for entry in result:
            _note(response, entry)
            yield entry
        self.dispatcher.end_without_page(response, Reason.NO_PAGE)

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for entry in result:
            _note(response, entry)
            yield entry
        self.dispatcher.end_without_page(response, Reason.NO_PAGE)


def _note(response: Response, entry: Any) -> None:
    if isinstance(entry, PageItem) and response.request is not None:
        response.request.meta[PAGES] = response.request.meta.get(PAGES, 0) + 1
    elif isinstance(entry, Request):
        entry.meta[SOURCE] = response.url
