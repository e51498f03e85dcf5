"""Converts docx, odt and epub, which are zipped XML, to blocks of text.

The functions are pure, and the bytes untrusted.  They raise DocumentError for what cannot
be read, return what they have found of a file that breaks off, and inflate no more than
MAX_INFLATED_BYTES, whatever sizes the archive states.  The process that runs them limits
time and memory (workers/converter.py).
"""

from __future__ import annotations

import contextlib
import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lxml import etree

from spiderling.text.html.blocks import MAX_BLOCK_CHARS, MAX_BLOCKS, Block, normal_form
from spiderling.text.html.metadata import MAX_LANGUAGE_CHARS, MAX_META_CHARS
from spiderling.text.html.parser import parse


class DocumentError(Exception):
    """The bytes are not a readable document of their kind."""


@dataclass(slots=True)
class ConvertedDocument:
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


SYMBOLS = range(0xA000, 0xA48D)
"""Letters that stand for glyphs without a character: Yi syllables, because no language with a model has them."""
SYMBOL = f"[{chr(SYMBOLS[0])}-{chr(SYMBOLS[-1])}]"
"""A regular expression for one of them."""
MAX_INFLATED_BYTES = 100_000_000  # inflated bytes that are read of one archive; chosen
MAX_CHAPTERS = 2000  # chapters that are read of one book; chosen
_PIECE_BYTES = 1 << 16
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)
"""What zipfile raises for archives that are damaged, encrypted, or packed in an unknown way."""
_NO_WORDS = re.compile(
    r"""<(\w+)\b[^>]*\b(?:type|role)\s*=\s*["'](?:doc-)?(?:pagebreak|noteref)["'][^>]*"""
    r"""(?:/>|>\s*(?:<sup[^>]*>)?[^<]{0,20}(?:</sup>)?\s*</\1>)"""
)
"""Numbers of printed pages and marks of notes in a book (EPUB Structural Semantics Vocabulary, DPUB-ARIA)."""


def from_docx(body: bytes) -> ConvertedDocument:
    """Office Open XML (ECMA-376): text of the main part and notes, without deleted or hidden text and comments."""
    others = ("word/footnotes.xml", "word/endnotes.xml")
    return _read_zip(body, "docProps/core.xml", ("word/styles.xml", "word/document.xml", *others), _DOCX)


def from_odt(body: bytes) -> ConvertedDocument:
    """OpenDocument text (ISO/IEC 26300): paragraphs and headings, without deleted and hidden text and annotations."""
    return _read_zip(body, "meta.xml", ("styles.xml", "content.xml"), _ODT)


def _read_zip(body: bytes, properties: str, parts: Sequence[str], kinds: Mapping[str, str]) -> ConvertedDocument:
    """The document in an archive; *properties* and *parts* are XML members, of which the second part must be there.

    *kinds* as _DOCX and _ODT.
    """
    archive = _Archive(body)
    document = ConvertedDocument()
    _properties(document, archive, properties)
    words = _Words(document, kinds)
    for part in parts:
        if part == parts[1] or part in archive.names:
            _run(archive, part, words)
    return document


def from_epub(body: bytes) -> ConvertedDocument:
    """EPUB 3.3: the blocks of the chapters, with their link characters, in the order of the spine."""
    archive = _Archive(body)
    document = ConvertedDocument()
    container = _Elements()
    _run(archive, "META-INF/container.xml", container)
    package = next((row["full-path"] for tag, row in container.found if tag == "rootfile" and "full-path" in row), "")
    _properties(document, archive, package)
    contents = _Elements()
    _run(archive, package, contents)
    files = {row.get("id"): row.get("href", "") for tag, row in contents.found if tag == "item"}
    spine = [files.get(row.get("idref"), "") for tag, row in contents.found if tag == "itemref"]
    for href in spine[:MAX_CHAPTERS]:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(href)))
        with contextlib.suppress(DocumentError):
            html = b"".join(archive.pieces(name)).decode("utf-8", "replace")
            chapter = parse(_NO_WORDS.sub("", html))
            room = MAX_BLOCKS - len(document.blocks)
            document.blocks += [Block(*block[:3]) for block in chapter.blocks[:room]]  # a book has no tree of elements
    return document


