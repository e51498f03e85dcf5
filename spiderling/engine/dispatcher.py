"""Hands out the requests of an open crawl when they are due, takes new ones in, and wakes the engine.  No policy.

The engine asks for requests when something happens, else every five seconds.  So that a quiet crawl keeps its pace,
the spider middleware ``WakeUp`` sleeps in ``process_start`` until the next host is due and then yields WAKE_UP, which
``enqueue`` swallows.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler

from spiderling import signals
from spiderling.base.addresses import HostMap
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.crawl import Crawl
from spiderling.engine import requests
from spiderling.engine.downloader import DirectDownloader
from spiderling.engine.failures import Failures
from spiderling.engine.in_transit import InTransit
from spiderling.engine.meta_keys import DISTANCE, ERRBACK, FETCH, SOURCE
from spiderling.engine.naming import Naming
from spiderling.engine.offline import Offline
from spiderling.fetch.resolver import Resolver
from spiderling.frontier import Fetch
from spiderling.frontier.discovery.sitemaps import is_sitemap
from spiderling.frontier.hosts.host import identity

if TYPE_CHECKING:
    from spiderling.cluster.shard import Shard

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0
"""Seconds in which running transfers may finish when the crawl stops; chosen: what is cut off is fetched again."""
_SWALLOWED = "spiderling_swallowed"
"""Meta key of requests that only wake the engine."""
WAKE_UP = Request("data:,", dont_filter=True, meta={_SWALLOWED: True})
_STARTS_PER_TURN = 8
"""Requests handed out in one turn of the event loop.  Chosen: often a hundred are due at once, and each takes most of
a millisecond."""


class Dispatcher:
    """Passes requests between engine and frontier of one crawl; none while archives are read."""

    def __init__(self, crawler: Crawler, crawl: Crawl, resolver: Resolver, host_map: HostMap) -> None:
        self._crawler = crawler
        self.crawl = crawl
        self.resolver = resolver
        self.host_map = host_map
        self.changed = asyncio.Event()
        """Set when something may be due earlier than it was."""
        codes = [info.code for info in crawl.accepted]  # in the user's order
        self._headers = requests.headers(crawler.settings.get("USER_AGENT"), crawl.options, codes)
        self._payloads = requests.Payloads(crawler)
        self.in_transit = InTransit(crawler, crawl, self.wake)
        self._offline = Offline(crawler, crawl, resolver, self._headers, self.wake)
        self._naming = Naming(crawl, self._offline, self.wake)
        self._failures = Failures(crawl, self.in_transit, self._offline, self._payloads)
        self._opened_at = crawl.clock.now()
        self._handed_out = 0
        """Requests handed out in this turn of the event loop."""

    def wake(self) -> None:
        """Look again for what is due."""
        self.changed.set()

    def may_ask(self) -> bool:
        """Whether requests may start: nobody paused the crawl, disk and descriptors have room, its shard is ours."""
        if self.crawl.is_paused or self.crawl.is_disk_full or self.in_transit.rests:
            return False
        return self.in_transit.shard is None or self.in_transit.shard.may_ask()

    @property
    def shard(self) -> Shard | None:
        """This process as a shard of the crawl, if that has any."""
        return self.in_transit.shard

    # -- requests come in

    def enqueue(self, request: Request) -> bool:
        """Put *request* into the frontier; False when it was refused (seen, not http ...)."""
        if request.meta.get(_SWALLOWED):
            return True
        if self.crawl.archives is not None:
            return False
        refusal: Reason | None = Reason.INTERNAL_ERROR
        is_start = request.meta.get("is_start_request", False)
        payload = None if is_start and requests.is_plain(request) else self._payloads.of(request)
        with self.crawl.errors.changing(request.url):
            refusal = self._put(request, payload)
        if refusal is not None:
            is_told = is_start and refusal in (Reason.PORT_FORBIDDEN, Reason.INTERNAL_ERROR)
            logger.log(logging.WARNING if is_told else logging.DEBUG, "Refused %s: %s", request.url, refusal.help)
        self.wake()
        return refusal is None

    def _put(self, request: Request, payload: bytes | None) -> Reason | None:
        frontier = self.crawl.frontier
        now = self.crawl.clock.now()
        if payload is None:
            return frontier.put_seed(request.url, now, request.meta.get(DISTANCE, 0))
        return frontier.put_request(request.url, payload, requests.salt(request), request.meta.get(SOURCE), now)

    # -- requests go out

    def next_request(self) -> Request | None:
        """A request that is due now, or None; site files are fetched without the engine."""
        engine = self._crawler.engine
        while (fetch := self._next_fetch()) is not None:
            request = self._request(fetch)
            if request is None:
                continue
            if fetch.robots is None or not isinstance(engine.downloader, DirectDownloader):
                return request
            engine.downloader.fetch_file(request, self._failures.file_over)
            if engine.needs_backout():
                return None
        return None

    def _next_fetch(self) -> Fetch | None:
        crawl = self.crawl
        if crawl.stopping or crawl.archives is not None or not self.may_ask():
            return None
        self._offline.look()
        self._naming.ask()
        now = crawl.clock.now()
        most = crawl.options.ramp_up_per_s * (1 + now - self._opened_at)
        if len(self.in_transit) >= most or self._handed_out == _STARTS_PER_TURN:
            return None
        if not crawl.has_room(len(self.in_transit.pages)):
            return None
        try:
            fetch = crawl.frontier.take(now)
        except Exception as error:  # `stop` blames the URL that was looked at, unless disk or memory failed
            head = crawl.frontier.next_fetch.examined
            crawl.errors.stop(error, *(() if head is None else identity(head)))
            return None
        for host in crawl.frontier.host_closing.take_reopened():
            logger.info("Reopened %s, %d URLs: too few hosts are at work", host.name, host.queued)
        self._naming.ask()
        if fetch is not None:
            self.in_transit.add(fetch)
            if not self._handed_out:
                asyncio.get_running_loop().call_soon(self._end_turn)
            self._handed_out += 1
        return fetch

    def _end_turn(self) -> None:
        """Let more be handed out, since other tasks have had their turn."""
        if self._handed_out == _STARTS_PER_TURN:
            self.wake()
        self._handed_out = 0

    def _request(self, fetch: Fetch) -> Request | None:
        """The request for *fetch*; None if making it failed, which ends the URL."""
        try:
            return self._made(fetch)
        except Exception as error:
            self.crawl.errors.note(error, fetch.url)
            self.in_transit.settle(Outcome(fetch.id, fetch.url, Reason.INTERNAL_ERROR))
            return None

    def _made(self, fetch: Fetch) -> Request:
        meta = {
            FETCH: fetch,
            "address": fetch.address,
            "fallback_address": self.crawl.frontier.fallback_of(fetch),
            "verbatim_url": True,
        }
        if fetch.payload is not None and not is_sitemap(fetch):
            request = self._payloads.restored(fetch)
            request.meta.update(meta)
            request.meta[ERRBACK] = request.errback
            request.errback = self._failures.errback
        else:
            meta["judge_type"] = fetch.robots is None and fetch.payload is None
            request = Request(fetch.url, meta=meta, dont_filter=True, errback=self._failures.errback)
            if fetch.cookies:
                request.headers[b"Cookie"] = fetch.cookies
        if fetch.look is not None:
            request.headers.update(requests.conditions(fetch.look.known.validators))
        for name, value in self._headers.items():  # names are as Scrapy's Headers would make them
            dict.setdefault(request.headers, name, [value])
        return request

    # -- the end

    def stop(self) -> None:
        """Hand out nothing new; transfers have STOP_TIMEOUT_S to finish, and the log says how many."""
        if self.crawl.stopping:
            return
        self.crawl.stopping = True
        self.crawl.frontier.watch.stop()
        self._offline.end()
        if self.shard is not None:
            self.shard.slots.release()
        send = self._crawler.signals.send_catch_log
        asyncio.get_running_loop().call_later(STOP_TIMEOUT_S, send, signals.transfers_cut)
        if self.in_transit:
            logger.info(
                "Stopping: requests in transit (%d) have %g s to finish%s",
                len(self.in_transit),
                STOP_TIMEOUT_S,
                "; what has come is still judged and saved" if self.crawl.checkpoint.error is None else "",
            )

    def close_spider(self, reason: str) -> None:
        """Stop the crawl, and let Scrapy close the spider with the finish reason *reason*."""
        self.stop()
        self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))

    async def close(self) -> None:
        """Make everything durable; raises SpiderlingError."""
        self._naming.end()
        if isinstance(downloader := self._crawler.engine.downloader, DirectDownloader):
            await downloader.files_over()
        await self.resolver.close()
        await self.crawl.close()
