"""Checksums of the rows of the state, so that whatever is changed or missing shows.

SQLite finds a page that makes no sense; it does not find a number that has become another.
So every row carries the xxh3 of its content, written in the transaction that writes the
row, and the table ``written`` has for each table how many rows it must have and what their
checksums come to:

- of a table that only grows (``batch`` by batch), a row's checksum begins with that of the
  row before, and the last one is what counts: no row can be changed, left out or moved;
- of a table whose rows are replaced, it is the sum of all;
- of hosts and chunks, which are many and change all the time, only the rows are counted.
  A host has two checksums, since of most hosts only the length of the queue is written; that
  one is a sum with weights, which SQLite computes itself.  That no chunk is missing follows
  from the lengths of the queues (jobdir/check.py).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from spiderling.frontier.storage.protocol import HostRow

if TYPE_CHECKING:
    import sqlite3

UNFIT = (ValueError, TypeError, AttributeError, OverflowError, struct.error)
"""What is raised here for values that are not of their column's kind."""
_ROW_SHIFT = 33
"""A row's checksum has 31 bits, which SQLite keeps in four bytes ..."""
_CHAIN_SHIFT = 1
"""... and one that goes on from row to row 63."""
_SUM_MASK = (1 << 63) - 1
_hash: Callable[..., int] = xxhash.xxh3_64_intdigest
_NUMBERS = struct.Struct("<8q3d").pack

_WAYS: dict[str, Callable[[Any], bytes]] = {
    "i": lambda value: b"%d\0" % value,
    "r": struct.Struct("<d").pack,
    "t": lambda value: value.encode() + b"\0",
    "b": lambda value: b"%d\0" % len(value) + value,
}


class Table:
    """A table whose rows are summed up in ``written``."""

    def __init__(self, name: str, kinds: str, columns: str, keys: int = 0) -> None:
        """*kinds*: of each column whether it is (i)nteger, (r)eal, (t)ext or (b)ytes.

        *keys*: how many of them make the key of a row that may be replaced; 0: rows are only added.
        """
        self.name = name
        self.keys = keys
        names = columns.split()
        self.is_numbered = names[0] == "batch"
        """The first column is the number of the row."""
        self._ways = [_WAYS[kind] for kind in kinds]
        listed, marks = ", ".join([*names, "checksum"]), ",".join("?" * (len(names) + 1))
        order = ", ".join(names[:keys]) if keys else "batch" if self.is_numbered else "rowid"
        self.rows = f"SELECT {listed} FROM {name} ORDER BY {order}"
        self.write = f"{'REPLACE' if keys else 'INSERT'} INTO {name}({listed}) VALUES ({marks})"
        self.former = f"SELECT checksum FROM {name} WHERE {' AND '.join(f'{key} = ?' for key in names[:keys])}"

    def content(self, row: Sequence[Any]) -> bytes:
        """Raises one of UNFIT."""
        return b"".join([way(value) for way, value in zip(self._ways, row, strict=True)])


TABLES = {
    table.name: table
    for table in (
        Table("seen", "ib", "batch keys"),
        Table("digest", "ib", "batch keys"),
        Table("log", "ibt", "batch added popped"),
        Table("ended", "irtibb", "batch time segment offset_bytes keys ends"),
        Table("found", "irbb", "batch time keys pages"),
        Table("purged", "riti", "time host reason urls"),
        Table("event", "rt", "time what"),
        Table("meta", "tt", "key value", 1),
        Table("count", "ti", "key value", 1),
        Table("file", "tiit", "name length_bytes entries kind", 1),
        Table("robots", "ttrrib", "origin status fetched expires failures body", 1),
        Table("consent", "ttttrrt", "origin file answer digest first last says", 4),
        Table(
            "history", "iriiiiiiiiiii", "tick time time_s pages documents words downloaded_bytes kept_bytes "
            "discovered waiting hosts at_work retired", 1,
        ),
    )
}  # fmt: skip
QUEUE_CHECKSUM = "?1 * 1000003 + ?2 * 10007 + ?3 * 31 + ?4"
"""``queue_checksum`` in SQL: Python need not look at each of the many hosts whose queues have grown."""
COUNTED = ("host", "chunk")
"""Tables of which only the number of rows is written."""


class Written(NamedTuple):
    rows: int = 0
    checksum: int = 0
    """Of the last row, or the sum of all."""


def host_checksums(row: HostRow) -> tuple[int, int]:
    """Of a host's row: of all but its queue, and of its queue; raises one of UNFIT."""
    (number, name, state, distance, pages, documents, words, downloaded, kept, waiting, parked, due, crawl_delay,
     slowdown, failures, exempt, address, positions, first, transit) = row  # fmt: skip
    numbers = _NUMBERS(number, pages, documents, words, downloaded, kept, failures, exempt, due, crawl_delay, slowdown)
    texts = f"{name}\0{state}\0{address}\0{positions}\0".encode()
    lines = first if transit is None else first + b"\0" + transit
    return _hash(numbers + texts + lines) >> _ROW_SHIFT, queue_checksum(waiting, parked, distance, number)


def queue_checksum(waiting: int, parked: int, distance: int, host: int) -> int:
    """Of what is written of a host alone when its queue has grown; none of the four can change without it."""
    return waiting * 1_000_003 + parked * 10_007 + distance * 31 + host


