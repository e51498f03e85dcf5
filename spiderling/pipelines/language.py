"""Pipeline 200: drops pages that are not in an accepted language, or whose words that language does not know."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.outcomes import DropPage
from spiderling.items import PageItem
from spiderling.text import Page


class LanguagePipeline(Component):
    """Sets ``item.language``; drops pages of other languages."""

    def process_item(self, item: Any) -> Any:
        """Raises DropPage(WRONG_LANGUAGE)."""
        if not isinstance(item, PageItem) or item.page is None:
            return item
        check_language(item.page, self.crawl.codes, self.crawl.options)
        item.language = item.page.language
        return item


def check_language(page: Page, accepted: Collection[str], options: Options) -> None:
    """Raises DropPage(WRONG_LANGUAGE) for a page whose text is in none of the *accepted* languages (codes)."""
    share = sum(page.languages.get(code, 0.0) for code in accepted)
    if page.language not in accepted or share < options.min_language_share or page.known_share < options.min_likeness():
        raise DropPage(Reason.WRONG_LANGUAGE, f"{page.language} (known share {page.known_share:.2f})")
