"""Segments: append-only files of independent frames, whose names and lengths the store records.

A crawl may write several kinds: ``corpus/``, ``links/``, ``warc/``.  A kind has a directory, a suffix and a way to turn
a batch of entries into frames.  A segment is valid up to its recorded length.  Before it is opened, jobdir/directory.py
decides about bytes behind that length, and about segments that the store does not name.  A batch is a whole number of
frames, so a segment can be read up to any recorded length (``zstd -dc`` reads the whole of one in zstd).

Those of the corpus hold prevertical: ``<doc ...>`` and ``<p ...>`` elements, one tag or paragraph a line
(text/prevertical.py), which is read here from segments and from any other file.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.sax import saxutils

from spiderling.base.errors import BadInput, DamageError, StorageError
from spiderling.base.files import frame_packer, saving, sync_directory, zstd
from spiderling.frontier.storage.protocol import SegmentRow

SUFFIX = ".prevert.zst"
_LEVEL = 3  # level of zstd; chosen: its default
_PIECE_BYTES = 65536  # bytes that are read at a time; chosen
_NAME = re.compile(r"([^/]+)-(\d{5,})(?:\.prevert\.zst|\.links\.zst|\.warc\.gz|\.warc\.zst)")


class SegmentKind:
    """One kind of segments; this class packs each batch into one zstd frame.  Only the writer's thread uses it."""

    def __init__(self, name: str, suffix: str) -> None:
        self.name = name  # name of the kind, and of its directory under JOBDIR
        self.suffix = suffix
        self._pack = frame_packer(_LEVEL)

    def begin(self, name: str) -> bytes:
        """The first bytes of the segment *name*."""
        return b""

    def pack(self, entries: Sequence[Any]) -> bytes:
        """The frames of a batch; *entries* are bytes."""
        return self._pack(b"".join(entries))


class SegmentWriter:
    """Writes entries to ``<directory>/<prefix>-00001<suffix>``, -00002 and so on; used by one thread."""

    def __init__(
        self,
        directory: Path,
        prefix: str,
        max_bytes: int,
        known: Iterable[SegmentRow] = (),
        kind: SegmentKind | None = None,
    ) -> None:
        """Go on behind *known*, the segments of the store; the default *kind* is the corpus.

        A segment of *max_bytes* is followed by another.  Raises StorageError if one does not have its recorded length.
        """
        self.kind = kind or SegmentKind("corpus", SUFFIX)
        self._directory = directory
        self._prefix = prefix
        self._max_bytes = max_bytes
        rows = sorted(row for row in known if row.kind == self.kind.name)
        for row in rows:
            path = directory / row.name
            size = refuse_lost(path, row.length_bytes)
            if size > row.length_bytes:
                raise StorageError(
                    f"{path} has {size} bytes, but only {row.length_bytes} were acknowledged, so nothing is added to "
                    "it."
                )
        self._lengths = {row.name: row.length_bytes for row in rows}
        self._number = max((number_of(row.name) or 0 for row in rows), default=0)
        is_open = bool(rows) and rows[-1].name.endswith(self.kind.suffix)
        self._current = rows[-1] if is_open else None
        self._file: IO[bytes] | None = None
        self.frame_offset = 0  # byte of the current segment at which the last batch begins

    def lengths(self) -> dict[str, int]:
        """Segment -> bytes that were acknowledged."""
        return dict(self._lengths)

    def acknowledge(self) -> None:
        """Note that the store has the row of the last batch."""
        if self._current is not None:
            self._lengths[self._current.name] = self._current.length_bytes

    def refuse_lost(self) -> None:
        """Raise StorageError if something that was acknowledged is not there any more."""
        for name, length in self._lengths.items():
            refuse_lost(self._directory / name, length)

    def append(self, entries: Sequence[Any]) -> SegmentRow | None:
        """Write *entries* durably; returns the segment's new row, None for no entries.  Raises StorageError."""
        if not entries:
            return None
        with saving(f"the {self.kind.name} in {self._directory}"):
            row = self._open()
            assert self._file is not None
            refuse_lost(self._directory / row.name, row.length_bytes)  # an open file can be written to without a name
            data = b"" if row.length_bytes else self.kind.begin(row.name)
            data += self.kind.pack(entries)
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        self.frame_offset = row.length_bytes
        self._current = row._replace(length_bytes=row.length_bytes + len(data), entries=row.entries + len(entries))
        return self._current

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk may refuse the rest, which was never acknowledged
                self._file.close()
            self._file = None

    def _open(self) -> SegmentRow:
        """Open the segment to append to, a new one if the last is full; returns its row."""
        row = self._current
        if row is None or row.length_bytes >= self._max_bytes:
            self.close()
            row = SegmentRow(self._next().name, 0, 0, self.kind.name)
        if self._file is None:
            self._file = (self._directory / row.name).open("ab")
            sync_directory(self._directory)
        return row

    def _next(self) -> Path:
        """The next path without a file, or with an empty one, so that nothing is added to a foreign file."""
        while True:
            self._number += 1
            path = self._directory / f"{self._prefix}-{self._number:05d}{self.kind.suffix}"
            if not path.exists() or not path.stat().st_size:
                return path


