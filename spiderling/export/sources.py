"""Where the documents of an export come from: directories of crawls and files, whole or damaged.

Salvage reads the documents of every whole frame of a damaged corpus, and says what it left out.  A frame is whole if
its checksum is right and it holds prevertical and nothing else.  Behind a damaged one the search goes on at the next
four bytes with which a frame of zstd begins, so damage costs the frames that it stands in.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypedDict

from spiderling.base.errors import BadInput, DamageError, JobdirError, SpiderlingError
from spiderling.corpus.reader import Source, StoredDocument, attributes_of, stored_documents
from spiderling.corpus.segments import SUFFIX, frames
from spiderling.export.formats import split_name
from spiderling.frontier.storage.soundness import noted
from spiderling.jobdir.card import Manifest, provenance
from spiderling.jobdir.inspection import Inspection, Segment

_MAGIC = b"\x28\xb5\x2f\xfd"
"""RFC 8878, 3.1.1: the first bytes of a zstd frame."""
_SEGMENT = re.compile(r".*-\d{5,}" + re.escape(SUFFIX))
_TAG = r'(?: [\w:.-]+="[^"<>\n]*")*>\n'
_DOCUMENT = re.compile(rf"<doc{_TAG}(?:<p{_TAG}[^<>\n]*\n</p>\n)*</doc>\n")
_MOST_BYTES = 1 << 30
"""Text of a frame from which it counts as damaged (chosen: a batch of a crawl has some MB at most)."""


class Corpus(NamedTuple):
    """The files that documents come from, and what is known of them."""

    sources: list[Source]
    purposes: list[str]
    """What the documents were collected for, as far as is known (base/opt_outs.py)."""
    crawls: Sequence[Manifest] = ()
    """How the crawls among the sources were made (jobdir/card.py)."""
    troubles: Sequence[str] = ()
    """Why the states of some crawls cannot be read."""

    @property
    def documents(self) -> int:
        """How many there are; 0 if some source does not say."""
        entries = [source.entries for source in self.sources]
        return 0 if None in entries else sum(filter(None, entries))

    def stored(self, read: Callable[[Source], Iterator[StoredDocument]] = stored_documents) -> Iterator[StoredDocument]:
        """The documents in order, as *read* finds them in each source; raises BadInput and DamageError."""
        return chain.from_iterable(map(read, self.sources))


def corpus_of(names: Iterable[str], is_salvage: bool = False) -> Corpus:
    """The corpus in crawl directories and files; raises BadInput when one is neither.

    A crawl may be running: its corpus is what was acknowledged, or, with *is_salvage*, whatever text there is.
    """
    sources: list[Source] = []
    purposes: set[str] = set()
    crawls: list[Manifest] = []
    troubles: list[str] = []
    for path in map(Path, names):
        if path.is_file():
            sources.append(Source(path))
            purposes |= _purposes_beside(path)
            continue
        if not path.is_dir():
            raise BadInput(f"{path} does not exist; give directories of crawls, or files of a corpus.")
        segments: list[Segment] = []
        try:
            with closing(Inspection(path)) as crawl:
                segments = crawl.segments("corpus")
                if not is_salvage:
                    _refuse_missing_segments(crawl, segments)
                purposes |= set(noted(crawl.meta, "purposes", list[str]()))
                crawls.append(provenance(crawl))
        except SpiderlingError as error:
            if not is_salvage:
                raise
            troubles.append(str(error))
        found = salvaged_sources(path, segments) if is_salvage else [Source(*segment) for segment in segments]
        if troubles and not found:
            raise BadInput(f"{path} holds no segments of a corpus either: {troubles[-1]}")
        sources += found
    return Corpus(sources, sorted(purposes), crawls, troubles)


def _refuse_missing_segments(crawl: Inspection, segments: Sequence[Segment]) -> None:
    """Raise JobdirError if the state counts other documents than its segments hold: some would be missing."""
    named = sum(segment.entries for segment in segments)
    counted = crawl.counts.get("total/documents", named)
    if named != counted:
        raise JobdirError(
            f"{crawl.database} is damaged: it counts {counted:,} documents, but the segments that it names hold "
            f"{named:,}. With --salvage all are written that the files hold."
        )


def _purposes_beside(path: Path) -> set[str]:
    """The purposes in the manifest of the export that made the file *path*."""
    for beside in path.parent.glob("*.json"):
        if not path.name.startswith(split_name(beside.stem)[0]):
            continue
        with suppress(OSError, ValueError, AttributeError, TypeError, KeyError):
            manifest = json.loads(beside.read_text("utf-8"))
            if path.name in [file["name"] for file in manifest["files"]]:
                return {purpose for purpose in manifest.get("purposes", []) if isinstance(purpose, str)}
    return set()


# -- salvage


def salvaged_sources(directory: Path, segments: Iterable[Segment]) -> list[Source]:
    """The files of a crawl's corpus, and those of the *segments* named by its state that are gone.

    Whole frames behind the length that the state records for a segment are text as well, and are read.
    """
    known = {segment.path: Source(*segment) for segment in segments}
    files = {path for path in directory.glob(f"corpus/*{SUFFIX}") if _SEGMENT.fullmatch(path.name)}
    return [known.get(path, Source(path)) for path in sorted(files | known.keys())]


class Loss(TypedDict):
    """What was left out of a file."""

    file: str
    bytes: int
    frames: int
    """An estimate: those that seem to begin in these bytes."""
    documents: int | None
    """What the state records, else an estimate from the whole frames; None if there is neither."""


class Salvage:
    """Reads sources as far as they are whole; ``losses`` grows with each that is not."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def documents(self, source: Source) -> Iterator[StoredDocument]:
        """The documents of every frame of *source* that is whole; of a file that is all whole, all documents."""
        if source.length is None and _is_whole(source):
            yield from stored_documents(source)
            return
        lost = frames = read = taken = 0
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
            missing = estimate if source.entries is None else source.entries - taken
            self.losses.append({"file": str(source.path), "bytes": lost, "frames": frames, "documents": missing})