class _Archive:
    """A zip file of which at most MAX_INFLATED_BYTES are inflated."""

    def __init__(self, body: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except _BROKEN as error:
            raise DocumentError(f"not a zip archive: {error}") from None
        self._left = MAX_INFLATED_BYTES
        self.names = frozenset(self._zip.namelist())

    def pieces(self, name: str) -> Iterator[bytes]:
        """The pieces of the member *name* up to a damage; raises DocumentError if it is missing, or at the limit."""
        try:
            with self._zip.open(name) as member:
                while piece := member.read(_PIECE_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise DocumentError("too large once inflated")
                    yield piece
        except KeyError:
            raise DocumentError(f"there is no {name}") from None
        except _BROKEN:
            return


_DOCX = {
    "p": "block",
    "r": "run",
    "t": "text",
    **dict.fromkeys(("tab", "ptab", "br", "cr"), "space"),
    "noBreakHyphen": "hyphen",
    "vanish": "hides",
    "style": "named",
    "rStyle": "look",
    **dict.fromkeys(("del", "moveFrom", "Fallback", "rt", "rPrChange", "pPrChange"), "dead"),
    **dict.fromkeys(("pStyle", "outlineLvl"), "style"),
    "framePr": "frame",
}
_ODT = {
    "p": "block",
    "h": "heading",
    **dict.fromkeys(("s", "tab", "line-break"), "space"),
    **dict.fromkeys(("tracked-changes", "annotation", "forms", "note-citation", "ruby-text", "title", "desc"), "dead"),
    **dict.fromkeys(("hidden-text", "master-styles"), "dead"),
    "style": "named",
    "text-properties": "properties",
}
"""Local name of an element -> its kind.

text: if any name has this kind, only text inside such elements counts
style: its ``val`` names the style or outline level of the block around it
run: text of one look; look: its ``val`` names the style of the run
hides: the run around it, or what has the style around it, is hidden, unless its ``val`` says no
frame: the block around it may be an initial, the first letter of the next block
named, properties: a style, and whether it hides what names it
"""
_NO = ("0", "false", "off")  # values of an element of Word by which it does not apply
_HEADING_STYLE = re.compile(r"heading|title|^[0-8]$", re.IGNORECASE)


class _Target:
    """Target of an XML parser.  It refuses document types: no format needs them, and entities may expand endlessly."""

    def doctype(self, *names: str | None) -> None:
        raise DocumentError("it declares a document type")


@dataclass(slots=True)
class _Open:
    """A block that has begun."""

    parts: list[str]
    is_heading: bool
    is_initial: bool = False


def _attribute(attributes: Mapping[str, str], name: str) -> str:
    """The attribute with this local name, '' if there is none."""
    return next((value for key, value in attributes.items() if key.rpartition("}")[2] == name), "")


class _Words(_Target):
    """Target of an XML parser: adds blocks to *document*; what stands inside of one (notes, frames) comes behind it."""

    def __init__(self, document: ConvertedDocument, kinds: Mapping[str, str]) -> None:
        self._document = document
        self._kinds = kinds
        self._open: list[_Open] = []
        self._closed: list[_Open] = []  # blocks inside the open ones, which come behind them
        self._is_text = "text" not in kinds.values()
        self._dead = 0
        self._in_run = False
        self._is_hidden = False
        self._initial = ""
        self._style = ""
        self._hiding: set[str] = set()  # styles that hide

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        kind = self._kinds.get(tag.rpartition("}")[2])
        if self._dead or kind == "dead" or (kind != "properties" and self._is_out(attributes)):
            self._dead += 1
        elif kind in ("block", "heading") and tag.startswith("{"):
            self._open.append(_Open([], kind == "heading"))
        elif kind == "text":
            self._is_text = True
        elif kind == "run":
            self._in_run = True
        elif kind == "named":
            self._style = _attribute(attributes, "styleId") or _attribute(attributes, "name")
        elif kind == "hides" and _attribute(attributes, "val") not in _NO:
            self._hide()
        elif kind == "properties" and _attribute(attributes, "display") == "none":
            self._hiding.add(self._style)
        elif kind == "look":
            self._is_hidden = _attribute(attributes, "val") in self._hiding
        elif kind and self._open:
            self._mark(kind, attributes)

    def _is_out(self, attributes: Mapping[str, str]) -> bool:
        """Whether an element of OpenDocument is hidden, by itself or by its style."""
        return any(
            value in self._hiding if key.endswith("}style-name") else value == "none" and key.endswith("}display")
            for key, value in attributes.items()
        )

    def _hide(self) -> None:
        """Hide the run, or all that has the style; in a paragraph's properties it means the mark at its end."""
        if self._in_run:
            self._is_hidden = True
        elif not self._open:
            self._hiding.add(self._style)

    def _mark(self, kind: str, attributes: Mapping[str, str]) -> None:
        """An element of *kind* inside the innermost open block."""
        block = self._open[-1]
        if kind in ("space", "hyphen") and not self._is_hidden:
            block.parts.append(" " if kind == "space" else "-")
        elif kind == "style":
            block.is_heading = block.is_heading or bool(_HEADING_STYLE.search(_attribute(attributes, "val")))
        elif kind == "frame":
            block.is_initial = _attribute(attributes, "dropCap") in ("drop", "margin")

    def end(self, tag: str) -> None:
        if self._dead:
            self._dead -= 1
            return
        kind = self._kinds.get(tag.rpartition("}")[2])
        if kind in ("block", "heading") and self._open:
            self._end_block()
        elif kind == "text":
            self._is_text = False
        elif kind == "run":
            self._in_run = self._is_hidden = False

    def _end_block(self) -> None:
        self._closed.append(self._open.pop())
        if self._open:
            return
        for block in (self._closed.pop(), *self._closed):
            text = self._initial + "".join(block.parts)
            self._initial = text if block.is_initial else ""
            if not block.is_initial:
                self._document.add_block(text, block.is_heading)
        self._closed.clear()

    def data(self, text: str) -> None:
        if self._open and self._is_text and not self._dead and not self._is_hidden:
            self._open[-1].parts.append(text)

    def close(self) -> None:
        """Part of the parser's protocol.  The file may end inside a paragraph."""
        while self._open:
            self._end_block()
        self._dead = 0


class _Elements(_Target):
    """Target of an XML parser: collects the attributes of all elements, and the text of those that hold only text."""

    def __init__(self) -> None:
        self.found: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, str] = {}
        self._text = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._text = ""
        if len(self.found) < 10 * MAX_CHAPTERS:
            self.found.append((tag.rpartition("}")[2], dict(attributes)))

    def end(self, tag: str) -> None:
        if self._text.strip():
            self.texts.setdefault(tag.rpartition("}")[2], normal_form(self._text)[:MAX_META_CHARS])
        self._text = ""

    def data(self, text: str) -> None:
        self._text = (self._text + text)[: 4 * MAX_META_CHARS]

    def close(self) -> None:
        """Part of the parser's protocol."""


_PROPERTIES = {
    "creator": "author",
    "description": "description",
    "subject": "keywords",
    "created": "dcterms.created",
    "creation-date": "dcterms.created",
    "modified": "dcterms.modified",
}


def _properties(document: ConvertedDocument, archive: _Archive, name: str) -> None:
    """Set title, language, author and dates (Dublin Core) from the member *name*, if it is there."""
    elements = _Elements()
    with contextlib.suppress(DocumentError):
        _run(archive, name, elements)
    document.title = elements.texts.get("title", "")
    document.lang = elements.texts.get("language", "")[:MAX_LANGUAGE_CHARS] or None
    for theirs, ours in _PROPERTIES.items():
        if theirs in elements.texts:
            document.meta.setdefault(ours, elements.texts[theirs])


def _run(archive: _Archive, name: str, target: Any) -> None:
    """Parse the member *name* with *target*, as far as it is well-formed; raises DocumentError if it is missing."""
    parser = etree.XMLParser(target=target, resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False)
    try:
        for piece in archive.pieces(name):
            parser.feed(piece)
        parser.close()
    except (etree.LxmlError, ValueError, AssertionError):
        target.close()  # what was found up to there counts
