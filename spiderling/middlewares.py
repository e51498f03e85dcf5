"""Our middlewares, in the order in which a response passes them.

Between engine and handler: PolitenessMiddleware checks a request last, before its connection is opened.  Of responses,
SiteFilesMiddleware takes the files of sites, ChallengesMiddleware ends challenges, and LimitsMiddleware ends redirects
and error statuses.  Only pages go on to the spider.  Between engine and spider: ExitsMiddleware ends the URL of a
response whose callback yields no page, and WakeUp keeps the spider open while a host waits for its turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

import ada_url
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response

from spiderling.base.errors import SpiderlingError
from spiderling.base.files import whole_number
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.engine import outcomes
from spiderling.engine.component import Component
from spiderling.engine.dispatcher import WAKE_UP, Dispatcher
from spiderling.engine.outcomes import NotMade, Refused, value_of
from spiderling.engine.requests import fetch_of
from spiderling.fetch.errors import TransferCut
from spiderling.fetch.messages import challenge_of
from spiderling.frontier import MAX_COOKIES, MAX_FILE_BYTES, Fetch, FileAnswer, RobotsRequest, is_sitemap, parse_rules
from spiderling.items import FETCH, PAGES, SOURCE, PageItem
from spiderling.text.listing import Listing, read_listing, unpack
from spiderling.text.optout import page_statements
from spiderling.workers.pool import WorkerCrash

_REDIRECTS = {301, 302, 303, 307, 308}
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
_RETRY_AFTER_OBEYED = {429, 503}
_REFUSALS = {402: Reason.PAYMENT_REQUIRED, 451: Reason.UNAVAILABLE_FOR_LEGAL_REASONS}
_SMALL_BYTES = 20_000
"""Most bytes of rules that are parsed in the event loop, in some milliseconds; more in a thread.  Chosen."""
_LONGEST_SLEEP_S = 5.0  # longest sleep, in seconds: after that Scrapy's engine looks for requests by itself
_GATHERING_S = 0.01
"""Seconds within which changes wake the engine once.  Chosen; the engine also looks at the end of each request."""


class PolitenessMiddleware(Component):
    """Holds a request back until its host and address are due; one that must not be made goes back to the frontier.

    It also tells the frontier when an answer is complete, and so how slow the host is.
    """

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """None if the request may start now, else an awaitable that returns when it may.

        It raises NotMade when the host was closed, or the crawl is paused or stopping.
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


