"""The results of the parser: blocks of text and links, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from spiderling.text.html.zones import Inherited

MAX_BLOCKS = 20_000
"""Blocks of a page that are read; chosen: no page that people write has as many."""
MAX_BLOCK_CHARS = 100_000
"""Characters of a block that are read; chosen, as long as a short novel."""
MAX_LINKS = 5000
"""Links of a page that are read; chosen."""
MAX_ANCHOR_CHARS = 200
"""Characters of an anchor that are kept; chosen."""


class Block(NamedTuple):
    """A paragraph before it is classified."""

    text: str
    heading: bool
    link_chars: int
    """Characters of the text that stand inside links."""
    tag: str = ""
    """The tag that began it; empty when it began at the end of another block."""
    pieces: int = 0
    """Number of its pieces: stretches of text between two tags."""
    element: int = 0
    """Number of the innermost element around it in the page's tree."""


class RawLink(NamedTuple):
    """A link as the page writes it."""

    href: str
    rel: str
    anchor: str
    block: int
    """Number of the block it stands in, -1 for none."""
    language: str = ""
    """Its hreflang, else its lang; not checked."""


class Parsed(NamedTuple):
    """What one pass over a page found."""

    blocks: list[Block]
    links: list[RawLink]
    title: str
    meta: dict[str, str]
    rels: dict[str, str]
    """rel (canonical or license) -> href of the first <link> or <a> with it."""
    base: str | None
    html_lang: str | None
    alternates: dict[str, str]
    """hreflang -> href of the first <link rel=alternate> with it."""
    data: str
    """Text of the JSON-LD scripts, at most MAX_DATA_CHARS."""
    links_cut: int
    """Number of links left out, beyond MAX_LINKS."""
    tree: Inherited
    """The elements around the blocks."""


_Row = TypeVar("_Row", bound=tuple[Any, ...])


def named_tuples(kind: type[_Row], rows: Iterable[Sequence[Any]]) -> list[_Row]:
    """Named tuples of *kind* from complete rows, three times as fast as calls of the class."""
    return list(map(partial(tuple.__new__, kind), rows))