def chunk_checksum(chunk: int, urls: int, lines: bytes) -> int:
    """Of a row of ``chunk``; raises one of UNFIT."""
    return _hash(lines, chunk + urls) >> _ROW_SHIFT


def row_checksum(table: Table, row: Sequence[Any]) -> int:
    """Of a row that may be replaced; raises one of UNFIT."""
    return _hash(table.content(row)) >> _ROW_SHIFT


def next_checksum(table: Table, row: Sequence[Any], before: int) -> int:
    """Of a row that is added behind one with the checksum *before*; raises one of UNFIT."""
    return _hash(table.content(row), before) >> _CHAIN_SHIFT


class CheckedTables:
    """Writes rows with their checksums, in transactions that its owner begins and ends.

    After a transaction that was rolled back it must not be used again.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take up what *connection*'s file has; raises sqlite3.Error."""
        self._execute = connection.execute
        self._written = read_written(connection)
        self._changed: set[str] = set()
        numbered = (name for name, table in TABLES.items() if table.is_numbered)
        query = "SELECT coalesce(max(batch), 0) FROM {}"
        self._last = {name: self._execute(query.format(name)).fetchone()[0] for name in numbered}

    def append_row(self, name: str, values: Sequence[Any]) -> None:
        """Add a row; *values* are without its number."""
        table = TABLES[name]
        self.append_whole_row(table, (self._last[name] + 1, *values) if table.is_numbered else values)

    def append_whole_row(self, table: Table, row: Sequence[Any]) -> None:
        """Add a *row* with all its columns to a table that only grows."""
        rows, before = self._written.get(table.name, Written())
        checksum = next_checksum(table, row, before)
        self._execute(table.write, (*row, checksum))
        if table.is_numbered:
            self._last[table.name] = row[0]
        self._note(table.name, rows + 1, checksum)

    def replace_row(self, name: str, row: Sequence[Any]) -> None:
        """Write a row in the place of the one with its key, if there is any."""
        table = TABLES[name]
        former = self._execute(table.former, row[: table.keys]).fetchone()
        checksum = row_checksum(table, row)
        self._execute(table.write, (*row, checksum))
        self._sum(name, 0 if former else 1, checksum - (former[0] if former else 0))

    def delete_rows(self, name: str, condition: str, values: Sequence[Any]) -> None:
        """Delete the rows for which *condition* holds, of a table whose rows are replaced."""
        gone = self._execute(f"DELETE FROM {name} WHERE {condition} RETURNING checksum", values).fetchall()
        if gone:
            self._sum(name, -len(gone), -sum(row[0] for row in gone))

    def clear_table(self, name: str) -> None:
        """Delete all rows of a table that only grows."""
        self._execute(f"DELETE FROM {name}")
        self._last[name] = 0
        self._note(name, 0, 0)

    def count_rows(self, name: str, more: int) -> None:
        """Note that *more* rows (or fewer) are in one of the tables that are COUNTED."""
        if more:
            self._note(name, self.number_of_rows(name) + more, 0)

    def number_of_rows(self, name: str) -> int:
        """How many rows there are."""
        return self._written.get(name, Written()).rows

    def write_sums(self) -> None:
        """Write what all rows come to, at the end of a transaction."""
        for name in self._changed:
            self._execute("REPLACE INTO written VALUES (?, ?, ?)", (name, *self._written[name]))
        self._changed.clear()

    def _sum(self, name: str, more: int, checksum: int) -> None:
        rows, total = self._written.get(name, Written())
        self._note(name, rows + more, total + checksum & _SUM_MASK)

    def _note(self, name: str, rows: int, checksum: int) -> None:
        self._written[name] = Written(rows, checksum)
        self._changed.add(name)


def read_written(connection: sqlite3.Connection) -> dict[str, Written]:
    """By name of the table; raises sqlite3.Error."""
    rows = connection.execute("SELECT name, rows, checksum FROM written")
    return {name: Written(number, checksum) for name, number, checksum in rows}


class CheckedRow(NamedTuple):
    values: tuple[Any, ...]
    is_whole: bool
    so_far: Written
    """What the checksums that stand in the rows come to."""


def checked_rows(connection: sqlite3.Connection, table: Table) -> Iterator[CheckedRow]:
    """The rows of *table* in their order, each compared with its checksum; raises sqlite3.Error."""
    rows = before = total = 0
    for *values, checksum in connection.execute(table.rows):
        try:
            is_whole = checksum == (row_checksum(table, values) if table.keys else next_checksum(table, values, before))
        except UNFIT:
            is_whole = False
        before = checksum if isinstance(checksum, int) and checksum >= 0 else 0
        rows, total = rows + 1, total + before & _SUM_MASK if table.keys else before
        yield CheckedRow(tuple(values), is_whole, Written(rows, total))


def whole_rows(connection: sqlite3.Connection, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a table; raises ValueError if any was changed or is missing, sqlite3.Error if it cannot be read."""
    so_far = Written()
    for row in checked_rows(connection, TABLES[name]):
        so_far = row.so_far
        if not row.is_whole:
            raise ValueError(f"row {so_far.rows} of the table {name} is not as it was written")
        yield row.values
    if so_far != read_written(connection).get(name, Written()):
        raise ValueError(f"the table {name} has other rows than were written")
