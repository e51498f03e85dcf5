"""Downloader middleware: the last check of intervals and of the host's state before a connection is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Component
from spiderling.engine.outcomes import NotMade
from spiderling.engine.requests import fetch_of
from spiderling.fetch.errors import TransferCut
from spiderling.frontier import Fetch


class PolitenessMiddleware(Component):
    """Holds a request back until its host and address are due; one that must not be made goes back to the frontier.

    It also tells the frontier when an answer is complete, and so how slow the host is.
    """

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """None when the request may start now; else to be awaited until it may.

        Raises NotMade when its host was closed or the crawl is stopping.
        """
        fetch = fetch_of(request)
        if fetch is None or _may_start(self.crawl, fetch) == 0:
            return None
        return self._its_turn(self.crawl, fetch)

    async def _its_turn(self, crawl: Crawl, fetch: Fetch) -> None:
        while (wait := _may_start(crawl, fetch)) != 0:
            if wait is None or crawl.stopping:
                raise NotMade(f"{fetch.url} goes back to the frontier")
            await asyncio.sleep(wait)

    def process_response(self, request: Request, response: Response) -> Response:
        self._answered(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if not isinstance(exception, (IgnoreRequest, TransferCut)):  # neither says how slow the host is
            self._answered(request)

    def _answered(self, request: Request) -> None:
        fetch = fetch_of(request)
        if fetch is not None:
            crawl = self.crawl
            with crawl.errors.changing(fetch.url, fetch.id):
                crawl.frontier.answered(fetch, crawl.clock.now())


def _may_start(crawl: Crawl, fetch: Fetch) -> float | None:
    """Seconds until the request may start; None: never."""
    with crawl.errors.changing(fetch.url, fetch.id):
        return crawl.frontier.may_start(fetch, crawl.clock.now())
    return None
