"""Pipeline 400: exact duplicates at two levels, the page as received and its clean text (W12, section 2).

Only new text counts as yield.  Digests of kept pages alone are remembered, and they
become durable with their document, so a page fetched again after a kill is not its own
duplicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spiderling.crawl import crawl_of
from spiderling.items import PageItem
from spiderling.outcomes import DropPage
from spiderling.reasons import Reason

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from spiderling.frontier.seen import DigestSet


class DedupPipeline:
    """Sets ``item.digests``; drops pages whose bytes or text were kept before."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._known: DigestSet | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DedupPipeline:
        return cls(crawler)

    def open_spider(self) -> None:
        crawl = crawl_of(self._crawler)
        if crawl is not None and crawl.options.dedup != "off":
            self._known = crawl.known_digests

    def process_item(self, item: Any) -> Any:
        """Raises DropPage(DUPLICATE)."""
        if not isinstance(item, PageItem) or item.page is None or self._known is None:
            return item
        digests = (digest_key(item.page.raw_digest), digest_key(item.page.text_digest))
        if not self._known.isdisjoint(digests):
            raise DropPage(Reason.DUPLICATE)
        self._known.update(digests)
        item.digests = digests
        return item


def digest_key(digest: bytes) -> int:
    """The first 64 bits of an xxh3_128 digest, as a signed integer.

    At 10^7 kept pages, one crawl in 10^5 would take two different pages for duplicates.
    """
    return int.from_bytes(digest[:8], "big", signed=True)
