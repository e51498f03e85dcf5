"""Writes batches of changes into a state, each in one transaction."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spiderling.base.errors import StorageError
from spiderling.frontier.storage import checksums, history, url_log
from spiderling.frontier.storage.protocol import HOST_SHIFT, Changes, chunks_of, message_id
from spiderling.frontier.storage.queue_lengths import LENGTH_BYTES, newest_lengths, packed_lengths
from spiderling.frontier.storage.queue_lines import log_entry, packed
from spiderling.frontier.storage.state_reader import REFUSED

_HOSTS_PER_LENGTH = 4
"""Hosts for each entry of the table ``length``, at least, or it is folded into their rows.

Measured at 3 * 10**6 URLs and 240,000 hosts (benchmarks/results.md): with 4 a batch takes .66 of the time that it takes
without that table, with 16 it takes .73, and .68 if only a flush folds.
"""


class StateWriter:
    """The writing half of a store (protocol.py), over a connection that one thread uses at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """*path*: what messages name; raises sqlite3.Error."""
        self._path = path
        self.connection = connection
        self._tables = checksums.CheckedTables(connection)
        self._counts = dict(connection.execute("SELECT key, value FROM count").fetchall())
        lengths = connection.execute("SELECT coalesce(sum(length(lengths)), 0) FROM length").fetchone()[0]
        self._lengths = lengths // LENGTH_BYTES
        """Entries in the table ``length``."""

    def commit(self, changes: Changes) -> None:
        with self._transaction():
            self._write(changes)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            self._tables.write_sums()
            self.connection.execute("COMMIT")
        except REFUSED as error:
            self._lengths = 0  # nothing is folded any more, since the store must not be used
            with suppress(sqlite3.Error):
                self.connection.rollback()
            raise StorageError(f"{self._path} could not be written: {error}.") from error

    def _write(self, changes: Changes) -> None:
        self._write_hosts(changes)
        self._write_queues(changes)
        self._write_replaced(changes)
        self._write_appended(changes)

    def _write_replaced(self, changes: Changes) -> None:
        tables = self._tables
        first = "SELECT first FROM consent WHERE origin = ? AND file = ? AND answer = ? AND digest = ?"
        for answer in changes.consent:
            former = self.connection.execute(first, answer[:4]).fetchone()
            tables.replace_row("consent", answer._replace(first=former[0]) if former else answer)
        counts = {key: value for key, value in changes.counts.items() if self._counts.get(key) != value}
        self._counts.update(counts)
        written: dict[str, Iterable[Sequence[Any]]] = {
            "robots": changes.robots,
            "file": changes.segments,
            "count": counts.items(),
            "meta": changes.meta.items(),
            "outbox": ((row.id, *row[2:]) for row in changes.outbox),
            "peer": changes.peers,
            **{name: rows.items() for name, rows in changes.blobs.items()},
        }
        for name, rows in written.items():
            for row in rows:
                tables.replace_row(name, row)
        for shard, last in changes.acknowledged.items():
            tables.delete_rows("outbox", "id > ? AND id <= ?", (message_id(shard, 0), message_id(shard, last)))
        if changes.history is not None:
            tables.replace_row("history", changes.history)
            for condition, values in history.thinning(changes.history):
                tables.delete_rows("history", condition, values)

    def _write_appended(self, changes: Changes) -> None:
        for event in changes.events:
            self._tables.append_row("event", event)
        for name, numbers in (("seen", changes.seen), ("digest", changes.digests), ("edge", changes.edges)):
            if packed_numbers := array("q", numbers).tobytes():
                self._tables.append_row(name, (packed_numbers,))
        for name, row in url_log.rows(changes.url_log):
            self._tables.append_row(name, row)

    def _write_hosts(self, changes: Changes) -> None:
        hosts = self._tables.write_hosts(changes.hosts)
        entries = self._lengths + len(changes.hosts) + len(changes.host_updates)
        if changes.flush is not None or entries > hosts // _HOSTS_PER_LENGTH:
            self._fold(changes)
        elif entries > self._lengths:
            of_rows = [(row.waiting, row.parked, row.distance, row.id) for row in changes.hosts]
            self._tables.append_row("length", (packed_lengths(of_rows + changes.host_updates),))
            self._lengths = entries

    def _fold(self, changes: Changes) -> None:
        """Write the newest lengths to the rows of their hosts, and empty their table; *changes*: the batch."""
        newest = newest_lengths(checksums.whole_rows(self.connection, "length")) if self._lengths else {}
        for row in changes.hosts:
            newest.pop(row.id, None)
        newest.update((length[-1], length) for length in changes.host_updates)
        self.connection.executemany(
            "UPDATE host SET waiting = ?1, parked = ?2, distance = ?3, "
            f"queue_checksum = {checksums.QUEUE_CHECKSUM} WHERE id = ?4",
            [newest[host] for host in sorted(newest)],
        )
        if self._lengths:
            self._tables.clear_table("length")
            self._lengths = 0

    def _write_queues(self, changes: Changes) -> None:
        self._tables.delete_chunks((host << HOST_SHIFT, host + 1 << HOST_SHIFT) for host in changes.dropped)
        self._tables.delete_chunks((chunk, chunk + 1) for chunk in changes.used)
        if changes.flush is not None:
            generation, tails = changes.flush
            chunks = (chunk for slot in sorted(tails) for chunk in chunks_of(slot, generation, tails[slot]))
            self._tables.insert_chunks((chunk, len(lines), packed(lines)) for chunk, lines in chunks)
            self._tables.clear_table("log")
        elif changes.added or changes.popped:
            self._tables.append_row("log", log_entry(changes.added, changes.popped))

    def close(self) -> None:
        """Fold the lengths, and close the connection."""
        with suppress(StorageError):  # without it, the next start has the lengths from their table
            if self._lengths:
                with self._transaction():
                    self._fold(Changes())
        self.connection.close()
