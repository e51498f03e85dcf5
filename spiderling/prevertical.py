"""Reading the corpus: segments frame by frame, and the documents in them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import zstandard

from spiderling.errors import BadInput, StorageError

_PIECE_BYTES = 65536
_MAX_WINDOW = 1 << 27  # of files that others packed
_ATTRIBUTE = re.compile(r' (\w+)="([^"]*)"')
_DOC = re.compile(r"<doc((?: \w+=\"[^\"]*\")*)>\n(.*?)</doc>\n", re.DOTALL)
_PARAGRAPH = re.compile(r"<p(?: \w+=\"[^\"]*\")*>\n(.*?)\n</p>\n", re.DOTALL)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&"}


class Document(NamedTuple):
    """One ``<doc>``: its attributes and the text of its paragraphs."""

    attributes: dict[str, str]
    paragraphs: list[str]


def frame_at(segment: Path, offset: int) -> str:
    """The text of the frame that begins at *offset* bytes of *segment*; raises StorageError when there is none."""
    try:
        with segment.open("rb") as file:
            file.seek(offset)
            return zstandard.ZstdDecompressor().stream_reader(file).read().decode()
    except (OSError, UnicodeDecodeError, zstandard.ZstdError) as error:
        raise StorageError(f"{segment} cannot be read at byte {offset}: {error}.") from error


def frames(segment: Path, length: int) -> Iterator[str]:
    """The text of each frame in the first *length* bytes of *segment*; raises StorageError if one is damaged."""
    try:
        with segment.open("rb") as file:
            yield from _frames(file, length)
    except (OSError, UnicodeDecodeError, zstandard.ZstdError) as error:
        raise StorageError(f"{segment} cannot be read: {error}.") from error


def _frames(file: IO[bytes], left: int) -> Iterator[str]:
    piece = b""
    while piece or left:
        unpacker, text = zstandard.ZstdDecompressor().decompressobj(), bytearray()
        while not unpacker.eof:
            if not piece:
                piece = file.read(min(left, _PIECE_BYTES))
                left -= len(piece)
            if not piece:
                raise zstandard.ZstdError("it ends before its recorded length, or in the middle of a frame")
            text += unpacker.decompress(piece)
            piece = unpacker.unused_data
        yield text.decode()


def documents(text: str) -> Iterator[Document]:
    """The documents in *text*, which is as pipeline 500 writes it."""
    for doc in _DOC.finditer(text):
        attributes = {name: _unescaped(value) for name, value in _ATTRIBUTE.findall(doc[1])}
        yield Document(attributes, [_unescaped(match[1]) for match in _PARAGRAPH.finditer(doc[2])])


class Source(NamedTuple):
    """A file of prevertical, packed (``.zst``) or plain."""

    path: Path
    length: int | None = None
    """Bytes that count; what lies behind them was not acknowledged.  None: all."""


class StoredDocument(NamedTuple):
    """One ``<doc>`` as it stands in a file."""

    attributes: dict[str, str]
    text: str


def stored_documents(source: Source) -> Iterator[StoredDocument]:
    """The documents of a file, one after the other; raises BadInput if it is none of a corpus, else StorageError."""
    lines: list[str] = []
    for line in _lines(source):
        lines.append(line)
        if len(lines) == 1 and not line.startswith("<doc"):
            raise BadInput(f"{source.path} is no corpus file: a <doc> is missing before {line[:40]!r}.")
        if line == "</doc>\n":
            attributes = {name: _unescaped(value) for name, value in _ATTRIBUTE.findall(lines[0])}
            yield StoredDocument(attributes, "".join(lines))
            lines = []
    if lines:
        raise StorageError(f"{source.path} breaks off in the middle of a document.")


def _lines(source: Source) -> Iterator[str]:
    if source.length is not None:
        rest = ""
        for text in frames(source.path, source.length):
            *whole, rest = (rest + text).split("\n")
            yield from (line + "\n" for line in whole)
        return
    try:
        with source.path.open("rb") as file:
            unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
            packed = source.path.suffix == ".zst"
            stream: Any = unpacker.stream_reader(file, read_across_frames=True) if packed else file
            yield from io.TextIOWrapper(stream, "utf-8", newline="\n")
    except (OSError, UnicodeDecodeError, zstandard.ZstdError) as error:
        raise StorageError(f"{source.path} cannot be read: {error}.") from error


def _unescaped(text: str) -> str:
    return re.sub("&(?:lt|gt|quot|amp);", lambda match: _ENTITIES[match[0]], text) if "&" in text else text
