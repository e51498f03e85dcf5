"""One pass over a page's HTML: paragraphs as jusText cuts them, links, metadata.

The paragraphs are those of Pomikálek, *Removing Boilerplate and Duplicate Content
from Web Corpora* (2011), as the ``justext`` package makes them, without three of its
defects: a space between two inline tags separates words, control characters do no
harm, the time is linear.  libxml2's parser calls a `Builder` and builds no tree.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

from lxml import etree

from spiderling.text.html.blocks import (
    APART,
    BREAK,
    EDGE,
    MAX_BLOCK_CHARS,
    MAX_BLOCKS,
    NEXT_LINE,
    PARTED,
    RUBBISH,
    SEAM,
    Block,
    Parsed,
    joined,
    named_tuples,
    normal_forms,
)
from spiderling.text.html.links import OUTSIDE, LinkCollector
from spiderling.text.html.metadata import Metadata
from spiderling.text.html.zones import (
    AREA,
    BLOCK,
    BOX,
    DEAD,
    FIELD,
    HEAD,
    HEADING,
    INLINE,
    INSIDE,
    LINE_BREAK,
    LINK,
    PHRASES,
    RAISED,
    TAG_KINDS,
    THROUGH,
    WRAPPERS,
    ZONED,
    Tree,
    is_left_out,
    is_parted,
)

_NEXT_LINE = NEXT_LINE.encode()
_WORD = re.compile(r"\w")
_MAX_PARTED = 64  # inline elements within one another that may stand apart; chosen
_MAX_EDGES = 8  # tags between white space and what is cut, at most; chosen


def parse(html: str | bytes, builder: Builder | None = None) -> Parsed:
    """Blocks of text, links and metadata of a page.

    Takes the page as text or as its bytes in UTF-8, and a `Builder`, which is used up, if others than the usual blocks
    are wanted.  The result depends on these alone.  No page makes it raise; it reads the page once, in time linear in
    its length, and stops where the page has MAX_BLOCKS blocks or the parser gives up.
    """
    builder = builder or Builder()
    parser = etree.HTMLParser(target=builder, encoding="utf-8", huge_tree=True)
    with contextlib.suppress(etree.LxmlError, _Full):  # what was found up to there counts
        etree.fromstring(_readable(html, builder.rubbish), parser)
    found = builder.result()
    # the builder is in a reference cycle until the next garbage collection; this frees its texts now
    vars(builder).clear()
    return found


def _readable(html: str | bytes, rubbish: bytes) -> bytes:
    """The page in UTF-8, without the bytes of *rubbish* and never empty, as the parser wants it."""
    body = (html.encode("utf-8", "replace") if isinstance(html, str) else html).translate(None, rubbish)
    if _NEXT_LINE[-1] in body and _NEXT_LINE in body:  # a search for one byte is far faster than for two
        body = body.replace(_NEXT_LINE, "…".encode())
    return body or b" "


class _Full(Exception):
    """The page has MAX_BLOCKS blocks."""


class Builder:
    """Receives the parser's events and makes blocks, links and metadata of them.

    `_tokens` holds the pieces of the current block with an EDGE between them.  The tree's element of a block is the one
    in which its first piece ends.
    tests/text/stock_justext.py overrides the public attributes and methods where the ``justext`` package differs.
    """

    rubbish = RUBBISH
    joined = staticmethod(joined)

    @staticmethod
    def forms(texts: list[str]) -> list[str]:
        """The normal forms of blocks' texts, whose white space is collapsed."""
        forms = normal_forms(texts)
        return [form if len(form) <= MAX_BLOCK_CHARS else form[:MAX_BLOCK_CHARS].rstrip() for form in forms]

    def __init__(self) -> None:
        self._rows: list[tuple[str, bool, int, str, int, int]] = []  # blocks before their text is in normal form
        self._metadata = Metadata()
        self._tokens: list[str] = []
        self.data = self._tokens.append
        """Called by the parser for each text; its most frequent event, so it is `list.append` itself."""
        self._links = LinkCollector(self._tokens, self._metadata)
        self._open_headings = 0
        self._heading = False  # was a heading open when the current block began?
        self._opener = ""
        self._after_break = False
        self._break_end = 0
        self._tree = Tree()
        self._element = 0  # the element in which the current block began
        self._element_changes: list[tuple[int, int]] = []  # (number of tokens before the change, element)
        self._dead: list[str] = []  # tags of the ignored element that is open, and of those open in it
        self._dead_start = 0
        self._depth = 0  # number of open inline elements and links
        self._parted = 0  # bits by depth: may that open element stand apart by style?
        self._raised = -1  # number of tokens before the <sup> that is open; -1: none is
        self._is_mark = False  # does that hold the mark of a note?
        self._initial = ""  # a letter that a picture shows at the beginning of the current block, or before it
        self._collected: list[str] | None = None  # takes the text of the ignored element that is open
        self._collected_start = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Called by the parser for each start tag; frequent kinds of tags stand first."""
        kind = TAG_KINDS.get(tag, INLINE)
        if kind >= HEAD:
            self._head(tag, attributes)
            kind -= HEAD
        if self._dead:
            self._enter_dead(tag, kind, attributes)
        elif attributes and kind <= INSIDE and kind != BLOCK and self._is_left_out(tag, attributes):
            self._sew()
            self.ignore(tag)
        elif kind == BOX:
            element = self._tree.enter(tag, attributes)
            self._new_block(tag)
            self._element = element
        elif kind == INLINE:
            if attributes and "hidden" in attributes:  # one of several texts, of which a script shows one
                self._tokens += APART
                self._depth += 1
            else:
                self._begin_inline(tag, attributes)
            self._after_break = False
        elif kind == LINK:
            self._after_break = False
            if self._raised >= 0 and "#" in attributes.get("href", ""):
                self._tokens.append(EDGE)
                self._is_mark = True
                self.ignore(tag)
            else:
                self._begin_inline(tag, attributes)
                self._links.open_link(attributes, len(self._rows))
        elif kind <= HEADING:
            element = self._tree.stay()
            self._open_headings += kind == HEADING
            self._new_block(tag)
            self._element = element
        else:
            self._open(tag, kind, attributes)

    def _is_left_out(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Whether an element is no part of the text.

        One around the whole page is hidden until a script has run, one behind a heading until somebody clicks on that.
        """
        if not is_left_out(attributes):
            return False
        return tag not in WRAPPERS or (bool(self._rows) and not self._rows[-1][1])

    def _open(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        """An element of a seldom kind begins."""
        if kind >= DEAD:
            self._open_dead(tag, kind, attributes)
            return
        if tag in ZONED:
            self._tree.enter(tag, attributes)
            self._element_changed()
        if kind == THROUGH:
            if tag == "iframe":
                self._add_area(attributes)
        elif kind == LINE_BREAK:
            self._break()
        elif kind == INSIDE:
            if tag == "img":
                self._note_initial(attributes.get("alt", ""))
            self._tokens += APART
            self._after_break = False
        else:
            self._tokens.append(EDGE)
            self._after_break = False
            if kind == AREA:
                self._add_area(attributes)
            elif kind == RAISED:
                self._raise(tag)

    def _open_dead(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        """An element begins that is ignored; of templates, those that are shown (HTML Standard, 4.12.3) are not."""
        if tag == "template" and "shadowrootmode" in attributes:
            self._tokens.append(EDGE)
            self._after_break = False
            return
        if kind == FIELD:
            self._tokens += APART
        self.ignore(tag)

    def _raise(self, tag: str) -> None:
        """A <sup> begins: alone in a link to a place of the page it is the mark of a note."""
        links = self._links
        if links.leads_to_place and not "".join(self._tokens[links.start :]).strip():
            self._sew()
            self.ignore(tag)
        else:
            self._raised = len(self._tokens)
            self._is_mark = False

    def _end_raised(self) -> None:
        """The <sup> ends; the mark of a note goes with its brackets."""
        if self._is_mark and self._raised >= 0:
            self._cut(self._raised)
            self._sew()
        self._raised = -1

    def _end_link(self) -> None:
        """The <a> ends; a link to a place of the page that shows a sign alone, like ¶ or ↑, is left out."""
        links = self._links
        if links.leads_to_place:
            text = "".join(self._tokens[links.start :])
            if text.strip() and not _WORD.search(text):
                self._cut(links.start)
                self._tokens += APART
        links.end_link()
        links.end_anchor()

    def _cut(self, start: int) -> None:
        """Leave out what the current block has from the token *start* on."""
        del self._tokens[start:]
        self._after_break = False
        while self._element_changes and self._element_changes[-1][0] > start:
            self._element_changes.pop()

    def _sew(self) -> None:
        """Mark white space before what is cut: before a comma it goes with that."""
        last = next((token for token in self._tokens[: -_MAX_EDGES - 1 : -1] if token != EDGE), "")
        if last[-1:].isspace():
            self._tokens.append(SEAM)

    def _note_initial(self, letter: str) -> None:
        """A picture with the text *letter* may be the initial of the current block."""
        if len(letter) == 1 and letter.isupper() and not "".join(self._tokens).strip():
            self._initial = letter

    def _add_area(self, attributes: Mapping[str, str]) -> None:
        """A frame or an area of a map leads to what it shows."""
        self._links.add_link(attributes, attributes.get("src", attributes.get("href")), len(self._rows))

    def end(self, tag: str) -> None:
        """Called by the parser for each end tag, written or implied."""
        kind = TAG_KINDS.get(tag, INLINE)
        if self._dead:
            self._end_dead()
        elif kind in (INLINE, HEAD + INLINE):
            self._end_inline()
        elif kind <= HEADING:
            self._open_headings -= kind == HEADING
            self._new_block()
            self._element = self._tree.leave()
        elif kind == LINK:
            self._end_link()
            self._end_inline()
        else:
            if kind == RAISED:
                self._end_raised()
            if kind == INSIDE:
                self._tokens += APART
            elif kind != THROUGH:
                self._tokens.append(EDGE)
            if tag in ZONED:
                self._tree.leave()
                self._element_changed()

    def _begin_inline(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An inline element or a link begins."""
        if self._depth < _MAX_PARTED and is_parted(tag, attributes):
            self._parted |= 1 << self._depth
            self._tokens += PARTED
        else:
            self._tokens.append(EDGE)
        self._depth += 1

    def _end_inline(self) -> None:
        """An inline element or a link ends."""
        self._depth -= 1
        if self._parted and self._depth >= 0 and self._parted >> self._depth & 1:
            self._parted -= 1 << self._depth
            self._tokens += PARTED
        else:
            self._tokens.append(EDGE)

    def ignore(self, tag: str) -> None:
        """Ignore the element that has just begun."""
        self._dead = [tag]
        self._dead_start = len(self._tokens)

    def _enter_dead(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        """An element begins in an ignored one.

        A button ends where another begins (HTML Standard, section 13.2.6.4.7).  libxml2 does not end it, nor by its end
        tag if that stands before one of an element in it, and would ignore the rest of the page.  So would an ignored
        phrase without an end tag; it ends where a block begins.
        """
        first = self._dead[0]
        if tag == "button" == first:
            self._revive()
        elif BOX <= kind <= HEADING and (first in PHRASES or TAG_KINDS.get(first, INLINE) in (INLINE, LINK)):
            self._revive()
            self.start(tag, attributes)
            return
        elif kind == LINK and first != "template":
            self._links.add_link(attributes, attributes.get("href"), OUTSIDE)
        self._dead.append(tag)

    def _revive(self) -> None:
        """The ignored element ends before its end tag, and all in it; what was in it stays ignored."""
        for opened in self._dead:
            kind = TAG_KINDS.get(opened, INLINE)
            self._open_headings += kind == HEADING
            self._depth += kind in (INLINE, LINK, HEAD + INLINE)
            if BOX <= kind <= HEADING or opened in ZONED:
                self._tree.stay()
        del self._tokens[self._dead_start :]
        self._dead.clear()

    def _end_dead(self) -> None:
        """The ignored element ends, or one in it; its text goes where it was asked for, and to no block."""
        self._dead.pop()
        if self._collected is not None:
            self._collected += self._tokens[self._collected_start :]
            self._collected = None
        del self._tokens[self._dead_start :]

    def close(self) -> None:
        """Part of the parser's protocol; see `result`."""

    def result(self) -> Parsed:
        """The page as far as it was read."""
        if self._dead:
            self._end_dead()
        with contextlib.suppress(_Full):
            self._new_block()
        self._links.end_anchor()
        head = self._metadata
        head.end()
        return Parsed(
            blocks=self._blocks(),
            links=self._links.links(),
            title=head.title,
            meta=head.meta,
            rels=head.rels,
            base=head.base,
            html_lang=head.html_lang,
            alternates=head.alternates,
            data=head.data,
            links_cut=self._links.number_cut,
            tree=self._tree.inherited(),
        )

    def _blocks(self) -> list[Block]:
        """The blocks in normal form; those that become empty are left out."""
        forms = self.forms([row[0] for row in self._rows])
        if not all(forms):
            kept = [place for place, form in enumerate(forms) if form]
            self._links.renumber({place: number for number, place in enumerate(kept)})
        return named_tuples(Block, [(form, *row[1:]) for form, row in zip(forms, self._rows, strict=True) if form])

    def _new_block(self, opener: str = "") -> None:
        """End the current block and begin another one; *opener* is the tag that begins it, if one does."""
        tokens = self._tokens
        if tokens:
            text = (tokens[0] if len(tokens) == 1 else "".join(tokens)).strip()
            if text:
                self._add_block(text)
                self._initial = ""
            tokens.clear()
            self._links.start = 0
            self._break_end = 0
            self._raised = -1
            if self._element_changes:
                self._element_changes.clear()
            if len(self._rows) >= MAX_BLOCKS:
                raise _Full
        links = self._links
        if links.first_of_block < len(links.rows):
            links.leave_block()
        self._heading = self._open_headings > 0
        self._opener = opener

    def _add_block(self, text: str) -> None:
        """Add a row for the current block, whose pieces make *text*."""
        links = self._links
        if links.is_open:
            links.read_text()
        if self._after_break:
            self._after_break = self._is_after_break()
        element = self._element
        if element != self._tree.opened[-1] or self._element_changes:
            element = self._text_element()
        pieces = len(list(filter(str.strip, text.split(EDGE)))) if EDGE in text else 1
        line = self._line(text)
        if self._initial and line[:1].islower():
            line = self._initial + line
        self._rows.append((line, self._heading, links.chars, self._opener, pieces, element))
        links.end_block()

    def _line(self, text: str) -> str:
        """The pieces in *text* as one line."""
        is_joined = EDGE in text or SEAM in text
        return " ".join((self.joined(text) if is_joined else text).split())

    def _element_changed(self) -> None:
        """An element that ends no block, but stands in the tree, began or ended."""
        if self._tokens:
            self._element_changes.append((len(self._tokens), self._tree.opened[-1]))
        else:
            self._element = self._tree.opened[-1]

    def _text_element(self) -> int:
        """Number of the element in which the first piece of the current block ends."""
        tokens = self._tokens
        first = next(place for place, token in enumerate(tokens) if not token.isspace())
        end = next((place for place in range(first, len(tokens)) if tokens[place][:1] == EDGE), None)
        if end is None:
            return self._tree.opened[-1]
        return next((element for place, element in reversed(self._element_changes) if place <= end), self._element)

    def _break(self) -> None:
        """Two <br> in a row end the block; a single one is a space."""
        if self._is_after_break():
            self._new_block()
        else:
            self._after_break = True
            self._tokens += (EDGE, BREAK, EDGE)
            self._break_end = len(self._tokens)

    def _is_after_break(self) -> bool:
        """Whether only white space came since a <br>."""
        return self._after_break and all(map(str.isspace, self._tokens[self._break_end :]))

    def _head(self, tag: str, attributes: Mapping[str, str]) -> None:
        """A tag that says something about the page begins."""
        if tag in ("title", "script"):
            behind_text = bool(self._rows) and (not self._dead or TAG_KINDS.get(self._dead[0]) == FIELD)
            self._collected = self._metadata.texts_of(tag, attributes, behind_text)
            self._collected_start = len(self._tokens)
        else:
            target = self._metadata.read_tag(tag, attributes)
            if target is not None:
                self._links.add_refresh(target)
