"""The Scrapy scheduler: translates between the engine and the frontier, and wakes the engine.  No policy.

    enqueue_request   Request -> frontier.put      (seeds, and any Request of a subclass)
    next_request      frontier.take -> Request     (only what is due now; robots.txt goes past the engine)
    started           the handler has sent the first packet -> frontier.started
    settle            the request is over: outcome -> Crawl.finish

The engine asks for requests when something happens, else every five seconds.  So that a
quiet crawl keeps its pace, the spider middleware ``WakeUp`` sleeps in ``process_start``
until the next host is due and then yields WAKE_UP, which ``enqueue_request`` swallows.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro

from spiderling import signals
from spiderling.base.addresses import HostMap
from spiderling.base.errors import InternalError, NetworkAway, SpiderlingError, StorageError
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.arguments import directory_of, options_of
from spiderling.crawl.crawl import Crawl, log_reopened, send_retired
from spiderling.engine import fast_scrapy, requests
from spiderling.engine.downloader import DirectDownloader
from spiderling.engine.log_format import is_heard
from spiderling.engine.lookup import fetch_of
from spiderling.engine.naming import Naming
from spiderling.engine.offline import Offline, trouble_of
from spiderling.engine.outcomes import FileTaken, NotMade, of_failure, reason_of, redirected
from spiderling.engine.payloads import DISTANCE, Payloads, is_plain
from spiderling.fetch.errors import TransferCut
from spiderling.fetch.resolver import Resolver
from spiderling.frontier import Fetch
from spiderling.frontier.discovery.sitemaps import is_sitemap
from spiderling.frontier.hosts.host import identity

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from spiderling.frontier.reachability import Trouble

logger = logging.getLogger(__name__)

FAILED_STAT = "spiderling/failed"
"""Stat of a crawl that could not begin, go on or be saved (``close_reason``); the command exits with 1 ..."""
OFFLINE = "offline"
"""... and of one that has no network: it exits with 3."""
SWALLOWED = "spiderling_swallowed"
"""Meta key of requests that only wake the engine or stand for a URL that is back in the frontier."""
WAKE_UP = Request("data:,", dont_filter=True, meta={SWALLOWED: True})
_STARTS_PER_TURN = 8
"""Requests handed out in one turn of the event loop: often a hundred are due at once, most of a millisecond each."""


class Scheduler(BaseScheduler):
    """Opens the crawl and hands out its requests."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._headers: dict[bytes, bytes] = {}
        self._payloads = Payloads(crawler)
        self._active: set[int | str] = set()
        """Requests handed out and not settled: ids of pages, URLs of robots.txt files."""
        self._opened_at = 0.0
        self._handed_out = 0
        """Requests in this turn of the event loop."""
        self.crawl: Crawl | None = None
        self.error: SpiderlingError | None = None
        """Why the crawl could not be opened or had to stop."""
        self.changed = asyncio.Event()
        """Set when something may be due earlier than it was."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        return cls(crawler)

    # -- the engine's side

    def open(self, spider: Spider) -> None:
        """Open the crawl; a failure is kept in ``error`` and closes the spider once it is open (Lifecycle)."""
        fast_scrapy.install(self._crawler)
        try:
            options = options_of(self._crawler.settings, spider)
            getattr(spider, "prepare", lambda: None)()
            archives = getattr(spider, "archives", None)
            directory = directory_of(self._crawler.settings, options, "" if archives is None else "-archive")
            self._resolver = Resolver.from_options(options, HostMap.parse(options.hosts))
            self.crawl = Crawl(options, directory, self._stop, archives)
        except SpiderlingError as error:
            self._note_error(error)
            return
        codes = [info.code for info in self.crawl.accepted]
        self._headers = requests.headers(self._crawler.settings.get("USER_AGENT"), options, codes)
        self._opened_at = self.crawl.clock.now()
        self._offline = Offline(self._crawler, self.crawl, self._resolver, self._headers, self.wake)
        self._naming = Naming(self.crawl, self._resolver, self._offline, self.wake)

    def close(self, reason: str) -> Deferred[None]:
        """Make everything durable."""
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        if self.crawl is None:
            return
        self._naming.end()
        try:
            if isinstance(downloader := self._crawler.engine.downloader, DirectDownloader):
                await downloader.files_over()
            await self._resolver.close()
            await self.crawl.close()
        except SpiderlingError as error:
            self._note_error(error)

    @property
    def close_reason(self) -> str:
        """The finish reason that ``error`` leads to, and the value of FAILED_STAT."""
        if isinstance(self.error, InternalError):
            return "internal-error"
        if isinstance(self.error, NetworkAway):
            return OFFLINE
        return "storage-failed" if isinstance(self.error, StorageError) else "bad-input"

    def has_pending_requests(self) -> bool:
        return self.crawl is not None and not self.crawl.is_finished

    def enqueue_request(self, request: Request) -> bool:
        """Put *request* into the frontier; False when it was refused (seen, not http ...)."""
        if request.meta.get(SWALLOWED):
            return True
        if self.crawl is None or self.crawl.archives is not None:
            return False
        now, frontier = self.crawl.clock.now(), self.crawl.frontier
        is_start = request.meta.get("is_start_request", False)
        payload = None if is_start and is_plain(request) else self._payloads.of(request)
        refusal: Reason | None = Reason.INTERNAL_ERROR
        with self.crawl.errors.changing(request.url):
            if payload is None:
                refusal = frontier.put_seed(request.url, now, request.meta.get(DISTANCE, 0))
            else:
                source = request.meta.get("spiderling_source")
                refusal = frontier.put_request(request.url, payload, requests.salt(request), source, now)
        if refusal is not None:
            is_told = is_start and refusal in (Reason.PORT_FORBIDDEN, Reason.INTERNAL_ERROR)
            level = logging.WARNING if is_told else logging.DEBUG
            logger.log(level, "Refused %s: %s", request.url, refusal.help)
        self.wake()
        return refusal is None

    def next_request(self) -> Request | None:
        """A request that is due now, or None; robots.txt and its like are sent off without the engine."""
        engine = self._crawler.engine
        while (fetch := self._next()) is not None:
            request = self._request(fetch)
            if request is None:
                continue
            if fetch.robots is None or not isinstance(engine.downloader, DirectDownloader):
                return request
            engine.downloader.fetch_file(request, self.file_over)
            if engine.needs_backout():
                return None
        return None

    def _next(self) -> Fetch | None:
        crawl = self.crawl
        if crawl is None or crawl.stopping or crawl.archives is not None:
            return None
        self._offline.look()
        self._naming.ask()
        now = crawl.clock.now()
        if len(self._active) >= crawl.options.ramp_up_per_s * (1 + now - self._opened_at):
            return None
        if self._handed_out == _STARTS_PER_TURN:
            return None
        try:
            fetch = crawl.frontier.take(now)
        except Exception as error:  # the URL that was looked at is to blame, if the disk is not
            head = crawl.frontier.examined
            crawl.errors.stop(error, *(() if head is None else identity(head)))
            return None
        log_reopened(crawl)
        self._naming.ask()
        if fetch is not None:
            self._active.add(fetch.id or fetch.url)
            if not self._handed_out:
                asyncio.get_running_loop().call_soon(self._end_turn)
            self._handed_out += 1
        return fetch

    def _end_turn(self) -> None:
        """Others have had theirs: more may be handed out."""
        if self._handed_out == _STARTS_PER_TURN:
            self.wake()
        self._handed_out = 0

    def started(self, request: Request, address: str) -> None:
        """The download handler has begun, or is about to begin, a connection to *address* for *request*."""
        fetch = fetch_of(request)
        if fetch is not None and self.crawl is not None:
            with self.crawl.errors.changing(fetch.url, fetch.id):
                self.crawl.frontier.started(fetch, self.crawl.clock.now(), address)

    def connect_in(self, request: Request) -> float:
        """Seconds until the handler may open the connection for *request*."""
        fetch = fetch_of(request)
        if fetch is None or self.crawl is None:
            return 0.0
        return self.crawl.frontier.connect_in(fetch, self.crawl.clock.now())

    def may_also_connect(self, request: Request, address: str) -> bool:
        """Whether the handler may open a connection for *request* to its second address too; it counts as begun."""
        fetch = fetch_of(request)
        if fetch is None or self.crawl is None:
            return True
        with self.crawl.errors.changing(fetch.url, fetch.id):
            return self.crawl.frontier.may_also_start(address, self.crawl.clock.now())
        return False

    # -- the components' side

    def is_active(self, url_id: int | None) -> bool:
        """Whether the frontier's URL of this id was handed out and is not settled."""
        archives = self.crawl.archives if self.crawl is not None else None
        return url_id in self._active or (archives is not None and archives.holds(url_id))

    def settle(self, outcome: Outcome) -> Reason | None:
        """A request is over: account for it; returns how its URL ended (None: it waits for another attempt)."""
        assert self.crawl is not None
        report = self.crawl.finish(outcome)
        send_retired(self._crawler, report)
        self._active.discard(outcome.url_id or 0)
        self.wake()
        return report.end

    def settle_robots(
        self, fetch: Fetch, status: int, body: bytes, location: str | None, retry_after_s: float = 0.0
    ) -> None:
        """A robots.txt request is over; *status* 0 when no answer came."""
        assert self.crawl is not None and fetch.robots is not None
        now = self.crawl.clock.now()
        with self.crawl.errors.changing(*identity(fetch.robots)):
            self.crawl.frontier.robots_answered(fetch, status, body, location, now, retry_after_s)
        self._active.discard(fetch.url)
        self.wake()

    def give_back(self, fetch: Fetch) -> None:
        """A request was not made after all: its URL waits again."""
        assert self.crawl is not None
        with self.crawl.errors.changing(fetch.url, fetch.id):
            self.crawl.frontier.give_back(fetch, self.crawl.clock.now())
        self._active.discard(fetch.id or fetch.url)
        self.wake()

    def wake(self) -> None:
        """Look again for what is due."""
        self.changed.set()

    def stop(self) -> None:
        """The crawl is being stopped: nothing new is handed out, transfers may finish for ``stop_timeout_s``."""
        if self.crawl is None or self.crawl.stopping:
            return
        self.crawl.stopping = True
        self._offline.end()
        asyncio.get_running_loop().call_later(
            self.crawl.options.stop_timeout_s,
            lambda: self._crawler.signals.send_catch_log(signals.transfers_cut),
        )

    def failed(self, failure: Failure) -> Any:
        """Errback of requests: settle it; its own errback is called unless it waits again or was redirected."""
        request, error = failure.request, failure.value  # type: ignore[attr-defined]
        fetch = fetch_of(request)
        if fetch is None or fetch.robots is not None or isinstance(error, (FileTaken, NotMade, TransferCut)):
            self.file_over(request, error)
        elif fetch.id in self._active and error is not None:
            if is_heard(logger):
                logger.debug("%s: %s", request.url, error)
            trouble = trouble_of(error, request.meta.get("wire_bytes") or 0)
            if trouble is not None:
                return self._once_known(failure, fetch, error, trouble)
            return self._ended(failure, fetch, error)
        return None

    def _ended(self, failure: Failure, fetch: Fetch, error: BaseException) -> Any:
        request = failure.request  # type: ignore[attr-defined]
        errback = request.meta.get("spiderling_errback")
        end = self.settle(self._outcome(request, fetch, error))
        return errback(failure) if errback is not None and end not in (None, Reason.REDIRECTED) else None

    async def _once_known(self, failure: Failure, fetch: Fetch, error: BaseException, trouble: Trouble) -> Any:
        """The same for a failure of which it is to be seen first whether it was the host's."""
        if await self._offline.is_theirs(fetch.host.name, trouble, fetch.host.last_start):
            return self._ended(failure, fetch, error)
        self.give_back(fetch)
        return None

    def file_over(self, request: Request, error: BaseException | None) -> None:
        """A request is over that no page came of: FileTaken, not made, or a robots.txt without an answer."""
        fetch = fetch_of(request)
        if fetch is not None and isinstance(error, (NotMade, TransferCut)):
            self.give_back(fetch)
        elif fetch is not None and not isinstance(error, FileTaken):
            if error is not None and self.crawl is not None and reason_of(error) is Reason.INTERNAL_ERROR:
                self.crawl.errors.note(error.__cause__ or error, request.url)
            over = functools.partial(self._robots_failed, fetch)
            trouble = trouble_of(error, request.meta.get("wire_bytes") or 0)
            over(True) if trouble is None else self._offline.failed(
                fetch.host.name, trouble, fetch.host.last_start, over
            )

    def _robots_failed(self, fetch: Fetch, is_theirs: bool) -> None:
        if is_theirs:
            self.settle_robots(fetch, 0, b"", None)
        else:
            self.give_back(fetch)

    def _outcome(self, request: Request, fetch: Fetch, error: BaseException) -> Outcome:
        """The outcome of a request that gave no page; an error of ours is noted, also one in making the outcome."""
        assert self.crawl is not None
        try:
            outcome = self._with_redirect(request, of_failure(request, error))
        except Exception as ours:
            outcome, error = Outcome(fetch.id, fetch.url, Reason.INTERNAL_ERROR), ours
        if outcome.reason is Reason.INTERNAL_ERROR:
            self.crawl.errors.note(error.__cause__ or error, request.url)
        return outcome

    def _with_redirect(self, request: Request, outcome: Outcome) -> Outcome:
        """*outcome* with the request that is to be made of a redirect's target, if that is another one."""
        fetch, goes_on = fetch_of(request), None
        if outcome.redirect_to is not None and fetch is not None and fetch.payload is not None:
            goes_on = redirected(request, outcome)
        if goes_on is None:
            return outcome
        goes_on = goes_on.replace(errback=request.meta.get("spiderling_errback"))
        return replace(outcome, redirect_payload=self._payloads.of(goes_on))

    def _stop(self, error: SpiderlingError) -> None:
        """The crawl cannot go on: close the spider; everything acknowledged is safe."""
        self._note_error(error)
        engine = self._crawler.engine
        if engine.spider is not None:
            self.stop()
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason=self.close_reason))

    def _note_error(self, error: SpiderlingError) -> None:
        if self.error is None:
            self.error = error
            self._crawler.stats.set_value(FAILED_STAT, self.close_reason)
            logger.error("The crawl stops: %s", error)

    # -- translation

    def _request(self, fetch: Fetch) -> Request | None:
        """The request to make for *fetch*; None if that failed and the URL has ended."""
        assert self.crawl is not None
        try:
            return self._made(fetch)
        except Exception as error:
            self.crawl.errors.note(error, fetch.url)
            self.settle(Outcome(fetch.id, fetch.url, Reason.INTERNAL_ERROR))
            return None

    def _made(self, fetch: Fetch) -> Request:
        meta: dict[str, Any] = {"spiderling_fetch": fetch, "address": fetch.address, "verbatim_url": True}
        assert self.crawl is not None
        meta["fallback_address"] = self.crawl.frontier.fallback_of(fetch)
        if fetch.payload is not None and not is_sitemap(fetch):
            request = self._payloads.restored(fetch)
            request.meta.update(meta)
            request.meta["spiderling_errback"] = request.errback
            request.errback = self.failed
        else:
            meta["judge_type"] = fetch.robots is None and fetch.payload is None
            request = Request(fetch.url, meta=meta, dont_filter=True, errback=self.failed)
        for name, value in self._headers.items():
            request.headers.setdefault(name, value)
        return request
