"""The documents of an export: those of crawls and files, whole or damaged, and which of them are selected.

Salvage reads the documents of every whole frame of a damaged corpus, and reports what it left out.  A frame is whole if
its checksum is right and it holds prevertical alone.  Behind a damaged frame the search goes on at the next four bytes
with which a zstd frame can begin, so damage costs only the frames that it hits.
"""

from __future__ import annotations

import mmap
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput, DamageError, JobdirError, SpiderlingError
from spiderling.base.terminal import hint
from spiderling.corpus.segments import SUFFIX, Source, StoredDocument, attributes_of, frames
from spiderling.export.formats import CONDITION_COLUMNS, condition_values
from spiderling.export.records import documents_of
from spiderling.jobdir.card import TAKEDOWNS, Manifest, provenance
from spiderling.jobdir.consent import ConsentLedger
from spiderling.jobdir.directory import TAKEDOWN
from spiderling.jobdir.inspection import AnyCrawl, Segment, parts_in, reading
from spiderling.jobdir.state_reader import read_note

_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1: the first bytes of a zstd frame
_SEGMENT = re.compile(r".*-\d{5,}" + re.escape(SUFFIX))
_TAG = r'(?: [\w:.-]+="[^"<>\n]*")*>\n'
_DOCUMENT = re.compile(rf"<doc{_TAG}(?:<p{_TAG}[^<>\n]*\n</p>\n)*</doc>\n")
_MAX_BYTES = 1 << 30
"""Decompressed bytes above which a frame counts as damaged (chosen: a batch of a crawl has some MB at most)."""


class Corpus(NamedTuple):
    """The files of a corpus, and what is known about it."""

    sources: list[Source]
    purposes: list[str]  # those of the crawls among the sources (base/opt_outs.py)
    crawls: Sequence[Manifest] = ()  # the provenance of the crawls among the sources (jobdir/card.py)
    troubles: Sequence[str] = ()
    """Errors of crawls whose state cannot be read, and which shards of a crawl are not here."""
    distances: Mapping[Path, Mapping[str, int]] = MappingProxyType({})
    """Directory of segments -> name of a host -> its last distance, as the state has it."""
    ledgers: Mapping[Path, ConsentLedger] = MappingProxyType({})
    """Directory of segments -> what the sites of its crawl said."""
    taken_down: Sequence[Manifest] = ()
    """All take-downs of the crawls (jobdir/card.py): other sources may hold what was taken down there."""

    @property
    def documents(self) -> int:
        """Number of documents; 0 if it is unknown for some source."""
        entries = [source.entries for source in self.sources]
        return 0 if None in entries else sum(filter(None, entries))

    def refuse_changes(self) -> None:
        """Raise BadInput if a file of a crawl is gone since the corpus was opened, as after a take-down."""
        for source in self.sources:
            if source.path.parent in self.ledgers and not source.path.exists():
                raise BadInput(f"{source.path} was taken down or moved while it was exported; give the command again.")

    def stored(self, read: Callable[[Source], Iterator[StoredDocument]] = documents_of) -> Iterator[StoredDocument]:
        """The documents that *read* gives for each source, in order; raises BadInput and DamageError.

        Those of a crawl have the last distance of their host, those of other files the one that stands there.
        """
        for source in self.sources:
            place = source.path.parent
            distances = self.distances.get(place, {})
            for document in read(source):
                yield _at_distance(document, distances.get(document.attributes.get("host", "")))._replace(place=place)

    def left(self) -> Iterator[StoredDocument]:
        """Those of `stored` that no crawl has taken down."""
        drop = DropList(*([entry for said in self.taken_down for entry in said[name]] for name in ("hosts", "urls")))
        stored = self.stored()
        return (document for document in stored if drop.rule_for(document.attributes) is None) if drop else stored


