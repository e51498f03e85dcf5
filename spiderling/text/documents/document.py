"""A document that is not an HTML page, as blocks of text."""

from __future__ import annotations

from dataclasses import dataclass, field

from spiderling.text.html.blocks import MAX_BLOCK_CHARS, MAX_BLOCKS, Block
from spiderling.text.html.normal import normal_form


class DocumentError(Exception):
    """The bytes are not a readable document of their kind."""


@dataclass(slots=True)
class Document:
    """The text and metadata of a document."""

    blocks: list[Block] = field(default_factory=list)
    title: str = ""
    meta: dict[str, str] = field(default_factory=dict)
    """Keys as in <meta> of pages: author, dcterms.created, dcterms.modified, description, keywords."""
    lang: str | None = None

    def add_block(self, text: str, heading: bool = False) -> None:
        """Append a block, unless it is empty or MAX_BLOCKS is reached."""
        text = normal_form(text)[:MAX_BLOCK_CHARS].rstrip()
        if text and len(self.blocks) < MAX_BLOCKS:
            self.blocks.append(Block(text, heading, 0))
