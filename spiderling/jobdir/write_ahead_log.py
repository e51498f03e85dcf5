"""Examines SQLite's write-ahead log beside a state, without changing it.

SQLite ignores the log, without a message, from the first frame on that disagrees with its checksum.  A kill or power
cut amid the last commit leaves such a frame in that commit, which nobody was told of.  Damage before it loses commits.
The log's format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from operator import eq
from pathlib import Path

from spiderling.frontier.storage.state_file import log_of

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""The first number of a log.  If its lowest bit is set, checksums read words with the high byte first."""
_MASK = 0xFFFFFFFF


def damaged_log(database: Path) -> str:
    """What is damaged in the log of *database*, which no other process may be writing; '' if nothing is.

    Raises OSError.
    """
    path = log_of(database)
    lost, offset = _lost_commits(path)
    if not offset and lost:
        return f"{path} cannot be read from its beginning on: what was committed to it last is lost"
    return f"{path} is damaged at byte {offset:,}: the last {lost} commits are lost" if lost > 1 else ""


def has_torn_commit(database: Path) -> bool:
    """Whether the last commit in the log of *database* is not whole: it was being written, or is damaged."""
    lost, offset = _lost_commits(log_of(database))
    return lost == 1 and offset > 0


def _lost_commits(path: Path) -> tuple[int, int]:
    """Commits in the log that SQLite does not see, and from which byte on; byte 0: it sees none, whatever is there."""
    log = path.read_bytes() if path.exists() else b""
    if len(log) <= _HEADER.size + _FRAME.size:
        return 0, 0
    magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack_from(log)
    order = ">" if magic & 1 else "<"
    sums = (first, second)
    if magic & ~1 != _MAGIC or sums != _summed(log[:24], order, (0, 0)):
        return 1, 0
    broken = 0
    lost = 0
    for offset in range(_HEADER.size, len(log) - page_bytes - _FRAME.size + 1, _FRAME.size + page_bytes):
        _, is_commit, *its_salts, first, second = _FRAME.unpack_from(log, offset)
        if not broken:
            page = log[offset + _FRAME.size : offset + _FRAME.size + page_bytes]
            sums = _summed(log[offset : offset + 8] + page, order, sums)
            if sums != (first, second) or its_salts != salts:
                broken = offset
        # a frame from before the log was last restarted has neither of the log's two salts
        if broken and is_commit and any(map(eq, its_salts, salts)):
            lost += 1
    return lost, broken


def _summed(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of *data*, continued from *sums*."""
    first, second = sums
    for one, two in struct.iter_unpack(f"{order}2I", data):
        first = first + one + second & _MASK
        second = second + two + first & _MASK
    return first, second
