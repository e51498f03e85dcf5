"""The durable state of a crawl: one SQLite file, and an in-memory twin with the same contract.

``commit`` writes one batch of Changes in one transaction (WAL, synchronous=NORMAL:
survives any kill of the process; a power cut may lose the last batches but leaves
the file whole).  What was committed is exactly what ``load`` gives back.  URLs are
removed only when they end, so whatever was in transit at a kill waits again.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from spiderling.errors import JobdirError, StorageError
from spiderling.frontier import trail
from spiderling.frontier.trail import TrailBatch

SCHEMA_VERSION = 2
APPLICATION_ID = 0x59D37  # marks the file as ours; shown by `file`
_REFUSED = (sqlite3.Error, OverflowError, ValueError)
"""What SQLite and array raise for a bad file or a value that they cannot hold."""


class HostRow(NamedTuple):
    """One host record; the columns of table ``host``."""

    id: int
    name: str
    state: str
    distance: int
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    waiting: int
    due: float
    crawl_delay_s: float
    failures: int
    exempt: int
    address: str


class UrlRow(NamedTuple):
    """A URL that has not ended, or is parked with its retired host."""

    key: int
    host: int
    url: str
    rank: int
    tries: int
    redirects: int
    parked: int
    payload: bytes | None


class RobotsRow(NamedTuple):
    origin: str
    status: str
    fetched: float
    expires: float
    failures: int
    body: bytes


class ConsentRow(NamedTuple):
    """What a site was asked, and what it answered from ``first`` to ``last``; a row for each different answer."""

    origin: str
    file: str
    """Path of the file that was asked for."""
    answer: str
    """HTTP status, or why there is none."""
    digest: str
    """SHA-256 of the file, hexadecimal."""
    first: float
    last: float
    says: str
    """Its opt-outs for the front page."""


class SegmentRow(NamedTuple):
    name: str
    length_bytes: int
    documents: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the last batch; counts are totals, not differences."""

    hosts: list[HostRow] = field(default_factory=list)
    urls: list[UrlRow] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    """Keys of URLs that ended; applied after ``urls``."""
    seen: list[int] = field(default_factory=list)
    digests: list[int] = field(default_factory=list)
    robots: list[RobotsRow] = field(default_factory=list)
    consent: list[ConsentRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    trail: TrailBatch = field(default_factory=TrailBatch)


@dataclass(slots=True)
class State:
    """Everything that was committed."""

    hosts: list[HostRow] = field(default_factory=list)
    urls: list[UrlRow] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    digests: set[int] = field(default_factory=set)
    robots: list[RobotsRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)


class Store(Protocol):
    """The contract, tested by tests/contract/test_store.py for each implementation."""

    def load(self) -> State:
        """Everything committed so far."""

    def commit(self, changes: Changes) -> None:
        """Apply all of *changes* or nothing; raises StorageError, after which the store must not be used."""

    def consents(self) -> list[ConsentRow]:
        """The consent ledger: what sites answered when they were asked, ordered by origin, file and time."""

    def parked(self, host: int) -> list[UrlRow]:
        """The committed parked URLs of a host; may be called while another thread commits."""

    def close(self) -> None:
        """Release the file; committing afterwards raises StorageError."""


_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE count(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL, distance INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, waiting INTEGER NOT NULL, due REAL NOT NULL, crawl_delay_s REAL NOT NULL,
    failures INTEGER NOT NULL, exempt INTEGER NOT NULL, address TEXT NOT NULL);
CREATE TABLE url(key INTEGER PRIMARY KEY, host INTEGER NOT NULL, url TEXT NOT NULL, rank INTEGER NOT NULL,
    tries INTEGER NOT NULL, redirects INTEGER NOT NULL, parked INTEGER NOT NULL, payload BLOB);
CREATE TABLE seen(batch INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE digest(batch INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE robots(origin TEXT PRIMARY KEY, status TEXT NOT NULL, fetched REAL NOT NULL, expires REAL NOT NULL,
    failures INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE consent(origin TEXT NOT NULL, file TEXT NOT NULL, answer TEXT NOT NULL, digest TEXT NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, says TEXT NOT NULL,
    PRIMARY KEY(origin, file, answer, digest)) WITHOUT ROWID;
CREATE TABLE segment(name TEXT PRIMARY KEY, length_bytes INTEGER NOT NULL, documents INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE event(time REAL NOT NULL, what TEXT NOT NULL);
CREATE VIEW hosts AS SELECT name, state, distance, pages, documents, words,
    round(downloaded_bytes / 1e6, 3) AS down_mb, round(kept_bytes / 1e6, 3) AS kept_mb,
    round(kept_bytes * 1.0 / max(downloaded_bytes, 1), 4) AS yield_rate, waiting, address,
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
    """The store in a file; one connection, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open or create the file at *path*; raises JobdirError if it is not ours or of another version."""
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise JobdirError(f"{path} cannot be opened as the state of a crawl: {error}.") from error
        try:
            self._prepare()
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
        self._connection.executescript(trail.SCHEMA + VIEWS)
        execute("PRAGMA synchronous=NORMAL")

    def load(self) -> State:
        """Everything committed so far; raises JobdirError if the file is damaged."""
        try:
            return self._load()
        except _REFUSED as error:
            raise JobdirError(f"{self._path} is damaged: {error}; restore the file, or give another JOBDIR.") from error

    def _load(self) -> State:
        rows = self._connection.execute
        return State(
            hosts=[HostRow(*row) for row in rows("SELECT * FROM host ORDER BY id")],
            urls=[UrlRow(*row) for row in rows("SELECT * FROM url")],
            seen=_keys(blob for (blob,) in rows("SELECT keys FROM seen")),
            digests=_keys(blob for (blob,) in rows("SELECT keys FROM digest")),
            robots=[RobotsRow(*row) for row in rows("SELECT * FROM robots")],
            segments=[SegmentRow(*row) for row in rows("SELECT * FROM segment ORDER BY name")],
            counts=dict(rows("SELECT key, value FROM count").fetchall()),
            meta=dict(rows("SELECT key, value FROM meta").fetchall()),
        )

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
        many(f"REPLACE INTO url VALUES ({_marks(UrlRow)})", changes.urls)
        many("DELETE FROM url WHERE key = ?", ((key,) for key in changes.gone))
        many(f"REPLACE INTO robots VALUES ({_marks(RobotsRow)})", changes.robots)
        many(f"INSERT INTO consent VALUES ({_marks(ConsentRow)}) {_SAID_AGAIN}", changes.consent)
        many(f"REPLACE INTO segment VALUES ({_marks(SegmentRow)})", changes.segments)
        many("REPLACE INTO count VALUES (?, ?)", changes.counts.items())
        many("REPLACE INTO meta VALUES (?, ?)", changes.meta.items())
        many("INSERT INTO event VALUES (?, ?)", changes.events)
        if changes.seen:
            self._connection.execute("INSERT INTO seen(keys) VALUES (?)", (array("q", changes.seen).tobytes(),))
        if changes.digests:
            self._connection.execute("INSERT INTO digest(keys) VALUES (?)", (array("q", changes.digests).tobytes(),))
        for table, row in trail.rows(changes.trail):
            self._connection.execute(f"INSERT INTO {table}", row)

    def consents(self) -> list[ConsentRow]:
        rows = self._connection.execute("SELECT * FROM consent ORDER BY origin, file, first, answer, digest")
        return [ConsentRow(*row) for row in rows]

    def parked(self, host: int) -> list[UrlRow]:
        try:
            with closing(sqlite3.connect(self._path)) as reader:
                return [UrlRow(*row) for row in reader.execute("SELECT * FROM url WHERE host = ? AND parked", (host,))]
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error

    def close(self) -> None:
        self._connection.close()


class MemoryStore:
    """The same contract without a file: for the simulator and for tests."""

    def __init__(self) -> None:
        self._hosts: dict[int, HostRow] = {}
        self._urls: dict[int, UrlRow] = {}
        self._robots: dict[str, RobotsRow] = {}
        self._consent: dict[tuple[str, ...], ConsentRow] = {}
        self._segments: dict[str, SegmentRow] = {}
        self._state = State()
        self._closed = False

    def load(self) -> State:
        state = self._state
        return State(
            hosts=sorted(self._hosts.values()),
            urls=list(self._urls.values()),
            seen=set(state.seen),
            digests=set(state.digests),
            robots=list(self._robots.values()),
            segments=sorted(self._segments.values()),
            counts=dict(state.counts),
            meta=dict(state.meta),
        )

    def commit(self, changes: Changes) -> None:
        if self._closed:
            raise StorageError("the store is closed.")
        self._hosts.update((row.id, row) for row in changes.hosts)
        self._urls.update((row.key, row) for row in changes.urls)
        for key in changes.gone:
            self._urls.pop(key, None)
        self._robots.update((row.origin, row) for row in changes.robots)
        for row in changes.consent:
            former = self._consent.get(row[:4], row)
            self._consent[row[:4]] = row._replace(first=former.first)
        self._segments.update((row.name, row) for row in changes.segments)
        self._state.seen.update(changes.seen)
        self._state.digests.update(changes.digests)
        self._state.counts.update(changes.counts)
        self._state.meta.update(changes.meta)

    def consents(self) -> list[ConsentRow]:
        return sorted(self._consent.values(), key=lambda row: (row.origin, row.file, row.first, row.answer, row.digest))

    def parked(self, host: int) -> list[UrlRow]:
        return [row for row in self._urls.values() if row.host == host and row.parked]

    def close(self) -> None:
        self._closed = True


def _keys(blobs: Iterable[bytes]) -> set[int]:
    keys: set[int] = set()
    for blob in blobs:
        part = array("q")
        part.frombytes(blob)
        keys.update(part)
    return keys


def _marks(row: type[NamedTuple]) -> str:
    return ",".join("?" * len(row._fields))


def counts_with_prefix(counts: Mapping[str, int], prefix: str) -> dict[str, int]:
    """The part of *counts* under ``prefix/``, without the prefix."""
    return {key[len(prefix) + 1 :]: value for key, value in counts.items() if key.startswith(prefix + "/")}


def urls_of(connection: sqlite3.Connection, host: int) -> list[UrlRow]:
    """The committed URLs of a host that wait or are parked, best first."""
    rows = connection.execute("SELECT * FROM url WHERE host = ? ORDER BY parked, rank, rowid", (host,))
    return [UrlRow(*row) for row in rows]


def url_of(connection: sqlite3.Connection, key: int) -> UrlRow | None:
    """The committed URL with this key, if it waits or is parked."""
    row = connection.execute("SELECT * FROM url WHERE key = ?", (key,)).fetchone()
    return UrlRow(*row) if row else None


def waiting_by_host(connection: sqlite3.Connection) -> dict[int, int]:
    """Host id -> number of its committed URLs that wait, counted one by one."""
    return dict(connection.execute("SELECT host, count(*) FROM url WHERE NOT parked GROUP BY host").fetchall())


def parked_number(connection: sqlite3.Connection) -> int:
    """How many committed URLs are parked, counted one by one."""
    return int(connection.execute("SELECT count(*) FROM url WHERE parked").fetchone()[0])
