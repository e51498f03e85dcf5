"""Pipeline 400: only new text is kept and counts as yield.

It drops pages that differ only in numbers from others of their domain (frontier/discovery/traps.py), then exact
duplicates of a page as received or of its clean text (Suchomel and Pomikálek 2012, section 2), then near-duplicate
paragraphs (corpus/near_duplicates.py).  Only kept text is remembered, and becomes durable together with its document.
So a page that is fetched again after a kill is not its own duplicate.
"""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from spiderling.base.reasons import Reason
from spiderling.corpus.digests import digest_key
from spiderling.engine.outcomes import DropPage, text_key
from spiderling.engine.requests import fetch_of
from spiderling.items import PageItem
from spiderling.pipelines.page_pipeline import PagePipeline
from spiderling.text import Page, kept_language, measure_clean
from spiderling.text.quality import parse_quality


class DedupPipeline(PagePipeline):
    """Sets ``item.digests``; removes or marks duplicate paragraphs; drops pages with too little new text.

    Where it removes text, it sets ``item.language`` to that of the rest.
    """

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(SOFT_NOT_FOUND, DUPLICATE or NEAR_DUPLICATE)."""
        crawl = self.crawl
        fetch = fetch_of(item.response.request)
        look = fetch.look if fetch is not None else None
        if look is not None and look.known.validators.text_key == text_key(page) != 0:
            raise DropPage(Reason.DUPLICATE, "its text is as it was")
        if crawl.options.dedup == "off":
            return
        if crawl.frontier.is_copy(item.response.url, page.sketch):
            raise DropPage(Reason.SOFT_NOT_FOUND)
        digests: tuple[int, ...] = (digest_key(page.raw_digest), digest_key(page.text_digest))
        if not crawl.known_digests.isdisjoint(digests):
            raise DropPage(Reason.DUPLICATE)
        if crawl.near is not None:
            duplicate = crawl.near.judge(id(item), page.shingles)
            if duplicate.any():
                digests += (self._without(item, page, duplicate.tolist()),)
        crawl.known_digests.update(digests)
        item.digests = digests

    def _without(self, item: PageItem, page: Page, duplicate: Sequence[bool]) -> int:
        """Remove or mark duplicates among the kept paragraphs; returns the key of the clean text's digest."""
        options = self.crawl.options
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
        elif len(text) < max(1, parse_quality(options.quality).text_chars.low):
            raise DropPage(Reason.NEAR_DUPLICATE)
        else:
            item.language = kept_language(page)
        return digest_key(xxhash.xxh3_128_digest(text.encode("utf-8")))
