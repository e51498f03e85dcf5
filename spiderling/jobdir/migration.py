"""Upgrades: the state of an earlier version becomes one of this version, whole or not at all.

The rows are copied into a new file, in one transaction: those of schema 4 get checksums, later ones keep theirs,
so that damage is still noticed.  When that file is synced and its crawl was found usable, one renaming puts it in the
place of the old one.  The old one stays beside it, under a name such as ``frontier.sqlite.schema-4``, with the content
of its write-ahead log.  After a kill at any moment the file with the state's name is either the old one or the new one,
and the next start goes on with that.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from spiderling.base.atomic_files import replacing, sync_directory, sync_file
from spiderling.base.errors import StorageError
from spiderling.frontier.storage.checksums import TABLES, UNFIT, CheckedTables
from spiderling.frontier.storage.protocol import HostRow
from spiderling.frontier.storage.schema import APPLICATION_ID, CHECKED_SINCE, SCHEMA, SCHEMA_VERSION, tables_since
from spiderling.frontier.storage.state_file import as_it_is, log_of, version_of

_FORMERS = (4, 5, 6, 7, 8)
"""Schemas that can be brought to this one; older ones are refused."""
_GROWTH = 1.25
"""Factor by which checksums make a state larger, at most."""


def upgraded(path: Path) -> Path | None:
    """A file beside the state at *path* with the same rows, of this version's schema; None if that is the state's own.

    The state is not changed.  The caller holds the lock of the crawl's directory, and deletes the file if it does not
    let it take over.  Raises JobdirError or StorageError.
    """
    former = version_of(path)
    if former not in _FORMERS:
        return None
    new = path.with_name(path.name + ".new")
    with _all_or_nothing(path, new):
        _refuse_full_disk(path)
        new.unlink(missing_ok=True)
        source = f"{path.absolute().as_uri()}?{as_it_is(path)}"
        with (
            closing(sqlite3.connect(source, uri=True)) as old,
            closing(sqlite3.connect(new, isolation_level=None)) as made,
        ):
            made.execute("PRAGMA synchronous=OFF")  # it is synced as a whole
            (_copy_rows if former < CHECKED_SINCE else _copy_file)(old, made)
        sync_file(new)
    return new


def take_over(path: Path, new: Path) -> Path:
    """Put *new*, which was `upgraded` from the state at *path*, in its place; returns where the old file is then.

    Raises JobdirError or StorageError, and the old state is as it was.
    """
    with _all_or_nothing(path, new):
        _empty_log(path)
        kept = _keep(path)
        new.replace(path)
        sync_directory(path.parent)
    return kept


@contextmanager
def _all_or_nothing(path: Path, new: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error, *UNFIT) as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise StorageError(
            f"{path} is of an earlier version (schema {version_of(path)}) and could not be brought to this one: "
            f"{error}. It is as it was: mend that and start again, or go on with the earlier version."
        ) from error


def _empty_log(path: Path) -> None:
    """Move the content of the write-ahead log into the file; SQLite would take the log for the new file's."""
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        if old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise OSError("another process reads it")


def _refuse_full_disk(path: Path) -> None:
    size = sum(file.stat().st_size for file in (path, log_of(path)) if file.exists())
    needed = int(size * _GROWTH)
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise OSError(f"{needed / 1e6:,.0f} MB are needed on its disk, {free / 1e6:,.0f} MB are free")


def _copy_rows(old: sqlite3.Connection, made: sqlite3.Connection) -> None:
    """Copy the rows of schema 4, with checksums."""
    made.executescript(
        f"PRAGMA journal_mode=OFF; PRAGMA application_id={APPLICATION_ID};"
        f"PRAGMA user_version={SCHEMA_VERSION}; BEGIN; {SCHEMA}"
    )
    tables = CheckedTables(made)
    tables.write_hosts(map(HostRow._make, old.execute(f"SELECT {', '.join(HostRow._fields)} FROM host ORDER BY id")))
    tables.insert_chunks(old.execute("SELECT id, urls, lines FROM chunk ORDER BY id"))
    there = {row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in (table for name, table in TABLES.items() if name in there):  # the trail and history came later
        for row in old.execute(table.rows.replace(", checksum FROM", " FROM")):
            if table.keys:
                tables.replace_row(table.name, row)
            else:
                tables.append_whole_row(table, row)
    tables.write_sums()
    made.execute("COMMIT")


def _copy_file(old: sqlite3.Connection, made: sqlite3.Connection) -> None:
    """Copy a file with checksums as it is, and add the tables that it lacks."""
    new = tables_since(int(old.execute("PRAGMA user_version").fetchone()[0]))
    old.backup(made)
    made.executescript(f"PRAGMA journal_mode=DELETE; BEGIN; {new} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")


def _keep(path: Path) -> Path:
    """Give the old file a second name, under which it stays; where the file system has no hard links, copy it."""
    name = f"{path.name}.schema-{version_of(path)}"
    names = (path.with_name(f"{name}{f'.{number}' if number else ''}") for number in count())
    kept = next(name for name in names if not name.exists() or name.samefile(path))
    try:
        kept.unlink(missing_ok=True)
        kept.hardlink_to(path)
    except OSError:
        with path.open("rb") as source, replacing(kept) as copy:
            shutil.copyfileobj(source, copy)
    return kept
