"""The workbench, on which hosts with a place wait until they are due, and the backlog of those that have none.

After BUbiNG's (Boldi et al. 2018; Mercator's back queues before it).  Each class comment tells order and invariant.
"""

from __future__ import annotations

import heapq
import itertools
import math
from array import array
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from spiderling.frontier.hosts import RANKS, Host

NO_ADDRESS = ""  # the address of hosts whose next step needs no connection (dead names, names to be asked again)
LONG_S = 60.0
"""Seconds, twelve intervals of a host (chosen).  A host that is due later than this is not waited for: it waits apart,
and needs neither place nor address.  Unopened hosts let others pass for as long, so that hosts of a rank take turns."""
LONGEST_UNOPENED_S = 600.0
"""Seconds after which an unopened host that is due is opened though enough are (measured in the simulator: after 300
twice as many are asked for their files in the first ten minutes, and no bound at all starves poor hosts)."""
BURST = 100
"""Requests beyond its share that a group may have (chosen: a crawl that begins with few hosts is not held up)."""
PRUNE_ABOVE = 1000
"""Groups, or addresses, above which those that are idle are dropped (chosen: looking through them takes .1 ms)."""

Group = int | str  # the mark of a domain, or an address
Groups = tuple[Group, ...]  # the groups over their share that a host belongs to, none, one or two of them
_COMMON: Groups = ()


