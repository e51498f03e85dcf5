"""Requests in transit: handed out by the frontier and not yet settled."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler

from spiderling import signals
from spiderling.base.clock import elapsed_s
from spiderling.base.machine import descriptor_limit
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.crawl import Crawl
from spiderling.crawl.internal_errors import Changing
from spiderling.engine.requests import fetch_of
from spiderling.frontier import Fetch
from spiderling.frontier.hosts.host import Host, identity
from spiderling.frontier.site_files import FileAnswer

if TYPE_CHECKING:
    from spiderling.cluster.shard import Shard

logger = logging.getLogger(__name__)

REST_S = 1.0
"""Seconds for which nothing is asked for after a connection has found no file descriptor (chosen)."""
_TOLD_S = 600.0
"""Seconds after which the log says again that descriptors are missing (chosen)."""
_LOOK_AGAIN_S = 1.0
"""Seconds after which a request looks again that must not start now (chosen): an interval may have become shorter, the
crawl may stop, or its shard may ask again."""


class InTransit:
    """The requests of one crawl that are in transit; each leaves by `settle`, `settle_robots` or `give_back`.

    It also says when a request may open its connection, at which the intervals begin.  A request that did not come
    from the frontier may connect at once, and counts for no interval.
    """

    shard: Shard | None = None
    """This process as a shard of the crawl, if that has any."""

    def __init__(self, crawler: Crawler, crawl: Crawl, wake: Callable[[], None]) -> None:
        """*wake* is called when a request has left: its host may be due."""
        self._crawler = crawler
        self._crawl = crawl
        self._wake = wake
        self.pages: set[int] = set()
        """Ids of the URLs of pages."""
        self._files: set[str] = set()
        """URLs of site files."""
        self._rests_until = 0.0
        """Until when nothing is asked for, by `elapsed_s`."""
        self._told_at = -math.inf

    def __len__(self) -> int:
        return len(self.pages) + len(self._files)

    def add(self, fetch: Fetch) -> None:
        """Note that *fetch* was handed out."""
        if fetch.id:
            self.pages.add(fetch.id)
        else:
            self._files.add(fetch.url)

    def holds(self, url_id: int | None) -> bool:
        """Whether the URL of this id was handed out and is not settled; also one that an archive gave."""
        archives = self._crawl.archives
        return url_id in self.pages or (archives is not None and archives.holds(url_id))

    # -- it connects

    @property
    def rests(self) -> bool:
        """Whether nothing may be asked for, so that descriptors get free."""
        return elapsed_s() < self._rests_until

    def rest(self) -> None:
        """Ask for nothing for a while: a connection has found no file descriptor."""
        self._rests_until = elapsed_s() + REST_S
        asyncio.get_running_loop().call_later(REST_S, self._wake)
        if elapsed_s() - self._told_at > _TOLD_S:
            self._told_at = elapsed_s()
            logger.warning(
                "This process has too many files and sockets open (%d allowed): requests wait until some are closed, "
                "and no URL is lost; ulimit -n allows more, and a smaller CONCURRENT_REQUESTS needs fewer",
                descriptor_limit(),
            )

    def may_start(self, fetch: Fetch) -> float | None:
        """Seconds until the request for *fetch* may start, as it looks now; None: never.  inf: it needs a slot."""
        if self.shard is not None and not self.shard.may_ask():
            return _LOOK_AGAIN_S
        with self._changing(fetch):
            return self._crawl.frontier.may_start(fetch, self._crawl.clock.now())
        return None

    async def turn(self, fetch: Fetch, wait_s: float) -> None:
        """Return when *fetch* is to ask `may_start` again, which has said *wait_s*."""
        if wait_s == math.inf and self.shard is not None:
            await asyncio.wait([self.shard.slots.granted(fetch.host.id)], timeout=_LOOK_AGAIN_S)
        else:
            await asyncio.sleep(min(wait_s, _LOOK_AGAIN_S))

    def connect_in(self, request: Request) -> float:
        """Seconds until the connection for *request* may be opened."""
        if (fetch := fetch_of(request)) is None:
            return 0.0
        return self._crawl.frontier.intervals.connect_in(fetch.host, fetch.address, self._crawl.clock.now())

    def started(self, request: Request, address: str) -> None:
        """Note that *request* opens a connection to *address* now."""
        if (fetch := fetch_of(request)) is not None:
            with self._changing(fetch):
                self._crawl.frontier.started(fetch, self._crawl.clock.now(), address)

    def may_also_connect(self, request: Request, address: str) -> bool:
        """Whether *request* may connect to its fallback *address* too; if so, that is noted as a start."""
        if (fetch := fetch_of(request)) is None:
            return True
        with self._changing(fetch):
            return self._crawl.frontier.may_also_start(fetch, address, self._crawl.clock.now())
        return False  # after an error of our own, which stops the crawl

    def answered(self, request: Request) -> None:
        """Note that the answer to *request* is complete, which says how slow its host is."""
        if (fetch := fetch_of(request)) is not None:
            with self._changing(fetch):
                self._crawl.frontier.intervals.answered(fetch.host, self._crawl.clock.now())

    # -- it leaves

    def settle(self, outcome: Outcome) -> Reason | None:
        """Account for a request that is over; returns how its URL ended (None: it waits for another attempt)."""
        report = self._crawl.finish(outcome)
        for host in report.retired:
            self._tell_retired(host)
        self._leave(outcome.url_id or 0)
        return report.end

    def settle_robots(self, fetch: Fetch, answer: FileAnswer) -> None:
        """Account for the request of a site file that is over."""
        assert fetch.robots is not None
        now = self._crawl.clock.now()
        with self._crawl.errors.changing(*identity(fetch.robots)):
            self._crawl.frontier.robots_answered(fetch, answer, now)
        self._leave(fetch.url)

    def give_back(self, fetch: Fetch) -> None:
        """Let the URL of a request that was not made after all wait again."""
        with self._changing(fetch):
            self._crawl.frontier.give_back(fetch, self._crawl.clock.now())
        self._leave(fetch.id or fetch.url)

    def _changing(self, fetch: Fetch) -> Changing:
        return self._crawl.errors.changing(fetch.url, fetch.id)

    def _leave(self, key: int | str) -> None:
        if isinstance(key, str):
            self._files.discard(key)
        else:
            self.pages.discard(key)
        self._wake()

    def _tell_retired(self, host: Host) -> None:
        """Tell the log and extensions that *host* is retired."""
        account = host.account
        mb = account.downloaded_bytes / 1e6
        logger.info("Retired %s: yield rate %.4f after %d pages, %.2f MB", host.name, account.rate, account.pages, mb)
        self._crawler.signals.send_catch_log(signals.host_retired, host=host, spider=self._crawler.spider)
