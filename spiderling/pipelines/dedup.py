"""Pipeline 400: only new text is kept and counts as yield.

Exact duplicates at two levels, the page as received and its clean text (W12, section
2), then paragraphs that are near-duplicates (corpus/near_duplicates.py).  Before both, pages that only
differ in numbers from others of their domain (frontier/discovery/traps.py).  What is kept alone is
remembered, and becomes durable with its document, so a page fetched again after a kill
is not its own duplicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xxhash

from spiderling.base.reasons import Reason
from spiderling.engine.lookup import crawl_of
from spiderling.engine.outcomes import DropPage
from spiderling.frontier.storage.seen import digest_key
from spiderling.items import PageItem
from spiderling.text import measure_clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.crawler import Crawler

    from spiderling.crawl.crawl import Crawl


class DedupPipeline:
    """Sets ``item.digests``; takes known paragraphs out, or marks them; drops pages that have too little new text."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl: Crawl | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DedupPipeline:
        return cls(crawler)

    def open_spider(self) -> None:
        crawl = crawl_of(self._crawler)
        if crawl is not None and crawl.options.dedup != "off":
            self._crawl = crawl

    def process_item(self, item: Any) -> Any:
        """Raises DropPage(SOFT_NOT_FOUND, DUPLICATE or NEAR_DUPLICATE)."""
        if not isinstance(item, PageItem) or item.page is None or self._crawl is None:
            return item
        if self._crawl.frontier.is_copy(item.response.url, item.page.sketch):
            raise DropPage(Reason.SOFT_NOT_FOUND)
        digests: tuple[int, ...] = (digest_key(item.page.raw_digest), digest_key(item.page.text_digest))
        known = self._crawl.known_digests
        if not known.isdisjoint(digests):
            raise DropPage(Reason.DUPLICATE)
        if self._crawl.near is not None:
            duplicate = self._crawl.near.judge(id(item), item.page.shingles)
            if duplicate.any():
                digests += (self._without(item, duplicate.tolist()),)
        known.update(digests)
        item.digests = digests
        return item

    def _without(self, item: PageItem, duplicate: Sequence[bool]) -> int:
        """Take the duplicates among the kept paragraphs out of the clean text, or mark them; the text's digest."""
        assert item.page is not None and self._crawl is not None
        options, page = self._crawl.options, item.page
        marks = options.dedup == "mark"
        flags = iter(duplicate)
        page.paragraphs = [
            paragraph._replace(kept=marks, duplicate=True) if paragraph.kept and next(flags) else paragraph
            for paragraph in page.paragraphs
        ]
        before = page.clean_bytes
        text = measure_clean(page)
        item.seen_share = 1 - page.clean_bytes / max(1, before)
        if marks:
            item.duplicate_bytes = sum(len(p.text.encode("utf-8")) for p in page.paragraphs if p.duplicate)
            item.seen_share = item.duplicate_bytes / max(1, before)
        elif len(text) < max(1, options.min_text_chars):
            raise DropPage(Reason.NEAR_DUPLICATE)
        return digest_key(xxhash.xxh3_128_digest(text.encode("utf-8")))
