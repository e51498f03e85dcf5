"""Pipeline 400: only new text is kept and counts as yield.

First go pages that differ only in numbers from others of their domain (frontier/discovery/traps.py), then exact
duplicates of a page as received or of its clean text (Suchomel and Pomikálek 2012, section 2), then paragraphs that
are near-duplicates (corpus/near_duplicates.py).  Only what is kept is remembered.  It becomes durable together with
its document, so a page that is fetched again after a kill is not its own duplicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xxhash

from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.outcomes import DropPage
from spiderling.frontier.storage.seen import digest_key
from spiderling.items import PageItem
from spiderling.text import measure_clean
from spiderling.text.quality import parse_quality


class DedupPipeline(Component):
    """Sets ``item.digests``; takes known paragraphs out, or marks them; drops pages that have too little new text."""

    def process_item(self, item: Any) -> Any:
        """Raises DropPage(SOFT_NOT_FOUND, DUPLICATE or NEAR_DUPLICATE)."""
        if not isinstance(item, PageItem) or item.page is None or self.crawl.options.dedup == "off":
            return item
        crawl = self.crawl
        if crawl.frontier.is_copy(item.response.url, item.page.sketch):
            raise DropPage(Reason.SOFT_NOT_FOUND)
        digests: tuple[int, ...] = (digest_key(item.page.raw_digest), digest_key(item.page.text_digest))
        known = crawl.known_digests
        if not known.isdisjoint(digests):
            raise DropPage(Reason.DUPLICATE)
        if crawl.near is not None:
            duplicate = crawl.near.judge(id(item), item.page.shingles)
            if duplicate.any():
                digests += (self._without(item, duplicate.tolist()),)
        known.update(digests)
        item.digests = digests
        return item

    def _without(self, item: PageItem, duplicate: Sequence[bool]) -> int:
        """Take the duplicates among the kept paragraphs out of the clean text, or mark them; the text's digest."""
        options = self.crawl.options
        page = item.page
        assert page is not None
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
        return digest_key(xxhash.xxh3_128_digest(text.encode("utf-8")))
