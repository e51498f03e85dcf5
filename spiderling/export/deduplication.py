"""Removes near-duplicates from finished corpora by a rule after onion's: exactly, in bounded memory, on many machines.

**The rule** (after onion: Suchomel & Pomikálek 2012, section 3.2).  A unit, which is a paragraph or, by option, a
document, is a duplicate if more than half of its shingles (word 7-tuples, text/fingerprints.py) stand in units before
it.  The first occurrence of a shingle counts whether its unit is kept or not, so each shingle is decided by itself;
onion lets those of duplicates count for nothing (docs/corpus.md says how rarely that differs).  A second run finds
nothing more.  As in corpus/duplicates.py, shingles do not cross paragraphs, the share is one of shingles and not of
words, a paragraph is not compared with itself, and short rests between duplicates stay.

**The steps.**  The corpus is divided into parts, the hashes into ranges.  (1) For each part, `collect` writes the
shingles' hashes, sorted, with their units.  (2) For each range, `compare` merges those of all parts and writes the
units that have a hash which a unit before them has.  (3) For each part, `write` counts these and writes the documents
without the duplicates.  Each step of a part or range is a task for any process that sees the directory.  Its file gets
its name when it is whole, so a task may be killed, repeated and run twice.  One process alone has one part and range.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import BadInput, StorageError
from spiderling.base.files import replacing, saving, sync_directory
from spiderling.base.terminal import with_progress
from spiderling.corpus.segments import CorpusDocument, StoredDocument, parse_document
from spiderling.export.export import ExportPlan, export
from spiderling.export.sources import Corpus
from spiderling.text.fingerprints import WINDOW, shingles
from spiderling.text.prevertical import render, render_attributes
from spiderling.text.quality import count_words

MIN_MEMORY_BYTES = 1_000_000_000  # least memory of a run; chosen
_OWN_BYTES = 400_000_000  # memory of Python, its libraries and the documents in work; chosen
BYTES_PER_ROW = 100  # memory for each shingle that is sorted at once; measured: 47 in step 1, 90 in step 2
BYTES_PER_UNIT = 24  # memory for each unit of a part: its numbers, and those that its threshold is compared with
BATCH_DOCUMENTS = 64  # documents whose shingles are made at once, in half the time; chosen
BUCKETS = 1 << 16  # values of a hash's first bits, of which a range has several; chosen: each is sorted at once
_BUCKET_SHIFT = np.uint64(48)
_MAX_UNITS = 1 << 32  # units of a part, which are numbers of 32 bits

_UNIT = np.dtype("<u4")  # the number of a unit in its part
_ROW = np.dtype([("hash", "<u8"), ("unit", _UNIT)])
_MAX_NAMED = 10  # parts or ranges that are named because they are missing; chosen
_NAME = re.compile(r"(part|range)-(\d+)-of-(\d+)")

Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]


class Rule(NamedTuple):
    """What is a duplicate."""

    window: int = WINDOW
    """Words of a shingle; in text without spaces, the characters that stand for them (text/fingerprints.py)."""
    threshold: float = 0.5  # share of seen shingles above which a unit is a duplicate
    unit: str = "paragraph"  # what is judged as a whole: 'paragraph' or 'document'
    mark: bool = False  # whether duplicates stay, their paragraphs marked with ``dup="1"``


class Share(NamedTuple):
    """One of several parts of the corpus or ranges of the hashes."""

    number: int = 0  # from 0 on
    total: int = 1

    @classmethod
    def of(cls, text: str) -> Share:
        """The share that *text* names, as 17/100, of 0/100 to 99/100; raises BadInput."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        share = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not share.number < share.total <= BUCKETS:
            raise BadInput(f"{text!r} is no share; of four there are 0/4, 1/4, 2/4 and 3/4, and {BUCKETS:,} at most.")
        return share

    def name(self, kind: str) -> str:
        return f"{kind}-{self.number:05d}-of-{self.total:05d}"


WHOLE = Share()  # all, for one process alone


class DedupTotals(NamedTuple):
    """Numbers of what was read and of units that are duplicates."""

    documents: int
    units: int
    shingles: int
    duplicates: int


