"""All hosts: columns and names of each in compact tables, and the Host records of those that are in memory.

A host comes into memory when its record is asked for, for example when it gets a place on the workbench.  It leaves
memory when it has no place and the store knows all of it.  A new host has no record until then, only its name.
Ids count from 1 and stay the same over restarts: they are the upper bits of the URL keys.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from spiderling.base.errors import DamageError
from spiderling.base.urls import MAX_HOST_ID, domain_mark
from spiderling.frontier.hosts import STATE_OF, Host, HostState, HostStates, YieldAccount
from spiderling.frontier.storage.protocol import StoredHost, lines_before_chunks
from spiderling.frontier.storage.queues import Queues, line_of
from spiderling.frontier.storage.seen import PREFIX_SHIFT, KeyTable

if TYPE_CHECKING:
    from spiderling.frontier.storage.sqlite import SqliteStore

MAX_RECENT_NAMES = 30_000
"""Names of known hosts that are kept with their ids (chosen: 5 MB), since most links lead to the same hosts."""
_PREFIX_MASK = (1 << 39) - 1  # bits of a name's hash above its id in a key of a KeyTable


class NameIndex:
    """Host name -> id, in 14 to 16 bytes a name.

    It keeps 71 bits of each name's hash instead of the name: with 10^7 hosts, two are taken for one in one crawl
    of 5 * 10^7.
    """

    def __init__(self) -> None:
        self._table = KeyTable()
        self._checks = array("I", [0])

    def find(self, name: str) -> int:
        digest = xxhash.xxh3_128_intdigest(name.encode())
        for host_id in self._table.values(digest & _PREFIX_MASK):
            if self._checks[host_id] == digest >> 96:
                return host_id
        return 0

    def add_name(self, name: str) -> None:
        """Add the name of the next id."""
        digest = xxhash.xxh3_128_intdigest(name.encode())
        self._table.add((digest & _PREFIX_MASK) << PREFIX_SHIFT | len(self._checks))
        self._checks.append(digest >> 96)

    def load_names(self, blocks: Iterator[list[str]]) -> None:
        """Take the names of all ids from 1 on."""
        keys = [np.empty(0, np.int64)]
        for names in blocks:
            digests = np.frombuffer(b"".join([xxhash.xxh3_128_digest(name.encode()) for name in names]), ">u8")
            ids = np.arange(len(self._checks), len(self._checks) + len(names))
            keys.append((digests[1::2].astype(np.int64) & _PREFIX_MASK) << PREFIX_SHIFT | ids)
            self._checks.frombytes((digests[::2] >> np.uint64(32)).astype(np.uint32).tobytes())
        self._table.load(np.concatenate(keys))


class HostTable:
    """Hosts by name and id, and the yield accounts by which they are retired."""

    def __init__(
        self,
        states: HostStates,
        queues: Queues,
        prefers: Callable[[str], bool] = lambda name: False,
        rank_of: Callable[[int, YieldAccount], int] = lambda host_id, account: 0,
    ) -> None:
        """*prefers*: whether the host of a name goes before others.  *rank_of*: a host's rank by its id and account."""
        self._prefers = prefers
        self._rank_of = rank_of
        self.states = states
        self.changed: set[Host] = set()  # hosts whose row in the store is out of date
        self.nearer: set[int] = set()  # ids of hosts whose distance in the store is out of date
        self.pinned: set[int] = set()  # ids of hosts that the user has reopened and that are not retired again
        self._queues = queues
        self._store: SqliteStore = queues.store
        self._names = NameIndex()
        self._live: dict[int, Host] = {}
        self._new_names: dict[int, str] = {}  # id -> name of new hosts without a record
        self._drained_names: dict[int, str] = {}
        """Id -> name of hosts without a record in the batch that was drained last and is not committed yet."""
        self._recent_ids: dict[str, int] = {}  # name -> id of hosts that links led to lately
        self._idle: set[Host] = set()  # hosts in memory that may have no place on the workbench

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[Host]:
        """Every host in the order of the ids; each comes into memory."""
        return (self.by_id(host_id) for host_id in range(1, len(self) + 1))

    def in_memory(self) -> list[Host]:
        """The hosts in memory, new ones included."""
        for host_id in [*self._new_names, *self._drained_names]:
            self.by_id(host_id)
        return list(self._live.values())

    def live(self, host_id: int) -> Host | None:
        """The host if it is in memory."""
        return self._live.get(host_id)

    def account_at_hand(self, host_id: int) -> YieldAccount | None:
        """The host's own account if it is in memory or new; None for others."""
        host = self._live.get(host_id)
        if host is not None:
            return host.account
        return YieldAccount() if host_id in self._new_names or host_id in self._drained_names else None

    def find(self, name: str) -> int:
        """The id of the host, 0 if it is unknown; nothing is read from the store."""
        host_id = self._recent_ids.get(name) or self._names.find(name)
        if host_id:
            if len(self._recent_ids) >= MAX_RECENT_NAMES:
                self._recent_ids.clear()
            self._recent_ids[name] = host_id
        return host_id

    def find_all(self, names: Iterable[str]) -> list[int]:
        recent_ids = self._recent_ids
        return [recent_ids.get(name) or self.find(name) for name in names]

    def get(self, name: str) -> Host | None:
        """The host of this name, read from the store if it is not in memory; None if it is unknown."""
        host_id = self.find(name)
        return self.by_id(host_id) if host_id else None

    def by_id(self, host_id: int) -> Host:
        """The host of this id, read from the store if it is not in memory."""
        return self._live.get(host_id) or self._first_record(host_id) or self._stored_record(host_id)

    def create(self, name: str, distance: int) -> int:
        """Add a host; returns its id.  Raises OverflowError beyond 16.7 million hosts."""
        if len(self) >= MAX_HOST_ID:
            raise OverflowError(f"more than {MAX_HOST_ID} hosts in one crawl")
        self.states.add_host(distance, self._prefers(name))
        self._names.add_name(name)
        host_id = len(self)
        self._new_names[host_id] = name
        return host_id

    def _first_record(self, host_id: int) -> Host | None:
        """Give a new host its record; None if the host is not new."""
        is_new = host_id in self._new_names
        name = self._new_names.pop(host_id, None) or self._drained_names.pop(host_id, None)
        if name is None:
            return None
        host = Host(host_id, name, self.states)
        self._enter(host)
        self._queues.load_head(host, is_new=is_new)
        if is_new:
            self.changed.add(host)
        return host

    def _stored_record(self, host_id: int) -> Host:
        row = self._store.host(host_id)
        host = host_of(row, self.states)
        self._enter(host)
        self._queues.load_head(host, row.positions, lines_before_chunks(row.transit, row.first))
        return host

    @property
    def has_changed(self) -> bool:
        return bool(self.changed or self.nearer)

    def drain(self, grown: set[int]) -> tuple[list[StoredHost], list[tuple[int, int, int, int]]]:
        """``Changes.hosts`` and ``Changes.host_updates`` since the last call; *grown*: ids of hosts that got URLs."""
        names = self._new_names
        rows = [host_row(host, self._queues) for host in self.changed]
        of = self.states  # of a host without a record only the name and the columns are known
        rows += [
            StoredHost(new, name, of.state(new).value, of.distances[new], waiting=of.queued[new])
            for new, name in names.items()
        ]
        updated = (grown | self.nearer).difference([row.id for row in rows])
        self._new_names = {}
        self._drained_names |= names
        self.changed = set()
        self.nearer = set()
        return rows, [self._update_of(host_id) for host_id in updated]

    def load_hosts(self) -> list[int]:
        """Read all hosts from the store; returns the ids of the open ones with URLs, the first due first."""
        dues = array("d")
        self._names.load_names(self._load_columns(dues))
        waiting = self.states.waiting()
        in_order: list[int] = waiting[np.argsort(np.array(dues)[waiting - 1], kind="stable")].tolist()
        return in_order

    def _load_columns(self, dues: array[float]) -> Iterator[list[str]]:
        """Read the columns of all hosts; yields the names, block by block, and fills *dues*."""
        untried = self._rank_of(0, YieldAccount())
        for columns in self._store.host_columns():
            numbers = (*columns.distances, *columns.queued)
            if not (STATE_OF.keys() >= {*columns.states} and min(numbers) >= 0 and max(numbers) < 1 << 32):
                raise DamageError(f"the state is damaged: a host from id {len(self) + 1} on has what no host has.")
            self.states.load_columns(columns, map(self._prefers, columns.names), untried)
            dues.extend(columns.dues)
            yield columns.names

    def load_used(self, row: StoredHost) -> None:
        """After ``load_hosts``: take in what more the store knows of a host; raises DamageError if it is impossible."""
        numbers = (row.pages, row.downloaded_bytes, row.kept_bytes, row.exempt)
        if row.state not in STATE_OF or not all(isinstance(number, int) for number in numbers):
            raise DamageError(f"the state is damaged: the host {row.name} has what no host has.")
        if row.downloaded_bytes:
            account = YieldAccount(row.pages, row.downloaded_bytes, row.kept_bytes)
            self.states.ranks[row.id] = self._rank_of(row.id, account)
        if row.exempt > 0:
            self.pinned.add(row.id)

    def _update_of(self, host_id: int) -> tuple[int, int, int, int]:
        """The entry of ``Changes.host_updates`` for a host."""
        live = self._live.get(host_id)
        distance = self.states.distances[host_id]
        number = self.states.queued[host_id] + (live is not None and live.fetching is not None)
        return (0, number, distance, host_id) if self.states.is_closed(host_id) else (number, 0, distance, host_id)

    def release_host(self, host: Host) -> None:
        """*host* has no place any more: it leaves memory after the next commit that tells the store all of it."""
        self._idle.add(host)

    def note_commit(self) -> None:
        """The store has committed what was drained last: idle hosts that have not changed since leave memory."""
        self._drained_names = {}
        idle = [host for host in self._idle if not host.active]
        self._idle = {host for host in idle if host in self.changed or host.in_transit or host.robots_requests}
        for host in idle:
            if host not in self._idle:
                self.states.last_starts[host.id] = host.last_start
                del self._live[host.id]
                self._queues.release_head(host.id)

    def count_bytes(self, host: Host, pages: int, downloaded_bytes: int, kept_bytes: int) -> None:
        host.account.pages += pages
        host.account.downloaded_bytes += downloaded_bytes
        host.account.kept_bytes += kept_bytes
        self.changed.add(host)

    def set_closed(self, host: Host, state: HostState) -> None:
        """Give *host* a closed state, or EXHAUSTED when it is reopened."""
        host.state = state
        self.changed.add(host)

    def _enter(self, host: Host) -> None:
        self._live[host.id] = host
        self._idle.add(host)
        host.domain = domain_mark(host.name)


