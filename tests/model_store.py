"""The store as a few dicts: a model that the real one is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from spiderling.base.errors import JobdirError, StorageError
from spiderling.frontier.hosts import CLOSED_STATES, STATE_OF, HostColumns
from spiderling.frontier.storage.protocol import (
    HOST_SHIFT,
    Changes,
    ConsentRow,
    HostRow,
    OutboxRow,
    OutboxSummary,
    PeerRow,
    RobotsRow,
    State,
    chunks_of,
    message_id,
    within,
)
from spiderling.frontier.storage.queues import replay


def is_used(row: HostRow) -> bool:
    """Whether ``used_hosts`` gives *row*."""
    has_past = row.pages or row.downloaded_bytes or row.exempt or row.transit is not None
    return bool(has_past or STATE_OF[row.state] in CLOSED_STATES)


def _summary(rows: list[OutboxRow]) -> OutboxSummary:
    sizes = [len(row.message) for row in rows]
    links = sum(row.links for row in rows)
    return OutboxSummary(rows[0].number, len(rows), links, sum(sizes), min(row.time for row in rows))


class ModelStore:
    """Holds what was committed for as long as the process lives."""

    def __init__(self) -> None:
        self._hosts: dict[int, HostRow] = {}
        self._chunks: dict[int, dict[int, list[bytes]]] = {}
        """Host id -> chunk id -> lines."""
        self._robots: dict[str, RobotsRow] = {}
        self._consent: dict[tuple[str, ...], ConsentRow] = {}
        self._outbox: dict[int, OutboxRow] = {}
        self._peers: dict[int, PeerRow] = {}
        self._blobs: dict[str, dict[int, bytes]] = {}
        self._state = State()
        self._closed = False

    def load(self) -> State:
        waiting: dict[int, list[OutboxRow]] = {}
        for _, row in sorted(self._outbox.items()):
            waiting.setdefault(row.shard, []).append(row)
        state = deepcopy(self._state)
        state.peers = [self._peers[shard] for shard in sorted(self._peers)]
        state.outboxes = {shard: _summary(rows) for shard, rows in waiting.items()}
        return state

    def host(self, host_id: int) -> HostRow:
        try:
            return self._hosts[host_id]
        except KeyError:
            raise StorageError(f"the store has no host {host_id}.") from None

    def host_columns(self) -> Iterator[HostColumns]:
        rows = [self._hosts[host_id] for host_id in sorted(self._hosts)]
        if any(row.id != number for number, row in enumerate(rows, 1)):
            raise JobdirError("a host is missing.")
        fields = [(row.name, row.state, row.distance, row.waiting + row.parked, row.due) for row in rows]
        if fields:
            yield HostColumns(*map(list, zip(*fields, strict=True)))

    def used_hosts(self) -> Iterator[HostRow]:
        return filter(is_used, (self._hosts[host_id] for host_id in sorted(self._hosts)))

    def chunk_ids(self, host_id: int) -> list[int]:
        return sorted(self._chunks.get(host_id, ()))

    def chunk(self, chunk_id: int) -> list[bytes]:
        try:
            return list(self._chunks[chunk_id >> HOST_SHIFT][chunk_id])
        except KeyError:
            raise StorageError(f"the store has no chunk {chunk_id}.") from None

    def robots(self, key: str) -> RobotsRow | None:
        return self._robots.get(key)

    def blob(self, table: str, row: int) -> bytes | None:
        return self._blobs.get(table, {}).get(row)

    def blobs(self, table: str) -> Iterator[tuple[int, bytes]]:
        return iter(sorted(self._blobs.get(table, {}).items()))

    def commit(self, changes: Changes) -> None:
        if self._closed:
            raise StorageError("the store is closed.")
        state = self._state
        self._hosts.update((row.id, row) for row in changes.hosts)
        for waiting, parked, distance, host_id in changes.host_updates:
            former = self._hosts[host_id]
            self._hosts[host_id] = former._replace(waiting=waiting, parked=parked, distance=distance)
        for host_id in changes.dropped:
            self._chunks.pop(host_id, None)
        for chunk in changes.used:
            self._chunks.get(chunk >> HOST_SHIFT, {}).pop(chunk, None)
        if changes.flush is None:
            replay(state.tails, changes.added, changes.popped.items())
        else:
            state.tails = {}
            for slot, lines in changes.flush.tails.items():
                for chunk, part in chunks_of(slot, changes.flush.generation, list(lines)):
                    self._chunks.setdefault(chunk >> HOST_SHIFT, {})[chunk] = part
        for table, rows in changes.blobs.items():
            self._blobs.setdefault(table, {}).update(rows)
        self._robots.update((row.origin, row) for row in changes.robots)
        for row in changes.consent:
            first = self._consent.get(row[:4], row).first
            self._consent[row[:4]] = row._replace(first=first)
        segments = {row.name: row for row in (*state.segments, *changes.segments)}
        state.segments = sorted(segments.values())
        state.seen.extend(changes.seen)
        state.digests.extend(changes.digests)
        state.edges.extend(changes.edges)
        state.counts.update(changes.counts)
        state.meta.update(changes.meta)
        self._commit_messages(changes)

    def _commit_messages(self, changes: Changes) -> None:
        self._outbox.update((row.id, row) for row in changes.outbox)
        for shard, last in changes.acknowledged.items():
            for key in range(message_id(shard, 1), message_id(shard, last) + 1):
                self._outbox.pop(key, None)
        self._peers.update((row.shard, row) for row in changes.peers)

    def messages(self, shard: int, after: int, max_bytes: int) -> list[OutboxRow]:
        rows = (row for _, row in sorted(self._outbox.items()) if row.shard == shard and row.number > after)
        return within(rows, max_bytes)

    def consents(self) -> list[ConsentRow]:
        return sorted(self._consent.values(), key=lambda row: (row.origin, row.file, row.first, row.answer, row.digest))

    def close(self) -> None:
        self._closed = True
