"""The base class of the pipelines behind the text workers."""

from __future__ import annotations

from typing import Any

from spiderling.engine.component import Component
from spiderling.items import PageItem
from spiderling.text import Page


class PagePipeline(Component):
    """Judges or fills PageItems; other items, from spiders of users, pass unchanged."""

    def process_item(self, item: Any) -> Any:
        if isinstance(item, PageItem) and item.page is not None:
            self.process_page(item, item.page)
        return item

    def process_page(self, item: PageItem, page: Page) -> None:
        """Judge or fill *item*, whose ``page`` is *page*; raises DropPage to drop it."""
        raise NotImplementedError