class Frame(NamedTuple):
    """A zstd frame, or gzip member, of a segment."""

    data: bytes
    offset: int
    length: int  # compressed bytes, from byte *offset* of the file on


def frames(path: Path, length: int, start: int = 0, max_bytes: float = math.inf) -> Iterator[Frame]:
    """The frames between bytes *start* and *length* of a segment.

    Raises DamageError if a frame does not match its checksum (zstd's content checksum, gzip's CRC) or holds more than
    *max_bytes*, or breaks off.
    """
    is_gzip = path.suffix == ".gz"
    offset = begin = start
    piece = b""
    try:
        with path.open("rb") as file:
            file.seek(start)
            while offset < length:
                unpacker: Any = zlib.decompressobj(31) if is_gzip else zstd.ZstdDecompressor()
                data = bytearray()
                begin = offset
                while not unpacker.eof:
                    piece = piece or file.read(min(length - offset, _PIECE_BYTES))
                    if not piece:
                        raise DamageError(f"{path} ends before its recorded length, or in the middle of a frame.")
                    data += unpacker.decompress(piece)
                    if len(data) > max_bytes:
                        raise DamageError(f"{path} is damaged in the frame at byte {begin:,}: it has no end.")
                    offset += len(piece) - len(unpacker.unused_data)
                    piece = unpacker.unused_data
                yield Frame(bytes(data), begin, offset - begin)
    except OSError as error:
        raise DamageError(f"{path} cannot be read: {error.strerror}.") from error
    except (zlib.error, zstd.ZstdError) as error:
        raise DamageError(f"{path} is damaged in the frame at byte {begin:,}: {error}.") from error


def number_of(name: str, prefix: str | None = None) -> int | None:
    """The number in a segment's name; None for any other name, or another prefix than *prefix* if that is given."""
    found = _NAME.fullmatch(name)
    return int(found[2]) if found is not None and prefix in (None, found[1]) else None


def refuse_lost(path: Path, length: int) -> int:
    """Raise StorageError if the segment at *path* is shorter than *length* bytes; returns its size."""
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise StorageError(
            f"{path} has {size} bytes, but {length} were acknowledged: it was changed or deleted. "
            "Restore it from a backup, or begin anew in another JOBDIR."
        )
    return size


_ATTRIBUTE = re.compile(r' ([\w:.-]+)="([^"]*)"')


class CorpusDocument(NamedTuple):
    """One ``<doc>``."""

    attributes: dict[str, str]
    paragraphs: list[str]
    details: list[dict[str, str]]  # the attributes of each paragraph


