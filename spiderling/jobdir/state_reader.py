"""Reads the file of a state, without changing it: its tables, and the queues in it.

SQLite accepts any kind of value in any column, and damage can change a value's kind.  It shows where the value is used,
so who reads does all that within `telling_damage`.  Whether values are those that were written, the check tells
(damage.py).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from spiderling.base.errors import JobdirError
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
from spiderling.frontier.storage.state_file import UNREADABLE, readable, what_to_do

_DAMAGE = (sqlite3.Error, OverflowError, LookupError, TypeError, ValueError)
"""What using a value raises that cannot be in its column, or SQLite for what it cannot read."""
_MAX_SAID = 120  # characters of an error's own message that are printed; it may quote what could not be read; chosen
OPTION_CHANGED = "option changed: "  # beginning of an event; its name, and from what to what, follow
_T = TypeVar("_T")


@contextmanager
def telling_damage(path: Path) -> Iterator[None]:
    """Within it, whatever cannot be read of the state at *path* raises JobdirError."""
    try:
        yield
    except _DAMAGE as error:
        said = f"{type(error).__name__}: {error}"[:_MAX_SAID]
        raise JobdirError(f"{path} is damaged, or cannot be read: {said}; {what_to_do(path)}.") from error


def connected(path: Path, is_locked: bool = False) -> sqlite3.Connection:
    """A connection that reads the state at *path*; *is_locked*: nobody else may write it.  Raises JobdirError."""
    try:
        with readable(path, is_locked) as uri:
            connection = sqlite3.connect(uri, uri=True)
        connection.execute("PRAGMA temp_store = MEMORY")
    except UNREADABLE as error:
        raise JobdirError(f"{path} cannot be read as the state of a crawl: {error}.") from error
    return connection


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
    for _, name, state, lines in queues(connection, "WHERE id = ?", host):
        is_parked = HostState(state) in CLOSED_STATES
        record = Host(host, name, HostStates())
        urls = (stored_url(line, record) for line in lines)
        found += [UrlRow(url.key, url.url, url.rank, url.tries, is_parked) for url in urls]
    return found


def queues_by_host(connection: sqlite3.Connection) -> dict[int, int]:
    """Host id -> number of its committed URLs, waiting or parked, counted one by one.

    Hosts without any are left out.  An id that has chunks or tails but no host counts as 1.
    """
    numbers = {host: len(lines) for host, _, _, lines in queues(connection)}
    named = {slot >> BAND_BITS for slot in _tails_of(connection)}
    named |= {row[0] for row in connection.execute(f"SELECT DISTINCT id >> {HOST_SHIFT} FROM chunk")}
    return {host: number for host, number in numbers.items() if number} | dict.fromkeys(named - numbers.keys(), 1)


def queues(
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