class _Part(NamedTuple):
    """A frame that is whole, or a stretch of bytes between such."""

    offset: int
    length: int
    documents: Sequence[StoredDocument] = ()
    """A whole frame has at least one."""
    frames: int = 0
    """Frames that seem to begin in a stretch that is not whole."""


def _parts(path: Path) -> Iterator[_Part]:
    """A file from its beginning to its end; nothing of one that is missing or empty."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = at = 0
        while at < len(data):
            part = _frame(path, at, len(data)) if data[at : at + len(_MAGIC)] == _MAGIC else None
            if part is None:
                at = data.find(_MAGIC, at + 1) % (len(data) + 1)  # where there is none, -1 becomes the end
                continue
            if at > begin:
                yield _damaged(data, begin, at)
            yield part
            begin = at = at + part.length
        if at > begin:
            yield _damaged(data, begin, at)


def _damaged(data: mmap.mmap, begin: int, end: int) -> _Part:
    return _Part(begin, end - begin, frames=max(1, data[begin:end].count(_MAGIC)))


def _frame(path: Path, begin: int, size: int) -> _Part | None:
    """The frame at byte *begin* of a file of *size* bytes; None if it is not whole."""
    try:
        frame = next(frames(path, size, begin, _MOST_BYTES))
        documents = _documents(frame.data.decode())
    except (DamageError, UnicodeDecodeError):
        return None
    return _Part(begin, frame.length, documents) if documents else None


def _documents(text: str) -> list[StoredDocument]:
    """The documents that *text* is made of; none if it is not made of documents alone."""
    found = []
    at = 0
    while (match := _DOCUMENT.match(text, at)) is not None:
        found.append(StoredDocument(attributes_of(match[0].partition("\n")[0]), match[0]))
        at = match.end()
    return found if at == len(text) else []


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