class SiteFilesMiddleware(Component):
    """Takes robots.txt, tdmrep.json, ai.txt and sitemaps to the frontier; none reaches the spider.

    The frontier applies the rules when it hands out a URL (frontier/robots.py).  It stands nearer to the handler than
    LimitsMiddleware, so it sees redirects and error statuses too.

    Large files of rules are read in a thread, sitemaps and feeds by a text worker, to keep the event loop free and a
    hostile file away from it; both one at a time, to save memory.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._reading_rules = asyncio.Lock()
        self._reading_sitemap = asyncio.Lock()

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        fetch = fetch_of(request)
        if fetch is not None and fetch.robots is not None:
            return self._settle_rules(fetch, fetch.robots, request, response)
        if fetch is not None and fetch.payload is not None and is_sitemap(fetch):
            return self._settle_sitemap(fetch, request, response)
        return response

    def _settle_rules(
        self, fetch: Fetch, asked: RobotsRequest, request: Request, response: Response
    ) -> Awaitable[Response]:
        status = response.status
        challenge = challenge_of(status, response.headers, response.body)
        wait_s = asked_to_wait_s(response) or 0.0
        is_open = request.meta.get("is_open", False)
        answer = FileAnswer(status, response.body, redirect_target(response), wait_s, challenge, is_open)
        if len(response.body) <= _SMALL_BYTES or not answer.has_file or asked.asker is not None:
            self._take_rules(fetch, request, answer)
        return self._parse_apart(fetch, asked, request, answer)

    async def _parse_apart(self, fetch: Fetch, asked: RobotsRequest, request: Request, answer: FileAnswer) -> NoReturn:
        """Parse the file in a thread before it is taken: a large one takes .1 s and more."""
        body = answer.body[:MAX_FILE_BYTES]
        try:
            async with self._reading_rules:
                rules = await asyncio.to_thread(parse_rules, asked.file, body, self.crawl.options)
            answer = answer._replace(rules=rules)
        except Exception as error:
            self.crawl.errors.note(error, request.url)
            answer = answer._replace(status=0)
        self._take_rules(fetch, request, answer)

    def _take_rules(self, fetch: Fetch, request: Request, answer: FileAnswer) -> NoReturn:
        """Give the frontier the *answer*; raises FileTaken."""
        self.crawl.archive(outcomes.exchange_of(request), {"reason": "site-file"})
        self.dispatcher.settle_file(fetch, answer)
        raise outcomes.FileTaken(f"{request.url} is a file of a site")

    async def _settle_sitemap(self, fetch: Fetch, request: Request, response: Response) -> Response:
        """Settle a sitemap or feed; redirects within the host, what may pass and challenges go on to the others."""
        redirect = canonicalize(redirect_target(response) or "")
        if may_pass(response) or challenge_of(response.status, response.headers, response.body):
            return response
        if redirect is not None and redirect.host == fetch.host.name:
            return response
        detail = f"HTTP {response.status}"
        reason = Reason.SITEMAP
        if 200 <= response.status < 300:
            async with self._reading_sitemap:
                try:
                    listing = await self._listing(response.body, request.url)
                except WorkerCrash as error:
                    detail = str(error)
                    reason = Reason.WORKER_CRASH
                except SpiderlingError as error:
                    raise NotMade(str(error)) from None
                except Exception as error:
                    self.crawl.errors.note(error, request.url)
                    detail = f"{type(error).__name__}: {error}"
                    reason = Reason.INTERNAL_ERROR
                else:
                    detail = await self.crawl.take_listing(fetch, listing)
        outcome = outcomes.of_response(response, reason)  # `response.request` is not set yet
        outcome = replace(outcome, url_id=fetch.id, detail=detail, exchange=outcomes.exchange_of(request))
        self.dispatcher.settle(outcome)
        raise outcomes.FileTaken(f"{request.url} is a sitemap")

    async def _listing(self, body: bytes, url: str) -> Listing:
        """What a text worker reads in a sitemap or feed; raises WorkerCrash, and SpiderlingError if none can be had."""
        workers = self.crawl.workers
        if workers is None:
            return unpack(await asyncio.to_thread(read_listing, body, url))
        return await workers.read_listing(body, url)


class ChallengesMiddleware(Component):
    """Raises Refused for a challenge, whatever its status; none is read as a page.

    It stands nearer to the handler than Scrapy's CookiesMiddleware, so that no cookie of a challenge is kept.

    An error status that request or spider takes (handle_httpstatus_list) goes on to the spider.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        status = response.status
        if FETCH not in request.meta or (status >= 300 and wants_status(request, self._crawler.spider, status)):
            return response
        maker = challenge_of(status, response.headers, response.body)
        if maker:
            raise Refused(Reason.CHALLENGED, response, detail=maker)
        return response


class LimitsMiddleware(Component):
    """Raises Refused for a status that is no page's, unless request or spider takes it (handle_httpstatus_list)."""

    def process_response(self, request: Request, response: Response) -> Response:
        if 200 <= response.status < 300 or (fetch := fetch_of(request)) is None:
            return response
        if wants_status(request, self._crawler.spider, response.status):
            return response
        if response.status == 304 and fetch.revisit is not None:
            raise self._end_unchanged(response)
        target = redirect_target(response)
        if target is not None and not request.meta.get("dont_redirect"):
            cookies = tuple(response.headers.getlist(b"Set-Cookie")[:MAX_COOKIES])
            raise Refused(Reason.REDIRECTED, response, redirect_to=target, set_cookies=cookies)
        raise Refused(
            _REFUSALS.get(response.status, Reason.HTTP_ERROR),
            response,
            may_pass=may_pass(response),
            retry_after_s=asked_to_wait_s(response),
            detail=_price(response),
        )

    def _end_unchanged(self, response: Response) -> Refused:
        """The end of a revisit of a page that is as it was, though its headers may refuse its use by now."""
        crawl = self.crawl
        said = page_statements(outcomes.headers_of(response), {}, crawl.options, crawl.now())
        binding = crawl.opt_outs.binding(said)
        if binding is None:
            return Refused(Reason.HTTP_ERROR, response)
        return Refused(outcomes.end_by(binding), response, detail=str(binding))


