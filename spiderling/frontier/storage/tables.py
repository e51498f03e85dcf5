"""The tables of the state's file, and the checksums that show whether any row of them was changed, lost or added.

SQLite notices a page that it cannot read, but not a number that has become another one.  So every row has a column
with the xxh3 hash of its content, written in the same transaction.  The table ``written`` says for each table how
many rows it has and what their checksums amount to:

- In a table that is only appended to, a row's hash is seeded with the checksum of the row before.  ``written``
  has the last checksum, so no row can be changed, left out or moved unnoticed.
- For a table whose rows are replaced, ``written`` has the sum of all checksums.
- Hosts and chunks are many and change all the time: their rows are only counted.  jobdir/damage.py finds missing
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
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import xxhash

from spiderling.frontier.storage.protocol import ConsentRow, HistoryRow, OutboxRow, PeerRow, SegmentRow, StoredHost

if TYPE_CHECKING:
    import sqlite3

SCHEMA_VERSION = 1
MIGRATIONS: dict[int, str] = {}  # schema -> the SQL that makes the next one of it
APPLICATION_ID = 0x59D37  # the application id in SQLite's header of our files; the command `file` shows it

UNFIT = (ValueError, TypeError, AttributeError, OverflowError, struct.error)
"""Exceptions of this module for a value that does not fit its column."""
_ROW_SHIFT = 33
"""Bits cut off a hash for the checksum of a row that may be replaced: SQLite stores the other 31 in four bytes."""
_CHAIN_SHIFT = 1
"""Bits cut off a hash for the checksum of an appended row: 63 are left, the most that SQLite's integers hold."""
SUM_MASK = (1 << 63) - 1  # sums of checksums are taken modulo 2**63
_hash: Callable[..., int] = xxhash.xxh3_64_intdigest
_NUMBERS = struct.Struct("<8q3d").pack

_KINDS: dict[Any, tuple[str, Callable[[Any], bytes]]] = {
    int: ("INTEGER NOT NULL", lambda value: b"%d\0" % value),
    float: ("REAL NOT NULL", struct.Struct("<d").pack),
    str: ("TEXT NOT NULL", lambda value: value.encode() + b"\0"),
    bytes: ("BLOB NOT NULL", lambda value: b"%d\0" % len(value) + value),
    bytes | None: ("BLOB", lambda value: b""),  # of hosts, which have a checksum of another kind
}
"""Type of a column -> how SQL declares it, and the function that makes bytes of its values."""


class CheckedTable:
    """A table whose rows have a checksum, and the SQL to make it and to read and write its rows."""

    is_summed = True  # whether the table ``written`` says what its checksums amount to; else its rows are only counted

    def __init__(self, name: str, keys: int = 0, row: type | None = None, /, **columns: Any) -> None:
        """*row*: a NamedTuple of the columns, to which *columns* are added.

        The first *keys* columns are the key of a row, which may be replaced; 0: rows are only appended.
        """
        self.name = name
        self.keys = keys
        kinds = {**(get_type_hints(row) if row is not None else {}), **columns}
        names = [*kinds]
        self.is_numbered = names[0] == "batch"  # whether the first column, ``batch``, is the number of the row
        self._encoders = [_KINDS[kind][1] for kind in kinds.values()]
        listed = ", ".join([*names, "checksum"])
        values = ",".join("?" * (len(names) + 1))
        key = names[: keys or self.is_numbered]
        is_key = " AND ".join(f"{name} = ?" for name in key)
        self.rows = f"SELECT {listed} FROM {name} ORDER BY {', '.join(key) or 'rowid'}"
        self.one = f"SELECT {listed} FROM {name} WHERE {is_key}"
        self.former = f"SELECT checksum FROM {name} WHERE {is_key}"
        self.write = f"{'REPLACE' if keys else 'INSERT'} INTO {name}({listed}) VALUES ({values})"
        declared = [f"{name} {_KINDS[kind][0]}" for name, kind in kinds.items()]
        # before the first large column, so that SQLite need not read that one to find it
        at = next((at for at, kind in enumerate(kinds.values()) if kind is bytes), len(names))
        declared.insert(at, "checksum INTEGER NOT NULL")
        if key:
            declared.append(f"PRIMARY KEY({', '.join(key)})")
        has_rowid = not key or (len(key) == 1 and kinds[key[0]] is int)
        self.schema = f"CREATE TABLE {name}({', '.join(declared)}){'' if has_rowid else ' WITHOUT ROWID'};\n"

    def checksum(self, row: Sequence[Any], before: int = 0) -> int:
        """The checksum of a row; *before*: that of the one to which it is appended.  Raises one of UNFIT."""
        content = b"".join([encode(value) for encode, value in zip(self._encoders, row, strict=True)])
        return _hash(content) >> _ROW_SHIFT if self.keys else _hash(content, before) >> _CHAIN_SHIFT

    def agrees(self, row: Sequence[Any], checksum: object, before: int = 0) -> bool:
        """Whether *checksum* was written with *row*."""
        try:
            return self.checksum(row, before) == checksum
        except UNFIT:
            return False


