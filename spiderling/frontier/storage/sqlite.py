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
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from spiderling.base.errors import DamageError, JobdirError, SpiderlingError, StorageError
from spiderling.frontier.hosts import CLOSED_STATES, HostColumns
from spiderling.frontier.storage import tables, url_log
from spiderling.frontier.storage.protocol import (
    HOST_SHIFT,
    Changes,
    ConsentRow,
    OutboxRow,
    OutboxSummary,
    PeerRow,
    RobotsRow,
    SegmentRow,
    State,
    StoredHost,
    chunks_of,
    message_id,
    shard_and_number,
    thinning,
    within,
)
from spiderling.frontier.storage.queues import log_entry, packed, replayed, unpacked
from spiderling.frontier.storage.state_file import (
    delete_files,
    new_file_for,
    put_in_place,
    readable,
    usable_version,
    what_to_do,
)
from spiderling.frontier.storage.tables import (
    APPLICATION_ID,
    LENGTH_BYTES,
    SCHEMA,
    SCHEMA_VERSION,
    agrees,
    newest_lengths,
    packed_lengths,
)

IN_MEMORY = Path()  # in place of a path: the state is lost with the store, which one thread uses at a time
_CACHE_KB = 32_000  # SQLite's page cache of the writing connection (chosen)
_MIN_FREE_BYTES = 1 << 17
"""Free bytes below which the disk is taken to be what an error of reading or writing is about (chosen: SQLite's index
of the log grows by 32 kB)."""
REFUSED = (sqlite3.Error, *tables.UNFIT)
"""Exceptions for a damaged file, or for a value that its column or array cannot hold."""
_HOSTS_AT_ONCE = 20_000  # hosts that one query of ``host_columns`` reads (chosen)
_COLUMNS = "id, name, state, distance, waiting + parked AS queued, due"
_LAST_HOST = """SELECT max(coalesce(max(id), 0),
    coalesce((SELECT rows FROM written WHERE name = 'host'), 0)) FROM host"""
"""Ids have no gaps, so the number of rows that were written is the last id even if that row is missing."""
_HOST_COLUMNS = "SELECT {} FROM (SELECT {} FROM host WHERE id >= ? AND id < ? ORDER BY id)".format(
    ", ".join(f"group_concat({column.split()[-1]}, x'0a')" for column in _COLUMNS.split(", ")), _COLUMNS
)
"""Each column of a block of hosts as one text, a value on a line: twice as fast as a row for each host."""
_COLUMNS_OF_ROW = ", ".join(StoredHost._fields)
_IS_USED = "pages OR downloaded_bytes OR exempt OR transit IS NOT NULL OR state IN ({})".format(
    ", ".join(f"'{state.value}'" for state in CLOSED_STATES)
)