# -- rows of the store


def host_row(host: Host, queues: Queues) -> StoredHost:
    in_transit = host.fetching
    is_closed = host.is_closed
    urls = host.queued + (in_transit is not None)
    # By position, in the order of StoredHost: names would double the time, and each batch makes many rows.
    return StoredHost(
        host.id,
        host.name,
        host.state.value,
        host.distance,
        host.account.pages,
        host.documents,
        host.words,
        host.account.downloaded_bytes,
        host.account.kept_bytes,
        0 if is_closed else urls,
        urls if is_closed else 0,
        max(host.quiet_until, host.last_start),
        host.crawl_delay_s,
        host.slowdown,
        host.failures,
        1 if host.pinned else -host.has_second_chance,
        host.address,
        queues.positions(host.id),
        b"\n".join(queues.first_lines(host.id)),
        line_of(in_transit) if in_transit is not None else None,
    )


def host_of(row: StoredHost, states: HostStates) -> Host:
    """The host of a row; its state, distance and length of the queue are in *states* already."""
    return Host(
        id=row.id,
        name=row.name,
        states=states,
        account=YieldAccount(row.pages, row.downloaded_bytes, row.kept_bytes),
        documents=row.documents,
        words=row.words,
        due=row.due,
        quiet_until=row.due,
        last_start=states.last_starts[row.id],
        crawl_delay_s=row.crawl_delay_s,
        slowdown=row.slowdown,
        failures=row.failures,
        address=row.address,
        pinned=row.exempt > 0,
        has_second_chance=row.exempt < 0,
    )
