"""Where the components of Scrapy find the crawl that they belong to, and the fetch that a request carries out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spiderling.frontier import Fetch

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

from spiderling.crawl.crawl import Crawl


def crawl_of(crawler: Crawler) -> Crawl | None:
    """The crawl of a running crawler; None when it could not be opened."""
    engine = crawler._engine
    crawl = getattr(engine.scheduler, "crawl", None) if engine is not None else None
    return crawl if isinstance(crawl, Crawl) else None


def fetch_of(request: Request | None) -> Fetch | None:
    """The frontier's Fetch that a request carries out; None for requests that did not come from the frontier."""
    fetch = request.meta.get("spiderling_fetch") if request is not None else None
    return fetch if isinstance(fetch, Fetch) else None
