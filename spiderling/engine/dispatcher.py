"""The crawl as Scrapy's components see it: all requests come in, go out, connect and end through one object.

It decides nothing.  It reads the clock, guards changes of the state, and knows which Fetch a Request carries out.
Scheduler, middlewares, download handler and extensions call it; it calls the frontier and the crawl.

The engine asks for requests when something happens, else every five seconds.  So that a quiet crawl keeps its pace,
the spider middleware ``WakeUp`` sleeps in ``process_start`` until the next host is due and then yields WAKE_UP, which
``enqueue`` swallows.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy import signals as scrapy_signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from spiderling import signals
from spiderling.base.addresses import HostMap
from spiderling.base.errors import is_ours
from spiderling.base.machine import descriptor_limit, elapsed_s, running_time
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.crawl.crawl import Crawl
from spiderling.engine import outcomes, requests
from spiderling.engine.offline import Offline, trouble_of
from spiderling.engine.requests import fetch_of
from spiderling.fetch.errors import NameNotFound, NameServerFailure, TransferCut
from spiderling.fetch.resolver import Resolver
from spiderling.frontier import Fetch, FileAnswer, Trouble, identity, is_sitemap
from spiderling.items import DISTANCE, ERRBACK, FETCH, PAGES, SOURCE, PageItem

if TYPE_CHECKING:
    from spiderling.cluster.shard import Shard

logger = logging.getLogger(__name__)

RAMP_UP_PER_S = 50.0
"""Simultaneous requests that a machine may make more each second after the start; chosen: a router can follow."""
STOP_TIMEOUT_S = 10.0
"""Seconds in which running transfers may finish when the crawl stops; chosen: what is cut off is fetched again."""
REST_S = 1.0  # seconds for which nothing is asked for after a connection has found no file descriptor; chosen
_TOLD_S = 600.0  # seconds after which the log says again that descriptors are missing; chosen
_ASK_AGAIN_S = 1.0
"""Seconds after which a request looks again that must not start now (chosen): an interval may have become shorter, the
crawl may stop, or its shard may ask again."""
_MAY_START = "spiderling_may_start"  # meta key: whether intervals and host let a request start
_SWALLOWED = "spiderling_swallowed"  # meta key of requests that only wake the engine
WAKE_UP = Request("data:,", dont_filter=True, meta={_SWALLOWED: True})
_STARTS_PER_TURN = 8
"""Requests handed out in one turn of the event loop.  Chosen: often a hundred are due at once, and each takes most of
a millisecond."""


class Dispatcher:
    """One crawl's requests, from the frontier to their ends; none are made while archives are read.

    Each Request that it hands out is in transit until `settle`, `settle_file` or `give_back`.  A request that did not
    come from the frontier may connect at once, and counts for no interval.
    """

    shard: Shard | None = None  # this process as a shard of the crawl, if that has any

    def __init__(self, crawler: Crawler, crawl: Crawl, resolver: Resolver, host_map: HostMap) -> None:
        self._crawler = crawler
        self.crawl = crawl
        self.resolver = resolver
        self.host_map = host_map
        self.changed = asyncio.Event()  # set when something may be due earlier than it was
        codes = [info.code for info in crawl.accepted]  # in the user's order
        self._headers = requests.headers(crawler.settings.get("USER_AGENT"), crawl.options, codes)
        self._payloads = requests.Payloads(crawler)
        self._offline = Offline(crawler, crawl, resolver, self._headers, self.wake)
        self._now = crawl.now
        self._opened_at = self._now()
        self._handed_out = 0  # requests handed out in this turn of the event loop
        self._pages: set[int] = set()  # ids of the URLs of pages in transit
        self._files: set[str] = set()  # URLs of site files in transit
        self._file_tasks: set[asyncio.Task[None]] = set()
        self._resolving: set[asyncio.Task[None]] = set()
        self._rests_until = 0.0  # until when nothing is asked for, by `elapsed_s`
        self._told_at = -math.inf
        crawler.signals.connect(self._item_scraped, scrapy_signals.item_scraped)
        crawler.signals.connect(self._item_dropped, scrapy_signals.item_dropped)
        crawler.signals.connect(self._item_error, scrapy_signals.item_error)
        crawler.signals.connect(self._spider_error, scrapy_signals.spider_error)

    def wake(self) -> None:
        """Look again for what is due."""
        self.changed.set()

    def due_in(self) -> float | None:
        """Seconds until a request may start, as it looks now; None: not before something changes (`wake`)."""
        due = None
        if not self.may_ask() or not self.crawl.has_room(len(self._pages)) or self._crawler.engine.needs_backout():
            return None
        with self.crawl.errors.changing():
            due = self.crawl.frontier.next_due()
        return None if due is None else max(due, self._has_room_at()) - self._now()

    def _has_room_at(self) -> float:
        """When the ramp-up lets one more request be in transit."""
        per_s = RAMP_UP_PER_S / self.crawl.options.shards_here()
        return self._opened_at + (len(self._pages) + len(self._files)) / per_s - 1

    def may_ask(self) -> bool:
        """Whether requests may start: nobody paused the crawl, disk and descriptors have room, its shard is ours."""
        if self.crawl.is_held or elapsed_s() < self._rests_until:
            return False
        return self.is_ours()

    def is_ours(self) -> bool:
        """Whether this process holds the lease of its shard, if the crawl has shards."""
        return self.shard is None or self.shard.may_ask()

    def _changing(self, fetch: Fetch) -> AbstractContextManager[None]:
        return self.crawl.errors.changing(fetch.url, fetch.id)

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
        now = self._now()
        if payload is None:
            return frontier.put_seed(request.url, now, request.meta.get(DISTANCE, 0))
        return frontier.put_request(request.url, payload, requests.salt(request), request.meta.get(SOURCE), now)

    # -- requests go out

    def next_request(self) -> Request | None:
        """A request that is due now, or None; site files, which have no callback, are fetched here."""
        with self.crawl.errors.changing():
            return self._next_request()
        return None

    def _next_request(self) -> Request | None:
        while (fetch := self._next_fetch()) is not None:
            request = self._request(fetch)
            if request is None:
                continue
            if fetch.robots is None:
                return request
            engine = self._crawler.engine
            engine.downloader.active.add(request)  # at once: `needs_backout` is asked before the task has begun
            self._file_tasks.add(task := asyncio.ensure_future(self._fetch_file(request)))
            task.add_done_callback(self._file_tasks.discard)
            if engine.needs_backout():
                return None
        return None

    async def _fetch_file(self, request: Request) -> None:
        engine = self._crawler.engine
        end: BaseException
        try:
            if self.crawl.stopping or not engine.running or engine.spider is None:  # Scrapy waits for none that begins
                raise outcomes.NotMade(f"{request.url} goes back to the frontier")
            answer = await engine.download_async(request)
            end = IgnoreRequest(f"a downloader middleware made {answer!r} of {request.url}")
        except (Exception, asyncio.CancelledError) as error:
            end = error
        engine.downloader.active.discard(request)
        with self.crawl.errors.changing(request.url):
            self.end_file(request, end)

    def _next_fetch(self) -> Fetch | None:
        crawl = self.crawl
        if crawl.stopping or crawl.archives is not None or not self.may_ask():
            return None
        self._offline.look()
        self._resolve_names()
        now = self._now()
        if now <= self._has_room_at() or self._handed_out == _STARTS_PER_TURN:
            return None
        if not crawl.has_room(len(self._pages)):
            return None
        try:
            fetch = crawl.frontier.take(now)
        except Exception as error:  # `stop` blames the URL that was looked at, unless disk or memory failed
            head = crawl.frontier.next_fetch.examined
            crawl.errors.stop(error, *(() if head is None else identity(head)))
            return None
        for host in crawl.frontier.host_closing.take_reopened():
            logger.info("Reopened %s, %d URLs: too few hosts are at work", host.name, host.queued)
        self._resolve_names()
        if fetch is not None:
            if fetch.id:
                self._pages.add(fetch.id)
            else:
                self._files.add(fetch.url)
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
        """The request for *fetch*, or None: making it failed, and the URL ends."""
        try:
            return self._make_request(fetch)
        except Exception as error:
            self.crawl.errors.note(error, fetch.url)
        if fetch.robots is not None:
            self.settle_file(fetch, FileAnswer())
        else:
            self.settle(Outcome(fetch.id, fetch.url, Reason.INTERNAL_ERROR))
        return None

    def _make_request(self, fetch: Fetch) -> Request:
        meta = {
            FETCH: fetch,
            "address": fetch.address,
            "verbatim_url": True,
        }
        if fetch.payload is not None and not is_sitemap(fetch):
            request = self._payloads.restore(fetch)
            request.meta.update(meta)
            request.meta[ERRBACK] = request.errback
            request.errback = self.end_failed
        else:
            meta["judge_type"] = fetch.robots is None and fetch.payload is None
            request = Request(fetch.url, meta=meta, dont_filter=True, errback=self.end_failed)
            if fetch.cookies:
                request.headers[b"Cookie"] = fetch.cookies
        if fetch.revisit is not None:
            request.headers.update(requests.conditions(fetch.revisit.page.validators))
        for name, value in self._headers.items():  # names are as Scrapy's Headers would make them
            dict.setdefault(request.headers, name, [value])
        return request

    # -- names

    def _resolve_names(self) -> None:
        """Begin to resolve all names that the frontier wants."""
        for name in self.crawl.frontier.names_wanted():
            self._begin_resolving(name)

    def _begin_resolving(self, name: str) -> None:
        task = self.crawl.errors.watch_task(self._resolve(name), f"asking for the name {name}")
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    async def _resolve(self, name: str) -> None:
        """Report the addresses of *name* at once, a failure when its cause is known."""
        running = running_time()
        stopped_s = running.stopped_s()
        begun = self._now()
        try:
            answer = await self._offline.resolve(name)
        except (NameNotFound, NameServerFailure) as error:
            if isinstance(error, NameServerFailure) and running.stopped_s() > stopped_s:
                await self._resolve(name)  # the process was stopped meanwhile
                return
            trouble = trouble_of(error) or Trouble.NAME_SERVER
            self._offline.failed(name, trouble, begun, functools.partial(self._not_resolved, name, trouble))
        except Exception as error:
            self.crawl.errors.note(error, f"the name {name}")
            self._not_resolved(name, Trouble.NAME_SERVER, True)
        else:
            with self.crawl.errors.changing():
                self.crawl.frontier.resolved(name, answer.addresses, answer.ttl_s, self._now())
        self.crawl.times.dns.add(max(0.0, self._now() - begun))
        self.wake()

    def _not_resolved(self, name: str, trouble: Trouble, is_theirs: bool) -> None:
        if is_theirs:
            with self.crawl.errors.changing():
                self.crawl.frontier.unresolved(name, trouble is Trouble.NO_SUCH_NAME, self._now())
        elif not self.crawl.stopping:
            self._begin_resolving(name)

    # -- requests connect

    def rest(self) -> None:
        """Ask for nothing for a while: a connection has found no file descriptor."""
        self._rests_until = elapsed_s() + REST_S
        asyncio.get_running_loop().call_later(REST_S, self.wake)
        if elapsed_s() - self._told_at > _TOLD_S:
            self._told_at = elapsed_s()
            logger.warning(
                "This process has too many files and sockets open (%d allowed): requests wait until some are closed, "
                "and no URL is lost; ulimit -n allows more, and a smaller CONCURRENT_REQUESTS needs fewer",
                descriptor_limit(),
            )

    def may_start(self, request: Request) -> float | None:
        """Seconds until *request* may start, as it looks now; None: never.  inf: it needs a slot."""
        if (fetch := fetch_of(request)) is None:
            return 0.0
        if self.crawl.is_held:  # it goes back, and comes again when the crawl goes on
            return None
        if not self.is_ours():
            return _ASK_AGAIN_S
        with self._changing(fetch):
            wait_s = self.crawl.frontier.may_start(fetch, self._now())
            request.meta[_MAY_START] = wait_s == 0
            return wait_s
        return None

    async def until_turn(self, request: Request, wait_s: float) -> None:
        """Return when *request* is to ask `may_start` again, which has said *wait_s*."""
        fetch = fetch_of(request)
        if wait_s == math.inf and self.shard is not None and fetch is not None:
            await asyncio.wait([self.shard.slots.granted(fetch.host.id)], timeout=_ASK_AGAIN_S)
        else:
            await asyncio.sleep(min(wait_s, _ASK_AGAIN_S))

    def connect_in(self, request: Request) -> float:
        """Seconds until the connection for *request* may be opened."""
        intervals = self.crawl.frontier.intervals
        if (fetch := fetch_of(request)) is not None:
            return intervals.connect_in(fetch.host, fetch.address, self._now(), fetch.goes_on)
        host = request.meta.get(requests.PROBED)
        return 0.0 if host is None else intervals.connect_in(host, request.meta["address"], self._now())

    def started(self, request: Request, address: str) -> None:
        """Note that *request* opens a connection to *address* now: its intervals begin."""
        if (fetch := fetch_of(request)) is not None:
            with self._changing(fetch):
                self.crawl.frontier.started(fetch, self._now(), address)
        elif (host := request.meta.get(requests.PROBED)) is not None:
            self.crawl.frontier.probes.started(host, address, self._now())

    def asked_again_in(self, request: Request) -> float:
        """Seconds until the host of *request* is asked again: 0 within a visit, inf if none of its URLs waits."""
        if (fetch := fetch_of(request)) is None:
            return math.inf
        return 0.0 if fetch.keeps_open else self.crawl.frontier.asked_again_in(fetch, self._now())

    def goes_on(self, request: Request) -> bool:
        """Whether *request* can only be sent over the connection of the one before it, as in a visit."""
        fetch = fetch_of(request)
        return fetch is not None and fetch.goes_on

    def waits_again(self, request: Request) -> bool:
        """Whether the frontier asks again for *request* if it is not answered."""
        return fetch_of(request) is not None

    def answered(self, request: Request) -> None:
        """Note that the answer to *request*, unless that never started, is complete: it says how slow its host is."""
        if (fetch := fetch_of(request)) is not None and request.meta.get(_MAY_START):
            with self._changing(fetch):
                self.crawl.frontier.intervals.answered(fetch.host, self._now())

    # -- pages end: Scrapy says so by a signal

    def _item_scraped(self, item: Any) -> None:
        if isinstance(item, PageItem):
            self._end_page(item, Reason.NO_PAGE if item.document is None else Reason.KEPT)

    def _item_dropped(self, item: Any, exception: BaseException) -> None:
        if not isinstance(item, PageItem):
            return
        if isinstance(exception, outcomes.PutBack):
            self._put_back(item)
        else:
            self._end_page(item, getattr(exception, "reason", None) or Reason.DROPPED_BY_PIPELINE, str(exception))

    def _item_error(self, item: Any, failure: Failure) -> None:
        if not isinstance(item, PageItem):
            return
        error = failure.value
        if error is not None and is_ours(error):
            self.crawl.errors.note(error, item.response.url)
            self._end_page(item, Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        else:
            self._end_page(item, Reason.ITEM_ERROR)

    def _spider_error(self, response: Any) -> None:
        # after an error in an errback, *response* is a Failure
        if isinstance(response, Response):
            self.end_without_page(response, Reason.SPIDER_ERROR)

    def end_without_page(self, response: Response, reason: Reason) -> None:
        """Settle *response*, unless its callback has yielded a page, which is settled by its own signal."""
        request = response.request
        if request is not None and not request.meta.get(PAGES) and fetch_of(request) is not None:
            with self.crawl.errors.changing(request.url):
                self.settle(outcomes.of_response(response, reason))

    def _end_page(self, item: PageItem, reason: Reason, detail: str = "") -> None:
        """Settle a page that ended as *reason*, or as internal-error if its outcome cannot be made."""
        try:
            outcome = outcomes.of_item(item, reason, detail)
        except Exception as error:
            self.crawl.errors.note(error, item.response.url)
            outcome = outcomes.of_response(item.response, Reason.INTERNAL_ERROR)
        with self.crawl.errors.changing(outcome.url, outcome.url_id):
            self.settle(outcome, item)

    def _put_back(self, item: PageItem) -> None:
        """Let the URL of a page that cannot be judged now wait again."""
        request = item.response.request
        if request is None or (fetch := fetch_of(request)) is None:
            return
        with self._changing(fetch):
            self.crawl.forget(item)
        if self.crawl.archives is None:  # there it was not noted as read, and so is read again
            self.give_back(fetch)

    # -- requests without a page end

    def end_failed(self, failure: Failure) -> Any:
        """Settle a failed request; its own errback is called unless its URL waits again or was redirected."""
        request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        fetch = fetch_of(request)
        if (
            fetch is None
            or fetch.robots is not None
            or isinstance(error, (outcomes.FileTaken, outcomes.NotMade, TransferCut))
        ):
            with self.crawl.errors.changing(request.url):
                self.end_file(request, error)
        elif self._holds(fetch.id) and error is not None:
            trouble = trouble_of(error, request.meta.get("wire_bytes") or 0)
            if trouble is not None:
                return self._end_once_known(failure, fetch, error, trouble)
            return self._end_failed(failure, fetch, error)
        return None

    async def _end_once_known(self, failure: Failure, fetch: Fetch, error: BaseException, trouble: Trouble) -> Any:
        """Wait until the cause of *error* is known; unless it is the host, the URL waits again."""
        is_theirs = False
        with self.crawl.errors.changing(fetch.url, fetch.id):
            is_theirs = await self._offline.is_theirs(fetch.host.name, trouble, fetch.host.last_start)
        if is_theirs:
            return self._end_failed(failure, fetch, error)
        self.give_back(fetch)
        return None

    def _end_failed(self, failure: Failure, fetch: Fetch, error: BaseException) -> Any:
        request = failure.request  # type: ignore[attr-defined]
        errback = request.meta.get(ERRBACK)
        end = None
        with self._changing(fetch):
            end = self.settle(self._outcome_of_failure(request, fetch, error))
        return errback(failure) if errback is not None and end not in (None, Reason.REDIRECTED) else None

    def _outcome_of_failure(self, request: Request, fetch: Fetch, error: BaseException) -> Outcome:
        """The outcome of a request that gave no page; an error of ours is noted, also one in making the outcome."""
        try:
            outcome = outcomes.of_failure(request, error)
            goes_on = None if fetch.payload is None else outcomes.redirect(request, outcome)
            if goes_on is not None:
                goes_on = goes_on.replace(errback=request.meta.get(ERRBACK))
                outcome = replace(outcome, redirect_payload=self._payloads.of(goes_on))
        except Exception as ours:
            outcome = Outcome(fetch.id, fetch.url, Reason.INTERNAL_ERROR)
            error = ours
        if outcome.reason is Reason.INTERNAL_ERROR:
            self.crawl.errors.note(error.__cause__ or error, request.url)
        return outcome

    def end_file(self, request: Request, error: BaseException | None) -> None:
        """Settle a request without a page: of a site file, taken or failed; not made; or cut."""
        fetch = fetch_of(request)
        if fetch is None or isinstance(error, outcomes.FileTaken):
            return
        if isinstance(error, (outcomes.NotMade, TransferCut)):
            self.give_back(fetch)
            return
        if error is not None and outcomes.reason_of(error) is Reason.INTERNAL_ERROR:
            self.crawl.errors.note(error.__cause__ or error, request.url)
        trouble = trouble_of(error, request.meta.get("wire_bytes") or 0)
        if trouble is None:
            self._file_failed(fetch, True)
        else:
            since = fetch.host.last_start
            self._offline.failed(fetch.host.name, trouble, since, functools.partial(self._file_failed, fetch))

    def _file_failed(self, fetch: Fetch, is_theirs: bool) -> None:
        if is_theirs:
            self.settle_file(fetch, FileAnswer())
        else:
            self.give_back(fetch)

    # -- requests leave

    def _holds(self, url_id: int | None) -> bool:
        """Whether the URL of this id was handed out and is not settled; also one that an archive gave."""
        archives = self.crawl.archives
        return url_id in self._pages or (archives is not None and archives.holds(url_id))

    def settle(self, outcome: Outcome, item: PageItem | None = None) -> Reason | None:
        """Account for a request that is over; returns how its URL ended (None: it waits for another attempt).

        *item* is the page, if there was one.  A further page of a response that has counted already adds its text
        alone.
        """
        is_first = outcome.url_id in self._pages or self._holds(outcome.url_id)
        report = self.crawl.finish(outcome if is_first else outcomes.further(outcome), item)
        if (host := report.retired) is not None:
            account = host.account
            mb = account.downloaded_bytes / 1e6
            logger.info(
                "Retired %s: yield rate %.4f after %d pages, %.2f MB", host.name, account.rate, account.pages, mb
            )
            self._crawler.signals.send_catch_log(signals.host_retired, host=host, spider=self._crawler.spider)
        self._pages.discard(outcome.url_id or 0)
        self.wake()
        return report.end

    def settle_file(self, fetch: Fetch, answer: FileAnswer) -> None:
        """Account for the request of a site file that is over."""
        assert fetch.robots is not None
        now = self._now()
        with self.crawl.errors.changing(*identity(fetch.robots)):
            self.crawl.frontier.robots_answered(fetch, answer, now)
        self._files.discard(fetch.url)
        self.wake()

    def give_back(self, fetch: Fetch) -> None:
        """Let the URL of a request wait again that was not made after all, or is to be made again."""
        with self._changing(fetch):
            self.crawl.frontier.give_back(fetch, self._now())
        self._pages.discard(fetch.id)
        self._files.discard("" if fetch.id else fetch.url)
        self.wake()

    # -- the crawl ends

    def stop(self) -> None:
        """Hand out nothing new; transfers have STOP_TIMEOUT_S to finish, and the log says how many."""
        if self.crawl.stopping:
            return
        self.crawl.stopping = True
        with self.crawl.errors.changing():  # an error of ours does not keep the spider from being closed
            self.crawl.frontier.recrawl.stop()
        with self.crawl.errors.changing():
            self._offline.end()
        if self.shard is not None:
            with self.crawl.errors.changing():
                self.shard.slots.release()
        send = self._crawler.signals.send_catch_log
        asyncio.get_running_loop().call_later(STOP_TIMEOUT_S, send, signals.transfers_cut)
        if in_transit := len(self._pages) + len(self._files):
            logger.info(
                "Stopping: requests in transit (%d) have %g s to finish%s",
                in_transit,
                STOP_TIMEOUT_S,
                "; what has come is still judged and saved" if self.crawl.checkpoint.error is None else "",
            )

    def close_spider(self, reason: str) -> None:
        """Stop the crawl, and let Scrapy close the spider with the finish reason *reason*."""
        self.stop()
        self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))

    async def close(self) -> None:
        """Make everything durable; raises SpiderlingError."""
        with self.crawl.errors.changing():
            self._offline.end()  # as `stop` has done, unless the crawl has ended by itself
        for task in self._resolving:
            task.cancel()
        if self._file_tasks:
            await asyncio.wait(self._file_tasks)
        await self.resolver.close()
        await self.crawl.close()