def corpus_of(names: Iterable[str], is_salvage: bool = False) -> Corpus:
    """The corpus in *names*, crawl directories and files; raises BadInput for anything else.

    A crawl may be running: its corpus is the acknowledged text, or, with *is_salvage*, all text in its files.  Each
    shard of a crawl is salvaged as one of its own, whatever the states of the others are.
    """
    sources: list[Source] = []
    purposes: set[str] = set()
    crawls: list[Manifest] = []
    troubles: list[str] = []
    distances: dict[Path, Mapping[str, int]] = {}
    ledgers: dict[Path, ConsentLedger] = {}
    taken_down: list[Manifest] = []
    for path in map(Path, names):
        if path.is_file():
            sources.append(Source(path))
            continue
        if dataset := sorted(path.glob("data/*.parquet")):
            sources += map(Source, dataset)
            continue
        if not path.is_dir():
            raise BadInput(f"{path} does not exist; give directories of crawls, or files of a corpus.")
        for place in parts_in(path) if is_salvage else [path]:
            segments: list[Segment] = []
            trouble = ""
            try:
                with reading(place) as crawl:
                    segments = crawl.segments("corpus")
                    if not is_salvage:
                        _refuse_missing_segments(crawl)
                        troubles += [f"{path}: {crawl.note}."] if crawl.note else []
                    purposes |= set(read_note(crawl.meta, "purposes", list[str]()))
                    crawls.append(provenance(crawl))
                    taken_down += _taken_down(crawl)
                    distances |= {part.directory / "corpus": part.distances() for part in crawl.parts}
                    ledgers |= dict.fromkeys(distances.keys() - ledgers.keys(), ConsentLedger(crawl.databases))
            except SpiderlingError as error:
                if not is_salvage:
                    raise
                trouble = str(error)
                troubles.append(trouble)
            found = salvaged_sources(place, segments) if is_salvage else [Source(*segment) for segment in segments]
            if trouble and not found:
                raise BadInput(f"{place} holds no segments of a corpus either: {trouble}")
            sources += found
    known = {} if is_salvage else ledgers  # salvage goes on whatever a state is like
    return Corpus(sources, sorted(purposes), crawls, troubles, distances, known, taken_down)


def _taken_down(crawl: AnyCrawl) -> list[Manifest]:
    """Its take-downs, also one that was interrupted."""
    begun = read_note(crawl.meta, TAKEDOWN, dict[str, Any]())
    return [*read_note(crawl.meta, TAKEDOWNS, list[Manifest]()), *([begun["record"]] if begun else [])]


def _at_distance(document: StoredDocument, distance: int | None) -> StoredDocument:
    """*document* with this *distance* of its host; as it is if that is None."""
    stands = document.attributes.get("distance")
    if distance is None or stands is None or stands == str(distance):
        return document
    tag, rest = document.text.split("\n", 1)
    tag = tag.replace(f' distance="{stands}"', f' distance="{distance}"')
    return StoredDocument(document.attributes | {"distance": str(distance)}, f"{tag}\n{rest}")


def _refuse_missing_segments(crawl: AnyCrawl) -> None:
    """Raise JobdirError if a state counts more or fewer documents than the segments that it names."""
    for part in crawl.parts:
        named = sum(segment.entries for segment in part.segments("corpus"))
        counted = part.counts.get("total/documents", named)
        if named != counted:
            raise JobdirError(
                f"{part.database} is damaged: it counts {counted:,} documents, but the segments that it names hold "
                f"{named:,}. With --salvage all are written that the files hold."
            )


# -- salvage


def salvaged_sources(directory: Path, segments: Iterable[Segment]) -> list[Source]:
    """The segments in a crawl's directory, and missing ones that its state names (*segments*).

    Salvage also reads whole frames behind the recorded length of a segment.
    """
    known = {segment.path: Source(*segment) for segment in segments}
    files = {path for path in directory.glob(f"corpus/*{SUFFIX}") if _SEGMENT.fullmatch(path.name)}
    return [known.get(path, Source(path)) for path in sorted(files | known.keys())]


class Loss(TypedDict):
    """What salvage left out of a file."""

    file: str
    bytes: int
    documents: int | None  # number by the state, if there is one


