"""Pipeline 300: drops pages with too little text, text that is not sentences, or machine translation."""

from __future__ import annotations

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.engine.outcomes import DropPage
from spiderling.items import PageItem
from spiderling.pipelines.page_pipeline import PagePipeline
from spiderling.text import Page
from spiderling.text.quality import parse_quality
from spiderling.text.spam import GOOGLE


class QualityPipeline(PagePipeline):
    """Drops pages that are too short or too bad."""

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(BAD_QUALITY)."""
        check_quality(page, self.crawl.options)


def check_quality(page: Page, options: Options) -> None:
    """Raise DropPage(BAD_QUALITY) for a page outside of a limit, or translated by machine if that is refused."""
    limits = parse_quality(options.quality)
    found = page.quality
    for measure, value, limit in (
        ("only {:.0f} bytes of page", page.utf8_bytes, limits.page_bytes),
        ("only {:.0f} characters of clean text", page.clean_chars, limits.text_chars),
        ("badness {:.1f}", page.badness, limits.badness),
        ("stop words: {:.2f}", found.stopword_share, limits.stopword_share),
        ("words a sentence: {:.2f}", found.sentence_words, limits.sentence_words),
        ("repeated: {:.2f}", found.repeated_share, limits.repeated_share),
        ("digits: {:.2f}", found.digit_share, limits.digit_share),
        ("symbols: {:.2f}", found.symbol_share, limits.symbol_share),
        ("in good paragraphs: {:.2f}", found.good_share, limits.good_share),
        ("packed: {:.2f}", found.packed_share, limits.packed_share),
        ("of one word: {:.2f}", found.top_word_share, limits.top_word_share),
        ("links to other hosts in a kB: {:.2f}", found.outlinks, limits.outlinks),
    ):
        if not limit.low <= value <= limit.high:
            said = measure if value < limit.low else measure.removeprefix("only ")
            raise DropPage(Reason.BAD_QUALITY, said.format(value))
    refused = {"keep": False, "likely": found.translated == GOOGLE, "drop": bool(found.translated)}
    if refused[options.translated]:
        raise DropPage(Reason.BAD_QUALITY, f"translated by machine: {found.translated}")
