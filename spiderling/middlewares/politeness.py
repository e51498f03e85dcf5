"""Downloader middleware: the last check of intervals and of the host's state before a connection is opened."""

from __future__ import annotations

from collections.abc import Awaitable

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from spiderling.engine.component import Component
from spiderling.engine.outcomes import NotMade
from spiderling.fetch.errors import TransferCut


class PolitenessMiddleware(Component):
    """Holds a request back until its host and address are due; one that must not be made goes back to the frontier.

    It also tells the frontier when an answer is complete, and so how slow the host is.
    """

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """None if the request may start now; else an awaitable that returns when it may.

        It raises NotMade when the host was closed or the crawl is stopping.
        """
        return None if self.dispatcher.may_start(request) == 0 else self._its_turn(request)

    async def _its_turn(self, request: Request) -> None:
        while (wait_s := self.dispatcher.may_start(request)) != 0:
            if wait_s is None or self.crawl.stopping:
                raise NotMade(f"{request.url} goes back to the frontier")
            await self.dispatcher.until_turn(request, wait_s)

    def process_response(self, request: Request, response: Response) -> Response:
        self.dispatcher.answered(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if not isinstance(exception, (IgnoreRequest, TransferCut)):  # neither says how slow the host is
            self.dispatcher.answered(request)
