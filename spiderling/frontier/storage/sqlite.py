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
from spiderling.frontier.storage import url_log
from spiderling.frontier.storage.protocol import (
    HOST_SHIFT,
    Changes,
    ConsentRow,
    OutboxRow,
    PeerRow,
    RobotsRecord,
    SegmentRow,
    State,
    StoredHost,
    chunks_of,
    thinning,
)
from spiderling.frontier.storage.queues import log_entry, pack, replay, unpack
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
    QUEUE_CHECKSUM,
    SCHEMA,
    SCHEMA_VERSION,
    SUM_MASK,
    TABLES,
    UNFIT,
    TableChecksum,
    has_checksums,
    host_checksums,
    newest_lengths,
    packed_lengths,
    read_written,
    whole_rows,
)

IN_MEMORY = Path()  # in place of a path: the state is lost with the store, which one thread uses at a time
_CACHE_KB = 32_000  # SQLite's page cache of the writing connection (chosen)
_MIN_FREE_BYTES = 1 << 17
"""Free bytes below which the disk is taken to be what an error of reading or writing is about (chosen: SQLite's index
of the log grows by 32 kB)."""
REFUSED = (sqlite3.Error, *UNFIT)  # exceptions for a damaged file, or for a value that its column or array cannot hold
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

        *synced*: a commit survives a power cut as soon as it returns (synchronous=FULL, else NORMAL); the first one
        always does, so that it can tell that later ones may not.  *writes*: False opens an existing file to read only,
        until `begin_writing`.  Then not even the write-ahead log changes, which SQLite empties whenever a connection
        that may write is closed.
        """
        self._synchronous = "FULL" if synced else "NORMAL"
        is_new = usable_version(path) is None
        if is_new and path is not IN_MEMORY:
            _create(path)
        is_read_only = not (writes or is_new)
        self._path = path
        self._reader = _connect_to_read(path) if is_read_only else _connect(path)
        if not is_read_only:
            self._prepare()

    def begin_writing(self, path: Path) -> None:
        """Open the file, which was opened to read only, for writing; *path*: its name now.

        Nobody may use the store meanwhile.  Raises JobdirError or StorageError, after which the store is closed.
        """
        if self._writer is None:
            self._reader.close()
            self._path = path
            self._reader = _connect(path)
            self._prepare()

    def _prepare(self) -> None:
        """Take the connection for writing, and another one for reading."""
        connection = self._reader
        try:
            with _opening(self._path):
                if self._path is IN_MEMORY:
                    connection.executescript(SCHEMA)
                _make_ready(connection)
                self._has_committed = False
                self._writer = StateWriter(self._path, connection)
                if self._path is not IN_MEMORY:
                    self._reader = _connect(self._path)
        except SpiderlingError:
            connection.close()
            raise

    def load(self) -> State:
        """Everything committed so far; raises JobdirError if it is damaged."""
        with self._reading():
            return State(
                tails=replay((added, popped) for _, added, popped in self._whole("log")),
                seen=_keys(self._whole("seen")),
                digests=_keys(self._whole("digest")),
                segments=[SegmentRow._make(row) for row in self._whole("file")],
                counts=dict(self._whole("count")),
                meta=dict(self._whole("meta")),
                peers=[PeerRow._make(row) for row in self._whole("peer")],
                outboxes=dict(self._reader.execute("SELECT shard, min(number) FROM outbox GROUP BY shard").fetchall()),
            )

    def _whole(self, table: str) -> Iterator[list[Any]]:
        """The rows of a table, each compared with its checksum."""
        return whole_rows(self._reader, table)

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
        rows = self._rows(TABLES["host"].one, (host_id,))
        if not rows:
            raise StorageError(f"{self._path} is damaged: host {host_id} is missing.")
        host = StoredHost._make(rows[0][:-2])
        self._refuse_changed(has_checksums(host, rows[0][-2:]), "host", host_id)
        return host

    def chunk_ids(self, host_id: int) -> list[int]:
        bounds = (host_id << HOST_SHIFT, host_id + 1 << HOST_SHIFT)
        return [row[0] for row in self._rows("SELECT id FROM chunk WHERE id >= ? AND id < ? ORDER BY id", bounds)]

    def chunk(self, chunk_id: int) -> list[bytes]:
        """The lines of a chunk; raises StorageError if there is none."""
        try:
            return unpack(self._one("chunk", chunk_id)[2])
        except DamageError as error:
            raise DamageError(f"{self._path} is damaged: chunk {chunk_id}: {error}") from error

    def robots(self, key: str) -> RobotsRecord | None:
        """What is known of an origin's robots.txt, or of another file of a site; None if nothing is."""
        row = self._find("robots", key)
        return RobotsRecord._make(row[1:]) if row is not None else None

    def consents(self) -> list[ConsentRow]:
        """All answers of sites about opt-outs, ordered by origin, file and time."""
        columns = ", ".join(ConsentRow._fields)
        rows = self._rows(f"SELECT {columns} FROM consent ORDER BY origin, file, first, answer, digest")
        return [ConsentRow._make(row) for row in rows]

    def blob(self, table: str, row: int) -> bytes | None:
        """The content of a row of one of ``Changes.blobs``; None if there is none."""
        found = self._find(table, row)
        return bytes(found[1]) if found is not None else None

    def blobs(self, table: str) -> Iterator[tuple[int, bytes]]:
        """All rows of such a table, in the order of their ids; raises JobdirError if one is damaged."""
        with self._reading():
            yield from ((row, content) for row, content in self._whole(table))

    def messages(self, shard: int, after: int, max_bytes: int) -> list[OutboxRow]:
        """The messages to *shard* from the number *after* + 1 on, as many as have *max_bytes*, but one at least."""
        following = "SELECT min(number) FROM outbox WHERE shard = ? AND number > ?"  # a shard that is away has many
        taken: list[OutboxRow] = []
        while (after := self._rows(following, (shard, after))[0][0]) is not None:
            row = OutboxRow._make(self._one("outbox", shard, after))
            max_bytes -= len(row.message)
            if taken and max_bytes < 0:
                break
            taken.append(row)
        return taken

    def _one(self, table: str, *key: object) -> list[Any]:
        """The row with this key; raises StorageError if there is none, or if it was changed."""
        row = self._find(table, *key)
        if row is None:
            raise StorageError(f"{self._path} is damaged: {table} {key[-1]} is missing.")
        return row

    def _find(self, table: str, *key: object) -> list[Any] | None:
        """The row with this key, None if there is none; raises StorageError if it was changed."""
        rows = self._rows(TABLES[table].one, key)
        if not rows:
            return None
        values: list[Any]
        *values, checksum = rows[0]
        self._refuse_changed(TABLES[table].agrees(values, checksum), table, key[-1])
        return values

    def _refuse_changed(self, is_whole: bool, table: str, key: object) -> None:
        if not is_whole:
            raise StorageError(f"{self._path} is damaged: row {key} of the table {table} is not as it was written.")

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        try:
            return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error

    def commit(self, changes: Changes) -> None:
        """Apply all of *changes* or nothing; raises StorageError, after which the store must not be used."""
        if self._writer is None:
            raise StorageError(f"{self._path} is open to read only.")
        self._writer.commit(changes)
        if not self._has_committed:
            self._has_committed = True
            self._writer.connection.execute(f"PRAGMA synchronous={self._synchronous}")

    def close(self) -> None:
        """Release the file; committing afterwards raises StorageError."""
        if self._writer is not None:
            self._writer.close()
        self._reader.close()


