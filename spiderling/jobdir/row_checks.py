"""Compares every row of the state with what was written, and says one sentence for each difference.

SQLite's own check comes first: it finds damage to the structure of the file.  Then the
tables must be those of a new file, every row must agree with its checksum, and each table
must have the rows that were written (frontier/storage/checksums.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from spiderling.base.errors import SpiderlingError
from spiderling.frontier.storage.checksums import (
    TABLES,
    CheckedRow,
    Written,
    agrees,
    checked_rows,
    chunk_checksum,
    host_checksums,
    read_written,
)
from spiderling.frontier.storage.protocol import HostRow
from spiderling.frontier.storage.schema import SCHEMA, SCHEMA_VERSION

_MOST_NAMED = 5


def damaged_rows(connection: sqlite3.Connection, schema: int) -> Iterator[str]:
    """A sentence for each damage to a state of *schema*; without checksums only SQLite's own check is made."""
    checks = {"structure": _structure(connection)}
    if schema == SCHEMA_VERSION:
        checks["schema"] = _schema(connection)
        checks["hosts"] = _table(connection, "host", _checked_hosts(connection))
        checks["chunks"] = _table(connection, "chunk", _checked_chunks(connection))
        for name, table in TABLES.items():
            checks[name] = _table(connection, name, checked_rows(connection, table))
    for what, sentences in checks.items():
        try:
            yield from sentences
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


def _checked_hosts(connection: sqlite3.Connection) -> Iterator[CheckedRow]:
    for number, row in enumerate(connection.execute("SELECT * FROM host ORDER BY id"), 1):
        is_whole = agrees(row[-2:], lambda row: host_checksums(HostRow._make(row[:-2])), row)
        yield CheckedRow(row, is_whole, Written(number))


def _checked_chunks(connection: sqlite3.Connection) -> Iterator[CheckedRow]:
    for number, row in enumerate(connection.execute("SELECT id, urls, lines, checksum FROM chunk ORDER BY id"), 1):
        yield CheckedRow(row, agrees(row[-1], chunk_checksum, *row[:-1]), Written(number))


def _table(connection: sqlite3.Connection, name: str, rows: Iterator[CheckedRow]) -> Iterator[str]:
    """What is wrong with the *rows* of the table *name*, compared with what the state records of it."""
    written = read_written(connection)[name]
    table = TABLES.get(name)
    is_keyed = table is None or table.keys > 0
    so_far = Written()
    changed = []
    for values, is_whole, so_far in rows:
        if not is_whole:
            has_name = is_keyed or (table is not None and table.is_numbered)
            changed.append(str(values[0]) if has_name else f"number {so_far.rows}")
    if changed:
        or_gone = "" if is_keyed else ", or rows before them are missing"
        yield f"of table {name} {len(changed)} rows are not as they were written{or_gone}: {_named(changed)}"
    if so_far.rows != written.rows:
        yield f"of table {name} {so_far.rows} rows are there, {written.rows} were written"
    elif so_far != written and not changed:
        yield f"of table {name} some rows are not those that were written last"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
