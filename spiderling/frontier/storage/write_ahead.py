"""Is SQLite's write-ahead log whole?

SQLite takes the log for ended at the first frame that does not agree with its checksum, and says nothing: after a
power cut that is right, since what comes behind was not synced; after damage the commits behind it are lost.  The
format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""Its lowest bit says that words are summed up with their high byte first."""
_MASK = 0xFFFFFFFF


class _Frame(NamedTuple):
    offset: int
    is_commit: bool
    is_of_log: bool
    """It was written since the log began anew: it has the log's salts, or one of them."""
    is_whole: bool


def damaged_log(database: Path) -> Iterator[str]:
    """What is wrong with the log beside *database*, which no other process writes; raises OSError."""
    path = database.with_name(database.name + "-wal")
    if not path.exists() or path.stat().st_size < _HEADER.size:
        return
    log = path.read_bytes()
    if not _begins(log):
        yield f"{path} cannot be read from its beginning on: what was committed to it last is lost"
        return
    frames = list(_frames(log))
    broken = next((number for number, frame in enumerate(frames) if not frame.is_whole), len(frames))
    lost = sum(frame.is_of_log and frame.is_commit for frame in frames[broken:])
    if lost:
        yield f"{path} is damaged at byte {frames[broken].offset:,}: the last {lost} commits are lost"


def _begins(log: bytes) -> bool:
    """Whether the header is as it was written."""
    magic, *_, first, second = _HEADER.unpack_from(log)
    return magic & ~1 == _MAGIC and _summed(log[:24], ">" if magic & 1 else "<", (0, 0)) == (first, second)


def _frames(log: bytes) -> Iterator[_Frame]:
    """The whole frames, then those of which nothing can be said but what they claim."""
    magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack_from(log)
    order, sums, is_whole = ">" if magic & 1 else "<", (first, second), True
    for offset in range(_HEADER.size, len(log) - page_bytes - _FRAME.size + 1, _FRAME.size + page_bytes):
        _, commit, first_salt, second_salt, *wanted = _FRAME.unpack_from(log, offset)
        if is_whole:
            page = log[offset + _FRAME.size : offset + _FRAME.size + page_bytes]
            sums = _summed(log[offset : offset + 8] + page, order, sums)
            is_whole = [*sums] == wanted and [first_salt, second_salt] == salts
        is_of_log = first_salt == salts[0] or second_salt == salts[1]
        yield _Frame(offset, commit != 0, is_of_log, is_whole)


def _summed(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for one, two in struct.iter_unpack(f"{order}2I", data):
        first = first + one + second & _MASK
        second = second + two + first & _MASK
    return first, second
