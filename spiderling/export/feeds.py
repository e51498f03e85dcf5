"""Scrapy's FEEDS: pages as items of a feed, and the formats ``prevertical`` and ``parquet``.

A page has the fields of its document's attributes and ``text``, without the response.  A feed may hold other items,
too.  It is written outside of the checkpoint: after a kill it may lack documents of the corpus, or hold one twice
(docs/formats.md).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, KeysView
from typing import IO, Any

from itemadapter import ItemAdapter
from itemadapter.adapter import AdapterInterface
from scrapy.exporters import BaseItemExporter

from spiderling.corpus.reader import StoredDocument
from spiderling.export.formats import ParquetWriter
from spiderling.items import PageItem
from spiderling.text import clean_text
from spiderling.text.prevertical import rendered

TEXT = "text"
"""Name of the field with the text (chosen)."""

logger = logging.getLogger(__name__)

_NO_NAME = re.compile(r"^(?![^\W\d])|[^\w.-]")


def register() -> None:
    """Make ``ItemAdapter``, and so every exporter, read PageItems."""
    if PageAdapter not in ItemAdapter.ADAPTER_CLASSES:
        ItemAdapter.ADAPTER_CLASSES = (PageAdapter, *ItemAdapter.ADAPTER_CLASSES)


class PageAdapter(AdapterInterface):
    """The fields of a PageItem: its ``attributes``, to which pipelines may add, and ``text``, its kept paragraphs."""

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


class PrevertExporter(BaseItemExporter):
    """Prevertical: fields become attributes of ``<doc>``, lines of ``text`` its paragraphs."""

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(**options)
        self.file = file

    def export_item(self, item: Any) -> None:
        self.file.write(self._document(item).encode("utf-8", "replace"))

    def _document(self, item: Any) -> str:
        """*item* as prevertical: a page's document as in the corpus, unless the feed wants only some fields."""
        if isinstance(item, PageItem) and item.document is not None and self.fields_to_export is None:
            return item.document.decode()
        fields = {name: "" if value is None else str(value) for name, value in self.get_serialized_fields(item)}
        lines = fields.pop(TEXT, "").split("\n")
        return rendered(
            {_NO_NAME.sub("_", name): value for name, value in fields.items()}, [(line, "") for line in lines if line]
        )


class ParquetExporter(PrevertExporter):
    """Apache Parquet with the columns of ``scrapy export``; other fields are in ``other``, as text."""

    def start_exporting(self) -> None:
        """Leave a file with content as it is, because Parquet cannot be appended to."""
        self._writer = None if self.file.tell() else ParquetWriter(self.file)
        if self._writer is None:
            logger.error(
                "The Parquet feed is not written: its file exists, and Parquet cannot be appended to. Add "
                "'overwrite': True to the feed, or %%(time)s to its name; scrapy export makes one of the corpus."
            )

    def export_item(self, item: Any) -> None:
        if self._writer is not None:
            self._writer.add(StoredDocument({}, self._document(item)))

    def finish_exporting(self) -> None:
        if self._writer is not None:
            self._writer.close()