class Workbench:
    """Hosts with work, each under the address of its next request; times are the caller's.

    Order: a host is due when its own time has come and that of its address.  Of the ranks with a host that is due one
    is drawn (strategy.Draw); within it the host that has waited longest is next.  An *unopened* host, of which nothing
    was asked yet, waits as if it had come LONG_S later: its page is due an interval after the files of its site, or
    never.  While enough hosts are opened (``throttle.Opened``) it waits on, up to LONGEST_UNOPENED_S.  Hosts of groups
    that have had more than their share of the requests are passed over while any other host is due.

    Two nested heaps: addresses ordered by the later of their own due time and that of their first host; in each address
    the hosts ordered by their due time.  So a thousand hosts on one address cost one entry of the outer heap.  Hosts of
    an address stand apart if they are unopened, or if they belong to other groups over their share.  Addresses that are
    due stand in two heaps for each rank, that of their first host.

    Invariant: a host stands here at most once.  An entry whose version is not the host's, or whose key is not the
    queue's, is stale and skipped.  One whose address is due later by now gets its new place when it comes to the front.

    Protocol: Schedule puts a host on with ``add_host`` and takes it off with ``pop``, or ``remove``.  A request to the
    host that was popped is handed out: it is charged to ``shares``, and ``postpone`` holds the other hosts of its
    address back.  The host comes again when that request is over.
    """

    def __init__(
        self,
        draw: Callable[[Sequence[int]], int] = min,
        rank_of: Callable[[Host], int] = lambda host: 0,
        most: float = 1.0,
        may_open: Callable[[int], bool] = lambda rank: True,
    ) -> None:
        """*draw* chooses one of several ranks; *most*: the share of one address and of one domain.

        *may_open*: whether few enough hosts are opened for one more of a rank.
        """
        self._draw = draw
        self._rank_of = rank_of
        self._may_open = may_open
        self.shares = Shares(most)
        self._addresses: dict[str, Address] = {}
        self._serial = itertools.count(1).__next__  # of hosts that are due at one time the first is served first
        self._queues: dict[tuple[Groups, str, bool], _Queue] = {}
        self._heap: list[Entry] = []
        self._ready: dict[Groups, list[tuple[list[Entry], list[Entry]]]] = {_COMMON: _by_rank()}
        """By groups and rank: addresses whose first host is due, and those of unopened hosts."""
        self._prune_above = PRUNE_ABOVE

    def add_host(self, host: Host, address: str) -> None:
        """Put *host* under *address*, to be popped when both are due; it leaves its former place."""
        host.version += 1
        place = self.shares.groups_over(host.domain, address), address, host.is_unopened
        queue = self._queues.get(place)
        if queue is None:
            queue = self._queues[place] = _Queue(place[0], self.address(address), host.is_unopened)
            if queue.groups not in self._ready:
                self._ready[queue.groups] = _by_rank()
        heapq.heappush(queue.hosts, (host.due, self._serial(), host.version, host))
        self._schedule(queue)

    def remove(self, host: Host) -> None:
        """Take *host* off; nothing happens if it is not there."""
        host.version += 1

    def postpone(self, address: str, due: float) -> None:
        """No host of *address* is popped before *due*."""
        entry = self.address(address)
        entry.due = max(entry.due, due)  # the heap sees it when the address comes to the front

    def pop(self, now: float) -> tuple[Host, str] | None:
        """A host that is due at *now*, the one of its rank that has waited longest, and its address; it leaves."""
        while (ready := self._next(now)) is not None:
            queue = heapq.heappop(ready)[2]
            queue.key = -1.0
            host = heapq.heappop(queue.hosts)[3]
            host.version += 1
            self._schedule(queue)
            address = queue.address.name
            if self.shares.groups_over(host.domain, address) == queue.groups:
                return host, address
            self.add_host(host, address)  # since it came, its groups over their share have changed
        return None

    def _next(self, now: float) -> list[Entry] | None:
        """The addresses of which the first is to be served at *now*."""
        waited_in = self._ripen(now)
        if len(waited_in) <= 1:
            return next((self._first(groups, self._draw(ranks), now) for groups, ranks in waited_in.items()), None)
        excess = {groups: self.shares.excess(groups) for groups in waited_in}
        least = min(excess.values())
        served = [groups for groups in waited_in if excess[groups] == least]
        rank = self._draw(sorted({rank for groups in served for rank in waited_in[groups]}))
        firsts = [self._first(groups, rank, now) for groups in served if rank in waited_in[groups]]
        return min(firsts, key=lambda ready: ready[0][:2])

    def _ripen(self, now: float) -> dict[Groups, list[int]]:
        """Sort addresses that are due at *now* by rank; returns the ranks with a host that is due, best first."""
        waited_in = {
            groups: [
                rank
                for rank, pair in enumerate(pairs)
                if (pair[0] and self._front(pair[0]) is not None)
                or (pair[1] and self._opens_at(groups, rank, pair[1]) <= now)
            ]
            for groups, pairs in self._ready.items()
        }  # before the loop: an address whose entry is stale goes back to the heap
        while (due := self._front(self._heap)) is not None and due <= now:
            entry = heapq.heappop(self._heap)
            queue = entry[2]
            rank = self._rank_of(queue.hosts[0][3])
            ready = self._ready[queue.groups][rank][queue.is_unopened]
            heapq.heappush(ready, entry)
            is_in_turn = not queue.is_unopened or self._opens_at(queue.groups, rank, ready) <= now
            if is_in_turn and rank not in waited_in[queue.groups]:
                insort(waited_in[queue.groups], rank)
        return {groups: ranks for groups, ranks in waited_in.items() if ranks}

    def _first(self, groups: Groups, rank: int, now: float) -> list[Entry]:
        """The addresses of *groups* and *rank* of which the first is next at *now*; one must be in turn there."""
        others, unopened = self._ready[groups][rank]
        if self._front(others) is None:
            return unopened
        is_in_turn = self._opens_at(groups, rank, unopened) <= now
        return unopened if is_in_turn and _first_due(unopened) + LONG_S < _first_due(others) else others

    def _opens_at(self, groups: Groups, rank: int, unopened: list[Entry]) -> float:
        """When the first of the *unopened* hosts of *groups* and *rank* that are due may be popped; inf without one.

        Those of groups over their share wait for all others anyway.
        """
        due = self._front(unopened)
        if due is None:
            return math.inf
        return due if groups or self._may_open(rank) else _first_due(unopened) + LONGEST_UNOPENED_S

    def hasten(self, latest: float) -> None:
        """No address is due later than at the time *latest*; its hosts must be added again."""
        for entry in self._addresses.values():
            entry.due = min(entry.due, latest)

    def hosts(self) -> list[Host]:
        """All hosts on it, in the order in which they would be due."""
        entries = itertools.chain.from_iterable(queue.hosts for queue in self._queues.values())
        return [entry[3] for entry in sorted(entry for entry in entries if entry[2] == entry[3].version)]

    def next_due(self) -> float | None:
        """When ``pop`` will next give a host; None when it holds none."""
        dues: list[float | None] = []
        for groups, pairs in self._ready.items():
            for rank, (others, unopened) in enumerate(pairs):
                if others:
                    dues.append(self._front(others))
                if unopened:
                    dues.append(self._opens_at(groups, rank, unopened))
        dues.append(self._front(self._heap))  # the last: an address whose entry was stale is there again
        return min((due for due in dues if due is not None and due < math.inf), default=None)

    def forget_idle(self, now: float) -> None:
        """Drop groups without hosts, and addresses without hosts whose interval is over.

        All addresses are looked through only when their number has doubled since the last time.
        """
        are_many = len(self._addresses) >= self._prune_above
        if are_many or len(self._ready) > 1:
            self._queues = {place: queue for place, queue in self._queues.items() if queue.hosts}
            held = {_COMMON, *(groups for groups, _, _ in self._queues)}
            self._ready = {groups: pairs for groups, pairs in self._ready.items() if groups in held}
        if are_many:
            names = {name for _, name, _ in self._queues}
            self._addresses = {
                name: entry for name, entry in self._addresses.items() if name in names or entry.due > now
            }
            self._prune_above = max(PRUNE_ABOVE, 2 * len(self._addresses))

    def address(self, name: str) -> Address:
        """The record of an address; what was noted there is forgotten when its interval is over."""
        entry = self._addresses.get(name)
        if entry is None:
            entry = self._addresses[name] = Address(name)
        return entry

    def _front(self, heap: list[Entry]) -> float | None:
        """When the first of *heap* is due; stale entries before it are dropped."""
        while heap:
            due, _, queue = heap[0]
            if due == queue.key:
                _drop_stale(queue)
                if _key(queue) == due:
                    return due
                queue.key = -1.0
                self._schedule(queue)
            heapq.heappop(heap)
        return None

    def _schedule(self, queue: _Queue) -> None:
        _drop_stale(queue)
        key = _key(queue)
        if key != queue.key:
            queue.key = key
            if key >= 0:
                heapq.heappush(self._heap, (key, self._serial(), queue))


