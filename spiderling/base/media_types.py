"""Kinds of documents other than HTML: their names in ``SPIDERLING_DOCUMENTS``, suffixes, media types, first bytes."""

from __future__ import annotations

import re
from collections.abc import Collection

from spiderling.base.errors import BadInput
from spiderling.base.terminal import entries_of

_ZIP = b"PK\x03\x04"
_SNIFFED_BYTES = 1024  # bytes in which a PDF may begin (its readers allow as many before the mark)
MAX_DOCUMENT_BYTES = 20_000_000
"""Bytes of a document that is fetched; chosen: four times the default of a page, since pictures are in it."""
_XML_TYPES = frozenset({"application/xml", "text/xml"})
_TEXT_TYPES = _XML_TYPES | {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "text/plain"}
_XHTML = b"http://www.w3.org/1999/xhtml"  # the namespace by which a browser shows XML as a page (XHTML 1.0, 3.1.1)
_ROOT_BYTES = 4096  # bytes of XML in which its first element begins; chosen
_UNTYPED = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_BEFORE_LAST = re.compile(r"\A.*,\s*(?=[\w.+-]+/)")
_FILENAME = re.compile(r"""filename\*?\s*=\s*["']?([^"';]+)""", re.IGNORECASE)

FILE_TYPES = {
    "pdf": ("application/pdf", "application/x-pdf"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    "odt": ("application/vnd.oasis.opendocument.text",),
    "epub": ("application/epub+zip",),
}
"""Kind of document, whose name is its suffix -> its media types."""
_OF_MEDIA_TYPE = {media_type: kind for kind, types in FILE_TYPES.items() for media_type in types}


def parse(text: str) -> frozenset[str]:
    """The kinds in *text*, separated by commas; raises BadInput for an unknown one.

    >>> sorted(parse("pdf, DOCX"))
    ['docx', 'pdf']
    """
    return known_entries("DOCUMENTS", text, FILE_TYPES)


def known_entries(option: str, text: str, known: Collection[str]) -> frozenset[str]:
    """The entries of *text*, in lower case; raises BadInput for one that is not *known*."""
    found = frozenset(entries_of(text.lower()))
    if unknown := sorted(found.difference(known)):
        raise BadInput(f"SPIDERLING_{option} names {unknown[0]!r}; known are {', '.join(known)}.")
    return found


def of_path(path: str) -> str | None:
    """The kind that the last segment of a URL's path (without its query) promises by its suffix."""
    suffix = path.rpartition("/")[2].rpartition(".")
    kind = suffix[2].lower()
    return kind if suffix[1] and kind in FILE_TYPES else None


def _essence(content_type: str) -> str:
    """The type without its parameters; of several, as where a proxy adds one, the last, which browsers take."""
    return _BEFORE_LAST.sub("", content_type).partition(";")[0].strip().lower()


def of_headers(content_type: str, disposition: str, path: str) -> str | None:
    """The kind that a response's headers announce; the name of the file decides only where no type is given."""
    media_type = _essence(content_type)
    if media_type in _UNTYPED:
        name = _FILENAME.search(disposition)
        return of_path(name[1].strip() if name else path)
    return _OF_MEDIA_TYPE.get(media_type)


def is_text(content_type: str, disposition: str) -> bool:
    """Whether the headers allow a page of text; a missing or malformed type does, and XML as it may be XHTML."""
    if disposition.strip().lower().startswith("attachment"):
        return False
    media_type = _essence(content_type)
    return "/" not in media_type or media_type in _TEXT_TYPES


def is_other_xml(content_type: str, body: bytes) -> bool:
    """Whether *body*, by its type XML, is no XHTML page."""
    return _essence(content_type) in _XML_TYPES and _XHTML not in body[:_ROOT_BYTES]


def of_content(body: bytes) -> str | None:
    """The kind that the first bytes show.  It decides how a body is converted, since headers and suffixes may lie."""
    head = body[:_SNIFFED_BYTES]
    if b"%PDF-" in head:
        return "pdf"
    return _type_of_zip(head, body) if head.startswith(_ZIP) else None


def _type_of_zip(head: bytes, body: bytes) -> str | None:
    # odt and epub want their media type as the first member, not compressed; not all writers know that
    if b"opendocument.text" in head[:150]:
        return "odt"
    if b"mimetypeapplication/vnd." in head[:150]:
        return None
    marks = {
        b"word/document.xml": "docx",
        b"META-INF/container.xml": "epub",
        b"office:document-content": "odt",
        b"META-INF/manifest.xml": "odt",
    }
    return next((kind for mark, kind in marks.items() if mark in body), None)
