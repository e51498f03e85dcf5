"""Finds damage in SQLite's write-ahead log.

SQLite ignores the log, without a message, from the first frame on that disagrees with its checksum.  After a power
cut that is right, since the rest was not synced.  After damage it loses the commits behind that frame.
The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""The first number of a log.  If its lowest bit is set, checksums read words with the high byte first."""
_MASK = 0xFFFFFFFF


class _Frame(NamedTuple):
    offset: int
    is_commit: bool
    is_of_log: bool
    """Whether it was written since the log was last restarted: it has at least one of the log's two salts."""
    is_whole: bool
    """Whether it and all frames before it agree with their checksums."""


def damaged_log(database: Path) -> Iterator[str]:
    """What is damaged in the log of *database*, which no other process may be writing; raises OSError."""
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
    """Whether the header agrees with its checksum."""
    magic, *_, first, second = _HEADER.unpack_from(log)
    return magic & ~1 == _MAGIC and _summed(log[:24], ">" if magic & 1 else "<", (0, 0)) == (first, second)


def _frames(log: bytes) -> Iterator[_Frame]:
    """All frames, up to the end of the file."""
    magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack_from(log)
    order = ">" if magic & 1 else "<"
    sums = (first, second)
    is_whole = True
    for offset in range(_HEADER.size, len(log) - page_bytes - _FRAME.size + 1, _FRAME.size + page_bytes):
        _, commit, first_salt, second_salt, *wanted = _FRAME.unpack_from(log, offset)
        if is_whole:
            page = log[offset + _FRAME.size : offset + _FRAME.size + page_bytes]
            sums = _summed(log[offset : offset + 8] + page, order, sums)
            is_whole = [*sums] == wanted and [first_salt, second_salt] == salts
        is_of_log = first_salt == salts[0] or second_salt == salts[1]
        yield _Frame(offset, commit != 0, is_of_log, is_whole)


def _summed(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of *data*, continued from *sums*."""
    first, second = sums
    for one, two in struct.iter_unpack(f"{order}2I", data):
        first = first + one + second & _MASK
        second = second + two + first & _MASK
    return first, second
