"""The tables of the state's file, and the checksums that show whether any row of them was changed, lost or added.

SQLite notices a page that it cannot read, but not a number that has become another one.  So every row has a column
with the xxh3 hash of its content, written in the same transaction.  The table ``written`` says for each table how
many rows it has and what their checksums amount to:

- In a table that is only appended to, a row's hash is seeded with the checksum of the row before.  ``written``
  has the last checksum, so no row can be changed, left out or moved unnoticed.
- For a table whose rows are replaced, ``written`` has the sum of all checksums.
- Hosts and chunks are many and change all the time: their rows are only counted.  jobdir/check.py finds missing
  chunks by the lengths of the queues.

A host has two checksums.  Most updates of a host change only the length of its queue, so that has a checksum of its
own: a weighted sum, which SQLite itself computes.

Most hosts that a batch changes only got URLs, and the rows of so many hosts stand on as many pages of the file.  So
what changed of them is one row of the table ``length``, which is only appended to.  sqlite.py folds that table into the
hosts' rows from time to time: of many hosts at once, and in the order of the file, so that each page is written once.
"""

from __future__ import annotations

import struct
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from spiderling.frontier.storage.protocol import StoredHost

if TYPE_CHECKING:
    import sqlite3


SCHEMA_VERSION = 1
MIGRATIONS: dict[int, str] = {}  # schema -> the SQL that makes the next one of it
APPLICATION_ID = 0x59D37  # the application id in SQLite's header of our files; the command `file` shows it

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, checksum INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE count(key TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host(id INTEGER PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, distance INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, waiting INTEGER NOT NULL, parked INTEGER NOT NULL, due REAL NOT NULL,
    crawl_delay_s REAL NOT NULL, slowdown REAL NOT NULL, failures INTEGER NOT NULL, exempt INTEGER NOT NULL,
    address TEXT NOT NULL, positions TEXT NOT NULL, first BLOB NOT NULL, transit BLOB,
    checksum INTEGER NOT NULL, queue_checksum INTEGER NOT NULL);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, urls INTEGER NOT NULL, checksum INTEGER NOT NULL,
    lines BLOB NOT NULL);
CREATE TABLE log(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, added BLOB NOT NULL,
    popped TEXT NOT NULL);
