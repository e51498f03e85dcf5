"""How a page stands in Scrapy's FEEDS: the attributes of its document and its text, not the response."""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from typing import Any

from itemadapter import ItemAdapter
from itemadapter.adapter import AdapterInterface

from spiderling.items import PageItem
from spiderling.text import clean_text

TEXT = "text"


def register() -> None:
    """Let ``ItemAdapter``, and so every exporter, read PageItems."""
    if PageAdapter not in ItemAdapter.ADAPTER_CLASSES:
        ItemAdapter.ADAPTER_CLASSES = (PageAdapter, *ItemAdapter.ADAPTER_CLASSES)


class PageAdapter(AdapterInterface):
    """``PageItem.attributes`` and ``text``, its kept paragraphs; pipelines may set further attributes."""

    item: PageItem

    @classmethod
    def is_item_class(cls, item_class: type) -> bool:
        return issubclass(item_class, PageItem)

    def field_names(self) -> KeysView[str]:
        return dict.fromkeys(self).keys()

    def __getitem__(self, name: str) -> Any:
        if name == TEXT and self.item.page is not None:
            return clean_text(self.item.page.paragraphs)
        return self.item.attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.item.attributes[name] = value

    def __delitem__(self, name: str) -> None:
        del self.item.attributes[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.item.attributes
        if self.item.page is not None and TEXT not in self.item.attributes:
            yield TEXT

    def __len__(self) -> int:
        return sum(1 for _ in self)
