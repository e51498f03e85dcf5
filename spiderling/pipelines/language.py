"""Pipeline 200: drops pages that are not in an accepted language, or have too small a known share in it."""

from __future__ import annotations

from collections.abc import Collection

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.engine.outcomes import DropPage
from spiderling.items import PageItem
from spiderling.pipelines.page_pipeline import PagePipeline
from spiderling.text import Page


class LanguagePipeline(PagePipeline):
    """Drops pages of other languages."""

    def process_page(self, item: PageItem, page: Page) -> None:
        """Raises DropPage(WRONG_LANGUAGE)."""
        item.language = None  # of a page that is dropped
        check_language(page, self.crawl.codes, self.crawl.options)
        item.language = page.language


def check_language(page: Page, accepted: Collection[str], options: Options) -> None:
    """Raise DropPage(WRONG_LANGUAGE) for a page whose text is not in an *accepted* language (codes)."""
    share = sum(page.languages.get(code, 0.0) for code in accepted)
    if page.language not in accepted or share < options.min_language_share or page.known_share < options.min_likeness():
        raise DropPage(Reason.WRONG_LANGUAGE, f"{page.language} (known share {page.known_share:.2f})")
