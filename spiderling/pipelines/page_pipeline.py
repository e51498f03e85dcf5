"""What the pipelines behind the text worker have in common."""

from __future__ import annotations

from typing import Any

from spiderling.engine.component import Component
from spiderling.items import PageItem
from spiderling.text import Page


class PagePipeline(Component):
    """Judges or fills the pages that pass; other items, such as a spider of one's own yields, pass as they are."""

    def process_item(self, item: Any) -> Any:
        if isinstance(item, PageItem) and item.page is not None:
            self.process_page(item, item.page)
        return item

    def process_page(self, item: PageItem, page: Page) -> None:
        """*page* is what the text worker found in the response of *item*; raises DropPage for one that has to go."""
        raise NotImplementedError
