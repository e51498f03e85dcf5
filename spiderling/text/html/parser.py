"""One pass over a page's HTML: paragraphs as jusText cuts them, links, metadata.

The paragraphs are those of Pomikálek, *Removing Boilerplate and Duplicate Content
from Web Corpora* (2011), as the ``justext`` package makes them, with its defects
put right: a space between two inline tags separates words, control characters do
no harm, time is linear.  No tree is built: libxml2's parser calls a `Builder`.
"""

from __future__ import annotations

import contextlib
from itertools import count
from typing import TYPE_CHECKING, Any

from lxml import etree

from spiderling.text.html.blocks import (
    MAX_ANCHOR_CHARS,
    MAX_BLOCK_CHARS,
    MAX_BLOCKS,
    MAX_LINKS,
    Block,
    Parsed,
    RawLink,
    made,
)
from spiderling.text.html.metadata import MAX_META_CHARS, Metadata
from spiderling.text.html.normal import NEXT_LINE, normal_form, normal_forms
from spiderling.text.html.tags import (
    AREA,
    BOX,
    BREAK,
    DEAD,
    EDGE,
    HEAD,
    HEADING,
    INLINE,
    KINDS,
    LINE_BREAK,
    LINK,
    RUBBISH,
    THROUGH,
)
from spiderling.text.html.zones import ZONED, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DATA_CHARS = 50_000

_NEXT_LINE = NEXT_LINE.encode()


def parse(html: str | bytes, builder: Builder | None = None) -> Parsed:
    """Paragraphs, links and metadata of a page, bytes in UTF-8; never raises, in time linear in its length."""
    builder = builder or Builder()
    body = (html.encode("utf-8", "replace") if isinstance(html, str) else html).translate(None, builder.rubbish)
    if _NEXT_LINE[-1] in body and _NEXT_LINE in body:  # to look for one byte costs next to nothing
        body = body.replace(_NEXT_LINE, "…".encode())
    parser = etree.HTMLParser(target=builder, encoding="utf-8", huge_tree=True)
    with contextlib.suppress(etree.LxmlError, _Full):  # what was found up to there counts
        etree.fromstring(body or b" ", parser)
    found = builder.result()
    # the parser and its parts wait for a garbage collection, for they hold each other; the text shall not
    vars(builder).clear()
    return found


class _Full(Exception):
    pass


