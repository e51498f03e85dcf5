"""Downloader middleware: takes robots.txt, tdmrep.json, ai.txt and sitemaps to the frontier; none reaches the spider.

The frontier applies the rules when it hands out a URL (frontier/robots.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import NoReturn

from scrapy.crawler import Crawler
from scrapy.http import Request, Response

from spiderling.base.errors import SpiderlingError
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.engine.component import Component
from spiderling.engine.outcomes import FileTaken, NotMade, exchange_of, of_response
from spiderling.engine.requests import fetch_of
from spiderling.fetch.challenges import challenge_of
from spiderling.frontier import Fetch
from spiderling.frontier.discovery.sitemaps import is_sitemap
from spiderling.frontier.hosts.host import RobotsRequest
from spiderling.frontier.site_files import MAX_FILE_BYTES, FileAnswer, parsed
from spiderling.middlewares.limits import asked_to_wait_s, may_pass, redirect_target
from spiderling.text.listing import Listing, read_listing, unpacked
from spiderling.workers.pool import WorkerCrash

_SMALL_BYTES = 20_000
"""Most bytes of rules that are parsed in the event loop, in some milliseconds; more in a thread.  Chosen."""
_BATCH_URLS = 200
"""URLs that the frontier takes in one turn of the event loop, in some milliseconds.  Chosen."""


class SiteFilesMiddleware(Component):
    """Stands nearer to the handler than LimitsMiddleware, so it sees redirects and error statuses too.

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
        if fetch is not None and is_sitemap(fetch):
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
        if len(response.body) <= _SMALL_BYTES or not answer.has_file:
            self._take_rules(fetch, request, answer)
        return self._parsed_apart(fetch, asked, request, answer)

    async def _parsed_apart(self, fetch: Fetch, asked: RobotsRequest, request: Request, answer: FileAnswer) -> NoReturn:
        """Parse the file in a thread before it is taken."""
        body = answer.body[:MAX_FILE_BYTES]
        try:
            async with self._reading_rules:
                rules = await asyncio.to_thread(parsed, asked.file, body, self.crawl.options)
            self.crawl.frontier.robots.parsed_ahead(asked.file, body, rules)
        except Exception as error:
            self.crawl.errors.note(error, request.url)
            answer = answer._replace(status=0)
        self._take_rules(fetch, request, answer)

    def _take_rules(self, fetch: Fetch, request: Request, answer: FileAnswer) -> NoReturn:
        """Give the frontier the *answer*; raises FileTaken."""
        self.crawl.archive(exchange_of(request), {"reason": "site-file"})
        self.dispatcher.settle_file(fetch, answer)
        raise FileTaken(f"{request.url} is a file of a site")

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
                    detail = await self._take_listing(fetch, listing)
        outcome = of_response(response, reason)  # `response.request` is not set yet
        outcome = replace(outcome, url_id=fetch.id, detail=detail, exchange=exchange_of(request))
        self.dispatcher.settle(outcome)
        raise FileTaken(f"{request.url} is a sitemap")

    async def _listing(self, body: bytes, url: str) -> Listing:
        """What a text worker reads in a sitemap or feed; raises WorkerCrash, and SpiderlingError if none can be had."""
        workers = self.crawl.workers
        if workers is None:
            return unpacked(await asyncio.to_thread(read_listing, body, url, self.crawl.options.licensee()))
        return await workers.read_listing(body, url)

    async def _take_listing(self, fetch: Fetch, listing: Listing) -> str:
        """Give the frontier the URLs of *listing* that we may use, and say how many.

        After a kill the file is read again.
        """
        crawl = self.crawl
        sitemaps = crawl.frontier.sitemaps
        refused = {number for number, said in listing.said.items() if crawl.opt_outs.binding(said) is not None}
        entries = [entry for number, entry in enumerate(listing.entries) if number not in refused]
        with crawl.errors.changing(fetch.url, fetch.id):
            if listing.is_index:
                sitemaps.put_files(fetch, [url for url, _ in entries], crawl.clock.now())
            else:
                for start in range(0, len(entries), _BATCH_URLS):
                    sitemaps.put_urls(fetch, entries[start : start + _BATCH_URLS], crawl.clock.now())
                    await asyncio.sleep(0)
            sitemaps.left_out(listing.left_out)
            sitemaps.opted_out(len(refused))
        opted_out = f", {len(refused)} opted out" if refused else ""
        return f"{len(entries)} {'sitemaps' if listing.is_index else 'URLs'}{opted_out}"
