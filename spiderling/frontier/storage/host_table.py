"""All hosts: their states and names in compact tables; whole records only of those that are in memory.

A host comes into memory when it gets a place on the workbench or somebody asks for it,
and leaves it again once the store knows all of it and it has no place; of a new one
there is no more than its name before.  Ids count from 1
and are persistent: they are the upper bits of the URL keys.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import xxhash

from spiderling.base.errors import DamageError
from spiderling.base.urls import MAX_HOST_ID, domain_mark, registrable_domain
from spiderling.frontier.hosts.host import STATE_OF, Host, HostColumns, HostState, HostStates
from spiderling.frontier.hosts.yields import YieldAccount
from spiderling.frontier.storage.key_table import KeyTable
from spiderling.frontier.storage.protocol import HostRow, HostSummary, Shelf
from spiderling.frontier.storage.queues import Queues
from spiderling.frontier.storage.rows import host_of, new_row

_ID_BITS = 24
_MAX_RECENT_NAMES = 30_000
"""Names of known hosts that are kept (5 MB), since most links lead to the same ones again and again."""


class NameIndex:
    """Host names to ids, 14 to 16 bytes a name.

    Names themselves are not kept: two of 10^7 names would be taken for one host in one crawl of 10^8 (72 bits).
    """

    def __init__(self) -> None:
        self._table = KeyTable()
        self._checks = array("I", [0])

    def find(self, name: str) -> int:
        """The id of *name*, or 0."""
        digest = xxhash.xxh3_128_intdigest(name.encode())
        for host_id in self._table.values(digest & (1 << 40) - 1):
            if self._checks[host_id] == digest >> 96:
                return host_id
        return 0

    def add_name(self, name: str) -> None:
        """Note the name of the next id."""
        digest = xxhash.xxh3_128_intdigest(name.encode())
        self._table.add((digest & (1 << 40) - 1) << _ID_BITS | len(self._checks))
        self._checks.append(digest >> 96)

    def add_names(self, blocks: Iterator[list[str]]) -> None:
        """Note the names of the next ids, many at a time."""
        keys = [np.empty(0, np.uint64)]
        for names in blocks:
            digests = np.frombuffer(b"".join([xxhash.xxh3_128_digest(name.encode()) for name in names]), ">u8")
            ids = np.arange(len(self._checks), len(self._checks) + len(names), dtype=np.uint64)
            keys.append(digests[1::2] << np.uint64(_ID_BITS) | ids)
            self._checks.frombytes((digests[::2] >> np.uint64(32)).astype(np.uint32).tobytes())
        self._table.update(np.concatenate(keys))


@dataclass(slots=True)
class _Unit:
    """Hosts that are measured and retired together; the sums are kept running."""

    account: YieldAccount = field(default_factory=YieldAccount)
    retired: int = 0
    """How many of them are retired."""


class HostTable:
    """Hosts by name and id, and the accounts that are retired together."""

    def __init__(
        self, unit: str, states: HostStates, queues: Queues, prefers: Callable[[str], bool] = lambda name: False,
        rank_of: Callable[[int, YieldAccount], int] = lambda host_id, account: 0,
    ) -> None:  # fmt: skip
        """*unit* is ``host`` or ``registrable``: whose bytes are measured together; *prefers*: hosts of what name.

        *rank_of*: that of a host (by its id) of which no more is known than its account.
        """
        self._prefers, self._rank_of = prefers, rank_of
        self.states = states
        self.changed: set[Host] = set()
        """Hosts whose row the store does not have yet."""
        self.nearer: set[int] = set()
        """Ids of hosts whose distance it does not have yet."""
        self.pinned: set[int] = set()
        self._queues = queues
        self._shelf: Shelf = queues.shelf
        self._names = NameIndex()
        self._live: dict[int, Host] = {}
        self._untouched: tuple[dict[int, str], dict[int, str]] = {}, {}
        """Names of new hosts that nobody asked for: those that the store may not have yet, and those drained last."""
        self._recent_ids: dict[str, int] = {}
        """Ids by name, of hosts that links led to lately."""
        self._idle: set[Host] = set()
        """Hosts in memory that may not have a place."""
        self._units: dict[str, _Unit] | None = {} if unit == "registrable" else None

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[Host]:
        """Every host by id; those that are not in memory come into it."""
        return (self.by_id(host_id) for host_id in range(1, len(self) + 1))

    def in_memory(self) -> list[Host]:
        for host_id in list(chain(*self._untouched)):
            self.by_id(host_id)
        return list(self._live.values())

    def live(self, host_id: int) -> Host | None:
        """The host if it is in memory."""
        return self._live.get(host_id)

    def account_at_hand(self, host_id: int) -> YieldAccount | None:
        """The host's own account, if it is in memory or new."""
        host = self._live.get(host_id)
        if host is not None:
            return host.account
        young, drained = self._untouched
        return YieldAccount() if host_id in young or host_id in drained else None

    def find(self, name: str) -> int:
        """The id of the host, or 0; nothing is read from the shelf."""
        host_id = self._recent_ids.get(name) or self._names.find(name)
        if host_id:
            if len(self._recent_ids) >= _MAX_RECENT_NAMES:
                self._recent_ids.clear()
            self._recent_ids[name] = host_id
        return host_id

    def find_all(self, names: Iterable[str]) -> list[int]:
        """``find`` for each."""
        recent_ids = self._recent_ids
        return [recent_ids.get(name) or self.find(name) for name in names]

    def get(self, name: str) -> Host | None:
        host_id = self.find(name)
        return self.by_id(host_id) if host_id else None

    def by_id(self, host_id: int) -> Host:
        """The host, read from the shelf if it is not in memory."""
        host = self._live.get(host_id)
        if host is None:
            host = self._touched(host_id)
        if host is None:
            row = self._shelf.host(host_id)
            host = host_of(row, self.states)
            lines = [line for line in (row.transit, *row.first.split(b"\n")) if line]
            self._enter(host)
            self._queues.load_head(host, row.positions, lines)
        return host

    def create(self, name: str, distance: int) -> int:
        """The id of a new host record; raises OverflowError beyond 16.7 million hosts."""
        if len(self) >= MAX_HOST_ID:
            raise OverflowError(f"more than {MAX_HOST_ID} hosts in one crawl")
        self.states.add_host(HostState.EXHAUSTED, distance, preferred=self._prefers(name), domain=domain_mark(name))
        self._names.add_name(name)
        host_id = len(self)
        self._untouched[0][host_id] = name
        return host_id

    def _touched(self, host_id: int) -> Host | None:
        """A new host that comes into memory; None for any other."""
        young, drained = self._untouched
        is_young = host_id in young
        if not is_young and host_id not in drained:
            return None
        host = Host(host_id, young.pop(host_id) if is_young else drained.pop(host_id), self.states)
        self._enter(host)
        self._queues.load_head(host, is_new=is_young)
        if is_young:
            self.changed.add(host)
        return host

    def drain_new_rows(self) -> list[HostRow]:
        """Rows of the new hosts that nobody asked for since the last call."""
        young, drained = self._untouched
        self._untouched = {}, drained | young
        return [new_row(host_id, name, self.states) for host_id, name in young.items()]

    def load_hosts(self) -> list[int]:
        """Take up all hosts from the shelf; gives the open ones with URLs, in the order in which they are due."""
        dues = array("d")
        self._names.add_names(self._taken_up(dues))
        waiting = self.states.waiting()
        in_order: list[int] = waiting[np.argsort(np.array(dues)[waiting - 1], kind="stable")].tolist()
        return in_order

    def _taken_up(self, dues: array[float]) -> Iterator[list[str]]:
        """The names of all hosts, whose columns are taken up as they come."""
        untried = self._rank_of(0, YieldAccount())
        for columns in self._shelf.host_columns():
            if not _are_possible(columns):
                raise DamageError(f"the state is damaged: a host from id {len(self) + 1} on has what no host has.")
            self.states.load_columns(columns, map(self._prefers, columns.names), untried)
            dues.extend(columns.dues)
            yield columns.names

    def load_summary(self, summary: HostSummary) -> None:
        """Note what more is known of a host; raises DamageError for what nobody can know."""
        if summary.state not in STATE_OF or not all(isinstance(value, int) for value in summary[3:]):
            raise DamageError(f"the state is damaged: the host {summary.name} has what no host has.")
        account = YieldAccount(summary.pages, summary.downloaded_bytes, summary.kept_bytes)
        if summary.downloaded_bytes:
            self.states.ranks[summary.id] = self._rank_of(summary.id, account)
        if summary.exempt > 0:
            self.pinned.add(summary.id)
        if self._units is not None:
            unit = self._unit(summary.name)
            unit.account.count_bytes(account.pages, account.downloaded_bytes, account.kept_bytes)
            unit.retired += STATE_OF[summary.state] is HostState.RETIRED

    def host_update(self, host_id: int) -> tuple[int, int, int, int]:
        """(waiting, parked, distance, id); what is in transit waits again after a kill, as in its row."""
        live, distance = self._live.get(host_id), self.states.distance(host_id)
        number = self.states.queued[host_id] + (live is not None and live.fetching is not None)
        return (0, number, distance, host_id) if self.states.is_closed(host_id) else (number, 0, distance, host_id)

    def release_host(self, host: Host) -> None:
        """*host* has no place any more, and may leave memory once the store knows it."""
        self._idle.add(host)

    def note_commit(self) -> None:
        """What was drained last is on the shelf: idle hosts that have not changed since leave memory."""
        self._untouched = self._untouched[0], {}
        kept = set()
        for host in self._idle:
            if host.active:
                continue
            if host in self.changed or host.in_transit or host.tasks:
                kept.add(host)
                continue
            del self._live[host.id]
            self._queues.release_head(host.id)
        self._idle = kept

    def count_bytes(self, host: Host, pages: int, downloaded_bytes: int, kept_bytes: int) -> None:
        """Add to what was downloaded from and kept of *host*, and of its unit."""
        host.account.count_bytes(pages, downloaded_bytes, kept_bytes)
        if self._units is not None:
            self._unit(host.name).account.count_bytes(pages, downloaded_bytes, kept_bytes)
        self.changed.add(host)

    def account_of(self, host: Host) -> YieldAccount:
        """The account that decides on *host*: its own, or the sum over its unit."""
        return host.account if self._units is None else self._unit(host.name).account

    def unit_in_memory(self, host: Host) -> list[Host]:
        """The hosts that are retired together with *host*, itself included; others are when they come into memory."""
        if self._units is None:
            return [host]
        domain = registrable_domain(host.name)
        return [member for member in self.in_memory() if registrable_domain(member.name) == domain]

    def is_unit_retired(self, name: str) -> bool:
        """Whether a host of the unit of *name* is retired."""
        return self._units is not None and self._unit(name).retired > 0

    def set_closed(self, host: Host, state: HostState) -> None:
        """*host* enters or leaves (EXHAUSTED) a closed state."""
        if self._units is not None:
            self._unit(host.name).retired += (state is HostState.RETIRED) - (host.state is HostState.RETIRED)
        host.state = state
        self.changed.add(host)

    def _unit(self, name: str) -> _Unit:
        assert self._units is not None
        return self._units.setdefault(registrable_domain(name), _Unit())

    def _enter(self, host: Host) -> None:
        self._live[host.id] = host
        self._idle.add(host)
        domains = self.states.domains
        if not domains[host.id]:
            domains[host.id] = domain_mark(host.name)
        host.domain = domains[host.id]


def _are_possible(columns: HostColumns) -> bool:
    """Whether the compact tables can hold them."""
    numbers = (*columns.distances, *columns.queued)
    return STATE_OF.keys() >= {*columns.states} and min(numbers) >= 0 and max(numbers) < 1 << 32