def _keys(rows: Iterable[list[Any]]) -> array[int]:
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
    """The writing half of a store, over a connection that one thread uses at a time.

    Each row is written with its checksum.  After a transaction that was rolled back it refuses all others: the sums of
    checksums in memory are those of rows that are not there.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """*path*: what messages name; raises sqlite3.Error."""
        self._path = path
        self.connection = connection
        self._written = read_written(connection)
        self._has_failed = False
        self._changed: set[str] = set()  # tables whose row of ``written`` is out of date
        self._counts = dict(connection.execute("SELECT key, value FROM count").fetchall())
        lengths = connection.execute("SELECT coalesce(sum(length(lengths)), 0) FROM length").fetchone()[0]
        self._lengths = lengths // LENGTH_BYTES  # entries in the table ``length``

    def commit(self, changes: Changes) -> None:
        with self._transaction():
            self._write(changes)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._has_failed:
            raise StorageError(f"{self._path} is not written any more: a former write has failed.")
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            for name in self._changed:
                self.connection.execute("REPLACE INTO written VALUES (?, ?, ?)", (name, *self._written[name]))
            self._changed.clear()
            self.connection.execute("COMMIT")
        except REFUSED as error:
            self._has_failed = True
            with suppress(sqlite3.Error):
                self.connection.rollback()
            raise StorageError(f"{self._path} could not be written: {error}.") from error

    def _write(self, changes: Changes) -> None:
        self._write_hosts(changes)
        self._write_queues(changes)
        for name, rows in changes.rewritten.items():
            write = self._replace_row if TABLES[name].keys else self._append_row
            self._clear_table(name)
            for row in rows:
                write(name, row)
        self._write_replaced(changes)
        self._write_appended(changes)

    def _write_replaced(self, changes: Changes) -> None:
        when = "SELECT first, last FROM consent WHERE origin = ? AND file = ? AND answer = ? AND digest = ?"
        for answer in changes.consent:
            first, last = self.connection.execute(when, answer[:4]).fetchone() or (answer.first, answer.last)
            # the clock may have been set back since
            both = answer._replace(first=min(first, answer.first), last=max(last, answer.last))
            self._replace_row("consent", both)
        counts = {key: value for key, value in changes.counts.items() if self._counts.get(key) != value}
        self._counts.update(counts)
        written: dict[str, Iterable[Sequence[Any]]] = {
            "robots": ((key, *record) for key, record in changes.robots.items()),
            "file": changes.segments,
            "count": counts.items(),
            "meta": changes.meta.items(),
            "outbox": changes.outbox,
            "peer": changes.peers,
            **{name: rows.items() for name, rows in changes.blobs.items()},
        }
        for name, rows in written.items():
            for row in rows:
                self._replace_row(name, row)
        for acknowledged in changes.acknowledged.items():
            self._delete_rows("outbox", "shard = ? AND number <= ?", acknowledged)
        if changes.history is not None:
            self._replace_row("history", changes.history)
            for condition, values in thinning(changes.history):
                self._delete_rows("history", condition, values)

    def _write_appended(self, changes: Changes) -> None:
        for event in changes.events:
            self._append_row("event", event)
        for name, numbers in (("seen", changes.seen), ("digest", changes.digests)):
            if packed_numbers := array("q", numbers).tobytes():
                self._append_row(name, (packed_numbers,))
        for name, row in url_log.rows(changes.url_log):
            self._append_row(name, row)

    def _write_hosts(self, changes: Changes) -> None:
        self.connection.executemany(TABLES["host"].write, ((*row, *host_checksums(row)) for row in changes.hosts))
        newest = self.connection.execute("SELECT coalesce(max(id), 0) FROM host").fetchone()[0]
        hosts = max(newest, self._written["host"].rows)  # ids are given without gaps
        if hosts > self._written["host"].rows:
            self._note("host", hosts, 0)
        entries = self._lengths + len(changes.hosts) + len(changes.host_updates)
        if changes.flush is not None or entries > hosts // _HOSTS_PER_LENGTH:
            self._fold(changes)
        elif entries > self._lengths:
            of_rows = [(row.waiting, row.parked, row.distance, row.id) for row in changes.hosts]
            self._append_row("length", (packed_lengths(of_rows + changes.host_updates),))
            self._lengths = entries

    def _fold(self, changes: Changes) -> None:
        """Write the newest lengths to the rows of their hosts, and empty their table; *changes*: the batch."""
        newest = newest_lengths(whole_rows(self.connection, "length")) if self._lengths else {}
        for row in changes.hosts:
            newest.pop(row.id, None)
        newest.update((length[-1], length) for length in changes.host_updates)
        self.connection.executemany(
            "UPDATE host SET waiting = ?1, parked = ?2, distance = ?3, "
            f"queue_checksum = {QUEUE_CHECKSUM} WHERE id = ?4",
            [newest[host] for host in sorted(newest)],
        )
        if self._lengths:
            self._clear_table("length")
            self._lengths = 0

    def _write_queues(self, changes: Changes) -> None:
        gone = [(host << HOST_SHIFT, host + 1 << HOST_SHIFT) for host in changes.dropped]
        gone += [(chunk, chunk + 1) for chunk in changes.used]
        self._count_chunks(-self.connection.executemany("DELETE FROM chunk WHERE id >= ? AND id < ?", gone).rowcount)
        if changes.flush is not None:
            generation, tails = changes.flush
            chunks = (chunk for slot in sorted(tails) for chunk in chunks_of(slot, generation, tails[slot]))
            rows = ((chunk, len(lines), pack(lines)) for chunk, lines in chunks)
            table = TABLES["chunk"]
            added = self.connection.executemany(table.write, ((*row, table.checksum(row)) for row in rows)).rowcount
            self._count_chunks(added)
            self._clear_table("log")
        elif changes.added or changes.popped:
            self._append_row("log", log_entry(changes.added, changes.popped))

    # -- rows

    def _append_row(self, name: str, values: Sequence[Any]) -> None:
        """Append a row; *values* are without the number of a numbered table."""
        table = TABLES[name]
        rows, before = self._written[name]
        row = (rows + 1, *values) if table.is_numbered else values
        checksum = table.checksum(row, before)
        self.connection.execute(table.write, (*row, checksum))
        self._note(name, rows + 1, checksum)

    def _replace_row(self, name: str, row: Sequence[Any]) -> None:
        """Write a row; it replaces the one with the same key, if there is one."""
        table = TABLES[name]
        former = self.connection.execute(table.former, row[: table.keys]).fetchone()
        checksum = table.checksum(row)
        self.connection.execute(table.write, (*row, checksum))
        self._sum(name, 0 if former else 1, checksum - (former[0] if former else 0))

    def _delete_rows(self, name: str, condition: str, values: Sequence[Any]) -> None:
        """Delete the rows for which *condition* holds, of a table whose rows are replaced."""
        gone = self.connection.execute(f"DELETE FROM {name} WHERE {condition} RETURNING checksum", values).fetchall()
        if gone:
            self._sum(name, -len(gone), -sum(row[0] for row in gone))

    def _clear_table(self, name: str) -> None:
        """Delete all rows of a table."""
        self.connection.execute(f"DELETE FROM {name}")
        self._note(name, 0, 0)

    def _count_chunks(self, more: int) -> None:
        if more:
            self._note("chunk", self._written["chunk"].rows + more, 0)

    def _sum(self, name: str, more: int, checksum: int) -> None:
        rows, total = self._written[name]
        self._note(name, rows + more, total + checksum & SUM_MASK)

    def _note(self, name: str, rows: int, checksum: int) -> None:
        self._written[name] = TableChecksum(rows, checksum)
        self._changed.add(name)

    def close(self) -> None:
        """Fold the lengths, and close the connection."""
        with suppress(StorageError):  # without it, the next start has the lengths from their table
            if self._lengths:
                with self._transaction():
                    self._fold(Changes())
        self.connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    uri = "file::memory:" if path is IN_MEMORY else f"{path.absolute().as_uri()}?mode=rw"
    with _opening(path):
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _connect_to_read(path: Path) -> sqlite3.Connection:
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
    """Make the file of a new state.  It gets its name when it is whole; what has none is deleted at the next start."""
    with _opening(path):
        new = new_file_for(path)
        with closing(sqlite3.connect(new, isolation_level=None)) as state:
            state.executescript(
                "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL; BEGIN;"  # it is synced as a whole
                f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}; {SCHEMA}COMMIT;"
            )
        delete_files(path)  # version_of found nothing in them
        put_in_place(new, path)


def _make_ready(connection: sqlite3.Connection) -> None:
    """Set what holds for a connection that writes."""
    execute = connection.execute
    execute("PRAGMA journal_mode=WAL")
    # Without this, what a kill left of the log would look like damage (state_reader.py).
    execute("PRAGMA wal_checkpoint(TRUNCATE)")
    execute("PRAGMA synchronous=FULL")
    execute(f"PRAGMA cache_size=-{_CACHE_KB}")