def may_pass(response: Response) -> bool:
    """Whether another attempt may bring another answer."""
    return response.status in _MAY_PASS


def redirect_target(response: Response) -> str | None:
    """The absolute URL of a redirect's target; None if *response* is no redirect or its Location no URL."""
    location = value_of(response.headers, b"Location") if response.status in _REDIRECTS else b""
    if not location:
        return None
    try:
        return str(ada_url.join_url(response.url, outcomes.escape(location)))
    except ValueError:
        return None


def asked_to_wait_s(response: Response) -> float | None:
    """Seconds for which the server asks to be left alone; None if it does not."""
    return retry_after_s(response, time.time()) if response.status in _RETRY_AFTER_OBEYED else None


def retry_after_s(response: Response, wall_time: float) -> float | None:
    """Seconds in Retry-After, a number or a date (RFC 9110, 10.2.3); None if there is none that can be read."""
    text = value_of(response.headers, b"Retry-After").decode("latin-1").strip()
    if (seconds := whole_number(text)) is not None:
        return float(seconds)
    date = outcomes.date_of(text)
    return None if date is None else max(0.0, date - wall_time)


def _price(response: Response) -> str:
    """What the page would cost, as Cloudflare's Pay per crawl says it; '' if nothing does."""
    price = (response.headers.get(b"Crawler-Price") or b"").decode("latin-1")
    return f"crawler-price: {price[:80]}" if price else ""


def wants_status(request: Request, spider: Spider | None, status: int) -> bool:
    """Whether request or spider takes answers of *status*."""
    if request.meta.get("handle_httpstatus_all"):
        return True
    wanted: Any = request.meta.get("handle_httpstatus_list", getattr(spider, "handle_httpstatus_list", ()))
    return status in wanted


class ExitsMiddleware(Component):
    """Ends the URL of a response whose callback yields no page (no-page).

    It also notes on each Request which page it was found on, from which the frontier takes its distance.
    """

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


class WakeUp(Component):
    """Wakes the engine when the next host is due, and stops the crawl with the engine.

    It keeps ``start`` alive until the crawl is finished: the spider is never idle while a host waits for its turn.
    """

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The spider's own seeds, then WAKE_UP whenever something is due."""
        if not self.has_crawl:
            return
        dispatcher = self.dispatcher
        try:
            async for item_or_request in start:
                yield item_or_request
            if dispatcher.shard is not None:
                dispatcher.shard.has_begun = True
            while not dispatcher.crawl.is_finished:
                await self._sleep(dispatcher)
                yield WAKE_UP
        except (asyncio.CancelledError, GeneratorExit):
            dispatcher.stop()
            raise
        except CloseSpider:
            raise
        except Exception as error:  # Scrapy would log it and go on, and nothing would wake the engine any more
            dispatcher.crawl.errors.stop(error, task="the spider's start")

    async def _sleep(self, dispatcher: Dispatcher) -> None:
        """Sleep until the next host is due, or until a moment after the frontier changed."""
        due_in = dispatcher.due_in()
        pause = _LONGEST_SLEEP_S if due_in is None else min(max(due_in, 0.001), _LONGEST_SLEEP_S)
        dispatcher.changed.clear()
        try:
            async with asyncio.timeout(pause):
                await dispatcher.changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_GATHERING_S)