class Builder:
    """Receives the parser's events.  What is between two tags is a *piece*; a block keeps its pieces, with edges
    between them, until it ends."""

    # what the package does otherwise (boilerplate/stock_justext.py)
    rubbish = RUBBISH

    @staticmethod
    def forms(texts: list[str]) -> list[str]:
        """The texts of blocks as they shall be; their white space is collapsed."""
        forms = normal_forms(texts)
        return [form if len(form) <= MAX_BLOCK_CHARS else form[:MAX_BLOCK_CHARS].rstrip() for form in forms]

    def __init__(self) -> None:
        self._rows: list[tuple[str, bool, int, str, int, int]] = []  # blocks before their text is in normal form
        self._links: list[list[Any]] = []  # what makes a RawLink
        self._anchored: list[list[Any]] = []  # those whose anchor is not in normal form
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
        self._enter, self._leave, self._opened = self._tree.enter, self._tree.leave, self._tree.opened
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
        kind = KINDS.get(tag, INLINE)
        if kind >= HEAD:
            self._head(tag, attributes)
            kind -= HEAD
        if self._dead:
            self._dead += 1
        elif kind == BOX:
            element = self._enter(tag, attributes)
            self._new_block(tag)
            self._element = element
        elif kind == INLINE:
            self._tokens.append(EDGE)
            self._after_break = False
        elif kind == LINK:
            self._tokens.append(EDGE)
            self._after_break = False
            self._link(kind, attributes)
        elif kind <= HEADING:
            element = self._tree.stay()
            self._open_headings += kind == HEADING
            self._new_block(tag)
            self._element = element
        else:
            self._open(tag, kind, attributes)

    def _open(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        if kind == DEAD:
            self.ignore()
            return
        if tag in ZONED:
            self._tree.enter(tag, attributes)
            self._element_changed()
        if kind == THROUGH:
            if tag == "iframe":
                self._link(AREA, attributes)
        elif kind == LINE_BREAK:
            self._break()
        else:
            self._tokens.append(EDGE)
            self._after_break = False
            if kind == AREA:
                self._link(kind, attributes)

    def end(self, tag: str) -> None:
        kind = KINDS.get(tag, INLINE)
        if self._dead:
            self._end_dead()
        elif kind == INLINE:
            self._tokens.append(EDGE)
        elif kind <= HEADING:
            self._open_headings -= kind == HEADING
            self._new_block()
            self._element = self._leave()
        elif kind == LINK:
            self._end_link()
            self._end_anchor()
            self._tokens.append(EDGE)
        else:
            if kind != THROUGH:
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
        blocks = self._blocks()
        for link, anchor in zip(self._anchored, normal_forms([link[2] for link in self._anchored]), strict=True):
            link[2] = anchor[:MAX_ANCHOR_CHARS]
        title = normal_form("".join(self._title))[:MAX_META_CHARS]
        data = "".join(self._data)[:MAX_DATA_CHARS]
        head = self._metadata
        return Parsed(
            blocks, made(RawLink, self._links), title, head.meta, head.rels, head.base, head.html_lang,
            head.alternates, data, self._links_cut, self._tree,
        )  # fmt: skip

    def _blocks(self) -> list[Block]:
        """The blocks in normal form; those of which nothing is left are no blocks."""
        forms = self.forms([row[0] for row in self._rows])
        if not all(forms):
            number = count()
            numbers = {place: next(number) for place, form in enumerate(forms) if form}
            for link in self._links:
                link[3] = numbers.get(link[3], -1)
        return made(Block, [(form, *row[1:]) for form, row in zip(forms, self._rows, strict=True) if form])

    def _new_block(self, opener: str = "") -> None:
        """A block ends and another one begins."""
        tokens = self._tokens
        if tokens:
            text = (tokens[0] if len(tokens) == 1 else "".join(tokens)).strip()
            if text:
                self._add_block(text)
            tokens.clear()
            self._link_start = self._break_end = 0
            if self._element_changes:
                self._element_changes.clear()
            if len(self._rows) >= MAX_BLOCKS:
                raise _Full
        if self._first_link < len(self._links):
            self._orphan_links()
        self._heading = self._open_headings > 0
        self._opener = opener

    def _add_block(self, text: str) -> None:
        if self._in_link:
            self._link_text()
        if self._after_break:
            self._after_break = self._is_after_break()
        element = self._element
        if element != self._opened[-1] or self._element_changes:
            element = self._text_element()
        pieces = 1
        if EDGE in text:
            pieces = len(list(filter(str.strip, text.split(EDGE))))
            text = self.joined(text)
        self._rows.append((" ".join(text.split()), self._heading, self._link_chars, self._opener, pieces, element))
        self._first_link = len(self._links)
        self._link_chars = 0

    def joined(self, text: str) -> str:
        """The pieces of a block as one text."""
        return text.replace(EDGE, "")

    def _orphan_links(self) -> None:
        """The block turned out to be empty: its links stand in none."""
        for link in self._links[self._first_link :]:
            link[3] = -1
        self._first_link = len(self._links)

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
        href = attributes.get("src" if kind == AREA and "src" in attributes else "href")
        if kind == LINK:
            self._end_link()
            self._end_anchor()
            self._in_link = True
            self._link_start = len(self._tokens)
        if href is None or len(self._links) >= MAX_LINKS:
            self._links_cut += href is not None
            return
        rel = attributes.get("rel", "").lower()
        if rel:
            self._metadata.rel(rel, href)
        language = attributes.get("hreflang") or attributes.get("lang") or ""
        self._links.append([href, rel, attributes.get("alt", "")[:MAX_ANCHOR_CHARS], len(self._rows), language])
        if kind == LINK:
            self._anchor = []

    def _end_link(self) -> None:
        if self._in_link:
            self._link_text()
            self._in_link = False

    def _link_text(self) -> None:
        """Count what the open link has of the current block, and keep it for the anchor."""
        tokens, start = self._tokens, self._link_start
        text = tokens[start] if len(tokens) == start + 1 else "".join(tokens[start:])
        for piece in text.split(EDGE) if EDGE in text else (text,):
            plain = " ".join(piece.split())
            if plain:
                # as long as jusText sees it: each run of white space is one character
                self._link_chars += len(plain) + piece[0].isspace() + piece[-1].isspace()
                if self._anchor is not None:
                    self._anchor.append(plain)

    def _end_anchor(self) -> None:
        if self._anchor:
            self._links[-1][2] = " ".join(self._anchor)
            self._anchored.append(self._links[-1])
        self._anchor = None

    def _head(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "title":
            # without a head around it, it may be that of a picture further down
            self._want(self._title if not self._title and (self._dead or not self._rows) else None)
        elif tag == "script":
            self._want(self._data if "ld+json" in attributes.get("type", "").lower() else None)
        else:
            target = self._metadata.take(tag, attributes)
            if target is not None:
                self._links.append([target, "", "", -1, ""])
                self._first_link = len(self._links)

    def _want(self, collected: list[str] | None) -> None:
        self._wanted = collected
        self._wanted_start = len(self._tokens)

    def _end_wanted(self) -> None:
        if self._wanted is not None:
            self._wanted += self._tokens[self._wanted_start :]
            self._wanted = None