@dataclass(slots=True, eq=False)
class Address:
    """When an address may be connected to, whatever the host; times are the caller's."""

    name: str
    due: float = 0.0
    last_permitted: float = -math.inf  # when a connection was last permitted or opened; -inf: never, or long ago
    last_started: float = -math.inf  # when one was last opened
    opened_by: int = 0  # the host for which that was, by id; 0: unknown


@dataclass(slots=True, eq=False)
class _Queue:
    """The unopened or the other hosts of one address and of certain groups over their share."""

    groups: Groups
    address: Address
    is_unopened: bool
    key: float = -1.0  # its time in the outer heap; -1 when it is not there
    hosts: list[tuple[float, int, int, Host]] = field(default_factory=list)  # (due, serial number, version, host)


Entry = tuple[float, int, _Queue]  # (due, serial number, queue)


def _by_rank() -> list[tuple[list[Entry], list[Entry]]]:
    return [([], []) for _ in range(RANKS)]


def _key(queue: _Queue) -> float:
    return max(queue.address.due, queue.hosts[0][0], 0.0) if queue.hosts else -1.0


def _first_due(ready: list[Entry]) -> float:
    """When the host that is first in *ready* was due; its address may have had other requests since."""
    return ready[0][2].hosts[0][0]


def _drop_stale(queue: _Queue) -> None:
    while queue.hosts and queue.hosts[0][2] != queue.hosts[0][3].version:
        heapq.heappop(queue.hosts)


