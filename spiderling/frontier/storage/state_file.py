"""Examines the file of a state, and SQLite's write-ahead log beside it, without changing them.

SQLite ignores the log, without a message, from the first frame on that disagrees with its checksum.  After a power
cut that is right, since the rest was not synced.  After damage it loses the commits behind that frame.
The log's format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing
from operator import eq
from pathlib import Path

from spiderling.base.errors import JobdirError
from spiderling.frontier.storage.checksums import whole_rows
from spiderling.frontier.storage.protocol import SegmentRow
from spiderling.frontier.storage.schema import APPLICATION_ID, SCHEMA_VERSION
from spiderling.frontier.storage.soundness import SoundConnection, what_to_do

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""The first number of a log.  If its lowest bit is set, checksums read words with the high byte first."""
_MASK = 0xFFFFFFFF


def refuse_others(path: Path, usable: Collection[int] = (SCHEMA_VERSION,)) -> None:
    """Raise JobdirError if the file at *path* is not a state of a *usable* schema; nothing is written."""
    version = version_of(path)
    if version is not None and version not in usable:
        raise JobdirError(
            f"{path} was written by another version of Spiderling (schema {version}, this one has "
            f"{SCHEMA_VERSION}); go on with that version, or give another JOBDIR."
        )


def version_of(path: Path) -> int | None:
    """The schema of the state at *path*, None if there is none yet; raises JobdirError for anything else there.

    Nothing is written, not even beside the file.  If the file is empty but for its write-ahead log, a copy of both is
    read, since SQLite would change them.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        application, version, tables = _identity_of(path)
        log = log_of(path)
        if not application and not tables and log.exists() and log.stat().st_size:
            with tempfile.TemporaryDirectory() as name:
                for file in (path, log):
                    shutil.copy(file, name)
                application, version, tables = _identity_of(Path(name, path.name), "rw")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last: SQLite quotes what it cannot read
        raise JobdirError(
            f"{path} cannot be read as the state of a crawl: {error}; {what_to_do(path)}; or give another JOBDIR."
        ) from error
    if application == APPLICATION_ID:
        return int(version)
    if application or tables:
        raise JobdirError(f"{path} is a database of something else; give another JOBDIR.")
    return None


def recorded_segments(database: Path) -> list[SegmentRow] | None:
    """The segments that the state at *database* records; None if the file is missing or is no state.

    Nothing is written.  Each row is compared with its checksum, since what segments hold beyond the recorded lengths
    may be cut off.  Raises JobdirError if the file is damaged.
    """
    if not database.is_file():
        return None
    with closing(SoundConnection(database, as_it_is(database))) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "file" not in tables:
            return None
        rows = connection.execute("SELECT name, length_bytes, entries, kind FROM file ORDER BY name").fetchall()
        try:
            return list(map(SegmentRow._make, whole_rows(connection, "file") if "written" in tables else rows))
        except ValueError as error:
            raise JobdirError(f"{database} is damaged: {error}; {what_to_do(database)}.") from error


def log_of(database: Path) -> Path:
    """The path of SQLite's write-ahead log, which exists while the state is open for writing and after a kill."""
    return database.with_name(f"{database.name}-wal")


def as_it_is(path: Path) -> str:
    """Parameters of the URI with which SQLite changes neither the file nor its log; nobody else may write the file.

    Where there is no log, ``immutable`` keeps SQLite from making one.
    """
    return "mode=ro" if log_of(path).exists() else "immutable=1"


def _identity_of(path: Path, mode: str = "ro&immutable=1") -> tuple[int, int, int]:
    """Application id, number of the schema, and number of tables."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)) as file:
        queries = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        application, version, tables = (file.execute(query).fetchone()[0] for query in queries)
        return application, version, tables


# -- the write-ahead log


def damaged_log(database: Path) -> Iterator[str]:
    """What is damaged in the log of *database*, which no other process may be writing; raises OSError."""
    path = log_of(database)
    if not path.exists() or path.stat().st_size < _HEADER.size:
        return
    log = path.read_bytes()
    magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack_from(log)
    order = ">" if magic & 1 else "<"
    sums = (first, second)
    if magic & ~1 != _MAGIC or sums != _summed(log[:24], order, (0, 0)):
        yield f"{path} cannot be read from its beginning on: what was committed to it last is lost"
        return
    broken = None
    lost = 0
    for offset in range(_HEADER.size, len(log) - page_bytes - _FRAME.size + 1, _FRAME.size + page_bytes):
        _, is_commit, *its_salts, first, second = _FRAME.unpack_from(log, offset)
        if broken is None:
            page = log[offset + _FRAME.size : offset + _FRAME.size + page_bytes]
            sums = _summed(log[offset : offset + 8] + page, order, sums)
            if sums != (first, second) or its_salts != salts:
                broken = offset
        # a frame from before the log was last restarted has neither of the log's two salts
        if broken is not None and is_commit and any(map(eq, its_salts, salts)):
            lost += 1
    if lost:
        yield f"{path} is damaged at byte {broken:,}: the last {lost} commits are lost"


def _summed(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """SQLite's checksum of *data*, continued from *sums*."""
    first, second = sums
    for one, two in struct.iter_unpack(f"{order}2I", data):
        first = first + one + second & _MASK
        second = second + two + first & _MASK
    return first, second
