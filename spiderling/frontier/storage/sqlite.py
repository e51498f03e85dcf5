"""The durable state of a crawl: one SQLite file; the simulator's and tests' states stay in memory.

``commit`` writes one batch of Changes in one transaction, with a write-ahead log (WAL).  A committed batch survives
any kill of the process.  A power cut leaves the file whole, but may lose the last batches unless the store is
``synced``.  ``load`` and the other reading methods return exactly what was committed.  A URL leaves its queue in the
store only when it ends, so a URL that was in transit at a kill waits again.  One thread commits; another one may
read meanwhile, through its own connection, which always sees the last commit.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from spiderling.base.errors import JobdirError, SpiderlingError, StorageError
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from spiderling.frontier.storage.state_file import (
    delete_files,
    new_file_for,
    put_in_place,
    readable,
    usable_version,
    what_to_do,
)
from spiderling.frontier.storage.state_reader import StateReader
from spiderling.frontier.storage.state_writer import StateWriter

IN_MEMORY = Path()
"""In place of a path: the state is lost with the store, which one thread uses at a time."""
_CACHE_KB = 32_000
"""SQLite's page cache of the writing connection (chosen)."""
_LEAST_FREE_BYTES = 1 << 17
"""Free bytes below which the disk is taken to be what an error of reading or writing is about (chosen: SQLite's index
of the log grows by 32 kB)."""


class SqliteStore(StateReader):
    """The store in a file; one connection that writes, one that reads, each used by one thread at a time."""

    _writer: StateWriter | None = None
    """None while the file is open to read only."""

    def __init__(self, path: Path = IN_MEMORY, synced: bool = False, writes: bool = True) -> None:
        """Open or create the file at *path*; raises JobdirError if it is not ours or of another version.

        *synced*: a commit survives a power cut as soon as it returns (synchronous=FULL, else NORMAL).  *writes*: False
        opens an existing file to read only, until `begin_writing`.  Then not even the write-ahead log changes, which
        SQLite empties whenever a connection that may write is closed.
        """
        self._synchronous = "FULL" if synced else "NORMAL"
        is_new = usable_version(path) is None
        if is_new and path is not IN_MEMORY:
            _create(path)
        is_read_only = not (writes or is_new)
        super().__init__(path, _connected_to_read(path) if is_read_only else _connected(path))
        if not is_read_only:
            self._prepare()

    def begin_writing(self, path: Path) -> None:
        """Open the file, which was opened to read only, for writing; *path*: its name now.

        Nobody may use the store meanwhile.  Raises JobdirError or StorageError, after which the store is closed.
        """
        if self._writer is None:
            self._reader.close()
            self._path = path
            self._reader = _connected(path)
            self._prepare()

    def _prepare(self) -> None:
        """Take the connection for writing, and another one for reading."""
        connection = self._reader
        try:
            with _opening(self._path):
                if self._path is IN_MEMORY:
                    connection.executescript(SCHEMA)
                _make_ready(connection, self._synchronous)
                self._writer = StateWriter(self._path, connection)
                if self._path is not IN_MEMORY:
                    self._reader = _connected(self._path)
        except SpiderlingError:
            connection.close()
            raise

    def commit(self, changes: Changes) -> None:
        if self._writer is None:
            raise StorageError(f"{self._path} is open to read only.")
        self._writer.commit(changes)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader.close()


def _connected(path: Path) -> sqlite3.Connection:
    uri = "file::memory:" if path is IN_MEMORY else f"{path.absolute().as_uri()}?mode=rw"
    with _opening(path):
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _connected_to_read(path: Path) -> sqlite3.Connection:
    with _opening(path), readable(path) as uri:
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """Turn exceptions into StorageError if the disk of the state at *path* is full, and else into JobdirError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if _is_full(path, error):
            raise StorageError(f"{path} cannot be written, {error}: free space on its disk and start again.") from error
        raise JobdirError(
            f"{path} cannot be opened as the state of a crawl: {error}; {what_to_do(path)}; or give another JOBDIR."
        ) from error


def _is_full(path: Path, error: Exception) -> bool:
    """Whether *error* says that the disk of *path* is full; of SQLite's index of the log, it says "disk I/O error"."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    is_read_or_write = getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR"))
    return is_read_or_write and shutil.disk_usage(path.parent).free < _LEAST_FREE_BYTES


def _create(path: Path) -> None:
    """Make the file of a new state.  It gets its name when it is whole, so a kill leaves no state or a whole one."""
    with _opening(path):
        new = new_file_for(path)
        try:
            with closing(sqlite3.connect(new, isolation_level=None)) as state:
                state.executescript(
                    "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL; BEGIN;"  # it is synced as a whole
                    f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}; {SCHEMA}COMMIT;"
                )
            delete_files(path)  # version_of found nothing in them
            put_in_place(new, path)
        except (sqlite3.Error, OSError):
            with suppress(OSError):
                delete_files(new)
            raise


def _make_ready(connection: sqlite3.Connection, synchronous: str) -> None:
    """Set what holds for a connection that writes."""
    execute = connection.execute
    execute("PRAGMA journal_mode=WAL")
    # Without this, what a kill left of the log would look like damage (write_ahead_log.py).
    execute("PRAGMA wal_checkpoint(TRUNCATE)")
    execute(f"PRAGMA synchronous={synchronous}")
    execute(f"PRAGMA cache_size=-{_CACHE_KB}")
