"""What a strategy learns, kept as a log: a line of notes for each batch, a snapshot of the tables every LINES batches.

The notes of a batch are much shorter than the tables that they change.  A restart reads the snapshot and then the later
lines in order, which gives the tables as they were at the last commit.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import zstandard

if TYPE_CHECKING:
    from spiderling.frontier.ranking.worth import Worth

KEY = "learnt"
"""The key of the snapshot in the store's ``meta``; the keys of the lines have a number behind it."""
LINES = 128
"""Batches from one snapshot to the next; chosen: a restart reads the lines in well under a second."""
_DAMAGES = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    MemoryError,
    zstandard.ZstdError,
)
"""Exceptions that damaged notes raise; binascii.Error is a ValueError."""
_MOST = 1e6
"""A yield rate above that of any host; compressed documents may have more than 1."""


class Note(NamedTuple):
    """What one page gave."""

    host_id: int
    section: int
    """``section_of`` its path (base/url_features.py)."""
    rate: float
    """The yield rate of its host, above 0."""
    kept_bytes: int
    body_bytes: int
    is_wanted: bool | None
    """Whether it is in a wanted language; None: nobody knows."""
    words: list[int]
    """The words of its URL (base/url_features.py); empty if the language is not known."""


class Notes:
    """The notes of one crawl; ``entries`` is for the store's ``meta``."""

    def __init__(self, tables: Worth) -> None:
        self._tables = tables
        self._line: list[Note] = []
        self._number = 0
        """The number of the last batch that had notes."""
        self._is_whole = True
        """Whether a restart from the store would give the tables, the current line apart."""

    def add(self, note: Note) -> None:
        """Count what a page gave, and keep it for the next line."""
        self._tables.take(note)
        self._line.append(note)

    def entries(self) -> dict[str, str]:
        """What the store must learn since the last call, in JSON."""
        if not self._line:
            return {}
        self._number += 1
        entries = {f"{KEY}:{self._number % LINES}": json.dumps([self._number, self._line])}
        if not self._is_whole:  # the lines that stand there are damaged, or follow one that is
            entries = {f"{KEY}:{place}": "null" for place in range(LINES)}
        if not self._is_whole or self._number % LINES == 0:
            entries[KEY] = json.dumps(_packed(self._number, self._tables.columns()))
        self._line = []
        self._is_whole = True
        return entries

    def restore(self, meta: Mapping[str, str]) -> None:
        """Restore what ``entries`` returned; if that is damaged, everything is learnt anew."""
        try:
            if KEY in meta:
                self._number, columns = _unpacked(json.loads(meta[KEY]))
                self._tables.fill(columns)
            lines = [json.loads(meta.get(f"{KEY}:{place}", "null")) for place in range(LINES)]
            for number, notes in sorted(line for line in lines if line is not None and line[0] > self._number):
                if number != self._number + 1:
                    raise ValueError("a line is missing")
                for note in notes:
                    self._tables.take(_checked(note))
                self._number = number
        except _DAMAGES:
            self._tables.forget()
            self._number = 0
            self._is_whole = False


def _packed(number: int, columns: Sequence[bytes]) -> str:
    head = json.dumps([number, *map(len, columns)]).encode()
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)  # one serves one thread at a time
    return base64.b64encode(compressor.compress(b"\n".join((head, b"".join(columns))))).decode("ascii")


def _unpacked(text: str) -> tuple[int, list[bytes]]:
    data = zstandard.ZstdDecompressor().decompress(base64.b64decode(text, validate=True))
    head, _, rest = data.partition(b"\n")
    number, *lengths = json.loads(head)
    columns = []
    at = 0
    for length in lengths:
        columns.append(rest[at : at + length])
        at += length
    if at != len(rest):
        raise ValueError("columns that do not fit")
    return int(number), columns


def _checked(row: Any) -> Note:
    """A note as it came from the store; raises ValueError for what is none."""
    match note := Note(*row):
        case (int(), int(), float(rate), int(), int(), bool() | None, list(words)) if 0 < rate < _MOST:
            if all(type(word) is int and word >= 0 for word in (*note[:2], *note[3:5], *words)):
                return note
    raise ValueError("no note")