def documents(lines: Iterable[str]) -> Iterator[CorpusDocument]:
    """The documents in *lines*; text outside of elements is ignored."""
    document = CorpusDocument({}, [], [])
    attributes: dict[str, str] | None = None
    for line in lines:
        if line.startswith("<doc"):
            document = CorpusDocument(attributes_of(line), [], [])
        elif line.startswith("</doc>"):
            yield document
        elif line.startswith(("<p>", "<p ")):
            attributes = attributes_of(line)
        elif line.startswith("</p>"):
            attributes = None
        elif attributes is not None:
            document.paragraphs.append(unescape(line.rstrip("\n").replace("<lb/>", "\n")))
            document.details.append(attributes)


def read_documents(path: Path, start: int = 0, end: int | None = None) -> Iterator[CorpusDocument]:
    """The documents of a file, plain, .gz or .zst.

    With *end*, those in bytes *start* to *end* of a segment; else *start* is ignored.  Raises BadInput.
    """
    try:
        yield from documents(lines_of(Source(path, end, start=start), "replace"))
    except DamageError as error:
        raise BadInput(str(error)) from error


class Source(NamedTuple):
    """A file of prevertical, plain, .gz or .zst."""

    path: Path
    length: int | None = None  # acknowledged bytes, which alone are read; None: all
    entries: int | None = None  # documents in it, as the state of its crawl says; None if unknown
    start: int = 0  # byte of a segment, where a frame begins, from which on it is read


class StoredDocument(NamedTuple):
    """One ``<doc>`` as it stands in a file."""

    attributes: dict[str, str]
    text: str
    place: Path = Path()  # the directory of the file, for those of a crawl


def parse_document(document: StoredDocument) -> CorpusDocument:
    """*document*, divided into its paragraphs."""
    return next(documents(document.text.split("\n")))


def stored_documents(source: Source) -> Iterator[StoredDocument]:
    """The documents of a file in order.

    Raises BadInput if the file is not a corpus file, DamageError if it cannot be read.
    """
    lines: list[str] = []
    for line in lines_of(source):
        lines.append(line)
        if len(lines) == 1 and not line.startswith("<doc"):
            raise BadInput(f"{source.path} is no corpus file: a <doc> is missing before {line[:40]!r}.")
        if line == "</doc>\n":
            yield StoredDocument(attributes_of(lines[0]), "".join(lines))
            lines = []
    if lines:
        raise DamageError(f"{source.path} breaks off in the middle of a document.")


def lines_of(source: Source, errors: str = "strict") -> Iterator[str]:
    """The lines of a file; of a source with a length, from its start on.  Raises DamageError."""
    if source.length is not None:
        for text in frame_texts(source.path, source.length, source.start):
            yield from io.StringIO(text, newline="\n")
        return
    with unpacked(source.path) as file:
        yield from io.TextIOWrapper(file, "utf-8", errors, newline="\n")


@contextmanager
def unpacked(path: Path) -> Iterator[Any]:
    """The bytes of a file, plain, .gz or .zst; raises DamageError, also for what cannot be read in the block."""
    try:
        with path.open("rb") as file:
            if path.suffix == ".zst" and file.peek(1):  # zstd takes an empty file for a cut one
                yield zstd.ZstdFile(file)
            elif path.suffix == ".gz":
                yield gzip.GzipFile(fileobj=file)
            else:
                yield file
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, zstd.ZstdError) as error:
        raise DamageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def frame_texts(segment: Path, length: int, start: int = 0) -> Iterator[str]:
    """The text of each frame from byte *start* to *length* of *segment*; raises DamageError if one is damaged."""
    try:
        for frame in frames(segment, length, start):
            yield frame.data.decode()
    except UnicodeDecodeError as error:
        raise DamageError(f"{segment} is damaged: {error}.") from error


def attributes_of(tag: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(tag)}


def unescape(text: str) -> str:
    """The inverse of `escape` (text/prevertical.py)."""
    return saxutils.unescape(text, {"&quot;": '"'}) if "&" in text else text