class _Hosts(CheckedTable):
    is_summed = False

    def agrees(self, row: Sequence[Any], checksum: object, before: int = 0) -> bool:
        return has_checksums(StoredHost._make(row[:-1]), (row[-1], checksum))


def has_checksums(row: StoredHost, checksums: tuple[object, object]) -> bool:
    """Whether these columns ``queue_checksum`` and ``checksum`` were written with *row*."""
    try:
        return host_checksums(row) == checksums
    except UNFIT:
        return False


def host_checksums(row: StoredHost) -> tuple[int, int]:
    """The columns ``queue_checksum`` and ``checksum`` of a host's row; raises one of UNFIT."""
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
    of_queue = row.waiting * 1_000_003 + row.parked * 10_007 + row.distance * 31 + row.id
    return of_queue, _hash(numbers + texts + lines) >> _ROW_SHIFT


QUEUE_CHECKSUM = "?1 * 1000003 + ?2 * 10007 + ?3 * 31 + ?4"
"""A host's ``queue_checksum`` of ``Changes.host_updates``; it changes when any one of the four values does.

It is in SQL, so that Python need not compute it for each host whose queue has grown.  ``host_checksums`` has it again.
"""


class _Chunks(CheckedTable):
    is_summed = False

    def checksum(self, row: Sequence[Any], before: int = 0) -> int:
        chunk, urls, lines = row
        return _hash(lines, chunk + urls) >> _ROW_SHIFT


BLOBS = ("recrawled", "rate", "paragraph")  # tables of rows that only their writers understand, by an integer
TABLES = {
    table.name: table
    for table in (
        _Hosts("host", 1, StoredHost, queue_checksum=int),
        _Chunks("chunk", 1, id=int, urls=int, lines=bytes),
        CheckedTable("seen", batch=int, keys=bytes),
        CheckedTable("digest", batch=int, keys=bytes),
        CheckedTable("log", batch=int, added=bytes, popped=str),
        CheckedTable("length", batch=int, lengths=bytes),
        CheckedTable("ended", batch=int, time=float, segment=str, offset_bytes=int, keys=bytes, ends=bytes),
        CheckedTable("found", batch=int, time=float, keys=bytes, pages=bytes),
        CheckedTable("purged", time=float, host=int, reason=str, urls=int),
        CheckedTable("validator", batch=int, time=float, keys=bytes, validators=bytes),
        CheckedTable("event", time=float, what=str),
        CheckedTable("meta", 1, key=str, value=str),
        CheckedTable("count", 1, key=str, value=int),
        CheckedTable("file", 1, SegmentRow),
        CheckedTable("robots", 1, origin=str, status=str, fetched=float, expires=float, failures=int, body=bytes),
        CheckedTable("consent", 4, ConsentRow),
        CheckedTable("history", 1, HistoryRow),
        CheckedTable("outbox", 2, OutboxRow),
        CheckedTable("peer", 1, PeerRow),
        *(CheckedTable(name, 1, id=int, content=bytes) for name in BLOBS),
    )
}
"""Every table but ``written``, by name.

seen, digest: keys of discovered URLs, digests of kept pages and texts, also of other shards.  log: what was added to
tails since the last flush.  length: lengths of queues that are newer than the rows of their hosts.  ended, found,
purged, validator: url_log.py.  outbox, peer: the messages that wait for other shards to take them, and how far the
exchange with each shard has come.  recrawled: what is recrawled (recrawl/pages.py); rate: how often something new
stands there, by host (recrawl/policy.py); paragraph: digests of the paragraphs of pages, by URL key.
"""

