"""Upgrades: the state of an earlier version becomes one of this version, whole or not at all.

The rows are copied into a new file with their checksums, so that damage is still noticed, and one transaction there
makes the new schema.  When that file is synced and its crawl was found usable, one renaming puts it in the place of
the old one.  The old one stays beside it, under a name such as ``frontier.sqlite.schema-9``, with the content of its
write-ahead log.  After a kill at any moment the file with the state's name is either the old one or the new one, and
the next start goes on with that.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from spiderling.base.atomic_files import replacing
from spiderling.base.errors import StorageError
from spiderling.frontier.storage.state_file import (
    log_of,
    new_file_for,
    put_in_place,
    readable,
    version_of,
)
from spiderling.frontier.storage.tables import MIGRATIONS

_GROWTH = 1.25
"""Factor by which a migration makes a state larger, at most (chosen)."""


def upgraded(path: Path, migrations: Mapping[int, str] = MIGRATIONS) -> Path | None:
    """A file beside the state at *path* with the same rows, of this version's schema; None if that is the state's own.

    The state is not changed.  The caller holds the lock of the crawl's directory, and deletes the file if it does not
    let it take over.  Raises JobdirError or StorageError.
    """
    version = version_of(path)
    if version is None or version not in migrations:
        return None
    steps = [migrations[number] for number in range(version, max(migrations) + 1)]
    with _all_or_nothing(path):
        _refuse_full_disk(path)
        new = new_file_for(path)
        with (
            readable(path) as uri,
            closing(sqlite3.connect(uri, uri=True)) as old,
            closing(sqlite3.connect(new, isolation_level=None)) as made,
        ):
            old.backup(made)
            made.executescript(
                f"PRAGMA synchronous=OFF; BEGIN; {''.join(steps)} PRAGMA user_version={version + len(steps)}; COMMIT;"
            )
    return new


def take_over(path: Path, new: Path) -> Path:
    """Put *new*, which was `upgraded` from the state at *path*, in its place; returns where the old file is then.

    Raises JobdirError or StorageError, and the old state is as it was.
    """
    with _all_or_nothing(path):
        _empty_log(path)
        kept = _keep(path)
        put_in_place(new, path)
    return kept


@contextmanager
def _all_or_nothing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            new_file_for(path)
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
