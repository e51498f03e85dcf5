"""The durable state of a crawl: one SQLite file (memory.py is its twin without a file).

``commit`` writes one batch of Changes in one transaction (WAL; survives any kill of the
process; a power cut may lose the last batches but leaves the file whole, and loses
nothing if the store is ``synced``).  What was committed is exactly what ``load`` and the reading methods
give back.  URLs leave a queue in the store only when they end, so whatever was in
transit at a kill waits again.  One thread commits; another one may read meanwhile,
through a connection of its own that always sees the last commit.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from spiderling.errors import JobdirError, StorageError
from spiderling.frontier import history, trail
from spiderling.frontier.hosts import CLOSED_STATES
from spiderling.frontier.state import (
    HOST_SHIFT,
    Changes,
    ConsentRow,
    Flush,
    HostColumns,
    HostMark,
    HostRow,
    RobotsRow,
    SegmentRow,
    State,
    chunks_of,
    replay,
)

SCHEMA_VERSION = 4
APPLICATION_ID = 0x59D37  # marks the file as ours; shown by `file`
_REFUSED = (sqlite3.Error, OverflowError, ValueError, TypeError)
"""What SQLite and array raise for a bad file or a value that they cannot hold."""
_CACHE_KB = 32_000
_HOSTS_AT_ONCE = 20_000
_COLUMNS = "id, name, state, distance, waiting + parked AS queued, due"
_HOST_COLUMNS = "SELECT {} FROM (SELECT {} FROM host WHERE id >= ? AND id < ? ORDER BY id)".format(
    ", ".join(f"group_concat({column.split()[-1]}, x'0a')" for column in _COLUMNS.split(", ")), _COLUMNS
)
"""Half of the time that it takes to make a row of each host."""
_IS_MARKED = "pages OR downloaded_bytes OR exempt OR transit IS NOT NULL OR state IN ({})".format(
    ", ".join(f"'{state.value}'" for state in CLOSED_STATES)
)
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE count(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host(id INTEGER PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, distance INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, waiting INTEGER NOT NULL, parked INTEGER NOT NULL, due REAL NOT NULL,
    crawl_delay_s REAL NOT NULL, slowdown REAL NOT NULL, failures INTEGER NOT NULL, exempt INTEGER NOT NULL,
    address TEXT NOT NULL, positions TEXT NOT NULL, first BLOB NOT NULL, transit BLOB);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, urls INTEGER NOT NULL, lines BLOB NOT NULL);
CREATE TABLE log(batch INTEGER PRIMARY KEY, added BLOB NOT NULL, popped TEXT NOT NULL);
CREATE TABLE seen(batch INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE digest(batch INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE robots(origin TEXT PRIMARY KEY, status TEXT NOT NULL, fetched REAL NOT NULL, expires REAL NOT NULL,
    failures INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE consent(origin TEXT NOT NULL, file TEXT NOT NULL, answer TEXT NOT NULL, digest TEXT NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, says TEXT NOT NULL,
    PRIMARY KEY(origin, file, answer, digest)) WITHOUT ROWID;
CREATE TABLE file(name TEXT PRIMARY KEY, length_bytes INTEGER NOT NULL, entries INTEGER NOT NULL,
    kind TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW segment AS SELECT name, length_bytes, entries AS documents FROM file WHERE kind = 'corpus';
CREATE TABLE event(time REAL NOT NULL, what TEXT NOT NULL);
CREATE VIEW hosts AS SELECT name, state, distance, pages, documents, words,
    round(downloaded_bytes / 1e6, 3) AS down_mb, round(kept_bytes / 1e6, 3) AS kept_mb,
    round(kept_bytes * 1.0 / max(downloaded_bytes, 1), 4) AS yield_rate, waiting, parked, address,
    datetime(due, 'unixepoch') AS due FROM host ORDER BY kept_bytes DESC, name;
CREATE VIEW consents AS SELECT origin, file, answer, says, datetime(first, 'unixepoch') AS first,
    datetime(last, 'unixepoch') AS last, digest FROM consent ORDER BY origin, file, consent.first;
"""

