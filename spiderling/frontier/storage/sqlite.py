"""The durable state of a crawl: one SQLite file; the simulator's and tests' states stay in memory.

``commit`` writes one batch of Changes in one transaction, with a write-ahead log (WAL).  A committed batch survives
any kill of the process.  A power cut leaves the file whole, but may lose the last batches unless the store is
``synced``.  ``load`` and the other reading methods return exactly what was committed.  A URL leaves its queue in the
store only when it ends, so a URL that was in transit at a kill waits again.  One thread commits; another one may
read meanwhile, through its own connection, which always sees the last commit.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from spiderling.base.errors import JobdirError, StorageError
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION, VIEWS
from spiderling.frontier.storage.state_file import as_it_is, refuse_others, version_of, what_to_do
from spiderling.frontier.storage.state_reader import StateReader
from spiderling.frontier.storage.state_writer import StateWriter

IN_MEMORY = Path()
"""In place of a path: the state is lost with the store, which one thread uses at a time."""
_CACHE_KB = 32_000
"""SQLite's page cache of the writing connection (chosen)."""


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
        refuse_others(path)
        is_read_only = not writes and version_of(path) is not None
        super().__init__(path, _connected(path, as_it_is(path) if is_read_only else "mode=rwc"))
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
            _make_ready(connection, self._synchronous)
            self._writer = StateWriter(self._path, connection)
            if self._path is not IN_MEMORY:
                self._reader = _connected(self._path)
        except sqlite3.Error as error:
            connection.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise StorageError(
                    f"{self._path} cannot be written, {error}: free space on its disk and start again."
                ) from error
            raise JobdirError(
                f"{self._path} cannot be read as the state of a crawl: {error}; {what_to_do(self._path)}; or give "
                "another JOBDIR."
            ) from error
        except JobdirError:
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


def _connected(path: Path, parameters: str = "mode=rwc") -> sqlite3.Connection:
    uri = "file::memory:" if path is IN_MEMORY else f"{path.absolute().as_uri()}?{parameters}"
    try:
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise JobdirError(f"{path} cannot be opened as the state of a crawl: {error}.") from error


def _make_ready(connection: sqlite3.Connection, synchronous: str) -> None:
    """Make the tables of a new file, and set what holds for a connection that writes."""
    execute = connection.execute
    if not execute("PRAGMA application_id").fetchone()[0]:
        connection.executescript(
            f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}; {SCHEMA}COMMIT;"
        )
    execute("PRAGMA journal_mode=WAL")
    # Without this, what a kill left of the log would look like damage (state_file.py).
    execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.executescript(VIEWS)
    execute(f"PRAGMA synchronous={synchronous}")
    execute(f"PRAGMA cache_size=-{_CACHE_KB}")
