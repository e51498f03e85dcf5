"""Tells whether a file is the state of a crawl, and of which schema, without changing it or the log beside it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from spiderling.base.errors import JobdirError
from spiderling.frontier.storage.schema import APPLICATION_ID, SCHEMA_VERSION


def what_to_do(database: Path) -> str:
    """What a user can do about damage in the state *database*, as the end of a sentence."""
    directory = database.parent.parent
    return (
        f"{to_check(directory)}make it anew with `scrapy inspect {directory} --rebuild`, put it back from a backup, or "
        f"take out what is whole with `scrapy export {directory} --salvage`"
    )


def to_check(directory: Path) -> str:
    """The first part of ``what_to_do``, which a check itself leaves out."""
    return f"see all damage with `scrapy inspect {directory} --check`, "


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
