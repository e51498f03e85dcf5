"""Reads the file of a state, without changing it: its tables, and the queues in it.

SQLite accepts any kind of value in any column, and damage can change a value's kind.  So SoundConnection lets SQLite
check each table once, before it is read for the first time.  Whoever unpacks a column checks what is packed in it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from spiderling.base.errors import JobdirError
from spiderling.base.reasons import KEYS
from spiderling.frontier.hosts import CLOSED_STATES, Host, HostState, HostStates
from spiderling.frontier.storage.protocol import (
    BAND_BITS,
    HOST_SHIFT,
    lines_before_chunks,
    slot_of_chunk,
    slots_of_host,
    used_of,
)
from spiderling.frontier.storage.queues import replay, stored_url, unpack
from spiderling.frontier.storage.state_file import readable, what_to_do

_TABLES = re.compile(r"\b(?:FROM|JOIN) (\w+)")
_KINDS = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}
_MAY_BE_NEGATIVE = ("exempt",)
_SIZES = {"keys": 8, "pages": 16, "lengths": 32}
"""Bytes of an entry in columns that pack 64-bit numbers, by ones, twos or fours."""
_VALUES = {"state": [state.value for state in HostState], "reason": sorted(KEYS), "kind": ["corpus", "links", "warc"]}
_MAX_SAID = 120  # characters of SQLite's own message that are printed; it may quote what it could not read; chosen
_T = TypeVar("_T")


class SoundConnection(sqlite3.Connection):
    """A connection that reads a state; ``execute`` and its cursors raise JobdirError for a damaged one."""

    def __init__(self, path: Path, is_locked: bool = False) -> None:
        """Open the state at *path*; *is_locked*: nobody else may write it.  Raises JobdirError."""
        try:
            with readable(path, is_locked) as uri:
                super().__init__(uri, uri=True)
            super().execute("PRAGMA temp_store = MEMORY")
        except (sqlite3.Error, OSError) as error:
            raise JobdirError(f"{path} cannot be read as the state of a crawl: {error}.") from error
        self.path = path
        self.looks = True  # whether tables are checked; not needed where each row is compared with its checksum
        self._known: set[str] = set()  # tables and views that were checked

    def execute(self, query: str, values: Any = ()) -> sqlite3.Cursor:
        with _translating_errors(self.path):
            if self.looks:
                self._look(query)
            return self.cursor(_SoundCursor).execute(query, values)

    def _look(self, query: str) -> None:
        """Check the tables that *query* reads, also those behind views."""
        for name in _TABLES.findall(query):
            if name not in self._known:
                made = super().execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
                if made is not None and made[0] == "table":
                    self._look_through(name)
                self._known.add(name)
                if made is not None and made[0] == "view":
                    self._look(made[1])

    def _look_through(self, table: str) -> None:
        columns = super().execute(f"PRAGMA table_info({table})").fetchall()
        cases = " ".join(f"WHEN {_is_strange(*column[1:4])} THEN '{column[1]}'" for column in columns)
        query = f"SELECT {columns[0][1]}, CASE {cases} END AS strange FROM {table} WHERE strange IS NOT NULL"
        row = super().execute(query).fetchone()
        if row is not None:
            raise JobdirError(
                f"{self.path} is damaged: row {row[0]!r:.80} of the table {table} has a value that cannot be its "
                f"{row[1]}; {what_to_do(self.path)}."
            )


class _SoundCursor(sqlite3.Cursor):
    connection: SoundConnection

    def __next__(self) -> Any:
        with _translating_errors(self.connection.path):
            return super().__next__()

    def fetchone(self) -> Any:
        with _translating_errors(self.connection.path):
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with _translating_errors(self.connection.path):
            return super().fetchall()


@contextmanager
def _translating_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise JobdirError(
            f"{path} cannot be read as the state of a crawl: {str(error)[:_MAX_SAID]}; {what_to_do(path)}."
        ) from error


def _is_strange(column: str, kind: str, not_null: int) -> str:
    """The SQL condition for a value that cannot have been written to *column*."""
    strange = f"typeof({column}) <> '{_KINDS.get(kind, kind)}'"
    if kind == "INTEGER" and column not in _MAY_BE_NEGATIVE:
        strange += f" OR {column} < 0"
    elif kind == "BLOB" and column in _SIZES:
        strange += f" OR length({column}) % {_SIZES[column]}"
    elif column in _VALUES:
        strange += f" OR {column} NOT IN ({', '.join(map(repr, _VALUES[column]))})"
    return strange if not_null else f"{column} IS NOT NULL AND ({strange})"


def read_note(meta: Mapping[str, str], key: str, default: _T) -> _T:
    """The value of *key* in the table ``meta`` (JSON); *default* if there is none.

    Raises JobdirError if the value is not of the kind of *default*.
    """
    try:
        value = json.loads(meta[key]) if key in meta else default
    except (ValueError, TypeError, RecursionError):
        value = None
    if not is_like(value, default):
        raise JobdirError(
            f"the state is damaged: its note {key!r} cannot be read; put it back from a backup, or make it anew with "
            "the option --rebuild of `scrapy inspect`."
        )
    return value  # type: ignore[return-value]


def is_like(value: object, default: object) -> bool:
    """Whether *value* is of the kind of *default*; int and float count as one kind."""
    return isinstance(value, (int, float) if isinstance(default, (int, float)) else type(default))


class UrlRow(NamedTuple):
    """A committed URL that waits, or that is parked with its closed host."""

    key: int
    url: str
    rank: int
    tries: int
    parked: bool


def urls_of(connection: sqlite3.Connection, host: int) -> list[UrlRow]:
    """The committed URLs of a host, band by band; within a band in the order in which they will be handed out."""
    found = []
    for _, name, state, lines in _queues(connection, "WHERE id = ?", host):
        is_parked = HostState(state) in CLOSED_STATES
        record = Host(host, name, HostStates())
        urls = (stored_url(line, record) for line in lines)
        found += [UrlRow(url.key, url.url, url.rank, url.tries, is_parked) for url in urls]
    return found


def queues_by_host(connection: sqlite3.Connection) -> dict[int, int]:
    """Host id -> number of its committed URLs, waiting or parked, counted one by one.

    Hosts without any are left out.  An id that has chunks or tails but no host counts as 1.
    """
    numbers = {host: len(lines) for host, _, _, lines in _queues(connection)}
    named = {slot >> BAND_BITS for slot in _tails_of(connection)}
    named |= {row[0] for row in connection.execute(f"SELECT DISTINCT id >> {HOST_SHIFT} FROM chunk")}
    return {host: number for host, number in numbers.items() if number} | dict.fromkeys(named - numbers.keys(), 1)


def _queues(
    connection: sqlite3.Connection, condition: str = "", *values: object
) -> Iterator[tuple[int, str, str, list[bytes]]]:
    """Id, name and state of each host of which the SQL *condition* holds, and the lines of its queue, first to last."""
    tails = _tails_of(connection)
    hosts = connection.execute(f"SELECT id, name, state, positions, first, transit FROM host {condition}", values)
    for host, name, state, positions, first, transit in hosts:
        slots: dict[int, list[bytes]] = {slot: [] for slot in slots_of_host(host)}
        bounds = (host << HOST_SHIFT, host + 1 << HOST_SHIFT)
        chunks = connection.execute("SELECT id, lines FROM chunk WHERE id >= ? AND id < ? ORDER BY id", bounds)
        for chunk, lines in chunks:
            slots.setdefault(slot_of_chunk(chunk), []).extend(unpack(lines))
        for slot, used in used_of(host, positions).items():
            del slots.get(slot, [])[:used]
        queue = lines_before_chunks(transit, first)
        for slot, lines in slots.items():
            queue += lines
            queue += tails.get(slot, [])
        yield host, name, state, queue


def _tails_of(connection: sqlite3.Connection) -> dict[int, list[bytes]]:
    """Slot -> lines, replayed from the table ``log``."""
    return replay(connection.execute("SELECT added, popped FROM log ORDER BY batch"))
