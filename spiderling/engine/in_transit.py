"""Requests in transit: handed out by the frontier and not yet settled."""

from __future__ import annotations

import logging
from collections.abc import Callable

from scrapy.crawler import Crawler

from spiderling import signals
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.crawl import Crawl
from spiderling.frontier import Fetch, Report
from spiderling.frontier.hosts.host import identity

logger = logging.getLogger(__name__)


class InTransit:
    """The requests of one crawl that are in transit; each leaves by `settle`, `settle_robots` or `give_back`."""

    def __init__(self, crawler: Crawler, crawl: Crawl, wake: Callable[[], None]) -> None:
        """*wake* is called when one has left: its host may be due."""
        self._crawler = crawler
        self._crawl = crawl
        self._wake = wake
        self._keys: set[int | str] = set()
        """Ids of pages, and URLs of robots.txt files."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, fetch: Fetch) -> None:
        """*fetch* was handed out."""
        self._keys.add(fetch.id or fetch.url)

    def holds(self, url_id: int | None) -> bool:
        """Whether the URL of this id was handed out and is not settled; also one that an archive gave."""
        archives = self._crawl.archives
        return url_id in self._keys or (archives is not None and archives.holds(url_id))

    def settle(self, outcome: Outcome) -> Reason | None:
        """A request is over: account for it; returns how its URL ended (None: it waits for another attempt)."""
        report = self._crawl.finish(outcome)
        _tell_retired(self._crawler, report)
        self._leave(outcome.url_id or 0)
        return report.end

    def settle_robots(
        self, fetch: Fetch, status: int, body: bytes, location: str | None, retry_after_s: float = 0.0
    ) -> None:
        """A robots.txt request is over; *status* 0 when no answer came."""
        assert fetch.robots is not None
        now = self._crawl.clock.now()
        with self._crawl.errors.changing(*identity(fetch.robots)):
            self._crawl.frontier.robots_answered(fetch, status, body, location, now, retry_after_s)
        self._leave(fetch.url)

    def give_back(self, fetch: Fetch) -> None:
        """A request was not made after all: its URL waits again."""
        with self._crawl.errors.changing(fetch.url, fetch.id):
            self._crawl.frontier.give_back(fetch, self._crawl.clock.now())
        self._leave(fetch.id or fetch.url)

    def _leave(self, key: int | str) -> None:
        self._keys.discard(key)
        self._wake()


def _tell_retired(crawler: Crawler, report: Report) -> None:
    """Tell the log and extensions which hosts a report retired."""
    for host in report.retired:
        account = host.account
        mb = account.downloaded_bytes / 1e6
        logger.info("Retired %s: yield rate %.4f after %d pages, %.2f MB", host.name, account.rate, account.pages, mb)
        crawler.signals.send_catch_log(signals.host_retired, host=host, spider=crawler.spider)
