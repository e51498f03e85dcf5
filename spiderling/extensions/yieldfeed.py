"""Reports to the frontier and the checkpoint how each page ended: as one Outcome, when Scrapy's signal comes.

The signals are item_scraped, item_dropped, item_error and spider_error.  A request that gives no page ends in the
errback (engine/failures.py), a callback that yields none in middlewares/exits.py.
"""

from __future__ import annotations

from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from spiderling.base.error_origin import is_ours
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.meta_keys import PAGES
from spiderling.engine.outcomes import PutBack, further, of_item, of_response
from spiderling.engine.requests import fetch_of
from spiderling.items import PageItem


class YieldFeed(Component):
    """Turns each of these signals into one Outcome and settles it."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        crawler.signals.connect(self._scraped, signals.item_scraped)
        crawler.signals.connect(self._dropped, signals.item_dropped)
        crawler.signals.connect(self._item_error, signals.item_error)
        crawler.signals.connect(self._spider_error, signals.spider_error)

    def _scraped(self, item: Any) -> None:
        if isinstance(item, PageItem):
            self._end(item, Reason.NO_PAGE if item.document is None else Reason.KEPT)

    def _dropped(self, item: Any, exception: BaseException) -> None:
        if isinstance(item, PageItem):
            if isinstance(exception, PutBack):
                self._give_back(item)
            else:
                self._end(item, getattr(exception, "reason", None) or Reason.DROPPED_BY_PIPELINE, str(exception))

    def _item_error(self, item: Any, failure: Failure) -> None:
        if not isinstance(item, PageItem):
            return
        error = failure.value
        if error is not None and is_ours(error):
            self.crawl.errors.note(error, item.response.url)
            self._end(item, Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        else:
            self._end(item, Reason.ITEM_ERROR)

    def _spider_error(self, response: Any) -> None:
        # after an error in an errback, *response* is a Failure
        request = response.request if isinstance(response, Response) else None
        # a page that was yielded before the error is settled by its own signal
        if request is not None and fetch_of(request) is not None and not request.meta.get(PAGES):
            self._settle(of_response(response, Reason.SPIDER_ERROR))

    def _end(self, item: PageItem, reason: Reason, detail: str = "") -> None:
        """Settle a page that ended as *reason*, or as internal-error if its outcome cannot be made."""
        crawl = self.crawl
        try:
            outcome = of_item(item, reason, detail)
        except Exception as error:
            crawl.errors.note(error, item.response.url)
            outcome = of_response(item.response, Reason.INTERNAL_ERROR)
        with crawl.errors.changing(outcome.url, outcome.url_id):
            self._remember(item, kept=outcome.reason is Reason.KEPT)
        self._settle(outcome)

    def _remember(self, item: PageItem, kept: bool) -> None:
        """Keep the digests and shingles of a *kept* page, forget those of others, which make no duplicates."""
        crawl = self.crawl
        if not kept:
            crawl.known_digests.difference_update(item.digests)
        if crawl.near is not None:
            crawl.near.settle(id(item), kept=kept)

    def _give_back(self, item: PageItem) -> None:
        fetch = fetch_of(item.response.request)
        if fetch is not None:
            with self.crawl.errors.changing(fetch.url, fetch.id):
                self._remember(item, kept=False)
            if self.crawl.archives is None:  # there it was not noted as read, and so is read again
                self.dispatcher.in_transit.give_back(fetch)

    def _settle(self, outcome: Outcome) -> None:
        in_transit = self.dispatcher.in_transit
        in_transit.settle(outcome if in_transit.holds(outcome.url_id) else further(outcome))
