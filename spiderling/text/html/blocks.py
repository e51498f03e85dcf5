"""What the parser makes of a page: blocks of text and links, in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from spiderling.text.html.zones import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MAX_BLOCKS = 20_000


MAX_BLOCK_CHARS = 100_000


class Block(NamedTuple):
    """A paragraph before it is classified."""

    text: str
    heading: bool
    link_chars: int
    """Characters of the text that stand inside links."""
    tag: str = ""
    """The tag that opened it; empty when the end of another block did."""
    pieces: int = 0
    """Stretches of text between tags that it is made of."""
    element: int = 0
    """The innermost element around it, a number in the page's tree."""


class RawLink(NamedTuple):
    """A link as written."""

    href: str
    rel: str
    anchor: str
    block: int
    language: str = ""
    """By its hreflang, else its lang."""


class Parsed(NamedTuple):
    """What one pass over a page found."""

    blocks: list[Block]
    links: list[RawLink]
    title: str
    meta: dict[str, str]
    rels: dict[str, str]
    """href of the first <link> or <a> with rel canonical or license."""
    base: str | None
    html_lang: str | None
    alternates: dict[str, str]
    """hreflang -> href of the <link rel=alternate> that give it."""
    data: str
    """Text of the JSON-LD scripts, at most MAX_DATA_CHARS."""
    links_cut: int
    """Links beyond MAX_LINKS."""
    tree: Tree
    """The elements around the blocks."""


MAX_LINKS = 5000


MAX_ANCHOR_CHARS = 200


_Row = TypeVar("_Row", bound=tuple[Any, ...])


def made(kind: type[_Row], rows: Iterable[Sequence[Any]]) -> list[_Row]:
    """Named tuples of *kind* from complete rows, thrice as fast as the class makes them."""
    return list(map(partial(tuple.__new__, kind), rows))