class SqliteStore:
    """Keeps what is committed; the frontier reads from it what it does not keep in memory.

    One thread reads, also while another one commits: each has a connection of its own.
    """

    _writer: StateWriter | None = None  # None while the file is open to read only

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
        self._path = path
        self._reader = _connected_to_read(path) if is_read_only else _connected(path)
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

    def load(self) -> State:
        """Everything committed so far; raises JobdirError if it is damaged."""
        with self._reading():
            return State(
                tails=replayed((added, popped) for _, added, popped in self._whole("log")),
                seen=_keys(self._whole("seen")),
                digests=_keys(self._whole("digest")),
                edges=_keys(self._whole("edge")),
                segments=[SegmentRow._make(row) for row in self._whole("file")],
                counts=dict(self._whole("count")),
                meta=dict(self._whole("meta")),
                peers=[PeerRow._make(row) for row in self._whole("peer")],
                outboxes=self._outboxes(),
            )

    def _outboxes(self) -> dict[int, OutboxSummary]:
        sums = "min(id), count(*), sum(links), sum(length(message)), min(time)"
        rows = self._reader.execute(f"SELECT {sums} FROM outbox GROUP BY id / ?", (message_id(1, 0),))
        summaries = ((*shard_and_number(first), *rest) for first, *rest in rows)
        return {shard: OutboxSummary(number, *rest) for shard, number, *rest in summaries}

    def _whole(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table, each compared with its checksum."""
        return tables.whole_rows(self._reader, table)

    def host_columns(self) -> Iterator[HostColumns]:
        """All hosts in the order of their ids, in blocks; raises JobdirError if one is missing."""
        with self._reading():
            newest = newest_lengths(self._whole("length"))
            last = self._reader.execute(_LAST_HOST).fetchone()[0]
            for first in range(1, last + 1, _HOSTS_AT_ONCE):
                ids = range(first, min(first + _HOSTS_AT_ONCE, last + 1))
                found, *texts = self._reader.execute(_HOST_COLUMNS, (ids.start, ids.stop)).fetchone()
                if found != "\n".join(map(str, ids)):
                    raise ValueError(f"of the hosts {first} to {ids[-1]} some are missing")
                names, states, *numbers = (text.split("\n") for text in texts)
                distances, queued = ([*map(int, column)] for column in numbers[:2])
                columns = HostColumns(names, states, distances, queued, [*map(float, numbers[2])])
                if any(len(column) != len(ids) for column in columns):
                    raise ValueError(f"a column of the hosts {first} to {ids[-1]} is not whole")
                for at, host in enumerate(ids):
                    if host in newest:
                        waiting, parked, distances[at], _ = newest[host]
                        queued[at] = waiting + parked
                yield columns

    def used_hosts(self) -> Iterator[StoredHost]:
        """The hosts of which a restart needs more than HostColumns, in the order of their ids.

        They were asked before, are closed, pinned or reopened, or have a URL in transit.
        """
        with self._reading():
            rows = self._reader.execute(f"SELECT {_COLUMNS_OF_ROW} FROM host WHERE {_IS_USED} ORDER BY id")
            yield from map(StoredHost._make, rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn exceptions that damage raises into JobdirError."""
        try:
            yield
        except (*REFUSED, DamageError) as error:
            raise JobdirError(
                f"{self._path} is damaged: {error}; {what_to_do(self._path)}; or give another JOBDIR."
            ) from error

    def host(self, host_id: int) -> StoredHost:
        """The committed row of a host; raises StorageError if there is none.

        Here and in `used_hosts` its ``waiting``, ``parked`` and ``distance`` may be older than in `host_columns`.
        """
        *values, checksum, queue_checksum = self._one("SELECT * FROM host WHERE id = ?", host_id)
        row = StoredHost._make(values)
        self._refuse_changed(agrees((checksum, queue_checksum), tables.host_checksums, row), f"host {host_id}")
        return row

    def chunk_ids(self, host_id: int) -> list[int]:
        """Ids of a host's chunks, ascending."""
        bounds = (host_id << HOST_SHIFT, host_id + 1 << HOST_SHIFT)
        return [row[0] for row in self._rows("SELECT id FROM chunk WHERE id >= ? AND id < ? ORDER BY id", bounds)]

    def chunk(self, chunk_id: int) -> list[bytes]:
        """The lines of a chunk; raises StorageError if there is none."""
        urls, lines, checksum = self._one("SELECT urls, lines, checksum FROM chunk WHERE id = ?", chunk_id)
        is_whole = agrees(checksum, tables.chunk_checksum, chunk_id, urls, lines)
        self._refuse_changed(is_whole, f"chunk {chunk_id}")
        try:
            return unpacked(lines)
        except DamageError as error:
            raise DamageError(f"{self._path} is damaged: chunk {chunk_id}: {error}") from error

    def robots(self, key: str) -> RobotsRow | None:
        """What is known of an origin's robots.txt, or of another file of a site; None if nothing is."""
        rows = self._rows(
            "SELECT origin, status, fetched, expires, failures, body, checksum FROM robots WHERE origin = ?", (key,)
        )
        if not rows:
            return None
        *values, checksum = rows[0]
        is_whole = agrees(checksum, tables.row_checksum, tables.TABLES["robots"], values)
        self._refuse_changed(is_whole, f"the robots.txt of {key}")
        return RobotsRow._make(values)

    def consents(self) -> list[ConsentRow]:
        """All answers of sites about opt-outs, ordered by origin, file and time."""
        rows = self._rows(
            f"SELECT {', '.join(ConsentRow._fields)} FROM consent ORDER BY origin, file, first, answer, digest", ()
        )
        return [ConsentRow._make(row) for row in rows]

    def blob(self, table: str, row: int) -> bytes | None:
        """The content of a row of one of ``Changes.blobs``; None if there is none."""
        rows = self._rows(f"SELECT id, content, checksum FROM {table} WHERE id = ?", (row,))
        if not rows:
            return None
        *values, checksum = rows[0]
        is_whole = agrees(checksum, tables.row_checksum, tables.TABLES[table], values)
        self._refuse_changed(is_whole, f"row {row} of the table {table}")
        return bytes(values[1])

    def blobs(self, table: str) -> Iterator[tuple[int, bytes]]:
        """All rows of such a table, in the order of their ids; raises JobdirError if one is damaged."""
        with self._reading():
            yield from ((row, content) for row, content in self._whole(table))

    def messages(self, shard: int, after: int, max_bytes: int) -> list[OutboxRow]:
        """The messages to *shard* from the number *after* + 1 on, as many as have *max_bytes*, but one at least."""
        table = tables.TABLES["outbox"]
        query = "SELECT id, time, links, message, checksum FROM outbox WHERE id > ? AND id < ? ORDER BY id"

        def rows() -> Iterator[OutboxRow]:
            bounds = (message_id(shard, after), message_id(shard + 1, 0))
            for *values, checksum in self._reader.execute(query, bounds):
                is_whole = agrees(checksum, tables.row_checksum, table, values)
                self._refuse_changed(is_whole, f"message {values[0]}")
                yield OutboxRow(*shard_and_number(values[0]), *values[1:])

        try:
            return within(rows(), max_bytes)
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error

    def _refuse_changed(self, is_whole: bool, what: str) -> None:
        if not is_whole:
            raise StorageError(f"{self._path} is damaged: {what} is not as it was written.")

    def _one(self, query: str, key: int) -> Any:
        """The row that *query* finds by its *key*; raises StorageError if there is none."""
        rows = self._rows(query, (key,))
        if not rows:
            raise StorageError(f"{self._path} is damaged: {query.split()[3]} {key} is missing.")
        return rows[0]

    def _rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error

    def commit(self, changes: Changes) -> None:
        """Apply all of *changes* or nothing; raises StorageError, after which the store must not be used."""
        if self._writer is None:
            raise StorageError(f"{self._path} is open to read only.")
        self._writer.commit(changes)

    def close(self) -> None:
        """Release the file; committing afterwards raises StorageError."""
        if self._writer is not None:
            self._writer.close()
        self._reader.close()


def _keys(rows: Iterable[tuple[Any, ...]]) -> array[int]:
    """The keys packed in all *rows* (batch, keys)."""
    keys = array("q")
    for _, blob in rows:
        keys.frombytes(blob)
    return keys


_HOSTS_PER_LENGTH = 4
"""Hosts for each entry of the table ``length``, at least, or it is folded into their rows.

Measured at 3 * 10**6 URLs and 240,000 hosts: with 4 a batch takes .66 of the time that it takes
without that table, with 16 it takes .73, and .68 if only a flush folds.
"""


class StateWriter:
    """The writing half of a store (protocol.py), over a connection that one thread uses at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """*path*: what messages name; raises sqlite3.Error."""
        self._path = path
        self.connection = connection
        self._tables = tables.CheckedTables(connection)
        self._counts = dict(connection.execute("SELECT key, value FROM count").fetchall())
        lengths = connection.execute("SELECT coalesce(sum(length(lengths)), 0) FROM length").fetchone()[0]
        self._lengths = lengths // LENGTH_BYTES  # entries in the table ``length``

    def commit(self, changes: Changes) -> None:
        with self._transaction():
            self._write(changes)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            self._tables.write_sums()
            self.connection.execute("COMMIT")
        except REFUSED as error:
            self._lengths = 0  # nothing is folded any more, since the store must not be used
            with suppress(sqlite3.Error):
                self.connection.rollback()
            raise StorageError(f"{self._path} could not be written: {error}.") from error

    def _write(self, changes: Changes) -> None:
        self._write_hosts(changes)
        self._write_queues(changes)
        self._write_replaced(changes)
        self._write_appended(changes)

    def _write_replaced(self, changes: Changes) -> None:
        checked = self._tables
        first = "SELECT first FROM consent WHERE origin = ? AND file = ? AND answer = ? AND digest = ?"
        for answer in changes.consent:
            former = self.connection.execute(first, answer[:4]).fetchone()
            checked.replace_row("consent", answer._replace(first=former[0]) if former else answer)
        counts = {key: value for key, value in changes.counts.items() if self._counts.get(key) != value}
        self._counts.update(counts)
        written: dict[str, Iterable[Sequence[Any]]] = {
            "robots": changes.robots,
            "file": changes.segments,
            "count": counts.items(),
            "meta": changes.meta.items(),
            "outbox": ((row.id, *row[2:]) for row in changes.outbox),
            "peer": changes.peers,
            **{name: rows.items() for name, rows in changes.blobs.items()},
        }
        for name, rows in written.items():
            for row in rows:
                checked.replace_row(name, row)
        for shard, last in changes.acknowledged.items():
            checked.delete_rows("outbox", "id > ? AND id <= ?", (message_id(shard, 0), message_id(shard, last)))
        if changes.history is not None:
            checked.replace_row("history", changes.history)
            for condition, values in thinning(changes.history):
                checked.delete_rows("history", condition, values)

    def _write_appended(self, changes: Changes) -> None:
        for event in changes.events:
            self._tables.append_row("event", event)
        for name, numbers in (("seen", changes.seen), ("digest", changes.digests), ("edge", changes.edges)):
            if packed_numbers := array("q", numbers).tobytes():
                self._tables.append_row(name, (packed_numbers,))
        for name, row in url_log.rows(changes.url_log):
            self._tables.append_row(name, row)

    def _write_hosts(self, changes: Changes) -> None:
        hosts = self._tables.write_hosts(changes.hosts)
        entries = self._lengths + len(changes.hosts) + len(changes.host_updates)
        if changes.flush is not None or entries > hosts // _HOSTS_PER_LENGTH:
            self._fold(changes)
        elif entries > self._lengths:
            of_rows = [(row.waiting, row.parked, row.distance, row.id) for row in changes.hosts]
            self._tables.append_row("length", (packed_lengths(of_rows + changes.host_updates),))
            self._lengths = entries

    def _fold(self, changes: Changes) -> None:
        """Write the newest lengths to the rows of their hosts, and empty their table; *changes*: the batch."""
        newest = newest_lengths(tables.whole_rows(self.connection, "length")) if self._lengths else {}
        for row in changes.hosts:
            newest.pop(row.id, None)
        newest.update((length[-1], length) for length in changes.host_updates)
        self.connection.executemany(
            "UPDATE host SET waiting = ?1, parked = ?2, distance = ?3, "
            f"queue_checksum = {tables.QUEUE_CHECKSUM} WHERE id = ?4",
            [newest[host] for host in sorted(newest)],
        )
        if self._lengths:
            self._tables.clear_table("length")
            self._lengths = 0

    def _write_queues(self, changes: Changes) -> None:
        self._tables.delete_chunks((host << HOST_SHIFT, host + 1 << HOST_SHIFT) for host in changes.dropped)
        self._tables.delete_chunks((chunk, chunk + 1) for chunk in changes.used)
        if changes.flush is not None:
            generation, tails = changes.flush
            chunks = (chunk for slot in sorted(tails) for chunk in chunks_of(slot, generation, tails[slot]))
            self._tables.insert_chunks((chunk, len(lines), packed(lines)) for chunk, lines in chunks)
            self._tables.clear_table("log")
        elif changes.added or changes.popped:
            self._tables.append_row("log", log_entry(changes.added, changes.popped))

    def close(self) -> None:
        """Fold the lengths, and close the connection."""
        with suppress(StorageError):  # without it, the next start has the lengths from their table
            if self._lengths:
                with self._transaction():
                    self._fold(Changes())
        self.connection.close()


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
    return is_read_or_write and shutil.disk_usage(path.parent).free < _MIN_FREE_BYTES


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
    # Without this, what a kill left of the log would look like damage (state_reader.py).
    execute("PRAGMA wal_checkpoint(TRUNCATE)")
    execute(f"PRAGMA synchronous={synchronous}")
    execute(f"PRAGMA cache_size=-{_CACHE_KB}")