VIEWS = """
CREATE VIEW IF NOT EXISTS ends AS SELECT substr(key, 5) AS reason, value AS urls,
    round(value * 1.0 / (SELECT max(value, 1) FROM count WHERE key = 'discovered'), 4) AS share
    FROM count WHERE key LIKE 'end/%' AND value ORDER BY value DESC;
CREATE VIEW IF NOT EXISTS waiting AS SELECT state, count(*) AS hosts, sum(waiting) AS urls, max(waiting) AS most,
    datetime(min(due), 'unixepoch') AS first_due FROM host WHERE waiting GROUP BY state ORDER BY urls DESC;
CREATE VIEW IF NOT EXISTS yield AS
    SELECT CASE WHEN at IS NULL THEN 'all' ELSE 'distance ' || at END AS hosts_at, count(*) AS hosts,
    sum(pages) AS pages, sum(documents) AS documents, sum(words) AS words,
    round(sum(downloaded_bytes) / 1e6, 3) AS down_mb, round(sum(kept_bytes) / 1e6, 3) AS kept_mb,
    round(sum(kept_bytes) * 1.0 / max(sum(downloaded_bytes), 1), 4) AS yield_rate,
    round(sum(documents) * 1.0 / max(sum(pages), 1), 4) AS yield_ratio
    FROM (SELECT NULL AS at, * FROM host UNION ALL SELECT distance AS at, * FROM host)
    GROUP BY at ORDER BY at;
"""
"""For people with sqlite3 or datasette, beside ``hosts``; they may read while the crawl writes."""

_SAID_AGAIN = "ON CONFLICT(origin, file, answer, digest) DO UPDATE SET last = excluded.last, says = excluded.says"


