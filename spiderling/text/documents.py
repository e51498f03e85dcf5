"""Converts docx, odt and epub (zipped XML), and the plain text that other programs make, to blocks of text.

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
from collections.abc import Iterator, Mapping
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


MAX_INFLATED_BYTES = 100_000_000  # inflated bytes that are read of one archive; chosen
MAX_CHAPTERS = 2000  # chapters that are read of one book; chosen
_PIECE_BYTES = 1 << 16
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)
"""What zipfile raises for archives that are damaged, encrypted, or packed in an unknown way."""
_FIELDS = re.compile(r'\[pic\]|\bHYPERLINK +(?:\\l +)?"[^"]*"|\b[A-Z]{4,} +(?:"[^"]*" +)?\\\* +[A-Z]+\b')
"""Pictures and field codes in the output of antiword and catdoc."""


def from_docx(body: bytes) -> ConvertedDocument:
    """Office Open XML (ECMA-376): paragraphs of the main part, without deleted text, fall-backs and comments."""
    return _read_zip(body, "docProps/core.xml", "word/document.xml", _DOCX)


def from_odt(body: bytes) -> ConvertedDocument:
    """OpenDocument text (ISO/IEC 26300): paragraphs and headings, without deleted text and annotations."""
    return _read_zip(body, "meta.xml", "content.xml", _ODT)


def _read_zip(body: bytes, properties: str, text: str, kinds: Mapping[str, str]) -> ConvertedDocument:
    """The document in an archive with the XML members *properties* and *text*; *kinds* as _DOCX and _ODT."""
    archive = _Archive(body)
    document = ConvertedDocument()
    _properties(document, archive, properties)
    _run(archive, text, _Words(document, kinds))
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
            chapter = parse(b"".join(archive.pieces(name)).decode("utf-8", "replace"))
            room = MAX_BLOCKS - len(document.blocks)
            document.blocks += [Block(*block[:3]) for block in chapter.blocks[:room]]  # a book has no tree of elements
    return document


def from_text(text: str) -> ConvertedDocument:
    """The document in the output of another converter, one paragraph a line, without _FIELDS."""
    document = ConvertedDocument()
    for line in text.splitlines():
        document.add_block(_FIELDS.sub(" ", line))
    return document


class _Archive:
    """A zip file of which at most MAX_INFLATED_BYTES are inflated."""

    def __init__(self, body: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except _BROKEN as error:
            raise DocumentError(f"not a zip archive: {error}") from None
        self._left = MAX_INFLATED_BYTES

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
    "t": "text",
    **dict.fromkeys(("tab", "br", "cr"), "space"),
    **dict.fromkeys(("del", "moveFrom", "Fallback"), "dead"),
    **dict.fromkeys(("pStyle", "outlineLvl"), "style"),
}
_ODT = {
    "p": "block",
    "h": "heading",
    **dict.fromkeys(("s", "tab", "line-break"), "space"),
    **dict.fromkeys(("tracked-changes", "annotation", "forms", "note-citation"), "dead"),
}
"""Local name of an element -> its kind.  If any name has the kind 'text', only text inside such elements counts.  The
``val`` of an element of the kind 'style' names the style or outline level of the block around it."""
_HEADING_STYLE = re.compile(r"heading|title|^[0-8]$", re.IGNORECASE)


class _Target:
    """Target of an XML parser.  It refuses document types: no format needs them, and entities may expand endlessly."""

    def doctype(self, *names: str | None) -> None:
        raise DocumentError("it declares a document type")


class _Words(_Target):
    """Target of an XML parser: adds blocks to *document*.  They may stand inside one another (notes, frames)."""

    def __init__(self, document: ConvertedDocument, kinds: Mapping[str, str]) -> None:
        self._document = document
        self._kinds = kinds
        self._open: list[tuple[list[str], bool]] = []
        self._is_text = "text" not in kinds.values()
        self._dead = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        kind = self._kinds.get(tag.rpartition("}")[2])
        if self._dead or kind == "dead":
            self._dead += 1
        elif kind in ("block", "heading") and tag.startswith("{"):
            self._open.append(([], kind == "heading"))
        elif kind == "text":
            self._is_text = True
        elif kind == "space" and self._open:
            self._open[-1][0].append(" ")
        elif kind == "style" and self._open:
            style = next((value for key, value in attributes.items() if key.endswith("}val")), "")
            parts, heading = self._open[-1]
            self._open[-1] = parts, heading or bool(_HEADING_STYLE.search(style))

    def end(self, tag: str) -> None:
        if self._dead:
            self._dead -= 1
            return
        kind = self._kinds.get(tag.rpartition("}")[2])
        if kind in ("block", "heading") and self._open:
            self._end_block()
        elif kind == "text":
            self._is_text = False

    def _end_block(self) -> None:
        parts, heading = self._open.pop()
        self._document.add_block("".join(parts), heading)

    def data(self, text: str) -> None:
        if self._open and self._is_text and not self._dead:
            self._open[-1][0].append(text)

    def close(self) -> None:
        """Part of the parser's protocol.  The file may end inside a paragraph."""
        while self._open:
            self._end_block()


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
