"""Pipeline 100: a text worker decodes, parses and cleans the page and identifies its language; opt-outs are obeyed.

Opt-outs of the page and its site count before the text is judged: a page that refuses ends as noindex or opted-out
whatever its text is, and its links are not followed if it says so.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from spiderling.base.errors import SpiderlingError
from spiderling.base.follow import Follow
from spiderling.base.opt_outs import TRAINING, Policy, Signal, Statement, together
from spiderling.base.reasons import Reason
from spiderling.base.rsl import UNKNOWN, RslFile
from spiderling.base.urls import canonicalize_again
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Component
from spiderling.engine.outcomes import DropPage, PutBack, WaitsForFiles, end_by, escaped, headers_of, value_of
from spiderling.engine.requests import fetch_of
from spiderling.engine.scheduler import FAILED_STAT
from spiderling.frontier.site_files import MAX_LICENCES
from spiderling.items import PageItem
from spiderling.text import Page
from spiderling.text.html.links import join
from spiderling.text.optout import licences, page_statements
from spiderling.workers.pool import Task, WorkerConfig, WorkerCrash, WorkerPool

logger = logging.getLogger(__name__)

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
RSL_ATTRIBUTION = "attribution (RSL)"
"""What a document has as its licence whose page has no other one, but a licence by RSL for attribution."""


class CleanPipeline(Component):
    """Sets ``item.page`` and ``item.language``; drops pages without running text."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._workers: WorkerPool | None = None

    async def open_spider(self) -> None:
        """Start the workers in the background; a crawl of archives waits for them.

        If one cannot be started (a model is damaged), the crawl stops: by CloseSpider from here, or by `Crawl.fail`.
        """
        if not self.has_crawl:
            return
        crawl = self.crawl
        options = crawl.options
        accepted = [info.code for info in crawl.accepted]
        try:
            config = WorkerConfig.from_options(options, accepted, tuple(crawl.recognised), _wants_links(crawl))
            number = options.text_workers(from_archives=crawl.archives is not None)
            self._workers = crawl.workers = WorkerPool(number, config, options.page_timeout_s)
            if crawl.archives is None:
                self._workers.start_in_background(crawl.fail)
            else:
                await self._workers.start()
        except SpiderlingError as error:
            # not by `Crawl.fail`, which would close the spider while it is being opened
            logger.error("The crawl stops: %s", error)
            self._crawler.stats.set_value(FAILED_STAT, "bad-input")
            raise CloseSpider("bad-input") from None

    async def close_spider(self) -> None:
        if self._workers is not None:
            await self._workers.stop()

    async def process_item(self, item: Any) -> Any:
        """Fill ``item.page``; raises DropPage with WORKER_CRASH, or a reason of `obey_opt_outs` or `check_text`.

        If no worker can be had, stops the crawl and raises PutBack; for archives raises the SpiderlingError.
        """
        if not isinstance(item, PageItem) or self._workers is None:
            return item
        response = item.response
        crawl = self.crawl
        began = time.monotonic()
        try:
            item.page = await self._workers.process(task_of(response))
        except WorkerCrash as error:
            raise DropPage(Reason.WORKER_CRASH, str(error)) from error
        except SpiderlingError as error:
            if crawl.archives is not None:
                raise
            if not crawl.stopping:
                crawl.fail(error)
            raise PutBack(str(error)) from None
        crawl.times.text.add(time.monotonic() - began)
        obey_opt_outs(item, crawl)
        check_text(item.page)
        item.language = item.page.language
        return item


def _wants_links(crawl: Crawl) -> bool:
    """Whether anything is done with the links of a page; those in archives are not followed."""
    return crawl.archives is None or crawl.options.links == "on" or crawl.frontier.strategy.weight(1) > 0


def check_text(page: Page) -> None:
    """Raise DropPage(UNDECODABLE, NEEDS_SCRIPT or BOILERPLATE_ONLY) for a page without running text."""
    if page.encoding_detected is None:
        raise DropPage(Reason.UNDECODABLE)
    if page.needs_script:
        raise DropPage(Reason.NEEDS_SCRIPT)
    if not page.has_text:
        raise DropPage(Reason.BOILERPLATE_ONLY)


def task_of(response: Response) -> Task:
    """The page in *response*, and what its headers say of the encoding and of where it leads to."""
    match = _CHARSET.search(value_of(response.headers, b"Content-Type"))
    charset = match[1].decode("ascii") if match else None
    return Task(response.body, response.url, charset, escaped(value_of(response.headers, b"Refresh")))


# -- opt-outs


def obey_opt_outs(item: PageItem, crawl: Crawl) -> None:
    """Set ``item.statements`` and ``item.follow``; raises DropPage(SITE_OPTED_OUT, NOINDEX or OPTED_OUT)."""
    assert item.page is not None
    policy = crawl.opt_outs
    response = item.response
    said = page_statements(headers_of(response), item.page.meta, crawl.options, crawl.clock.now())
    item.statements = [statement for statement in said if policy.sees(statement.signal)]
    item.follow = follow(item.statements, policy)
    of_site = crawl.frontier.robots.statements_of(response.url)
    if (fetch := fetch_of(response.request)) is not None and fetch.is_reserved:
        raise DropPage(Reason.SITE_OPTED_OUT, str(policy.binding(of_site) or ""))
    if policy.sees(Signal.RSL):
        item.statements += licence_statements(item, crawl)
    item.statements = together(of_site, item.statements)
    if not item.page.licence and any(owes_attribution(said) for said in item.statements):
        item.page.licence = RSL_ATTRIBUTION
    check_opt_outs(item.statements, policy)


def owes_attribution(said: Statement) -> bool:
    """Whether a licence by RSL asks for attribution."""
    return said.signal is Signal.RSL and said.detail.partition("=")[0] == "attribution"


def licence_statements(item: PageItem, crawl: Crawl) -> list[Statement]:
    """What the licences by RSL that the page names, or that stand in it, say of it.

    Raises WaitsForFiles if one has to be fetched first; for archives, which fetch nothing, its terms are unknown.
    """
    assert item.page is not None
    url = item.response.url
    linked, inline = licences(headers_of(item.response), item.page.meta)
    found: list[Statement] = []
    if linked and crawl.archives is None:
        addresses = [join(url, address) or "" for address in linked[:MAX_LICENCES]]
        said = crawl.frontier.robots.licences.of_page(url, addresses, crawl.clock.now())
        if said is None:
            raise WaitsForFiles(f"{url} waits for its licences {' '.join(addresses)}")
        found += said
    elif linked:
        found.append(Statement(Signal.RSL, UNKNOWN, TRAINING))
    target = canonicalize_again(url)
    for text in inline[:MAX_LICENCES]:
        found += RslFile(text.encode(), crawl.options.licensee()).statements(url, target.path if target else "/")
    return found


def follow(statements: Iterable[Statement], policy: Policy) -> Follow:
    """Which links of a page may be followed."""
    if policy.obeys(Signal.NOFOLLOW) and any(said.signal is Signal.NOFOLLOW for said in statements):
        return Follow.NONE
    return Follow.UNMARKED if policy.obeys(Signal.REL_NOFOLLOW) else Follow.ALL


def check_opt_outs(statements: Iterable[Statement], policy: Policy) -> None:
    """Raise DropPage(NOINDEX or OPTED_OUT) if by *policy* one of *statements* binds the crawl."""
    binding = policy.binding(statements)
    if binding is not None:
        raise DropPage(end_by(binding), str(binding))