class SqliteStore:
    """The store in a file; one connection that writes, one that reads, each used by one thread at a time."""

    def __init__(self, path: Path, synced: bool = False) -> None:
        """Open or create the file at *path*; raises JobdirError if it is not ours or of another version.

        *synced*: a commit returns when it would survive a power cut (synchronous=FULL, else NORMAL).
        """
        self._path = path
        self._synchronous = "FULL" if synced else "NORMAL"
        self._compress = zstandard.ZstdCompressor(level=3, write_checksum=True).compress
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise JobdirError(f"{path} cannot be opened as the state of a crawl: {error}.") from error
        self._reader = self._connection
        try:
            self._prepare()
            self._reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            self.close()
            raise JobdirError(
                f"{path} cannot be read as the state of a crawl: {error}; restore the file, or give another JOBDIR."
            ) from error
        except JobdirError:
            self.close()
            raise

    def _prepare(self) -> None:
        execute = self._connection.execute
        application = execute("PRAGMA application_id").fetchone()[0]
        version = execute("PRAGMA user_version").fetchone()[0]
        if application == 0 and execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            execute("PRAGMA journal_mode=WAL")
            self._connection.executescript(
                f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}; {_SCHEMA}COMMIT;"
            )
        elif application != APPLICATION_ID:
            raise JobdirError(f"{self._path} is a database of something else; give another JOBDIR.")
        elif version != SCHEMA_VERSION:
            raise JobdirError(
                f"{self._path} was written by another version of Spiderling (schema {version}, this one has "
                f"{SCHEMA_VERSION}); go on with that version, or give another JOBDIR."
            )
        self._connection.executescript(trail.SCHEMA + history.SCHEMA + VIEWS)
        execute(f"PRAGMA synchronous={self._synchronous}")
        execute(f"PRAGMA cache_size=-{_CACHE_KB}")

    # -- reading

    def load(self) -> State:
        rows = self._reader.execute
        with self._reading():
            return State(
                tails=tails_of(self._reader),
                seen=_keys(rows("SELECT keys FROM seen ORDER BY batch")),
                digests=_keys(rows("SELECT keys FROM digest ORDER BY batch")),
                segments=[SegmentRow(*row) for row in rows("SELECT * FROM file ORDER BY name")],
                counts=dict(rows("SELECT key, value FROM count").fetchall()),
                meta=dict(rows("SELECT key, value FROM meta").fetchall()),
            )

    def host_columns(self) -> Iterator[HostColumns]:
        with self._reading():
            last = self._reader.execute("SELECT max(id) FROM host").fetchone()[0] or 0
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
                yield columns

    def host_marks(self) -> Iterator[HostMark]:
        columns = "id, name, state, pages, downloaded_bytes, kept_bytes, exempt, transit IS NOT NULL"
        with self._reading():
            rows = self._reader.execute(f"SELECT {columns} FROM host WHERE {_IS_MARKED} ORDER BY id")
            yield from map(HostMark._make, rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (*_REFUSED, zstandard.ZstdError) as error:
            raise JobdirError(f"{self._path} is damaged: {error}; restore the file, or give another JOBDIR.") from error

    def host(self, host_id: int) -> HostRow:
        return HostRow._make(self._one("SELECT * FROM host WHERE id = ?", host_id))

    def chunk_ids(self, host_id: int) -> list[int]:
        bounds = (host_id << HOST_SHIFT, host_id + 1 << HOST_SHIFT)
        return [row[0] for row in self._rows("SELECT id FROM chunk WHERE id >= ? AND id < ? ORDER BY id", bounds)]

    def chunk(self, chunk_id: int) -> list[bytes]:
        packed: bytes = self._one("SELECT lines FROM chunk WHERE id = ?", chunk_id)[0]
        try:
            return unpacked(packed)
        except zstandard.ZstdError as error:
            raise StorageError(f"{self._path} is damaged: chunk {chunk_id}: {error}.") from error

    def robots(self, key: str) -> RobotsRow | None:
        rows = self._rows("SELECT * FROM robots WHERE origin = ?", (key,))
        return RobotsRow._make(rows[0]) if rows else None

    def consents(self) -> list[ConsentRow]:
        rows = self._rows("SELECT * FROM consent ORDER BY origin, file, first, answer, digest", ())
        return [ConsentRow._make(row) for row in rows]

    def _one(self, query: str, key: int) -> Any:
        rows = self._rows(query, (key,))
        if not rows:
            raise StorageError(f"{self._path} is damaged: {query.split()[3]} {key} is missing.")
        return rows[0]

    def _rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error

    # -- writing

    def commit(self, changes: Changes) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._write(changes)
            self._connection.execute("COMMIT")
        except _REFUSED as error:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise StorageError(f"{self._path} could not be written: {error}.") from error

    def _write(self, changes: Changes) -> None:
        many = self._connection.executemany
        many(f"REPLACE INTO host VALUES ({_marks(HostRow)})", changes.hosts)
        many("UPDATE host SET waiting = ?, parked = ?, distance = ? WHERE id = ?", changes.marked)
        ranges = ((host << HOST_SHIFT, host + 1 << HOST_SHIFT) for host in changes.dropped)
        many("DELETE FROM chunk WHERE id >= ? AND id < ?", ranges)
        many("DELETE FROM chunk WHERE id = ?", ((chunk,) for chunk in changes.used))
        if changes.flush is not None:
            self._flush(changes.flush)
        elif changes.added or changes.popped:
            self._log(changes)
        many(f"REPLACE INTO robots VALUES ({_marks(RobotsRow)})", changes.robots)
        many(f"INSERT INTO consent VALUES ({_marks(ConsentRow)}) {_SAID_AGAIN}", changes.consent)
        many(f"REPLACE INTO file VALUES ({_marks(SegmentRow)})", changes.segments)
        many("REPLACE INTO count VALUES (?, ?)", changes.counts.items())
        many("REPLACE INTO meta VALUES (?, ?)", changes.meta.items())
        many("INSERT INTO event VALUES (?, ?)", changes.events)
        for table, keys in (("seen", array("q", changes.seen)), ("digest", array("q", changes.digests))):
            if keys:
                self._connection.execute(f"INSERT INTO {table}(keys) VALUES (?)", (keys.tobytes(),))
        for table, row in trail.rows(changes.trail):
            self._connection.execute(f"INSERT INTO {table}", row)
        if changes.history is not None:
            for query, values in history.statements(changes.history):
                self._connection.execute(query, values)

    def _flush(self, flush: Flush) -> None:
        chunks = (
            (chunk, len(lines), self._packed(b"\n".join(lines)))
            for slot, tail in flush.tails.items()
            for chunk, lines in chunks_of(slot, flush.generation, tail)
        )
        self._connection.executemany("INSERT INTO chunk VALUES (?, ?, ?)", chunks)
        self._connection.execute("DELETE FROM log")

    def _log(self, changes: Changes) -> None:
        added = self._packed(b"\n".join(b"%d\t%s" % entry for entry in changes.added))
        popped = " ".join(f"{slot}:{number}" for slot, number in changes.popped.items())
        self._connection.execute("INSERT INTO log(added, popped) VALUES (?, ?)", (added, popped))

    def _packed(self, lines: bytes) -> bytes:
        """Compressed if that makes it smaller; no line begins like a zstd frame."""
        packed: bytes = self._compress(lines)
        return packed if len(packed) < len(lines) else lines

    def close(self) -> None:
        self._reader.close()
        self._connection.close()


def unpacked(packed: bytes) -> list[bytes]:
    """The lines of a chunk or of the log."""
    lines = zstandard.decompress(packed) if packed.startswith(_ZSTD_MAGIC) else packed
    return lines.split(b"\n") if lines else []


def tails_of(connection: sqlite3.Connection) -> dict[int, list[bytes]]:
    """Slot -> lines of what is in the log."""
    tails: dict[int, list[bytes]] = {}
    for added, popped in connection.execute("SELECT added, popped FROM log ORDER BY batch"):
        entries = (line.split(b"\t", 1) for line in unpacked(added))
        numbers = (pair.split(":") for pair in popped.split())
        replay(tails, ((int(slot), line) for slot, line in entries), ((int(s), int(n)) for s, n in numbers))
    return tails


def _keys(rows: Iterable[tuple[bytes]]) -> array[int]:
    keys = array("q")
    for (blob,) in rows:
        keys.frombytes(blob)
    return keys


def _marks(row: type[NamedTuple]) -> str:
    return ",".join("?" * len(row._fields))
