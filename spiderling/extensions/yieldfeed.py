"""What a page gave goes back to the frontier: four of the five exits of a request, by Scrapy's signals.

item_scraped, item_dropped, item_error and spider_error; the fifth, the errback, is
``Scheduler.failed``.  A callback without a page ends in middlewares/exits.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.http import Response

from spiderling.base.error_origin import is_ours
from spiderling.base.reasons import Reason
from spiderling.engine.lookup import crawl_of, fetch_of
from spiderling.engine.outcomes import PutBack, further, of_item, of_response
from spiderling.engine.payloads import PAGES
from spiderling.engine.scheduler import Scheduler
from spiderling.items import PageItem

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from spiderling.base.outcome import Outcome
    from spiderling.crawl.crawl import Crawl


class YieldFeed:
    """Turns each exit into one Outcome and settles it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self._scraped, signals.item_scraped)
        crawler.signals.connect(self._dropped, signals.item_dropped)
        crawler.signals.connect(self._item_error, signals.item_error)
        crawler.signals.connect(self._spider_error, signals.spider_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> YieldFeed:
        return cls(crawler)

    def _scraped(self, item: Any) -> None:
        if isinstance(item, PageItem):
            self._end(item, Reason.KEPT)

    def _dropped(self, item: Any, exception: BaseException) -> None:
        if isinstance(item, PageItem):
            if isinstance(exception, PutBack):
                self._give_back(item)
            else:
                self._end(item, getattr(exception, "reason", None) or Reason.DROPPED_BY_PIPELINE, str(exception))

    def _item_error(self, item: Any, failure: Failure) -> None:
        crawl, error = crawl_of(self._crawler), failure.value
        if not isinstance(item, PageItem) or crawl is None:
            return
        if error is not None and is_ours(error):
            crawl.errors.note(error, item.response.url)
            self._end(item, Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        else:
            self._end(item, Reason.ITEM_ERROR)

    def _spider_error(self, response: Any) -> None:
        request = response.request if isinstance(response, Response) else None  # an errback's error has a Failure
        # a page that was yielded before the error has an exit of its own
        if request is not None and fetch_of(request) is not None and not request.meta.get(PAGES):
            self._settle(of_response(response, Reason.SPIDER_ERROR))

    def _end(self, item: PageItem, reason: Reason, detail: str = "") -> None:
        """The page ended as *reason*, unless we fail to say so before anything has changed."""
        crawl = crawl_of(self._crawler)
        if crawl is None:
            return
        try:
            outcome = of_item(item, reason, detail)
        except Exception as error:
            crawl.errors.note(error, item.response.url)
            outcome = of_response(item.response, Reason.INTERNAL_ERROR)
        with crawl.errors.changing(outcome.url, outcome.url_id):
            self._remember(crawl, item, outcome.reason is Reason.KEPT)
        self._settle(outcome)

    def _remember(self, crawl: Crawl, item: PageItem, kept: bool) -> None:
        """A page that is not kept does not make others duplicates."""
        if not kept:
            crawl.known_digests.difference_update(item.digests)
        if crawl.near is not None:
            crawl.near.settle(id(item), kept=kept)

    def _give_back(self, item: PageItem) -> None:
        scheduler, fetch = self._crawler.engine.scheduler, fetch_of(item.response.request)
        if isinstance(scheduler, Scheduler) and fetch is not None and scheduler.crawl is not None:
            with scheduler.crawl.errors.changing(fetch.url, fetch.id):
                self._remember(scheduler.crawl, item, kept=False)
            scheduler.give_back(fetch)

    def _settle(self, outcome: Outcome) -> None:
        scheduler = self._crawler.engine.scheduler
        if isinstance(scheduler, Scheduler) and scheduler.crawl is not None:
            scheduler.settle(outcome if scheduler.is_active(outcome.url_id) else further(outcome))
