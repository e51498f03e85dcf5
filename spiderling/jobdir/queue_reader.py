"""Reads queues from the state's file for commands and checks, also while a crawl is running."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from spiderling.base.urls import HASH_BITS, MAX_HOST_ID
from spiderling.frontier.hosts import CLOSED_STATES, Host, HostState, HostStates, QueuedUrl
from spiderling.frontier.storage.protocol import (
    BAND_BITS,
    HOST_SHIFT,
    lines_before_chunks,
    slot_of_chunk,
    slots_of_host,
    used_of,
)
from spiderling.frontier.storage.queues import replayed, stored_url, unpacked


class UrlRow(NamedTuple):
    """A committed URL that waits, or that is parked with its closed host."""

    key: int
    host: int
    url: str
    rank: int
    tries: int
    redirects: int
    parked: int
    payload: bytes | None


def tails_of(connection: sqlite3.Connection) -> dict[int, list[bytes]]:
    """Slot -> lines, replayed from the table ``log``."""
    return replayed(connection.execute("SELECT added, popped FROM log ORDER BY batch"))


def urls_of(connection: sqlite3.Connection, host: int) -> list[UrlRow]:
    """The committed URLs of a host, band by band; within a band in the order in which they will be handed out."""
    query = "SELECT name, state, positions, first, transit FROM host WHERE id = ?"
    row = connection.execute(query, (host,)).fetchone()
    if row is None:
        return []
    name, state, positions, first, transit = row
    is_parked = HostState(state) in CLOSED_STATES
    lines = lines_before_chunks(transit, first)
    for slot_lines in _slots_of(connection, host, positions, tails_of(connection)).values():
        lines += slot_lines
    record = Host(host, name, HostStates())
    return [_row(stored_url(line, record), is_parked) for line in lines]


def url_of_key(connection: sqlite3.Connection, key: int) -> UrlRow | None:
    """The committed URL with this key; None if it neither waits nor is parked."""
    return next((row for row in urls_of(connection, key >> HASH_BITS & MAX_HOST_ID) if row.key == key), None)


def queues_by_host(connection: sqlite3.Connection) -> dict[int, int]:
    """Host id -> number of its committed URLs, waiting or parked, counted one by one.

    Hosts without any are left out.  An id that has chunks or tails but no host counts as 1.
    """
    numbers: dict[int, int] = {}
    tails: dict[int, dict[int, list[bytes]]] = {}
    for slot, lines in tails_of(connection).items():
        tails.setdefault(slot >> BAND_BITS, {})[slot] = lines
    for host, positions, first, transit in connection.execute("SELECT id, positions, first, transit FROM host"):
        slots = _slots_of(connection, host, positions, tails.get(host, {}))
        numbers[host] = sum(map(len, slots.values())) + len(lines_before_chunks(transit, first))
    unknown = tails.keys() - numbers.keys()
    unknown |= {row[0] for row in connection.execute(f"SELECT DISTINCT id >> {HOST_SHIFT} FROM chunk")} - numbers.keys()
    return {host: number for host, number in numbers.items() if number} | dict.fromkeys(unknown, 1)


def _slots_of(
    connection: sqlite3.Connection, host: int, positions: str, tails: dict[int, list[bytes]]
) -> dict[int, list[bytes]]:
    """Slot -> lines of one host that are not used up, from its chunks and its *tails*."""
    slots: dict[int, list[bytes]] = {slot: [] for slot in slots_of_host(host)}
    bounds = (host << HOST_SHIFT, host + 1 << HOST_SHIFT)
    for chunk, lines in connection.execute("SELECT id, lines FROM chunk WHERE id >= ? AND id < ? ORDER BY id", bounds):
        slots.setdefault(slot_of_chunk(chunk), []).extend(unpacked(lines))
    for slot, used in used_of(host, positions).items():
        del slots.get(slot, [])[:used]
    for slot in slots:
        slots[slot] += tails.get(slot, [])
    return slots


def _row(url: QueuedUrl, is_parked: bool) -> UrlRow:
    return UrlRow(url.key, url.host.id, url.url, url.rank, url.tries, url.redirects, is_parked, url.payload)
