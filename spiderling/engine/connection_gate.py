"""Which addresses a request may connect to, and when: the frontier's intervals count from these connections."""

from __future__ import annotations

from scrapy import Request

from spiderling.crawl.crawl import Crawl
from spiderling.engine.requests import fetch_of


class ConnectionGate:
    """When a request of the crawl may open a connection.

    Requests that did not come from the frontier pass, and count for no interval.
    """

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    def started(self, request: Request, address: str) -> None:
        """Tell the frontier that *request* opens a connection to *address* now."""
        fetch = fetch_of(request)
        if fetch is not None:
            with self._crawl.errors.changing(fetch.url, fetch.id):
                self._crawl.frontier.started(fetch, self._crawl.clock.now(), address)

    def connect_in(self, request: Request) -> float:
        """Seconds until the connection for *request* may be opened."""
        fetch = fetch_of(request)
        if fetch is None:
            return 0.0
        return self._crawl.frontier.connect_in(fetch, self._crawl.clock.now())

    def may_also_connect(self, request: Request, address: str) -> bool:
        """Whether *request* may be sent to its second address too; if so, that counts as begun."""
        fetch = fetch_of(request)
        if fetch is None:
            return True
        with self._crawl.errors.changing(fetch.url, fetch.id):
            return self._crawl.frontier.may_also_start(address, self._crawl.clock.now())
        return False  # an error of our own stops the crawl
