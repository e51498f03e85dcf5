"""Steps of a datatrove pipeline: documents of Spiderling's corpora, and Spiderling's text of pages in place of
trafilatura's.  Needs ``pip install datatrove``.

    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.filters import GopherQualityFilter
    from datatrove.pipeline.readers import WarcReader
    from datatrove.pipeline.writers import JsonlWriter
    from examples.datatrove_steps import SpiderlingExtractor, SpiderlingReader

    LocalPipelineExecutor([SpiderlingReader("crawls/cs"), GopherQualityFilter(), JsonlWriter("good")]).run()
    LocalPipelineExecutor([WarcReader("warc"), SpiderlingExtractor("cs,sk"), JsonlWriter("text")]).run()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.extractors.base import BaseExtractor
from datatrove.pipeline.readers.base import BaseReader

import spiderling

TIMEOUT_S = 30.0  # longest time for a page; chosen: that in which a process is up, too, when the machine is busy


class SpiderlingReader(BaseReader):
    """The documents of crawls (their directories) and of files of prevertical.

    ``text`` are the paragraphs, one a line, ``id`` is that of the document, and its other attributes are metadata as
    text.  Each of N tasks reads everything and takes every Nth document, so there may be as many tasks as wanted.
    """

    name = "🕷 Spiderling"

    def __init__(
        self,
        *sources: str,
        limit: int = -1,
        skip: int = 0,
        adapter: Callable[..., Any] | None = None,
        default_metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(limit, skip, adapter, default_metadata=default_metadata)
        self.sources = sources

    def run(self, data: Iterator[Document] | None = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        yield from data or ()
        every = (document for source in self.sources for document in spiderling.read(source))
        own = filter(None, map(self._document, islice(every, rank, None, world_size)))
        for document in islice(own, self.skip, None if self.limit < 0 else self.skip + self.limit):
            self.stat_update("documents")
            self.update_doc_stats(document)
            yield document

    def _document(self, document: spiderling.Document) -> Document | None:
        """None for a document without text."""
        name = document.attributes.get("id") or document.attributes.get("url", "")
        found = {**document.attributes, "id": name, "text": document.text}
        return self.get_document_from_dict(found, name, 0)


class SpiderlingExtractor(BaseExtractor):
    """The text of HTML by Spiderling's text chain, for readers of WARC files; pages without text are dropped.

    *languages* are those that are kept, such as "cs,sk"; by default all that are known.
    """

    name = "🕷 Spiderling"

    def __init__(self, languages: str = "", timeout: float = TIMEOUT_S) -> None:
        super().__init__(timeout)
        self.languages = languages

    def run(self, data: Iterator[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        spiderling.extract(b"", self.languages)  # here, and not again in each of the processes for pages
        yield from super().run(data, rank, world_size)

    def extract(self, text: str) -> str:
        # a string without a tag would be taken for the path of a file
        return spiderling.extract(text, self.languages).text if "<" in text else ""
