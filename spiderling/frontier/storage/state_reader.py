"""Reads what a state holds: exactly what was committed, each part compared with its checksum."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spiderling.base.errors import DamageError, JobdirError, StorageError
from spiderling.frontier.hosts.host import CLOSED_STATES, HostColumns
from spiderling.frontier.storage import checksums
from spiderling.frontier.storage.checksums import agrees
from spiderling.frontier.storage.protocol import (
    HOST_SHIFT,
    ConsentRow,
    HostRow,
    OutboxRow,
    OutboxSummary,
    PeerRow,
    RobotsRow,
    SegmentRow,
    State,
    message_id,
    shard_and_number,
    within,
)
from spiderling.frontier.storage.queue_lengths import newest_lengths
from spiderling.frontier.storage.queue_lines import replayed, unpacked
from spiderling.frontier.storage.state_file import what_to_do

REFUSED = (sqlite3.Error, *checksums.UNFIT)
"""Exceptions for a damaged file, or for a value that its column or array cannot hold."""
_HOSTS_AT_ONCE = 20_000
"""Hosts that one query of ``host_columns`` reads (chosen)."""
_COLUMNS = "id, name, state, distance, waiting + parked AS queued, due"
_HOST_COLUMNS = "SELECT {} FROM (SELECT {} FROM host WHERE id >= ? AND id < ? ORDER BY id)".format(
    ", ".join(f"group_concat({column.split()[-1]}, x'0a')" for column in _COLUMNS.split(", ")), _COLUMNS
)
"""Each column of a block of hosts as one text, a value on a line: twice as fast as a row for each host."""
_COLUMNS_OF_ROW = ", ".join(HostRow._fields)
_IS_USED = "pages OR downloaded_bytes OR exempt OR transit IS NOT NULL OR state IN ({})".format(
    ", ".join(f"'{state.value}'" for state in CLOSED_STATES)
)


class StateReader:
    """The reading half of a store (protocol.py), over a connection that one thread uses at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """*path*: what messages name."""
        self._path = path
        self._reader = connection

    def load(self) -> State:
        """Everything committed so far; raises JobdirError if it is damaged."""
        with self._reading():
            return State(
                tails=replayed((added, popped) for _, added, popped in self._whole("log")),
                seen=_keys(self._whole("seen")),
                digests=_keys(self._whole("digest")),
                edges=_keys(self._whole("edge")),
                segments=[SegmentRow._make(row) for row in self._whole("file")],
                counts=dict(self._whole("count")),
                meta=dict(self._whole("meta")),
                peers=[PeerRow._make(row) for row in self._whole("peer")],
                outboxes=self._outboxes(),
            )

    def _outboxes(self) -> dict[int, OutboxSummary]:
        sums = "min(id), count(*), sum(links), sum(length(message)), min(time)"
        rows = self._reader.execute(f"SELECT {sums} FROM outbox GROUP BY id / ?", (message_id(1, 0),))
        summaries = ((*shard_and_number(first), *rest) for first, *rest in rows)
        return {shard: OutboxSummary(number, *rest) for shard, number, *rest in summaries}

    def _whole(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table, each compared with its checksum."""
        return checksums.whole_rows(self._reader, table)

    def host_columns(self) -> Iterator[HostColumns]:
        with self._reading():
            newest = newest_lengths(self._whole("length"))
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
                for at, host in enumerate(ids):
                    if host in newest:
                        waiting, parked, distances[at], _ = newest[host]
                        queued[at] = waiting + parked
                yield columns

    def used_hosts(self) -> Iterator[HostRow]:
        with self._reading():
            rows = self._reader.execute(f"SELECT {_COLUMNS_OF_ROW} FROM host WHERE {_IS_USED} ORDER BY id")
            yield from map(HostRow._make, rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn exceptions that damage raises into JobdirError."""
        try:
            yield
        except (*REFUSED, DamageError) as error:
            raise JobdirError(
                f"{self._path} is damaged: {error}; {what_to_do(self._path)}; or give another JOBDIR."
            ) from error

    def host(self, host_id: int) -> HostRow:
        *values, checksum, queue_checksum = self._one("SELECT * FROM host WHERE id = ?", host_id)
        row = HostRow._make(values)
        self._refuse_changed(agrees((checksum, queue_checksum), checksums.host_checksums, row), f"host {host_id}")
        return row

    def chunk_ids(self, host_id: int) -> list[int]:
        bounds = (host_id << HOST_SHIFT, host_id + 1 << HOST_SHIFT)
        return [row[0] for row in self._rows("SELECT id FROM chunk WHERE id >= ? AND id < ? ORDER BY id", bounds)]

    def chunk(self, chunk_id: int) -> list[bytes]:
        urls, lines, checksum = self._one("SELECT urls, lines, checksum FROM chunk WHERE id = ?", chunk_id)
        is_whole = agrees(checksum, checksums.chunk_checksum, chunk_id, urls, lines)
        self._refuse_changed(is_whole, f"chunk {chunk_id}")
        try:
            return unpacked(lines)
        except DamageError as error:
            raise DamageError(f"{self._path} is damaged: chunk {chunk_id}: {error}") from error

    def robots(self, key: str) -> RobotsRow | None:
        rows = self._rows(
            "SELECT origin, status, fetched, expires, failures, body, checksum FROM robots WHERE origin = ?", (key,)
        )
        if not rows:
            return None
        *values, checksum = rows[0]
        is_whole = agrees(checksum, checksums.row_checksum, checksums.TABLES["robots"], values)
        self._refuse_changed(is_whole, f"the robots.txt of {key}")
        return RobotsRow._make(values)

    def consents(self) -> list[ConsentRow]:
        rows = self._rows(
            f"SELECT {', '.join(ConsentRow._fields)} FROM consent ORDER BY origin, file, first, answer, digest", ()
        )
        return [ConsentRow._make(row) for row in rows]

    def blob(self, table: str, row: int) -> bytes | None:
        rows = self._rows(f"SELECT id, content, checksum FROM {table} WHERE id = ?", (row,))
        if not rows:
            return None
        *values, checksum = rows[0]
        is_whole = agrees(checksum, checksums.row_checksum, checksums.TABLES[table], values)
        self._refuse_changed(is_whole, f"row {row} of the table {table}")
        return bytes(values[1])

    def blobs(self, table: str) -> Iterator[tuple[int, bytes]]:
        with self._reading():
            yield from ((row, content) for row, content in self._whole(table))

    def messages(self, shard: int, after: int, most_bytes: int) -> list[OutboxRow]:
        table = checksums.TABLES["outbox"]
        query = "SELECT id, time, links, message, checksum FROM outbox WHERE id > ? AND id < ? ORDER BY id"

        def rows() -> Iterator[OutboxRow]:
            bounds = (message_id(shard, after), message_id(shard + 1, 0))
            for *values, checksum in self._reader.execute(query, bounds):
                is_whole = agrees(checksum, checksums.row_checksum, table, values)
                self._refuse_changed(is_whole, f"message {values[0]}")
                yield OutboxRow(*shard_and_number(values[0]), *values[1:])

        try:
            return within(rows(), most_bytes)
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error

    def _refuse_changed(self, is_whole: bool, what: str) -> None:
        if not is_whole:
            raise StorageError(f"{self._path} is damaged: {what} is not as it was written.")

    def _one(self, query: str, key: int) -> Any:
        """The row that *query* finds by its *key*; raises StorageError if there is none."""
        rows = self._rows(query, (key,))
        if not rows:
            raise StorageError(f"{self._path} is damaged: {query.split()[3]} {key} is missing.")
        return rows[0]

    def _rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} could not be read: {error}.") from error


def _keys(rows: Iterable[tuple[Any, ...]]) -> array[int]:
    """The keys packed in all *rows* (batch, keys)."""
    keys = array("q")
    for _, blob in rows:
        keys.frombytes(blob)
    return keys