class Shares:
    """The share of the requests that may go to one group of hosts while hosts of other groups are due.

    A group is an address, or a registrable domain: a link farm has thousands of hosts, each of which looks like any
    other, but they stand on one address or under one domain.  Each request counts for both.  A group may have
    MAX_SHARE (schedule.py) of the requests, and BURST beyond.  A group that has had more is passed over while a host
    of any other group is due.  When none is, it is served at full pace, and that is not held against it.  This is a
    token bucket whose clock is the number of requests (ITU-T I.371, the generic cell rate algorithm).  A group is kept
    until what it had is within its share.

    A domain is identified by 16 bits of its name's hash (``Host.domain``), so one in 65,536 hosts is taken for one of a
    farm.
    """

    def __init__(self, most: float) -> None:
        """*most*: the share of one group, above 0 and up to 1, which means no bound."""
        self._price = 1 / most
        self._credit = BURST / most
        self._number = 0  # requests handed out
        self._paid_at: dict[Group, float] = {}
        """Group -> number of requests, of all groups, at which the group is back within its share."""
        self._over_share: set[Group] = set()
        """Groups that had more than share and BURST, until what they had is within the share."""
        self._prune_above = PRUNE_ABOVE

    def __len__(self) -> int:
        return len(self._paid_at)

    def charge(self, domain: int, address: str) -> None:
        """A request to a host of *domain* at *address* is handed out."""
        self._number += 1
        limit = self._number + self._credit
        for group in (domain, address):
            if not group:
                continue
            paid_at = max(self._paid_at.get(group, 0.0), self._number) + self._price
            if paid_at > limit:
                paid_at = limit + self._price  # what it had while nobody else was due is forgiven
                self._over_share.add(group)
            self._paid_at[group] = paid_at
        if len(self._paid_at) > self._prune_above:
            self._prune()

    def groups_over(self, domain: int, address: str) -> Groups:
        """Those of a host's groups that are over their share."""
        over = self._over_share
        return tuple(group for group in (domain, address) if group in over) if over else ()

    def excess(self, groups: Groups) -> int:
        """How many of these groups have had more than their share and BURST."""
        limit = self._number + self._credit
        return sum(self._paid_at.get(group, 0.0) > limit for group in groups)

    def _prune(self) -> None:
        self._paid_at = {group: paid_at for group, paid_at in self._paid_at.items() if paid_at > self._number}
        self._over_share &= self._paid_at.keys()
        self._prune_above = max(PRUNE_ABOVE, 2 * len(self._paid_at))


PREFERRED_TURNS = 4
"""While hosts wait in both lines, every fourth turn goes to one outside the preferred domains (chosen)."""
_RANKS_IN = [[rank for rank in range(RANKS) if mask >> rank & 1] for mask in range(1 << RANKS)]
"""Bit mask -> the ranks that it stands for, bit n for rank n."""


class _Line:
    """Ids in the order in which they came."""

    def __init__(self) -> None:
        self.last = array("I")  # those that came last
        self._first = array("I")  # those before them, backwards

    def __len__(self) -> int:
        return len(self._first) + len(self.last)

    def pop(self) -> int:
        if not self._first:
            self._first = self.last[::-1]
            self.last = array("I")
        return self._first.pop()


