"""Pipeline 300: drops pages with too little text, or with text that is not written in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.outcomes import DropPage
from spiderling.items import PageItem
from spiderling.text.spam import GOOGLE

if TYPE_CHECKING:
    from spiderling.base.options import Options
    from spiderling.text import Page


class QualityPipeline(Component):
    """Drops pages that are too short or too bad."""

    def process_item(self, item: Any) -> Any:
        """Raises DropPage(BAD_QUALITY)."""
        if not isinstance(item, PageItem) or item.page is None:
            return item
        check_quality(item.page, self.crawl.options)
        return item


def check_quality(page: Page, options: Options) -> None:
    """Raises DropPage(BAD_QUALITY) for a page with too little text, or text that no one writes in sentences."""
    if page.utf8_bytes < options.min_page_bytes:
        raise DropPage(Reason.BAD_QUALITY, f"only {page.utf8_bytes} bytes of page")
    if page.clean_chars < options.min_text_chars:
        raise DropPage(Reason.BAD_QUALITY, f"only {page.clean_chars} characters of clean text")
    if page.badness > options.max_badness:
        raise DropPage(Reason.BAD_QUALITY, f"badness {page.badness:.1f}")
    found = page.quality
    for name, value, low, high in (
        ("stop words", found.stopword_share, options.min_stopword_share, 1.0),
        ("words a sentence", found.sentence_words, options.min_sentence_words, options.max_sentence_words),
        ("repeated", found.repeated_share, 0.0, options.max_repeated_share),
        ("digits", found.digit_share, 0.0, options.max_digit_share),
        ("symbols", found.symbol_share, 0.0, options.max_symbol_share),
        ("in good paragraphs", found.good_share, options.min_good_share, 1.0),
        ("packed", found.packed_share, options.min_packed_share, float("inf")),
        ("of one word", found.top_word_share, 0.0, options.max_top_word_share),
        ("links to other hosts in a kB", found.outlinks, 0.0, options.max_outlinks),
    ):
        if not low <= value <= high:
            raise DropPage(Reason.BAD_QUALITY, f"{name}: {value:.2f}")
    refused = {"keep": False, "likely": found.translated == GOOGLE, "drop": bool(found.translated)}
    if refused[options.translated]:
        raise DropPage(Reason.BAD_QUALITY, f"translated by machine: {found.translated}")
