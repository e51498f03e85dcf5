"""Removes near-duplicates from finished corpora by onion's rule: exactly, on one machine and in bounded memory.

**The rule** (onion: Suchomel & Pomikálek 2012, section 3.2).  A unit, which is a paragraph or, by option, a document,
is a duplicate if more than half of its shingles (word 7-tuples, text/fingerprints.py) stand in units before it that are
kept.  Duplicates do not count as seen, so the first occurrence always stays and a second run finds nothing more.  As
in corpus/duplicates.py, four things differ from onion's program: shingles do not cross paragraphs, the share is
one of shingles and not of words, a paragraph is not compared with itself, and short rests between duplicates stay.

**The steps.**  A unit depends on earlier ones only by shingles that stand in several units, and these are few.  So
(1) the shingles of all units, as 64-bit hashes, go to a DuckDB file, chunk by chunk; (2) those in several units get
numbers, one range of hashes after the other; (3) the units are judged in their order, with one byte of memory for
each number; (4) the corpus is written without the duplicates.  The SQL of 1 and 2 is not specific to DuckDB, and the
ranges of 2 are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import BadInput, StorageError
from spiderling.base.files import saving
from spiderling.base.machine import require
from spiderling.base.terminal import with_progress
from spiderling.corpus.segments import CorpusDocument, StoredDocument, parse_document
from spiderling.export.sources import Corpus
from spiderling.text.fingerprints import WINDOW, shingles
from spiderling.text.prevertical import render, render_attributes
from spiderling.text.quality import count_words

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MIN_MEMORY_BYTES = 1_000_000_000  # least memory of a run; chosen
_OWN_BYTES = 600_000_000  # memory of Python, its libraries and one chunk; DuckDB gets the rest; chosen
_LOOK_S = 0.2  # seconds between two looks whether a query has ended or Ctrl-C has come; chosen
CHUNK_SHINGLES = 4_000_000  # shingles of a chunk, which is one transaction; chosen
BYTES_PER_SHINGLE = 100  # memory that DuckDB needs for each shingle of a range of hashes; chosen
RANGE_ROWS = 4_000_000  # rows of ``shared`` that are judged at once; chosen
_HASHES = 1 << 64

_TABLES = """
CREATE OR REPLACE TABLE shingle (hash UBIGINT, unit BIGINT);
CREATE OR REPLACE TABLE unit (unit BIGINT, shingles BIGINT);
CREATE OR REPLACE TABLE shared (number BIGINT, unit BIGINT);
"""
_NUMBERED = """
INSERT INTO shared
SELECT known.number, shingle.unit
FROM shingle JOIN (
    SELECT hash, row_number() OVER (ORDER BY hash) - 1 + ? AS number
    FROM (SELECT hash FROM shingle WHERE hash BETWEEN ? AND ? GROUP BY hash HAVING min(unit) < max(unit)) AS several
) AS known ON shingle.hash = known.hash
WHERE shingle.hash BETWEEN ? AND ?
ORDER BY shingle.unit
"""
_POSTINGS = """
SELECT shared.unit AS unit, shared.number AS number, unit.shingles AS shingles
FROM shared JOIN unit ON shared.unit = unit.unit
WHERE shared.unit BETWEEN ? AND ? AND unit.unit BETWEEN ? AND ?
ORDER BY shared.unit
"""


class Rule(NamedTuple):
    """What is a duplicate."""

    window: int = WINDOW
    """Words of a shingle; in text without spaces, the characters that stand for them (text/fingerprints.py)."""
    threshold: float = 0.5  # share of seen shingles above which a unit is a duplicate
    unit: str = "paragraph"  # what is judged as a whole: 'paragraph' or 'document'
    mark: bool = False  # whether duplicates stay, their paragraphs marked with ``dup="1"``


class DedupTotals(NamedTuple):
    """Numbers of what was read and of units that are duplicates."""

    documents: int
    units: int
    shingles: int
    duplicates: int


class Deduplication:
    """One run over a corpus, in the directory *work*; what a killed run left there is overwritten."""

    def __init__(self, corpus: Corpus, rule: Rule, work: Path, memory_bytes: int) -> None:
        """Raises BadInput for values out of bounds, and when *work* is in use."""
        if memory_bytes < MIN_MEMORY_BYTES:
            raise BadInput(f"{memory_bytes:,} bytes of memory are too few; {MIN_MEMORY_BYTES:,} are the least.")
        if not 1 <= rule.window <= 100:
            raise BadInput(f"tuples of {rule.window} words make no sense; take 1 to 100 (onion and the papers: 7).")
        if not 0 <= rule.threshold < 1:
            raise BadInput(f"a threshold of {rule.threshold} makes no sense; take a share from 0 to below 1, as 0.5.")
        require("dedup")
        self._corpus = corpus
        self._rule = rule
        self._work = work
        self._sql_bytes = memory_bytes - _OWN_BYTES
        self._thread = ThreadPoolExecutor(1)
        with _translating_errors(work):
            self._connection = self._open()
        self._duplicate = np.zeros(0, np.bool_)  # for each unit, whether it is a duplicate

    def _open(self) -> DuckDBPyConnection:
        import duckdb  # large, and only this command needs it

        self._work.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(
            str(self._work / "work.duckdb"),
            config={"memory_limit": f"{self._sql_bytes}B", "temp_directory": str(self._work / "spill")},
        )
        connection.execute(_TABLES)
        return connection

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _execute(self, query: str, values: Iterable[object] = ()) -> DuckDBPyConnection:
        """Run *query* in another thread, because DuckDB may miss Ctrl-C while a query runs.

        Whoever waits looks again: the system may give the signal to another thread, which wakes nobody, and an
        interrupt before the query has begun is lost.
        """
        running = self._thread.submit(self._connection.execute, query, list(values))
        try:
            while not wait([running], _LOOK_S).done:
                pass
            return running.result()
        except KeyboardInterrupt:
            while not running.done():
                self._connection.interrupt()
                wait([running], _LOOK_S)
            raise

    def judge(self) -> DedupTotals:
        """Steps 1 to 3.  Raises StorageError."""
        with _translating_errors(self._work):
            totals = self._collect()
            self._number(totals.shingles)
            self._decide(totals.units)
            return totals._replace(duplicates=int(np.count_nonzero(self._duplicate)))

    def _one(self, query: str) -> Any:
        row = self._execute(query).fetchone()
        assert row is not None
        return row[0]

    def _collect(self) -> DedupTotals:
        """Step 1: collect the shingles, sorted within each chunk so that a range of hashes stands in few places."""
        totals = DedupTotals(0, 0, 0, 0)
        texts = with_progress(self._corpus.stored(), "documents read", self._corpus.documents)
        for documents, hashes, sizes in _chunks(texts, self._rule):
            units = np.arange(totals.units, totals.units + len(sizes))
            self._connection.register("hashes", {"hash": hashes, "unit": np.repeat(units, sizes)})
            self._connection.register("sizes", {"unit": units, "shingles": sizes})
            self._execute("INSERT INTO shingle SELECT hash, unit FROM hashes ORDER BY hash")
            self._execute("INSERT INTO unit SELECT unit, shingles FROM sizes WHERE shingles > 0")
            new = (documents, len(units), len(hashes), 0)
            totals = DedupTotals._make(sum(pair) for pair in zip(totals, new, strict=True))
        return totals

    def _number(self, total: int) -> None:
        """Step 2: number the shingles that stand in several units."""
        ranges = 1 + total * BYTES_PER_SHINGLE // self._sql_bytes
        for number in with_progress(range(ranges), "ranges of hashes", ranges):
            low = _HASHES * number // ranges
            high = _HASHES * (number + 1) // ranges - 1
            first = self._one("SELECT coalesce(max(number) + 1, 0) FROM shared")
            self._execute(_NUMBERED, [first, low, high, low, high])

    def _decide(self, units: int) -> None:
        """Step 3: judge the units in the order of the corpus."""
        parts = 1 + self._one("SELECT count(*) FROM shared") // RANGE_ROWS
        seen = self._flags("seen", self._one("SELECT coalesce(max(number) + 1, 0) FROM shared"))
        self._duplicate = self._flags("duplicates", units)
        for part in with_progress(range(parts), "parts of the corpus judged", parts):
            low = units * part // parts
            high = units * (part + 1) // parts - 1
            found = self._execute(_POSTINGS, [low, high, low, high]).fetchnumpy()
            known = _duplicates(found["unit"], found["number"], found["shingles"], seen, self._rule.threshold)
            self._duplicate[known] = True

    def _flags(self, name: str, number: int) -> NDArray[np.bool_]:
        """*number* flags, on disk if they would take too much memory."""
        if number < self._sql_bytes // 4:
            return np.zeros(number, np.bool_)
        return np.memmap(self._work / name, np.bool_, "w+", shape=(number,))

    def without_duplicates(self, documents: Iterable[StoredDocument]) -> Iterator[StoredDocument]:
        """Step 4: *documents*, those of the corpus, without duplicates; empty documents are left out."""
        unit = 0
        for stored in documents:
            document = parse_document(stored)
            paragraphs = len(document.paragraphs)
            number = paragraphs if self._rule.unit == "paragraph" else 1
            flags = self._duplicate[unit : unit + number].tolist()
            unit += number
            if not any(flags):
                yield stored
            elif not all(flags) or self._rule.mark:
                yield self._without(document, flags if self._rule.unit == "paragraph" else flags * paragraphs)

    def _without(self, document: CorpusDocument, flags: list[bool]) -> StoredDocument:
        """*document* with the flagged paragraphs removed, or marked if the rule says so."""
        attributes = document.attributes
        entries = list(zip(document.paragraphs, document.details, flags, strict=True))
        if self._rule.mark:
            left = [(text, details | {"dup": "1"} if flag else details) for text, details, flag in entries]
        else:
            left = [(text, details) for text, details, flag in entries if not flag]
            texts = [text for text, _ in left]
            clean = "\n".join(texts)
            size = len(clean.encode())
            sizes = {"length": size, "words": count_words(clean, size)}
            attributes = {name: str(sizes.get(name, value)) for name, value in attributes.items()}
        text = render(attributes, [(text, render_attributes(details)) for text, details in left])
        return StoredDocument(attributes, text)


def _chunks(
    documents: Iterable[StoredDocument], rule: Rule
) -> Iterator[tuple[int, NDArray[np.uint64], NDArray[np.int64]]]:
    """Chunks of documents: (number of documents, shingles, number of shingles of each unit)."""
    hashes = [np.zeros(0, np.uint64)]
    sizes = [np.zeros(0, np.int64)]
    number = 0
    for stored in documents:
        found = shingles(parse_document(stored).paragraphs, rule.window)
        counts = found.counts.astype(np.int64)
        hashes.append(found.hashes)
        sizes.append(counts if rule.unit == "paragraph" else counts.sum(keepdims=True))
        number += len(found.hashes)
        if number >= CHUNK_SHINGLES:
            yield len(hashes) - 1, np.concatenate(hashes), np.concatenate(sizes)
            del hashes[1:], sizes[1:]
            number = 0
    yield len(hashes) - 1, np.concatenate(hashes), np.concatenate(sizes)


def _duplicates(
    units: NDArray[np.int64],
    numbers: NDArray[np.int64],
    sizes: NDArray[np.int64],
    seen: NDArray[np.bool_],
    threshold: float,
) -> list[int]:
    """The duplicates among *units*; marks the shingles of the others in *seen*.

    *units*, *numbers* and *sizes* are columns of one table, sorted by unit: a row holds a unit, the number of one of
    its shared shingles, and how many shingles the unit has.
    """
    starts = np.flatnonzero(np.diff(units, prepend=-1))
    ends = np.append(starts, len(units))[1:]
    most = threshold * sizes[starts]
    found = []
    for start, end, bound in zip(starts.tolist(), ends.tolist(), most.tolist(), strict=True):
        own = numbers[start:end]
        # a unit with too few shared shingles cannot be a duplicate
        if end - start > bound and np.count_nonzero(seen[own]) > bound:
            found.append(int(units[start]))
        else:
            seen[own] = True
    return found


@contextmanager
def _translating_errors(work: Path) -> Iterator[None]:
    """Turn errors of DuckDB into BadInput or StorageError."""
    import duckdb

    try:
        with saving(work):
            yield
    except duckdb.Error as error:
        first_line = str(error).partition("\n")[0]
        if isinstance(error, duckdb.IOException) and "lock" in str(error):
            raise BadInput(f"{work} is in use by another run.") from None
        if isinstance(error, duckdb.IOException):
            raise StorageError(f"{work} cannot be read or written: {first_line}") from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise StorageError(f"the memory is too little; give more by --memory: {first_line}") from error
        raise StorageError(f"{work} cannot be used: {first_line}  Remove it to begin again.") from error