class Backlog:
    """Ids of hosts that have URLs and no place: by rank, then first come, first served; 4 bytes each.

    After BUbiNG's virtualiser (Boldi et al. 2018), which keeps the queues of most hosts on disk; here the records of
    the hosts are there too.  A host that is not due within a minute waits apart until it is.  Hosts under a preferred
    top-level domain (``SPIDERLING_PREFER_TLDS``) have a line of their own, which is served three times out of four
    while hosts wait in both.  Each of the two is made of one line for each rank; which rank is served is drawn.

    A host whose rank has changed must be pushed again; its former entry is then skipped.

    Hosts wait apart from this line while their group (``Shares``) holds its share of the places (schedule.Places).
    Each such group has a backlog of its own, so a farm of 20,000 hosts does not fill the line.  When the group may have
    another place, its first host comes back to the end of the line.
    """

    def __init__(
        self,
        prefers: Callable[[int], int] = lambda host_id: 0,
        rank_of: Callable[[int], int] = lambda host_id: 0,
        draw: Callable[[Sequence[int]], int] = min,
        is_full: Callable[[Group, int], bool] = lambda group, more: False,
    ) -> None:
        """*is_full*: whether a group, with a number of further places, would hold its share of them."""
        self._prefers = prefers
        self._rank_of = rank_of
        self._draw = draw
        self._is_full = is_full
        self._lines = [[_Line() for _ in range(RANKS)] for _ in range(2)]
        """The line of the others and that of preferred hosts, each by rank."""
        self._waited_in = [0, 0]
        """For each of the two, a bit mask of the ranks whose line is not empty: it is needed often."""
        self._number = 0
        self._turn = 0
        self._snoozed: list[tuple[float, int]] = []
        self._apart: dict[Group, Backlog] = {}
        self._called: dict[int, Group] = {}
        """Id of a host that has come back into the line -> the group with which it waited apart."""

    def __len__(self) -> int:
        return self._number + len(self._snoozed) + sum(map(len, self._apart.values()))

    def push(self, host_id: int, due: float, now: float) -> None:
        """Add *host_id* to the end of its line, or apart if it is not due within a minute."""
        if due > now + LONG_S:
            heapq.heappush(self._snoozed, (due, host_id))
        else:
            which = self._prefers(host_id)
            rank = self._rank_of(host_id)
            self._lines[which][rank].last.append(host_id)
            self._waited_in[which] |= 1 << rank
            self._number += 1

    def extend(self, host_ids: Sequence[int]) -> None:
        """Add these to the ends of their lines, in this order."""
        ids = np.array(host_ids, np.uint32)
        preferred, ranks = (np.fromiter(map(of, host_ids), np.uint8, len(ids)) for of in (self._prefers, self._rank_of))
        for which, lines in enumerate(self._lines):
            for rank, line in enumerate(lines):
                line.last.frombytes(ids[(preferred == which) & (ranks == rank)].tobytes())
                self._waited_in[which] |= bool(len(line)) << rank
        self._number += len(host_ids)

    def pop(self, now: float) -> int | None:
        """Take out the host that is next in the line at *now*; None if none is."""
        self._call(now)
        host_id = self._pop(now)
        if self._called and host_id is not None:
            self._called.pop(host_id, None)
        return host_id

    def _pop(self, now: float) -> int | None:
        if self._snoozed and self._snoozed[0][0] <= now:
            return heapq.heappop(self._snoozed)[1]
        others, preferred = self._waited_in
        while others or preferred:
            which = int(not others)
            if others and preferred:
                self._turn = (self._turn + 1) % PREFERRED_TURNS
                which = int(self._turn > 0)
            rank = self._draw(_RANKS_IN[self._waited_in[which]])
            line = self._lines[which][rank]
            host_id = line.pop()
            self._number -= 1
            if not len(line):
                self._waited_in[which] &= ~(1 << rank)
            if self._rank_of(host_id) == rank:
                return host_id
            others, preferred = self._waited_in
        return None

    def has_others(self, now: float) -> bool:
        """Whether at *now* a host waits in the line."""
        return bool(self._number or (self._snoozed and self._snoozed[0][0] <= now))

    def set_apart(self, group: Group, host_id: int, due: float, now: float) -> None:
        """*host_id* waits apart, behind the others of *group*, which holds its share of places."""
        if group not in self._apart:
            self._apart[group] = Backlog(self._prefers, self._rank_of, self._draw)
        self._apart[group].push(host_id, due, now)

    def pop_apart(self, now: float) -> int | None:
        """Take out a host that waits apart, for a place that no host in the line needs; groups take turns."""
        for group in list(self._apart):
            line = self._apart.pop(group)
            host_id = line.pop(now)
            if len(line):
                self._apart[group] = line
            if host_id is not None:
                return host_id
        return None

    def _call(self, now: float) -> None:
        """Move the first host of one group to the end of the line if the group may have another place."""
        if not self._apart:
            return
        group = next(iter(self._apart))
        line = self._apart.pop(group)
        called = list(self._called.values()).count(group)
        if not self._is_full(group, called) and (host_id := line.pop(now)) is not None:
            self._called[host_id] = group
            self.push(host_id, now, now)
        if len(line):
            self._apart[group] = line

    def hasten(self, now: float) -> None:
        """Take out all that wait for a time from *now* on: the caller pushes them again that are not due."""
        self._snoozed = [(min(due, now), host_id) for due, host_id in self._snoozed]
        for line in self._apart.values():
            line.hasten(now)

    def best_rank(self) -> int:
        """The best rank in the line, or of the hosts apart if the line is empty; RANKS if no host waits."""
        mask = self._waited_in[0] | self._waited_in[1]
        if mask:
            return (mask & -mask).bit_length() - 1
        return min((line.best_rank() for line in self._apart.values()), default=RANKS)

    def next_due(self) -> float | None:
        """When a host can next be taken out; 0: at once; None: none waits."""
        if self._number:
            return 0.0
        dues = [line.next_due() for line in self._apart.values()] + [due for due, _ in self._snoozed[:1]]
        return min((due for due in dues if due is not None), default=None)
