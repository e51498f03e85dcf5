"""Reads prevertical: ``<doc ...>`` and ``<p ...>`` elements, one tag or paragraph a line (text/prevertical.py)."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spiderling.base.errors import BadInput, DamageError
from spiderling.base.zstd import zstd
from spiderling.corpus import segments

_ATTRIBUTE = re.compile(r' ([\w:.-]+)="([^"]*)"')
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&"}


class Document(NamedTuple):
    """One ``<doc>``."""

    attributes: dict[str, str]
    paragraphs: list[str]
    details: list[dict[str, str]]
    """The attributes of each paragraph."""


def documents(lines: Iterable[str]) -> Iterator[Document]:
    """The documents in *lines*; text outside of elements is ignored."""
    document = Document({}, [], [])
    attributes: dict[str, str] | None = None
    for line in lines:
        if line.startswith("<doc"):
            document = Document(attributes_of(line), [], [])
        elif line.startswith("</doc>"):
            yield document
        elif line.startswith(("<p>", "<p ")):
            attributes = attributes_of(line)
        elif line.startswith("</p>"):
            attributes = None
        elif attributes is not None:
            document.paragraphs.append(unescape(line.rstrip("\n")))
            document.details.append(attributes)


def read_documents(path: Path, start: int = 0, end: int | None = None) -> Iterator[Document]:
    """The documents of a file, plain, .gz or .zst.

    With *end*, those in bytes *start* to *end* of a segment; else *start* is ignored.  Raises BadInput.
    """
    try:
        yield from documents(_lines(Source(path, end, start=start), "replace"))
    except DamageError as error:
        raise BadInput(str(error)) from error


class Source(NamedTuple):
    """A file of prevertical, plain, .gz or .zst."""

    path: Path
    length: int | None = None
    """Acknowledged bytes, which alone are read; None: all."""
    entries: int | None = None
    """Documents in it, as the state of its crawl says; None if unknown."""
    start: int = 0
    """Byte of a segment, where a frame begins, from which on it is read."""


class StoredDocument(NamedTuple):
    """One ``<doc>`` as it stands in a file."""

    attributes: dict[str, str]
    text: str


def parsed(document: StoredDocument) -> Document:
    """*document*, divided into its paragraphs."""
    return next(documents(document.text.split("\n")))


def stored_documents(source: Source) -> Iterator[StoredDocument]:
    """The documents of a file in order.

    Raises BadInput if the file is not a corpus file, DamageError if it cannot be read.
    """
    lines: list[str] = []
    for line in _lines(source):
        lines.append(line)
        if len(lines) == 1 and not line.startswith("<doc"):
            raise BadInput(f"{source.path} is no corpus file: a <doc> is missing before {line[:40]!r}.")
        if line == "</doc>\n":
            yield StoredDocument(attributes_of(lines[0]), "".join(lines))
            lines = []
    if lines:
        raise DamageError(f"{source.path} breaks off in the middle of a document.")


def _lines(source: Source, errors: str = "strict") -> Iterator[str]:
    """The lines of a file; of a source with a length, from its start on.  Raises DamageError."""
    if source.length is not None:
        for text in frames(source.path, source.length, source.start):
            yield from io.StringIO(text, newline="\n")
        return
    try:
        with source.path.open("rb") as file:
            unpacked: Any = file
            if source.path.suffix == ".zst" and file.peek(1):  # zstd takes an empty file for a cut one
                unpacked = zstd.ZstdFile(file)
            elif source.path.suffix == ".gz":
                unpacked = gzip.GzipFile(fileobj=file)
            yield from io.TextIOWrapper(unpacked, "utf-8", errors, newline="\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, zstd.ZstdError) as error:
        raise DamageError(f"{source.path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def frame_at(segment: Path, offset: int) -> str:
    """The text of the frame that begins at byte *offset* of *segment*; raises DamageError when there is none."""
    return next(frames(segment, sys.maxsize, offset))


def frames(segment: Path, length: int, start: int = 0) -> Iterator[str]:
    """The text of each frame from byte *start* to *length* of *segment*; raises DamageError if one is damaged."""
    try:
        for frame in segments.frames(segment, length, start):
            yield frame.data.decode()
    except UnicodeDecodeError as error:
        raise DamageError(f"{segment} is damaged: {error}.") from error


def attributes_of(tag: str) -> dict[str, str]:
    """The attributes of an opening tag."""
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(tag)}


def unescape(text: str) -> str:
    """The inverse of `escape` (text/prevertical.py)."""
    return re.sub("&(?:lt|gt|quot|amp);", lambda match: _ENTITIES[match[0]], text) if "&" in text else text
