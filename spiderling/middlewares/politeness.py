"""Downloader middleware: the last check of intervals and of the host's state before a connection is opened."""

from __future__ import annotations

from collections.abc import Awaitable

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

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
        """None if the request may start now; else an awaitable that returns when it may.

        It raises NotMade when the host was closed or the crawl is stopping.
        """
        fetch = fetch_of(request)
        if fetch is None or self.dispatcher.in_transit.may_start(fetch) == 0:
            return None
        return self._its_turn(fetch)

    async def _its_turn(self, fetch: Fetch) -> None:
        while (wait_s := self.dispatcher.in_transit.may_start(fetch)) != 0:
            if wait_s is None or self.crawl.stopping:
                raise NotMade(f"{fetch.url} goes back to the frontier")
            await self.dispatcher.in_transit.turn(fetch, wait_s)

    def process_response(self, request: Request, response: Response) -> Response:
        self.dispatcher.in_transit.answered(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if not isinstance(exception, (IgnoreRequest, TransferCut)):  # neither says how slow the host is
            self.dispatcher.in_transit.answered(request)