class Salvage:
    """Reads sources as far as they are whole, and collects in ``losses`` what is not."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def documents(self, source: Source) -> Iterator[StoredDocument]:
        """The documents of the whole frames of *source*; of a file without damage, all documents."""
        if source.length is None and _is_whole(source):
            yield from documents_of(source)
            return
        size = source.path.stat().st_size if source.path.exists() else 0
        length = size if source.length is None else source.length  # bytes behind it were never acknowledged
        lost = taken = end = 0
        for begin, after, documents in _whole_frames(source.path, size):
            yield from documents
            lost += max(0, min(begin, length) - end)
            taken += len(documents)
            end = after
        lost += max(0, length - end)
        if lost:
            missing = None if source.entries is None else source.entries - taken
            self.losses.append({"file": source.path.name, "bytes": lost, "documents": missing})


def _whole_frames(path: Path, size: int) -> Iterator[tuple[int, int, list[StoredDocument]]]:
    """The first byte, the end and the documents of each whole frame of a file of *size* bytes."""
    if not size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = 0
        for match in re.finditer(re.escape(_MAGIC), data):
            begin = match.start()
            if begin >= end and (frame := _frame(path, begin, size)) is not None:
                length, documents = frame
                end = begin + length
                yield begin, end, documents


def _frame(path: Path, begin: int, size: int) -> tuple[int, list[StoredDocument]] | None:
    """Length and documents of the whole frame at byte *begin* of a file of *size* bytes, else None."""
    try:
        frame = next(frames(path, size, begin, _MAX_BYTES))
        documents = _documents(frame.data.decode())
    except (DamageError, UnicodeDecodeError):
        return None
    return (frame.length, documents) if documents else None


def _documents(text: str) -> list[StoredDocument]:
    """The documents in *text*; none if it holds anything else."""
    found = []
    at = 0
    while (match := _DOCUMENT.match(text, at)) is not None:
        found.append(StoredDocument(attributes_of(match[0].partition("\n")[0]), match[0]))
        at = match.end()
    return found if at == len(text) else []


def _is_whole(source: Source) -> bool:
    try:
        for _ in documents_of(source):
            pass
    except SpiderlingError:
        return False
    return True


def account(losses: Iterable[Loss]) -> Iterator[str]:
    """One line of report for each loss."""
    for loss in losses:
        documents = "" if loss["documents"] is None else f", with {loss['documents']:,} documents"
        yield f"{loss['file']}: {loss['bytes']:,} bytes left out{documents}"


# -- selection

_CONDITION = "condition, such as distance <= 3, lang IN ('cs', 'sk') or host NOT LIKE '%.a.example'"


class Expressions:
    """Expressions in SQL on the columns of a document (docs/formats.md); they can read nothing else."""

    def __init__(self, texts: Sequence[str], what: str) -> None:
        """*what* they are is said to the user.  Raises BadInput."""
        self.texts = list(texts)
        self._what = what
        words = set(re.findall(r"\w+", " ".join(texts).lower()))
        self._columns = [name for name in CONDITION_COLUMNS if name in words]
        self._sqlite = sqlite3.connect(":memory:", check_same_thread=False)
        for text in texts:
            self._values_of([text], {})

    def values(self, attributes: Mapping[str, str]) -> tuple[Any, ...]:
        """Their values for the document with *attributes*; raises BadInput."""
        return self._values_of(self.texts, attributes) if self.texts else ()

    def _values_of(self, texts: Sequence[str], attributes: Mapping[str, str]) -> tuple[Any, ...]:
        columns = ", ".join(["1", *(f"? AS {name}" for name in self._columns)])
        expressions = ", ".join(f"({text}\n)" for text in texts)  # a comment ends at the line's end
        query = f"SELECT {expressions} FROM (SELECT {columns})"  # noqa: S608 - the user's own, on one row
        try:
            found: tuple[Any, ...] = self._sqlite.execute(query, condition_values(attributes, self._columns)).fetchone()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            said = str(error)
            if (name := said.removeprefix("no such column: ")) != said:
                said = f"there is no column {name}, and text stands in quotes; {hint(name, CONDITION_COLUMNS)}"
            raise BadInput(f"{', '.join(texts)!r} is no {self._what}: {said}") from error
        return found


class Selection:
    """Conditions, all of which must hold."""

    def __init__(self, conditions: Sequence[str] = ()) -> None:
        """Raises BadInput."""
        self._conditions = Expressions(conditions, _CONDITION)
        self.left_out: Counter[str] = Counter()  # condition -> number of documents that it left out
        self._met = dict.fromkeys(conditions, False)  # condition -> whether any document met it

    def takes(self, attributes: Mapping[str, str]) -> bool:
        """Whether the document with *attributes* is taken; if not, counts it in `left_out`."""
        failed = ""
        for condition, holds in zip(self._conditions.texts, self._conditions.values(attributes), strict=True):
            self._met[condition] |= bool(holds)
            failed = failed or ("" if holds else condition)
        if failed:
            self.left_out[failed] += 1
        return not failed

    def described(self) -> dict[str, object]:
        """Conditions and `left_out`, for the manifest."""
        return {"where": self._conditions.texts, "left_out": dict(self.left_out)}

    def warnings(self) -> list[str]:
        return [f"No document meets {condition}." for condition, is_met in self._met.items() if not is_met]
