"""Reads the documents of every whole frame of a damaged corpus, and says what it left out.

A frame is whole if its checksum is right and it holds prevertical and nothing else.  Behind a damaged one the search
goes on at the next four bytes with which a frame of zstd begins, so damage costs the frames that it stands in.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

import zstandard

from spiderling.base.errors import SpiderlingError
from spiderling.corpus.reader import Source, StoredDocument, attributes_of, stored_documents
from spiderling.corpus.segments import SUFFIX
from spiderling.jobdir.inspection import Segment

_MAGIC = b"\x28\xb5\x2f\xfd"
"""RFC 8878, 3.1.1: the first bytes of a zstd frame."""
_SEGMENT = re.compile(r".*-\d{5,}" + re.escape(SUFFIX))
_TAG = r'(?: [\w:.-]+="[^"<>\n]*")*>\n'
_DOCUMENT = re.compile(rf"<doc{_TAG}(?:<p{_TAG}[^<>\n]*\n</p>\n)*</doc>\n")
_PIECE_BYTES = 1 << 16
"""Unpacked at a time (chosen)."""
_MOST_BYTES = 1 << 30
"""Text of a frame from which it counts as damaged (chosen: a batch of a crawl has some MB at most)."""


class Loss(TypedDict):
    """What was left out of a file."""

    file: str
    bytes: int
    frames: int
    """An estimate: those that seem to begin in these bytes."""
    documents: int | None
    """By the state's record, else an estimate from the whole frames; None: there is neither."""


class Salvage:
    """Reads sources as far as they are whole; ``losses`` grows with each that is not."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._recorded: dict[Path, int] = {}
        """Documents of each segment, as the state records them."""

    def sources(self, directory: Path, segments: Sequence[Segment] = ()) -> list[Source]:
        """The files of a crawl's corpus, and those of the *segments* named by its state that are gone.

        Whole frames behind the length that the state records for a segment are text as well, and are read.
        """
        lengths = {segment.path: segment.length for segment in segments}
        self._recorded |= {segment.path: segment.entries for segment in segments}
        files = {path for path in directory.glob(f"corpus/*{SUFFIX}") if _SEGMENT.fullmatch(path.name)}
        return [Source(path, lengths.get(path)) for path in sorted(files | lengths.keys())]

    def documents(self, source: Source) -> Iterator[StoredDocument]:
        """The documents of every frame of *source* that is whole; of a file that is all whole, all documents."""
        if source.length is None and _is_whole(source):
            yield from stored_documents(source)
            return
        lost = 0
        frames = 0
        read = 0
        taken = 0
        for part in _parts(source.path):
            if part.documents:
                yield from part.documents
                read += part.length
                taken += len(part.documents)
            elif source.length is None or part.offset < source.length:  # what lies behind was never acknowledged
                lost += part.length
                frames += part.frames
        size = source.path.stat().st_size if source.path.exists() else 0
        lost += max(0, (source.length or 0) - size)
        if lost:
            estimate = max(1, round(taken * lost / read)) if read else None
            missing = self._recorded[source.path] - taken if source.path in self._recorded else estimate
            self.losses.append({"file": str(source.path), "bytes": lost, "frames": frames, "documents": missing})


class _Part(NamedTuple):
    """A frame that is whole, or a stretch of bytes between such."""

    offset: int
    length: int
    documents: Sequence[StoredDocument] = ()
    """At least one in a whole frame."""
    frames: int = 0
    """Frames that seem to begin in a stretch that is not whole."""


def _parts(path: Path) -> Iterator[_Part]:
    """A file from its beginning to its end; nothing of one that is missing or empty."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = at = frames = 0
        while at < len(data):
            if data[at : at + len(_MAGIC)] == _MAGIC and (part := _frame(data, at)) is not None:
                if at > begin:
                    yield _Part(begin, at - begin, frames=max(1, frames))
                yield part
                begin = at = at + part.length
                frames = 0
                continue
            frames += data[at : at + len(_MAGIC)] == _MAGIC
            at = data.find(_MAGIC, at + 1)
            at = len(data) if at < 0 else at
        if at > begin:
            yield _Part(begin, at - begin, frames=max(1, frames))


def _frame(data: mmap.mmap, begin: int) -> _Part | None:
    """The frame at *begin*; None if it is not whole."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    text = bytearray()
    at = begin
    try:
        while not unpacker.eof and at < len(data) and len(text) < _MOST_BYTES:
            text += unpacker.decompress(data[at : at + _PIECE_BYTES])
            at = min(at + _PIECE_BYTES, len(data))
    except zstandard.ZstdError:
        return None
    documents = _documents(bytes(text)) if unpacker.eof else None
    return _Part(begin, at - len(unpacker.unused_data) - begin, documents) if documents else None


def _documents(text: bytes) -> list[StoredDocument] | None:
    """The documents that *text* is made of; None if it is not made of documents alone."""
    found = []
    at = 0
    try:
        lines = text.decode()
    except UnicodeDecodeError:
        return None
    while (match := _DOCUMENT.match(lines, at)) is not None:
        found.append(StoredDocument(attributes_of(match[0].partition("\n")[0]), match[0]))
        at = match.end()
    return found if at == len(lines) else None


def _is_whole(source: Source) -> bool:
    try:
        for _ in stored_documents(source):
            pass
    except SpiderlingError:
        return False
    return True


def account(losses: Iterable[Loss]) -> Iterator[str]:
    """A line for each file of which something was left out."""
    for loss in losses:
        documents = "nobody knows how many" if loss["documents"] is None else f"about {loss['documents']:,}"
        yield f"{loss['file']}: {loss['bytes']:,} bytes left out, {loss['frames']:,} frames, {documents} documents"