_VIEWS = """
CREATE VIEW segment AS SELECT name, length_bytes, entries AS documents FROM file WHERE kind = 'corpus';
CREATE VIEW hosts AS SELECT name, state, distance, pages, documents, words,
    round(downloaded_bytes / 1e6, 3) AS down_mb, round(kept_bytes / 1e6, 3) AS kept_mb,
    round(kept_bytes * 1.0 / max(downloaded_bytes, 1), 4) AS yield_rate, waiting, parked, address,
    datetime(due, 'unixepoch') AS due FROM host ORDER BY kept_bytes DESC, name;
CREATE VIEW consents AS SELECT origin, file, answer, says, datetime(first, 'unixepoch') AS first,
    datetime(last, 'unixepoch') AS last, digest FROM consent ORDER BY origin, file, consent.first;
"""
"""For people who read the file with sqlite3 or datasette; they may read while the crawl runs."""
SCHEMA = (
    "".join(table.schema for table in TABLES.values())
    + "CREATE TABLE written(name TEXT PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;"
    + _VIEWS
)
"""Creates all tables and views of a new file."""


class TableChecksum(NamedTuple):
    """A row of the table ``written``: it says how many rows a table has, and what their checksums amount to."""

    rows: int = 0
    checksum: int = 0
    """The last row's checksum if rows are appended, the sum of all if they are replaced, 0 if they are counted."""


def read_written(connection: sqlite3.Connection) -> defaultdict[str, TableChecksum]:
    """The rows of the table ``written``, by name of the table; raises sqlite3.Error."""
    rows = connection.execute("SELECT name, rows, checksum FROM written")
    return defaultdict(TableChecksum, {name: TableChecksum(number, checksum) for name, number, checksum in rows})


class CheckedRow(NamedTuple):
    """A row that was read, and the result of its check."""

    values: list[Any]
    is_whole: bool  # whether its content agrees with its checksum
    so_far: TableChecksum
    """Number and checksum of the rows up to this one, to be compared with the table ``written`` at the end."""


def checked_rows(connection: sqlite3.Connection, table: CheckedTable) -> Iterator[CheckedRow]:
    """Read the rows of *table* in order and compare each with its checksum; raises sqlite3.Error."""
    before = total = 0
    for number, (*values, checksum) in enumerate(connection.execute(table.rows), 1):
        is_whole = table.agrees(values, checksum, before)
        before = checksum if isinstance(checksum, int) and checksum >= 0 else 0
        total = total + before & SUM_MASK if table.keys else before
        yield CheckedRow(values, is_whole, TableChecksum(number, total if table.is_summed else 0))


def whole_rows(connection: sqlite3.Connection, name: str) -> Iterator[list[Any]]:
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


def newest_lengths(rows: Iterable[Sequence[Any]]) -> dict[int, Length]:
    """Host id -> its newest Length in the *rows* (batch, lengths); raises ValueError for what is no such row."""
    newest: dict[int, Length] = {}
    for _, lengths in rows:
        numbers = iter(array("q", lengths))
        newest.update((length[-1], length) for length in zip(numbers, numbers, numbers, numbers, strict=True))
    return newest
