"""Is every row of the state as it was written?  One sentence for each thing that is not.

SQLite's own check comes first: it finds damage to the structure of the file.  Then the
tables must be those of a new file, every row must agree with its checksum, and each table
must have the rows that were written (frontier/storage/checksums.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

from spiderling.base.errors import SpiderlingError
from spiderling.frontier.storage import checksums
from spiderling.frontier.storage.checksums import TABLES, UNFIT, Table, Written, read_written
from spiderling.frontier.storage.protocol import HostRow
from spiderling.frontier.storage.schema import SCHEMA, SCHEMA_VERSION

_MOST_NAMED = 5


def damaged_rows(connection: sqlite3.Connection, schema: int) -> Iterator[str]:
    """A sentence for each damage to a state of *schema*; without checksums only SQLite's own check is made."""
    for check in (_structure, _schema, _hosts, _chunks)[: None if schema == SCHEMA_VERSION else 1]:
        yield from _readable(check(connection), check.__name__.strip("_"))
    for table in TABLES.values() if schema == SCHEMA_VERSION else ():
        yield from _readable(_table(connection, table), table.name)


def _readable(found: Iterator[str], what: str) -> Iterator[str]:
    """The sentences of *found*; what SQLite cannot read becomes one more."""
    try:
        yield from found
    except (sqlite3.Error, SpiderlingError) as error:
        yield f"the state's {what} cannot be read: {error}"


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    for row in connection.execute("PRAGMA integrity_check"):
        if row[0] != "ok":
            yield f"the state's file is damaged: {row[0]}"


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    with closing(sqlite3.connect(":memory:")) as new:
        new.executescript(SCHEMA)
        wanted = {row[1]: row for row in new.execute(query)}
    there = {row[1]: row for row in connection.execute(query)}
    names = sorted(str(name) for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if names:
        yield f"the state's tables are not those that were made: {_named(names)}"


def _hosts(connection: sqlite3.Connection) -> Iterator[str]:
    def is_whole(row: tuple[Any, ...]) -> bool:
        return checksums.host_checksums(HostRow._make(row[:-2])) == row[-2:]

    yield from _counted(connection, "host", "SELECT * FROM host ORDER BY id", is_whole)


def _chunks(connection: sqlite3.Connection) -> Iterator[str]:
    def is_whole(row: tuple[Any, ...]) -> bool:
        return bool(checksums.chunk_checksum(*row[:-1]) == row[-1])

    yield from _counted(connection, "chunk", "SELECT id, urls, lines, checksum FROM chunk ORDER BY id", is_whole)


def _counted(
    connection: sqlite3.Connection, name: str, query: str, is_whole: Callable[[tuple[Any, ...]], bool]
) -> Iterator[str]:
    """Check a table for which the state records the number of rows only."""
    number = 0
    changed = []
    for row in connection.execute(query):
        number += 1
        with suppress(*UNFIT):
            if is_whole(row):
                continue
        changed.append(str(row[0]))
    written = read_written(connection).get(name, Written()).rows
    if changed:
        yield f"of table {name} {len(changed)} rows are not as they were written: {_named(changed)}"
    if number != written:
        yield f"of table {name} {number} rows are there, {written} were written"


def _table(connection: sqlite3.Connection, table: Table) -> Iterator[str]:
    written = read_written(connection).get(table.name, Written())
    so_far = Written()
    changed = []
    for row in checksums.checked_rows(connection, table):
        so_far = row.so_far
        if not row.is_whole:
            changed.append(str(row.values[0]) if table.keys or table.is_numbered else f"number {so_far.rows}")
    if changed:
        or_gone = "" if table.keys else ", or rows before them are missing"
        yield f"of table {table.name} {len(changed)} rows are not as they were written{or_gone}: {_named(changed)}"
    if so_far.rows != written.rows:
        yield f"of table {table.name} {so_far.rows} rows are there, {written.rows} were written"
    elif so_far != written and not changed:
        yield f"of table {table.name} some rows are not those that were written last"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
