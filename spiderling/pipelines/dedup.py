"""Pipeline 400: only new text is kept and counts as yield.

It drops pages that differ only in numbers from others of their domain (frontier/discovery/traps.py), then exact
duplicates of a page as received or of its clean text (Suchomel and Pomikálek 2012, section 2), then near-duplicate
paragraphs (corpus/near_duplicates.py).  Only kept text is remembered, and becomes durable together with its document.
So a page that is fetched again after a kill is not its own duplicate.

Of a page that is looked at again, its paragraphs are first compared with those of its last version, by digests that
are kept for each page apart (text/paragraph_digests.py).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import xxhash

from spiderling.base.reasons import Reason
from spiderling.corpus.digests import digest_key
from spiderling.corpus.near_duplicates import Flags
from spiderling.engine.outcomes import DropPage, digests_of, text_key
from spiderling.engine.requests import look_of
from spiderling.frontier.watching.planning import Look
from spiderling.items import PageItem
from spiderling.pipelines.page_pipeline import PagePipeline
from spiderling.text import Page, kept_language, measure_clean
from spiderling.text.paragraph_digests import MAX_PARAGRAPHS, known_again, packed
from spiderling.text.quality import parse_quality

logger = logging.getLogger(__name__)

_LEAST_NEW_BYTES = 40
"""UTF-8 bytes of new text below which a later version has nothing new; chosen: dates and counters are shorter."""


class DedupPipeline(PagePipeline):
    """Sets ``item.digests``; removes or marks duplicate paragraphs; drops pages with too little new text.

    Where it removes text, it sets ``item.language`` to that of the rest.
    """

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(SOFT_NOT_FOUND, DUPLICATE or NEAR_DUPLICATE)."""
        crawl = self.crawl
        look = look_of(item.response.request)
        item.paragraphs = packed(page.paragraph_digests)
        if look is not None and look.page.validators.text_key == text_key(page) != 0:
            raise DropPage(Reason.DUPLICATE, "its text is as it was")
        digests: tuple[int, ...] = ()
        if crawl.options.dedup != "off":
            if crawl.frontier.is_copy(item.response.url, page.sketch):  # of itself, if it is looked at again
                raise DropPage(Reason.SOFT_NOT_FOUND if look is None else Reason.DUPLICATE)
            digests = digests_of(page)
            if not crawl.known_digests.isdisjoint(digests):
                raise DropPage(Reason.DUPLICATE)
        left_out = self._left_out(item, page, look)
        if left_out.any():
            rest = self._without(item, page, left_out.tolist(), look is not None)
            digests += (rest,) if digests else ()
        crawl.known_digests.update(digests)
        item.digests = digests

    def _left_out(self, item: PageItem, page: Page, look: Look | None) -> Flags:
        """For each kept paragraph whether it is a duplicate; of a later version also what the last one had.

        Raises DropPage(DUPLICATE) for a later version with nothing new.
        """
        crawl = self.crawl
        if crawl.near is not None:
            duplicate = crawl.near.judge(id(item), page.shingles)
        else:
            duplicate = np.zeros(sum(paragraph.kept for paragraph in page.paragraphs), np.bool_)
        if look is None or look.paragraphs is None:
            return duplicate
        texts = [paragraph.text for paragraph in page.paragraphs if paragraph.kept]
        self._tell_beyond(len(texts) - MAX_PARAGRAPHS, item.response.url)
        old = duplicate | known_again(page.paragraph_digests, look.paragraphs, len(texts))
        if sum(len(text.encode()) for text, is_old in zip(texts, old, strict=True) if not is_old) < _LEAST_NEW_BYTES:
            raise DropPage(Reason.DUPLICATE, "nothing on it is new")
        return old if crawl.options.watch_keep == "new" else np.zeros_like(old)

    def _tell_beyond(self, number: int, url: str) -> None:
        """Count the *number* of paragraphs that are not compared with the last version, and so count as known."""
        if number > 0:
            totals = self.crawl.frontier.ledger.totals
            if not totals["look_paragraphs_beyond"]:
                logger.warning(
                    "%s has more than %d paragraphs: what is new behind them is not kept. "
                    "The total look_paragraphs_beyond counts all that are not compared.", url, MAX_PARAGRAPHS
                )  # fmt: skip
            totals["look_paragraphs_beyond"] += number

    def _without(self, item: PageItem, page: Page, duplicate: Sequence[bool], is_later: bool) -> int:
        """Remove or mark duplicates among the kept paragraphs; returns the key of the clean text's digest.

        Of a page that had enough text, new text in a later version (*is_later*) is kept however short it is.
        """
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
        elif not is_later and len(text) < max(1, parse_quality(options.quality).text_chars.low):
            raise DropPage(Reason.NEAR_DUPLICATE)
        else:
            item.language = kept_language(page)
        return digest_key(xxhash.xxh3_128_digest(text.encode("utf-8")))