CREATE TABLE seen(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, keys BLOB NOT NULL);
CREATE TABLE digest(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, keys BLOB NOT NULL);
CREATE TABLE robots(origin TEXT PRIMARY KEY, status TEXT NOT NULL, fetched REAL NOT NULL, expires REAL NOT NULL,
    failures INTEGER NOT NULL, checksum INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE consent(origin TEXT NOT NULL, file TEXT NOT NULL, answer TEXT NOT NULL, digest TEXT NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, says TEXT NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY(origin, file, answer, digest)) WITHOUT ROWID;
CREATE TABLE file(name TEXT PRIMARY KEY, length_bytes INTEGER NOT NULL, entries INTEGER NOT NULL,
    kind TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIEW segment AS SELECT name, length_bytes, entries AS documents FROM file WHERE kind = 'corpus';
CREATE TABLE event(time REAL NOT NULL, what TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE written(name TEXT PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIEW hosts AS SELECT name, state, distance, pages, documents, words,
    round(downloaded_bytes / 1e6, 3) AS down_mb, round(kept_bytes / 1e6, 3) AS kept_mb,
    round(kept_bytes * 1.0 / max(downloaded_bytes, 1), 4) AS yield_rate, waiting, parked, address,
    datetime(due, 'unixepoch') AS due FROM host ORDER BY kept_bytes DESC, name;
CREATE VIEW consents AS SELECT origin, file, answer, says, datetime(first, 'unixepoch') AS first,
    datetime(last, 'unixepoch') AS last, digest FROM consent ORDER BY origin, file, consent.first;

CREATE TABLE ended(batch INTEGER PRIMARY KEY, time REAL NOT NULL, segment TEXT NOT NULL,
    offset_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, keys BLOB NOT NULL, ends BLOB NOT NULL);
CREATE TABLE found(batch INTEGER PRIMARY KEY, time REAL NOT NULL, checksum INTEGER NOT NULL,
    keys BLOB NOT NULL, pages BLOB NOT NULL);
CREATE TABLE purged(time REAL NOT NULL, host INTEGER NOT NULL, reason TEXT NOT NULL,
    urls INTEGER NOT NULL, checksum INTEGER NOT NULL);

CREATE TABLE history(tick INTEGER PRIMARY KEY, time REAL NOT NULL, time_s INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, discovered INTEGER NOT NULL, waiting INTEGER NOT NULL, hosts INTEGER NOT NULL,
    at_work INTEGER NOT NULL, retired INTEGER NOT NULL, checksum INTEGER NOT NULL);

CREATE TABLE outbox(id INTEGER PRIMARY KEY, time REAL NOT NULL, links INTEGER NOT NULL, checksum INTEGER NOT NULL,
    message BLOB NOT NULL);
CREATE TABLE peer(shard INTEGER PRIMARY KEY, sent INTEGER NOT NULL, epoch INTEGER NOT NULL,
    received INTEGER NOT NULL, checksum INTEGER NOT NULL);

CREATE TABLE length(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, lengths BLOB NOT NULL);

CREATE TABLE validator(batch INTEGER PRIMARY KEY, time REAL NOT NULL, checksum INTEGER NOT NULL,
    keys BLOB NOT NULL, validators BLOB NOT NULL);
CREATE TABLE recrawled(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE rate(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE paragraph(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);

CREATE TABLE edge(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, edges BLOB NOT NULL);

CREATE VIEW ends AS SELECT substr(key, 5) AS reason, value AS urls,
    round(value * 1.0 / (SELECT max(value, 1) FROM count WHERE key = 'discovered'), 4) AS share
    FROM count WHERE key LIKE 'end/%' AND value ORDER BY value DESC;
CREATE VIEW waiting AS SELECT state, count(*) AS hosts, sum(waiting) AS urls, max(waiting) AS most,
    datetime(min(due), 'unixepoch') AS first_due FROM host WHERE waiting GROUP BY state ORDER BY urls DESC;
CREATE VIEW yield AS
    SELECT CASE WHEN at IS NULL THEN 'all' ELSE 'distance ' || at END AS hosts_at, count(*) AS hosts,
    sum(pages) AS pages, sum(documents) AS documents, sum(words) AS words,
    round(sum(downloaded_bytes) / 1e6, 3) AS down_mb, round(sum(kept_bytes) / 1e6, 3) AS kept_mb,
    round(sum(kept_bytes) * 1.0 / max(sum(downloaded_bytes), 1), 4) AS yield_rate,
    round(sum(documents) * 1.0 / max(sum(pages), 1), 4) AS yield_ratio
    FROM (SELECT NULL AS at, * FROM host UNION ALL SELECT distance AS at, * FROM host)
    GROUP BY at ORDER BY at;
"""
"""Creates all tables and views of a new file.

outbox, peer: the messages that wait for other shards to take them, and how far the exchange with each shard has come.
length: lengths of queues that are newer than the rows of their hosts.  validator: by what pages are
asked again; recrawled: what is recrawled (recrawl/pages.py).  rate: how often something new stands there, by host
(recrawl/policy.py).  paragraph: digests of the paragraphs of pages, by URL key.  edge: which host links to which, as
far as that may shorten a distance (hosts.py).  The views are for people
who read the file with sqlite3 or datasette; they may read while the crawl runs.
"""


UNFIT = (ValueError, TypeError, AttributeError, OverflowError, struct.error)
"""Exceptions of this module for a value that does not fit its column."""
_ROW_SHIFT = 33
"""Bits cut off a hash for the checksum of a row that may be replaced: SQLite stores the other 31 in four bytes."""
_CHAIN_SHIFT = 1
"""Bits cut off a hash for the checksum of an appended row: 63 are left, the most that SQLite's integers hold."""
_SUM_MASK = (1 << 63) - 1  # sums of checksums are taken modulo 2**63
_hash: Callable[..., int] = xxhash.xxh3_64_intdigest
_NUMBERS = struct.Struct("<8q3d").pack

_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "i": lambda value: b"%d\0" % value,
    "r": struct.Struct("<d").pack,
    "t": lambda value: value.encode() + b"\0",
    "b": lambda value: b"%d\0" % len(value) + value,
}
"""Kind of a column -> the function that makes bytes of its values."""


class CheckedTable:
    """A table that has a checksum in ``written``, and the SQL to read and write its rows."""

    def __init__(self, name: str, kinds: str, columns: str, keys: int = 0) -> None:
        """*kinds*: a letter for each column: (i)nteger, (r)eal, (t)ext or (b)ytes.

        *keys*: the first *keys* columns are the key of a row, which may be replaced; 0: rows are only appended.
        """
        self.name = name
        self.keys = keys
        names = columns.split()
        self.is_numbered = names[0] == "batch"  # whether the first column, ``batch``, is the number of the row
        self._encoders = [_ENCODERS[kind] for kind in kinds]
        listed = ", ".join([*names, "checksum"])
        values = ",".join("?" * (len(names) + 1))
        order = ", ".join(names[:keys]) if keys else "batch" if self.is_numbered else "rowid"
        self.rows = f"SELECT {listed} FROM {name} ORDER BY {order}"
        self.write = f"{'REPLACE' if keys else 'INSERT'} INTO {name}({listed}) VALUES ({values})"
        self.former = f"SELECT checksum FROM {name} WHERE {' AND '.join(f'{key} = ?' for key in names[:keys])}"

    def content(self, row: Sequence[Any]) -> bytes:
        """The bytes of a row that are hashed; raises one of UNFIT."""
        return b"".join([encode(value) for encode, value in zip(self._encoders, row, strict=True)])


BLOBS = ("recrawled", "rate", "paragraph")  # tables of rows that only their writers understand, by an integer
_HISTORY = "tick time time_s pages documents words downloaded_bytes kept_bytes discovered waiting hosts at_work retired"
TABLES = {
    table.name: table
    for table in (
        CheckedTable("seen", "ib", "batch keys"),
        CheckedTable("digest", "ib", "batch keys"),
        CheckedTable("edge", "ib", "batch edges"),
        CheckedTable("log", "ibt", "batch added popped"),
        CheckedTable("length", "ib", "batch lengths"),
        CheckedTable("ended", "irtibb", "batch time segment offset_bytes keys ends"),
        CheckedTable("found", "irbb", "batch time keys pages"),
        CheckedTable("purged", "riti", "time host reason urls"),
        CheckedTable("validator", "irbb", "batch time keys validators"),
        CheckedTable("event", "rt", "time what"),
        CheckedTable("meta", "tt", "key value", 1),
        CheckedTable("count", "ti", "key value", 1),
        CheckedTable("file", "tiit", "name length_bytes entries kind", 1),
        CheckedTable("robots", "ttrrib", "origin status fetched expires failures body", 1),
        CheckedTable("consent", "ttttrrt", "origin file answer digest first last says", 4),
        CheckedTable("history", "iriiiiiiiiiii", _HISTORY, 1),
        CheckedTable("outbox", "irib", "id time links message", 1),
        CheckedTable("peer", "iiii", "shard sent epoch received", 1),
        *(CheckedTable(name, "ib", "id content", 1) for name in BLOBS),
    )
}
"""Every table with a checksum in ``written``, by name."""
QUEUE_CHECKSUM = "?1 * 1000003 + ?2 * 10007 + ?3 * 31 + ?4"
"""A host's ``queue_checksum`` of ``Changes.host_updates``; it changes when any one of the four values does.

It is in SQL, so that Python need not compute it for each host whose queue has grown.  ``host_checksums`` has it again.
"""


class TableChecksum(NamedTuple):
    """A row of the table ``written``: it says how many rows a table has, and what their checksums amount to."""

    rows: int = 0
    checksum: int = 0
    """The last row's checksum if rows are appended, the sum of all if they are replaced, 0 if they are counted."""


def host_checksums(row: StoredHost) -> tuple[int, int]:
    """The columns ``checksum`` and ``queue_checksum`` of a host's row; raises one of UNFIT."""
    numbers = _NUMBERS(
        row.id,
        row.pages,
        row.documents,
        row.words,
        row.downloaded_bytes,
        row.kept_bytes,
        row.failures,
        row.exempt,
        row.due,
        row.crawl_delay_s,
        row.slowdown,
    )
    texts = f"{row.name}\0{row.state}\0{row.address}\0{row.positions}\0".encode()
    lines = row.first if row.transit is None else row.first + b"\0" + row.transit
    checksum = _hash(numbers + texts + lines) >> _ROW_SHIFT
    return checksum, row.waiting * 1_000_003 + row.parked * 10_007 + row.distance * 31 + row.id


def chunk_checksum(chunk: int, urls: int, lines: bytes) -> int:
    """The checksum of a row of the table ``chunk``; raises one of UNFIT."""
    return _hash(lines, chunk + urls) >> _ROW_SHIFT


def row_checksum(table: CheckedTable, row: Sequence[Any]) -> int:
    """The checksum of a row that may be replaced; raises one of UNFIT."""
    return _hash(table.content(row)) >> _ROW_SHIFT


def next_checksum(table: CheckedTable, row: Sequence[Any], before: int) -> int:
    """The checksum of a row that is appended to one with the checksum *before*; raises one of UNFIT."""
    return _hash(table.content(row), before) >> _CHAIN_SHIFT


def agrees(written: object, checksum: Callable[..., object], *values: Any) -> bool:
    """Whether a row with these *values* has the *checksum* that was *written* with it."""
    try:
        return checksum(*values) == written
    except UNFIT:
        return False


class CheckedTables:
    """Writes rows with their checksums.  Its owner begins and ends the transactions, with ``write_sums`` at the end.

    It must not be used again after a transaction was rolled back.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Read the table ``written``; raises sqlite3.Error."""
        self._connection = connection
        self._written = read_written(connection)
        self._changed: set[str] = set()
        numbered = (name for name, table in TABLES.items() if table.is_numbered)
        query = "SELECT coalesce(max(batch), 0) FROM {}"
        self._last = {name: self._connection.execute(query.format(name)).fetchone()[0] for name in numbered}

    def append_row(self, name: str, values: Sequence[Any]) -> None:
        """Append a row; *values* are without the number of a numbered table."""
        table = TABLES[name]
        self.append_whole_row(table, (self._last[name] + 1, *values) if table.is_numbered else values)

    def append_whole_row(self, table: CheckedTable, row: Sequence[Any]) -> None:
        """Append a row; *row* has all columns but the checksum."""
        rows, before = self._written[table.name]
        checksum = next_checksum(table, row, before)
        self._connection.execute(table.write, (*row, checksum))
        if table.is_numbered:
            self._last[table.name] = row[0]
        self._note(table.name, rows + 1, checksum)

    def replace_row(self, name: str, row: Sequence[Any]) -> None:
        """Write a row; it replaces the one with the same key, if there is one."""
        table = TABLES[name]
        former = self._connection.execute(table.former, row[: table.keys]).fetchone()
        checksum = row_checksum(table, row)
        self._connection.execute(table.write, (*row, checksum))
        self._sum(name, 0 if former else 1, checksum - (former[0] if former else 0))

    def delete_rows(self, name: str, condition: str, values: Sequence[Any]) -> None:
        """Delete the rows for which *condition* holds, of a table whose rows are replaced."""
        gone = self._connection.execute(f"DELETE FROM {name} WHERE {condition} RETURNING checksum", values).fetchall()
        if gone:
            self._sum(name, -len(gone), -sum(row[0] for row in gone))

    def clear_table(self, name: str) -> None:
        """Delete all rows of a table that is appended to."""
        self._connection.execute(f"DELETE FROM {name}")
        self._last[name] = 0
        self._note(name, 0, 0)

    def write_hosts(self, rows: Iterable[StoredHost]) -> int:
        """Write rows of the table ``host``, each in place of its former one; ids are given without gaps.

        Returns the number of hosts.
        """
        marks = ",".join("?" * (len(StoredHost._fields) + 2))
        self._connection.executemany(
            f"REPLACE INTO host VALUES ({marks})", ((*row, *host_checksums(row)) for row in rows)
        )
        newest = self._connection.execute("SELECT coalesce(max(id), 0) FROM host").fetchone()[0]
        self._count_rows("host", max(0, newest - self._written["host"].rows))
        return self._written["host"].rows

    def insert_chunks(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        """Add (id, number of URLs, packed lines) to the table ``chunk``."""
        insert = "INSERT INTO chunk(id, urls, lines, checksum) VALUES (?, ?, ?, ?)"
        added = self._connection.executemany(insert, ((*row, chunk_checksum(*row)) for row in rows)).rowcount
        self._count_rows("chunk", max(0, added))

    def delete_chunks(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Delete the chunks with an id in one of *ranges* (first, behind the last)."""
        gone = self._connection.executemany("DELETE FROM chunk WHERE id >= ? AND id < ?", ranges).rowcount
        self._count_rows("chunk", -max(0, gone))

    def write_sums(self) -> None:
        """Update the table ``written``; the last step of a transaction."""
        for name in self._changed:
            self._connection.execute("REPLACE INTO written VALUES (?, ?, ?)", (name, *self._written[name]))
        self._changed.clear()

    def _count_rows(self, name: str, more: int) -> None:
        """A table of which only the number of rows is recorded got *more* of them; below 0: lost some."""
        if more:
            self._note(name, self._written[name].rows + more, 0)

    def _sum(self, name: str, more: int, checksum: int) -> None:
        rows, total = self._written[name]
        self._note(name, rows + more, total + checksum & _SUM_MASK)

    def _note(self, name: str, rows: int, checksum: int) -> None:
        self._written[name] = TableChecksum(rows, checksum)
        self._changed.add(name)


def read_written(connection: sqlite3.Connection) -> defaultdict[str, TableChecksum]:
    """The rows of the table ``written``, by name of the table; raises sqlite3.Error."""
    rows = connection.execute("SELECT name, rows, checksum FROM written")
    return defaultdict(TableChecksum, {name: TableChecksum(number, checksum) for name, number, checksum in rows})


class CheckedRow(NamedTuple):
    """A row that was read, and the result of its check."""

    values: tuple[Any, ...]
    is_whole: bool  # whether its content agrees with its checksum
    so_far: TableChecksum
    """Number and checksum of the rows up to this one, to be compared with the table ``written`` at the end."""


def checked_rows(connection: sqlite3.Connection, table: CheckedTable) -> Iterator[CheckedRow]:
    """Read the rows of *table* in order and compare each with its checksum; raises sqlite3.Error."""
    before = total = 0
    for number, (*values, checksum) in enumerate(connection.execute(table.rows), 1):
        if table.keys:
            is_whole = agrees(checksum, row_checksum, table, values)
        else:
            is_whole = agrees(checksum, next_checksum, table, values, before)
        before = checksum if isinstance(checksum, int) and checksum >= 0 else 0
        total = total + before & _SUM_MASK if table.keys else before
        yield CheckedRow(tuple(values), is_whole, TableChecksum(number, total))


def whole_rows(connection: sqlite3.Connection, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a table; raises ValueError if one was changed, lost or added, sqlite3.Error if it is unreadable."""
    so_far = TableChecksum()
    for row in checked_rows(connection, TABLES[name]):
        so_far = row.so_far
        if not row.is_whole:
            raise ValueError(f"row {so_far.rows} of the table {name} is not as it was written")
        yield row.values
    if so_far != read_written(connection)[name]:
        raise ValueError(f"the table {name} has other rows than were written")


# -- the table ``length``

Length = tuple[int, int, int, int]
"""(waiting, parked, distance, id) of a host; its distance is that from the seeds, in host hops."""
LENGTH_BYTES = 32  # bytes of a packed Length


def packed_lengths(lengths: Iterable[Length]) -> bytes:
    """The column ``lengths`` of a batch; raises OverflowError for more than 64 bits."""
    return array("q", chain.from_iterable(lengths)).tobytes()


def newest_lengths(rows: Iterable[tuple[int, bytes]]) -> dict[int, Length]:
    """Host id -> its newest Length in the *rows* (batch, lengths); raises ValueError for what is no such row."""
    newest: dict[int, Length] = {}
    for _, lengths in rows:
        numbers = iter(array("q", lengths))
        newest.update((length[-1], length) for length in zip(numbers, numbers, numbers, numbers, strict=True))
    return newest
