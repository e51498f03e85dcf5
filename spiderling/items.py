"""PageItem: a spider yields one for a response, and the pipelines fill it in; and the keys of a request's meta.

How it ends is reported as an ``Outcome`` (base/outcome.py).
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from itemadapter.adapter import AdapterInterface
from scrapy.http import Response

from spiderling.base.opt_outs import Follow, Statement

if TYPE_CHECKING:  # Scrapy imports the spiders, and with them this, before it looks at the command line
    from spiderling.frontier import Fetch
    from spiderling.text import Page

FETCH = "spiderling_fetch"  # the frontier's Fetch that a request carries out
DISTANCE = "spiderling_distance"  # of a seed: its distance
SOURCE = "spiderling_source"  # of a request that a callback made: the URL of the page that it was found on
ERRBACK = "spiderling_errback"  # the request's own errback; ours stands in its place
PAGES = "spiderling_pages"  # how many PageItems the request's response has given so far
CAPTURED = "spiderling_captured"  # of pages from archives: the time of capture, in seconds since 1970


@dataclass(slots=True, eq=False, repr=False)
class PageItem:
    """A response on its way through the pipelines, with what they found in it."""

    response: Response
    fetch: Fetch | None = field(init=False)  # the order of the frontier that the response answers, if there was one
    page: Page | None = None
    """What the text worker found.  Pipeline 100 (addon.py) sets it, ``statements`` and ``follow``."""
    statements: list[Statement] = field(default_factory=list)
    """What page and site say about the use of the text, without signals that SPIDERLING_OPTOUTS ignores."""
    follow: Follow = Follow.UNMARKED  # which links of the page may be followed
    language: str | None = None  # the language of the document; set by pipeline 100, accepted or unset by pipeline 200
    attributes: dict[str, object] = field(default_factory=dict)
    """Attributes of the document, such as ``url`` and ``title``; set by pipeline 500, written by FEEDS."""
    document: bytes | None = None  # the rendered document, UTF-8; set by pipeline 500
    kept_bytes: int = 0  # UTF-8 bytes of new clean text in the document
    digests: tuple[int, ...] = ()  # digests of the page and its text; set by pipeline 400
    paragraphs: bytes = b""
    """Digests of the page's paragraphs (text/fingerprints.py) if there is a recrawl; set by pipeline 400."""
    duplicate_bytes: int = 0  # UTF-8 bytes of duplicate paragraphs, in a corpus that marks them; set by pipeline 400
    seen_share: float = 0.0
    """Share of the clean text that was kept before, mostly text of its host's templates; set by pipeline 400."""

    def __post_init__(self) -> None:
        request = self.response.request
        self.fetch = request.meta.get(FETCH) if request is not None else None

    def __repr__(self) -> str:
        return f"<PageItem {self.response.url}>"  # the log shows items that fail; a whole page would flood it


# -- Scrapy's FEEDS

TEXT = "text"  # name of the field with the text; chosen


def register_pages() -> None:
    """Make ``ItemAdapter``, and so every exporter, read PageItems."""
    if PageAdapter not in ItemAdapter.ADAPTER_CLASSES:
        ItemAdapter.ADAPTER_CLASSES = (PageAdapter, *ItemAdapter.ADAPTER_CLASSES)


class PageAdapter(AdapterInterface):
    """The fields of a PageItem: its ``attributes``, to which pipelines may add, and ``text``, its kept paragraphs.

    A feed may hold other items, too.  It is written outside of the checkpoint: after a kill it may lack documents of
    the corpus, or hold one twice (docs/formats.md).
    """

    item: PageItem

    @classmethod
    def is_item_class(cls, item_class: type) -> bool:
        return issubclass(item_class, PageItem)

    def field_names(self) -> KeysView[str]:
        return dict.fromkeys(self).keys()

    def __getitem__(self, name: str) -> Any:
        if name == TEXT and self.item.page is not None:
            from spiderling.text import clean_text  # the commands need not load it

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