class Deduplication:
    """The steps of a run, whose files are in the directory *work*; *memory_bytes* is the most that one takes."""

    def __init__(self, rule: Rule, work: Path, memory_bytes: int) -> None:
        """Raises BadInput for values out of bounds, StorageError if *work* cannot be made."""
        if memory_bytes < MIN_MEMORY_BYTES:
            raise BadInput(f"{memory_bytes:,} bytes of memory are too few; {MIN_MEMORY_BYTES:,} are the least.")
        if not 1 <= rule.window <= 100:
            raise BadInput(f"tuples of {rule.window} words make no sense; take 1 to 100 (onion and the papers: 7).")
        if not 0 <= rule.threshold < 1:
            raise BadInput(f"a threshold of {rule.threshold} makes no sense; take a share from 0 to below 1, as 0.5.")
        self._rule = rule
        self._work = work / f"{rule.unit}-{rule.window}"  # what both are decides which files fit to each other
        self._documents = 0  # number of those that this process has collected
        self._rows = (memory_bytes - _OWN_BYTES) // BYTES_PER_ROW
        self._units = min(_MAX_UNITS, (memory_bytes - _OWN_BYTES) // BYTES_PER_UNIT)
        with saving(work):
            self._work.mkdir(parents=True, exist_ok=True)

    def collect(self, corpus: Corpus, part: Share = WHOLE) -> None:
        """Step 1: write the shingles of *corpus*, which is that *part*.  Raises BadInput, and StorageError.

        A part is read in chunks that fit into the memory.  Of the units of a chunk that share a hash, only the first
        is written with it: that it stands before the others is known, and is counted for them in a second file.
        """
        path = self._work / part.name("part")
        if path.exists():
            return
        first = 0  # number of the next unit
        texts = with_progress(corpus.left(), "documents read", corpus.documents)
        with saving(self._work), _whole(path) as file, _whole(_units_of(path)) as units:
            for documents, hashes, sizes in _chunks(texts, self._rule, self._rows):
                self._documents += documents
                rows, seen = _first_rows(hashes, sizes)
                rows["unit"] += np.uint32(first)
                _append(file, rows["hash"] >> _BUCKET_SHIFT, BUCKETS, rows)
                units.write(np.stack((sizes, seen), axis=1).astype(_UNIT).tobytes())
                first += len(sizes)
                if first > self._units:
                    raise BadInput(
                        f"{first:,} {self._rule.unit}s and more need more memory: say so by --memory, or divide the "
                        "corpus into parts."
                    )

    def compare(self, share: Share = WHOLE) -> None:
        """Step 2: find the units with a hash in the range *share* that a unit before them has.

        Raises BadInput if a part is missing, and StorageError.
        """
        path = self._work / share.name("range")
        if path.exists():
            return
        parts = self._files("part")
        borders = self._borders(
            parts, *(BUCKETS * number // share.total for number in (share.number, share.number + 1))
        )
        with saving(self._work), _whole(path) as file:
            for low, high in with_progress(pairwise(borders), "ranges of hashes", len(borders) - 1):
                later = _later(parts, low, high)
                _append(file, later >> np.uint64(32), len(parts), later.astype(_UNIT))

    def _borders(self, parts: Iterable[Path], low: int, high: int) -> list[int]:
        """Where to divide the buckets from *low* to below *high*, so that each piece fits into the memory."""
        rows = np.zeros(high - low, np.int64)
        for path in parts:
            for starts, _ in _chunks_in(path, BUCKETS, _ROW):
                rows += np.diff(starts[low : high + 1])
        pieces = np.cumsum(rows) // max(1, self._rows - int(rows.max(initial=0)))
        return [low, *(low + 1 + np.flatnonzero(np.diff(pieces))).tolist(), high]

    def write(self, corpus: Corpus, plan: ExportPlan, part: Share = WHOLE) -> tuple[DedupTotals, int]:
        """Step 3: write *corpus*, which is that *part*, without its duplicates; returns totals and documents written.

        Raises BadInput if a range is missing or the corpus has changed, and StorageError.
        """
        with saving(self._work):
            sizes, duplicates = self._judged(part)
        totals = DedupTotals(0, len(sizes), int(sizes.sum()), int(np.count_nonzero(duplicates)))
        made_by = {"dedup": self._rule._asdict() | totals._asdict()}

        def left() -> Iterator[StoredDocument]:
            texts = with_progress(corpus.left(), "documents written", self._documents or corpus.documents)
            number = yield from without_duplicates(texts, duplicates, self._rule)
            made_by["dedup"]["documents"] = number

        kept = export(corpus, left(), plan, made_by).kept
        return totals._replace(documents=made_by["dedup"]["documents"]), kept

    def _judged(self, part: Share) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Of each unit of a *part*, how many shingles it has, and whether it is a duplicate."""
        path = self._files("part", part.total)[part.number]
        units = np.fromfile(_units_of(path), _UNIT).reshape(-1, 2)
        sizes, seen = units[:, 0], units[:, 1].copy()
        for file in self._files("range"):
            for starts, later in _chunks_in(file, part.total, _UNIT):
                np.add.at(seen, later[starts[part.number] : starts[part.number + 1]], _UNIT.type(1))
        return sizes, seen > self._rule.threshold * sizes

    def _files(self, kind: str, total: int = 0) -> list[Path]:
        """The files of all parts or ranges, in order; raises BadInput if one is missing.  *total* is their number."""
        names = [match for file in self._work.iterdir() if (match := _NAME.fullmatch(file.name)) and match[1] == kind]
        totals = {int(match[3]) for match in names} | ({total} if total else set())
        if len(totals) != 1:
            found = " and ".join(map(str, sorted(totals))) or "no"
            raise BadInput(f"{self._work} has {found} {kind}s; there must be all of one division.")
        shares = [Share(number, *totals) for number in range(*totals)]
        files = [self._work / share.name(kind) for share in shares]
        missing = [
            f"{share.number}/{share.total}" for share, file in zip(shares, files, strict=True) if not file.exists()
        ]
        if missing:
            raise BadInput(f"{self._work} lacks {len(missing):,} {kind}s: {', '.join(missing[:_MAX_NAMED])} ...")
        return files


def without_duplicates(
    documents: Iterable[StoredDocument], duplicates: NDArray[np.bool_], rule: Rule
) -> Generator[StoredDocument, None, int]:
    """*documents* without the units that *duplicates* marks; empty documents are left out.  Returns their number.

    Raises BadInput if the documents have another number of units.
    """
    unit = number = 0
    for stored in documents:
        number += 1
        document = parse_document(stored)
        paragraphs = len(document.paragraphs)
        units = paragraphs if rule.unit == "paragraph" else 1
        flags = duplicates[unit : unit + units].tolist()
        unit += units
        if not any(flags):
            yield stored
        elif not all(flags) or rule.mark:
            rest = _without(document, flags if rule.unit == "paragraph" else flags * paragraphs, rule.mark)
            yield rest._replace(place=stored.place)
    if unit != len(duplicates):
        raise BadInput(f"the corpus has {unit:,} {rule.unit}s now, and had {len(duplicates):,}: begin again.")
    return number


def _without(document: CorpusDocument, flags: list[bool], mark: bool) -> StoredDocument:
    """*document* with the flagged paragraphs removed, or with *mark* marked."""
    attributes = document.attributes
    entries = list(zip(document.paragraphs, document.details, flags, strict=True))
    if mark:
        left = [(text, details | {"dup": "1"} if flag else details) for text, details, flag in entries]
    else:
        left = [(text, details) for text, details, flag in entries if not flag]
        clean = "\n".join(text for text, _ in left)
        size = len(clean.encode())
        sizes = {"length": size, "words": count_words(clean, size)}
        attributes = {name: str(sizes.get(name, value)) for name, value in attributes.items() if name != "pii"}
    text = render(attributes, [(text, render_attributes(details)) for text, details in left])
    return StoredDocument(attributes, text)


def _chunks(documents: Iterable[StoredDocument], rule: Rule, most: int) -> Iterator[tuple[int, Hashes, Counts]]:
    """Chunks of documents of some *most* shingles: (documents, shingles, number of shingles of each unit)."""
    hashes = [np.zeros(0, np.uint64)]
    sizes = [np.zeros(0, np.int64)]
    number = read = 0
    texts = (parse_document(stored).paragraphs for stored in documents)
    while batch := list(islice(texts, BATCH_DOCUMENTS)):
        found = shingles([*chain.from_iterable(batch)], rule.window)
        counts = found.counts.astype(np.int64)
        if rule.unit == "document":
            owners = np.repeat(np.arange(len(batch)), [len(paragraphs) for paragraphs in batch])
            counts = np.bincount(owners, counts, len(batch)).astype(np.int64)
        hashes.append(found.hashes)
        sizes.append(counts)
        number += len(found.hashes)
        read += len(batch)
        if number >= most:
            yield read, np.concatenate(hashes), np.concatenate(sizes)
            del hashes[1:], sizes[1:]
            number = read = 0
    yield read, np.concatenate(hashes), np.concatenate(sizes)


def _first_rows(hashes: Hashes, sizes: Counts) -> tuple[NDArray[Any], Counts]:
    """The rows of a chunk that may be the first with their hash, sorted, and of each unit how many surely are not."""
    units = np.repeat(np.arange(len(sizes), dtype=_UNIT), sizes)
    order = np.argsort(hashes)
    hashes = hashes[order]
    units = units[order]
    is_later = units > _firsts(hashes, units)
    rows = np.empty(len(units) - np.count_nonzero(is_later), _ROW)
    rows["hash"] = hashes[~is_later]
    rows["unit"] = units[~is_later]
    return rows, np.bincount(units[is_later], minlength=len(sizes))


def _later(parts: Iterable[Path], low: int, high: int) -> NDArray[np.uint64]:
    """The units behind the first one with the same hash, once for each hash in the buckets from *low* to below *high*.

    Sorted; each is its part's number in the upper 32 bits, and its number in the part in the lower ones.
    """
    hashes = [np.zeros(0, np.uint64)]
    units = [np.zeros(0, np.uint64)]
    for number, path in enumerate(parts):
        for starts, rows in _chunks_in(path, BUCKETS, _ROW):
            own = rows[starts[low] : starts[high]]
            hashes.append(own["hash"].copy())
            units.append(own["unit"] + np.uint64(number << 32))
    every = np.concatenate(hashes)
    hashes.clear()
    order = np.argsort(every)
    every = every[order]
    found = np.concatenate(units)[order]
    units.clear()
    return np.sort(found[found > _firsts(every, found)])


def _firsts(hashes: Hashes, units: NDArray[Any]) -> NDArray[Any]:
    """For each of *units* the least one with the same hash; *hashes* are sorted."""
    if not len(units):
        return units
    starts = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1])))
    return np.repeat(np.minimum.reduceat(units, starts), np.diff(starts, append=len(units)))


# -- files: chunks, each of which says where the rows of each key begin, as 32 bits, and holds the rows


def _append(file: IO[bytes], keys: NDArray[np.uint64], number: int, rows: NDArray[Any]) -> None:
    """Write a chunk of *rows*, which are sorted by their *keys* from 0 to below *number*."""
    file.write(np.searchsorted(keys, np.arange(number + 1, dtype=np.uint64)).astype(_UNIT).tobytes())
    file.write(rows.tobytes())


def _chunks_in(path: Path, number: int, kind: np.dtype[Any]) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """The beginnings of *number* keys, and one more, and the rows of each chunk; these are read where they are used."""
    data = np.memmap(path, np.uint8, "r")
    at = 0
    while at < len(data):
        middle = at + (number + 1) * _UNIT.itemsize
        starts = data[at:middle]
        at = middle + (int(starts.view(_UNIT)[-1]) * kind.itemsize if middle <= len(data) else 1)
        if at > len(data):
            raise StorageError(f"{path} is damaged; remove it, and do its step again.")
        yield starts.view(_UNIT), data[middle:at].view(kind)


def _units_of(path: Path) -> Path:
    """The file with the sizes of a part's units and how many of their shingles its chunks have shown to be later."""
    return path.with_suffix(".units")


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets the name *path* when it is complete; other processes may write the same one meanwhile."""
    own = path.with_name(f"{path.name}.{uuid4().hex}")
    with replacing(own) as file:
        yield file
    own.replace(path)
    sync_directory(path.parent)
