"""One pass over a page's HTML: paragraphs as jusText cuts them, links, metadata.

The paragraphs are those of Pomikálek, *Removing Boilerplate and Duplicate Content
from Web Corpora* (2011), as the ``justext`` package makes them, with its defects
put right: a space between two inline tags separates words, control characters do
no harm, time is linear.  No tree is built: libxml2's parser calls a `Builder`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from spiderling.text.metadata import MAX_META_CHARS, Metadata
from spiderling.text.normal import normal_form
from spiderling.text.page import MAX_ANCHOR_CHARS, MAX_LINKS
from spiderling.text.zones import ZONED, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BLOCKS = 20_000
MAX_BLOCK_CHARS = 100_000
MAX_DATA_CHARS = 50_000

# what a start tag means for the text; _ZONED ones do nothing to it but may hold blocks
_INLINE, _BLOCK, _HEADING, _LINK, _ZONED, _BREAK, _AREA, _THROUGH, _DEAD, _HEAD = range(10)
_BLOCKS = """
body blockquote caption center col colgroup dd div dl dt fieldset legend optgroup option p pre table td tfoot th thead
tr ul li
"""
_KINDS = {
    **dict.fromkeys(ZONED, _ZONED),
    "a": _LINK,
    "br": _BREAK,
    "area": _AREA,
    "frame": _AREA,
    **dict.fromkeys(_BLOCKS.split(), _BLOCK),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _HEADING),
    # subtrees that hold no running text
    **dict.fromkeys(("head", "applet", "button", "input", "select", "style", "textarea"), _DEAD),
    # tags that are ignored while their content counts
    **dict.fromkeys(("form", "iframe", "embed", "layer", "object", "param"), _THROUGH),
    # tags that tell of the page, and what they are besides
    **dict.fromkeys(("title", "meta", "link", "html", "time"), _HEAD + _INLINE),
    **dict.fromkeys(("base", "script"), _HEAD + _DEAD),
}
# Between the texts of two tags, and what stands for a <br>.  Both count as white space; pages hold them only as
# numbers (&#28;), for _RUBBISH has them
EDGE, BREAK = "\x1c", "\x1d"
_RUBBISH = bytes(code for code in range(32) if code not in (9, 10, 12, 13)) + b"\x7f"


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


def parse(html: str, builder: Builder | None = None) -> Parsed:
    """Paragraphs, links and metadata of a page; never raises, in time linear in its length."""
    builder = builder or Builder()
    parser = etree.HTMLParser(target=builder, encoding="utf-8", huge_tree=True)
    with contextlib.suppress(etree.LxmlError, _Full):  # what was found up to there counts
        etree.fromstring(html.encode("utf-8", "replace").translate(None, builder.rubbish) or b" ", parser)
    found = builder.result()
    # the parser and its parts wait for a garbage collection, for they hold each other; the text shall not
    vars(builder).clear()
    return found


class _Full(Exception):
    pass


class Builder:
    """Receives the parser's events.  What is between two tags is a *piece*; a block keeps its pieces, with edges
    between them, until it ends."""

    # what the package does otherwise (aspackage.py)
    rubbish = _RUBBISH
    form = staticmethod(normal_form)

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._hrefs: list[str] = []
        self._rel_values: list[str] = []
        self._anchors: list[str] = []
        self._link_blocks: list[int] = []
        self._metadata = Metadata()
        self._tokens: list[str] = []
        self.data = self._tokens.append  # the parser's most frequent event
        self._link_chars = 0
        self._first_link = 0  # of the current block; earlier ones know theirs
        self._open_headings = 0
        self._heading = False  # was a heading open when the current block began?
        self._opener = ""
        self._in_link = False
        self._link_start = 0  # where in the tokens the open link begins, or goes on
        self._anchor: list[str] | None = None
        self._after_break = False
        self._break_end = 0
        self._tree = Tree()
        self._opened = self._tree.opened
        self._element = 0  # where the current block began
        self._element_changes: list[tuple[int, int]] = []  # after so many tokens of it
        self._dead = 0
        self._dead_start = 0
        self._wanted: list[str] | None = None  # takes the text of the element that is open
        self._wanted_start = 0
        self._title: list[str] = []
        self._data: list[str] = []
        self._links_cut = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        kind = _KINDS.get(tag, _INLINE)
        if kind >= _HEAD:
            self._head(tag, attributes)
            kind -= _HEAD
        if self._dead:
            self._dead += 1
        elif kind == _INLINE:
            self._tokens.append(EDGE)
            self._after_break = False
        elif _BLOCK <= kind <= _HEADING:
            element = self._tree.enter(tag, attributes) if tag in ZONED else self._tree.stay()
            if kind == _HEADING:
                self._open_headings += 1
            self._new_block(tag)
            self._element = element
        else:
            self._open(tag, kind, attributes)

    def _open(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        if kind == _DEAD:
            self.ignore()
            return
        if tag in ZONED:
            self._tree.enter(tag, attributes)
            self._element_changed()
        if kind == _THROUGH:
            if tag == "iframe":
                self._link(_AREA, attributes)
        elif kind == _BREAK:
            self._break()
        else:
            self._tokens.append(EDGE)
            self._after_break = False
            if kind != _ZONED:
                self._link(kind, attributes)

    def end(self, tag: str) -> None:
        kind = _KINDS.get(tag, _INLINE)
        if self._dead:
            self._end_dead()
        elif kind == _INLINE:
            self._tokens.append(EDGE)
        elif _BLOCK <= kind <= _HEADING:
            if kind == _HEADING:
                self._open_headings -= 1
            self._new_block()
            self._element = self._tree.leave()
        elif kind == _LINK:
            self._end_link()
            self._end_anchor()
            self._tokens.append(EDGE)
        else:
            if kind != _THROUGH:
                self._end_wanted()
                self._tokens.append(EDGE)
            if tag in ZONED:
                self._tree.leave()
                self._element_changed()

    def ignore(self) -> None:
        """What comes now, up to the end of the element that was just begun, is no text."""
        self._dead = 1
        self._dead_start = len(self._tokens)

    def _end_dead(self) -> None:
        self._dead -= 1
        self._end_wanted()
        del self._tokens[self._dead_start :]

    def close(self) -> None:
        """Part of the parser's protocol; the result is fetched by `result`."""

    def result(self) -> Parsed:
        if self._dead:
            self._end_dead()
        with contextlib.suppress(_Full):
            self._new_block()
        self._end_anchor()
        title = normal_form("".join(self._title))[:MAX_META_CHARS]
        links = list(map(RawLink, self._hrefs, self._rel_values, self._anchors, self._link_blocks))
        data = "".join(self._data)[:MAX_DATA_CHARS]
        head = self._metadata
        return Parsed(
            self.blocks, links, title, head.meta, head.rels, head.base, head.html_lang, head.alternates, data,
            self._links_cut, self._tree,
        )  # fmt: skip

    def _new_block(self, opener: str = "") -> None:
        """A block ends and another one begins."""
        tokens = self._tokens
        if tokens:
            text = tokens[0] if len(tokens) == 1 else "".join(tokens)
            if not text.isspace():
                self._add_block(text)
            tokens.clear()
            self._link_start = self._break_end = 0
            self._element_changes.clear()
            if len(self.blocks) >= MAX_BLOCKS:
                raise _Full
        if self._first_link < len(self._hrefs):
            self._orphan_links()
        self._heading = self._open_headings > 0
        self._opener = opener

    def _add_block(self, text: str) -> None:
        if self._in_link:
            self._link_text()
        if self._after_break:
            self._after_break = self._is_after_break()
        pieces = 1
        element = (
            self._element if self._element == self._opened[-1] and not self._element_changes else self._text_element()
        )
        if EDGE in text:
            pieces = sum(map(bool, map(str.strip, text.split(EDGE))))
            text = self.joined(text)
        text = self.form(text)
        if len(text) > MAX_BLOCK_CHARS:
            text = text[:MAX_BLOCK_CHARS].rstrip()
        if text:
            self.blocks.append(Block(text, self._heading, self._link_chars, self._opener, pieces, element))
            self._first_link = len(self._hrefs)
        self._link_chars = 0

    def joined(self, text: str) -> str:
        """The pieces of a block as one text."""
        return text.replace(EDGE, "")

    def _orphan_links(self) -> None:
        """The block turned out to be empty: its links stand in none."""
        end = len(self._hrefs)
        self._link_blocks[self._first_link :] = [-1] * (end - self._first_link)
        self._first_link = end

    def _element_changed(self) -> None:
        if self._tokens:
            self._element_changes.append((len(self._tokens), self._opened[-1]))
        else:
            self._element = self._opened[-1]

    def _text_element(self) -> int:
        """The element in which the first piece of the current block ended."""
        element, last = self._element, self._opened[-1]
        if element == last and not self._element_changes:
            return element
        tokens = self._tokens
        first = next(place for place, token in enumerate(tokens) if not token.isspace())
        end = next((place for place in range(first, len(tokens)) if tokens[place][:1] == EDGE), None)
        if end is None:
            return last
        return next((element for place, element in reversed(self._element_changes) if place <= end), element)

    def _break(self) -> None:
        """Two <br> in a row end the block, one is a space."""
        if self._is_after_break():
            self._new_block()
        else:
            self._after_break = True
            self._tokens += (EDGE, BREAK, EDGE)
            self._break_end = len(self._tokens)

    def _is_after_break(self) -> bool:
        """Whether nothing but white space came since a <br>."""
        return self._after_break and all(map(str.isspace, self._tokens[self._break_end :]))

    def _link(self, kind: int, attributes: Mapping[str, str]) -> None:
        href = attributes.get("src" if kind == _AREA and "src" in attributes else "href")
        if kind == _LINK:
            self._end_link()
            self._end_anchor()
            self._in_link = True
            self._link_start = len(self._tokens)
        if href is None or len(self._hrefs) >= MAX_LINKS:
            self._links_cut += href is not None
            return
        rel = attributes.get("rel", "").lower()
        if rel:
            self._metadata.rel(rel, href)
        self._add_link(href, rel, attributes.get("alt", "")[:MAX_ANCHOR_CHARS], len(self.blocks))
        if kind == _LINK:
            self._anchor = []

    def _add_link(self, href: str, rel: str, anchor: str, block: int) -> None:
        self._hrefs.append(href)
        self._rel_values.append(rel)
        self._anchors.append(anchor)
        self._link_blocks.append(block)

    def _end_link(self) -> None:
        if self._in_link:
            self._link_text()
            self._in_link = False

    def _link_text(self) -> None:
        """Count what the open link has of the current block, and keep it for the anchor."""
        for piece in "".join(self._tokens[self._link_start :]).split(EDGE):
            if piece and not piece.isspace():
                # as long as jusText sees it: each run of white space is one character
                self._link_chars += len(" ".join(piece.split())) + piece[0].isspace() + piece[-1].isspace()
                if self._anchor is not None:
                    self._anchor.append(piece)

    def _end_anchor(self) -> None:
        if self._anchor:
            self._anchors[-1] = normal_form(" ".join(self._anchor))[:MAX_ANCHOR_CHARS]
        self._anchor = None

    def _head(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "title":
            # without a head around it, it may be that of a picture further down
            self._want(self._title if not self._title and (self._dead or not self.blocks) else None)
        elif tag == "script":
            self._want(self._data if "ld+json" in attributes.get("type", "").lower() else None)
        else:
            target = self._metadata.take(tag, attributes)
            if target is not None:
                self._add_link(target, "", "", -1)
                self._first_link = len(self._hrefs)

    def _want(self, collected: list[str] | None) -> None:
        self._wanted = collected
        self._wanted_start = len(self._tokens)

    def _end_wanted(self) -> None:
        if self._wanted is not None:
            self._wanted += self._tokens[self._wanted_start :]
            self._wanted = None
