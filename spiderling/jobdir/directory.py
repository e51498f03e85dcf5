"""The directory that holds a crawl: its layout, its lock, which directories are refused, and upgrades of its state.

The state of an earlier version becomes one of this version, whole or not at all: the rows are copied into a new file
with their checksums, so that damage is still noticed, and one transaction there makes the new schema.  When that file
is synced and its crawl was found usable, one renaming puts it in the place of the old one.  The old one stays beside
it, under a name such as ``frontier.sqlite.schema-1``, with the content of its write-ahead log.  After a kill at any
moment the file with the state's name is either the old one or the new one, and the next start goes on with that.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from spiderling.base.errors import JobdirError, StorageError
from spiderling.base.files import replacing, sync_directory
from spiderling.frontier.storage.state_file import (
    delete_files,
    log_of,
    new_file_for,
    put_in_place,
    readable,
    usable_version,
    version_of,
)
from spiderling.frontier.storage.tables import MIGRATIONS, SCHEMA_VERSION
from spiderling.jobdir.shards import parts_in
from spiderling.jobdir.surplus import judged, refuse_without_state

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


PAGE_TOKEN = "page.token"  # noqa: S105 - the name of a file
"""The file with the token of the live page (docs/live.md)."""
LOCK = Path("state", "lock")
"""The file that a running crawl has locked, within its directory."""
_OURS = {PAGE_TOKEN, "state", "corpus", "crawl.log", "control.yaml", "spider.state", "report.html", "warc", "links"}


class Agreement:
    """Makes output and state of a crawl agree by ``settle``; ``close`` follows in any case."""

    def __init__(self, database: Path, make_agree: Callable[[], list[str]], upgraded_state: Path | None) -> None:
        self._database = database
        self._make_agree = make_agree
        self._upgraded_state = upgraded_state
        self.state_file = upgraded_state or database
        """The file to read the state from."""

    def settle(self) -> list[str]:
        """Make output and state agree, and bring the state to this version; returns what was done, in words.

        The caller has read the state and found it usable.  Raises JobdirError or StorageError.
        """
        done = self._make_agree()
        if self._upgraded_state is not None:
            former = take_over(self._database, self._upgraded_state)
            done.append(f"the state was brought to this version's schema; the former is kept as {former}")
        return done

    def close(self) -> None:
        """Delete the upgraded state, unless it was settled."""
        if self._upgraded_state is not None:
            with suppress(OSError):  # the next upgrade deletes it
                delete_files(self._upgraded_state)


class Jobdir:
    """An opened and locked crawl directory; ``close`` releases the lock.

    The lock is flock(2) on ``state/lock``: it ends with the process, however that ends.
    """

    def __init__(self, path: Path, is_rebuilt: bool = False) -> None:
        """Create or open *path*; raises JobdirError when it is unwritable, foreign or in use.

        *is_rebuilt*: its state is made anew, so the present one may be in any condition.
        """
        self.path = path
        self.state = path / "state"
        self.corpus = path / "corpus"
        self.log = path / "crawl.log"
        self.control = path / "control.yaml"
        self.database = self.state / "frontier.sqlite"
        self.is_new = not self.database.exists()
        try:
            if not is_rebuilt:
                self._refuse_foreign()
            self.state.mkdir(parents=True, exist_ok=True)
            self.corpus.mkdir(exist_ok=True)
            self._lock = acquired(path / LOCK, path)
            self._opened = {place: _identity(place) for place in (path, self.state, self.corpus)}
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise JobdirError(
                f"the crawl directory {path} cannot be used: {error.strerror or error}. "
                f"{'Free space on its disk' if is_full else 'Mend its permissions'}, or give another with -s JOBDIR=..."
            ) from error

    def judge(self, prefix: str, moves: bool) -> Agreement:
        """Find out whether output and state can be made to agree (surplus.py).

        Nothing is changed before `Agreement.settle`, but that a state of an earlier version gets a new file beside it.
        Raises JobdirError if they must not be made to agree, StorageError if the state cannot be upgraded or text was
        lost.
        """
        make_agree = judged(self.path, self.database, prefix, moves)
        return Agreement(self.database, make_agree, upgraded(self.database))

    def sync_names(self) -> None:
        """Make the names of the directory, of what leads to it and of what is in it durable; raises StorageError."""
        try:
            for directory in (self.state, *self.state.absolute().parents[:3]):
                with suppress(PermissionError):  # of a directory above, in which nothing was made then
                    sync_directory(directory)
        except OSError as error:
            raise StorageError(f"{directory} could not be synced: {error.strerror}.") from error

    def still_here(self) -> None:
        """Raise StorageError if the directory, its state or its corpus is not where it was opened.

        Open files could still be written to then, but new segments would go elsewhere.
        """
        gone = [place for place, identity in self._opened.items() if _identity(place) != identity]
        if not gone and not self.database.exists():
            gone = [self.database]
        if gone:
            raise StorageError(
                f"{gone[0]} was moved, deleted or replaced while the crawl ran. Put it back, or say where the crawl is "
                "with -s JOBDIR=..., and start again; what was deleted is lost."
            )

    def close(self) -> None:
        self._lock.close()

    def _refuse_foreign(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise JobdirError(f"{self.path} is a file; a crawl needs a directory. Give another with -s JOBDIR=...")
        usable_version(self.database, (*MIGRATIONS, SCHEMA_VERSION))
        if not self.database.exists() and {entry.name for entry in self.path.iterdir()} - _OURS:
            if parts_in(self.path) != [self.path]:
                raise JobdirError(
                    f"{self.path} holds the shards of a crawl: give the SPIDERLING_SHARDS that it has (and "
                    "SPIDERLING_CLUSTER, if you start each shard), or another directory with -s JOBDIR=..."
                )
            refuse_without_state(self.path, self.database)
            raise JobdirError(
                f"{self.path} holds files of something else and no crawl. Give an empty or new directory "
                "with -s JOBDIR=..."
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a directory; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_in_use(directory: Path) -> bool:
    """Whether a process has the crawl's *directory* open."""
    with suppress(FileNotFoundError), (directory / LOCK).open(encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def acquired(file: Path, directory: Path) -> IO[str]:
    """The lock *file* of a crawl's *directory*, ours until it is closed; raises JobdirError if it is another's."""
    lock = file.open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise JobdirError(
            f"the crawl directory {directory} is in use by {holder}. Stop that crawl first, or give another "
            "with -s JOBDIR=..."
        ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    lock.flush()
    return lock
