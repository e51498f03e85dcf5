"""Tells whether a file is the state of a crawl, and opens it to read: neither the file nor what lies beside it changes.

A kill, a power cut or a full disk in SQLite's own writing leaves a file that only its write-ahead log or its rollback
journal makes whole.  It is read with these, as SQLite would mend it; where that takes writing, a copy is mended.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from spiderling.base.errors import JobdirError
from spiderling.base.files import sync_directory, sync_file
from spiderling.frontier.storage.tables import APPLICATION_ID, SCHEMA_VERSION

_HEADER = struct.Struct(">16s 12x I 28x I 4x I")
"""How a database begins: magic, number of pages, user version, application id
(https://www.sqlite.org/fileformat2.html#the_database_header)."""
_MAGIC = b"SQLite format 3\0"
ENDINGS = ("", "-wal", "-journal", "-shm")
"""What the names of SQLite's files end with; the first is the database itself."""
_LOOK = "SELECT count(*) FROM sqlite_master"


def what_to_do(database: Path) -> str:
    """What a user can do about damage in the state *database*, as the end of a sentence."""
    directory = database.parent.parent
    return (
        f"see all damage with `scrapy inspect {directory} --check`, make it anew with `scrapy inspect {directory} "
        f"--rebuild`, put it back from a backup, or take out what is whole with `scrapy export {directory} --salvage`"
    )


UNREADABLE = (sqlite3.Error, OSError, UnicodeDecodeError)
"""Exceptions of reading a state; the last is of SQLite's own message, with bytes of a damaged schema in it."""


def usable_version(path: Path, usable: Collection[int] = (SCHEMA_VERSION,)) -> int | None:
    """What `version_of` says; raises JobdirError if it is a schema that is not *usable*."""
    version = version_of(path)
    if version is not None and version not in usable:
        raise JobdirError(
            f"{path} was written by another version of Spiderling (schema {version}, this one has "
            f"{SCHEMA_VERSION}); go on with that version, or give another JOBDIR."
        )
    return version


def version_of(path: Path) -> int | None:
    """The schema of the state at *path*, None if there is none yet; raises JobdirError for anything else there.

    Nothing is written, not even beside the file.
    """
    if not path.is_file():
        return None
    try:
        is_hot = _is_filled(path, "-journal")
        pages, version, application = (0, 0, 0) if is_hot else _identity_of(path)
        if is_hot or (not application and _is_filled(path, "-wal")):
            with _mend_copy(path) as copy:
                pages, version, application = _identity_of(copy)
    except UNREADABLE as error:
        raise JobdirError(
            f"{path} cannot be read as the state of a crawl: {error}; {what_to_do(path)}; or give another JOBDIR."
        ) from error
    if application == APPLICATION_ID:
        return version
    if application or pages > 1:
        raise JobdirError(f"{path} is a database of something else; give another JOBDIR.")
    return None


def log_of(database: Path) -> Path:
    """The path of SQLite's write-ahead log, which exists while the state is open for writing and after a kill."""
    return database.with_name(f"{database.name}-wal")


@contextmanager
def readable(path: Path, is_locked: bool = True) -> Iterator[str]:
    """The URI with which SQLite reads the state at *path* and changes neither the file nor its log.

    What is opened within the block may be read after it.  *is_locked*: nobody else may write the file.  Raises OSError
    or sqlite3.Error if a copy is needed and cannot be made.
    """
    # ``immutable`` keeps SQLite from making a log where there is none, but does not see what others write
    is_still = not log_of(path).exists() and (is_locked or not os.access(path.parent, os.W_OK))
    uri = f"{path.absolute().as_uri()}?{'immutable=1' if is_still else 'mode=ro'}"
    is_usable = not _is_filled(path, "-journal")
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError):  # damage, which is told of when it is read
        try:
            with closing(sqlite3.connect(uri, uri=True)) as state:
                state.execute(_LOOK)
        except sqlite3.OperationalError:  # where SQLite may or can not make the index of a log
            is_usable = False
    if is_usable:
        yield uri
    else:
        with _mend_copy(path) as copy:
            yield f"{copy.as_uri()}?immutable=1"


@contextmanager
def _mend_copy(path: Path) -> Iterator[Path]:
    """A copy of the state at *path*, in which SQLite has mended what was left half done."""
    with tempfile.TemporaryDirectory(prefix="spiderling-") as directory:
        copy = Path(directory, path.name)
        shutil.copyfile(path, copy)
        for ending in ("-wal", "-journal"):
            if _is_filled(path, ending):
                shutil.copyfile(path.with_name(path.name + ending), copy.with_name(copy.name + ending))
        with closing(sqlite3.connect(copy)) as state:
            state.execute(_LOOK)
        yield copy


def new_file_for(path: Path) -> Path:
    """Where a new state for *path* is made; what a kill left there is deleted.  Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    delete_files(new)
    return new


def put_in_place(new: Path, path: Path) -> None:
    """Give the closed state *new* the name *path*, durably; raises OSError.

    Beside *path* there must be no log or journal, which SQLite would take for that of the new file.
    """
    if _is_filled(new, "-wal"):  # SQLite is silent when it closes a file whose log does not fit into it
        raise OSError(errno.ENOSPC, "its log could not be written into it", str(new))
    sync_file(new)
    new.replace(path)
    sync_directory(path.parent)


def keep_former(database: Path) -> Path | None:
    """Rename the state *database* and what lies beside it; returns the new path, None if there was no state.

    The database is the first, since without its log it would pass for an older state.  Raises OSError.
    """
    names = (database.with_name(f"{database.name}.former{f'-{number}' if number else ''}") for number in count())
    former = next(name for name in names if not any(name.with_name(name.name + e).exists() for e in ENDINGS))
    found = [e for e in ENDINGS if database.with_name(database.name + e).exists()]
    for ending in found:
        database.with_name(database.name + ending).rename(former.with_name(former.name + ending))
    return former if found else None


def delete_files(database: Path) -> None:
    """Delete *database* and what SQLite left beside it; raises OSError."""
    for ending in ENDINGS:
        database.with_name(database.name + ending).unlink(missing_ok=True)


def _is_filled(path: Path, ending: str) -> bool:
    beside = path.with_name(path.name + ending)
    return beside.exists() and beside.stat().st_size > 0


def _identity_of(path: Path) -> tuple[int, int, int]:
    """Number of pages, user version and application id of a database; zeros for an empty file."""
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
    if not header:
        return 0, 0, 0
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise sqlite3.DatabaseError("file is not a database")
    return _HEADER.unpack(header)[1:]
