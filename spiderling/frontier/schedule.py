"""Where each host stands: on the workbench, waiting for its name's address, in the backlog, or at rest.

A host on the workbench has one of a bounded number of places, and is in memory.  The others with URLs wait in the
backlog, first come, first served.  While others wait there, a host gives its place up after some requests, or when it
is not due for long.  So the hosts of a rank take turns.  Hosts of an address or a registrable domain that has its share
of all places wait in a line of their own (``Backlog``).

A name without a fresh address is never handed out.  Names are asked for when a host comes to the workbench, so that the
answer is there when the host is due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from spiderling.base.options import Options
from spiderling.frontier import intervals
from spiderling.frontier.hosts import LAST_RANK, Host, HostState, RobotsRequest, YieldAccount
from spiderling.frontier.intervals import Intervals
from spiderling.frontier.storage.host_table import HostTable
from spiderling.frontier.storage.queues import Queues
from spiderling.frontier.strategy import Draw, Strategy
from spiderling.frontier.throttle import Opened, Throttle
from spiderling.frontier.workbench import LONG_S, NO_ADDRESS, Backlog, Group, Workbench

MAX_SHARE = 0.1  # largest share of the requests for one address or domain while others are due; chosen
DEAD_FOR_S = 3600.0  # seconds for which a name that does not resolve is not asked for again; chosen
MAX_NAMES = 50_000  # names that are kept; of more, the older half goes unless a host waits for it; chosen


class NameStatus(Enum):
    FRESH = "fresh"
    UNKNOWN = "unknown"
    PAUSED = "paused"  # the name servers failed; ask again at ``expires``
    DEAD = "dead"
    FORBIDDEN = "forbidden"


@dataclass(slots=True)
class Name:
    """What is known of one host name; ``address`` is the one that requests go to and whose turn they wait for."""

    status: NameStatus = NameStatus.UNKNOWN
    address: str = ""
    expires: float = 0.0
    failures: int = 0
    hosts: set[Host] = field(default_factory=set)  # hosts that wait for the answer


class Names:
    """Addresses of names, with expiry; ``allows`` judges an address (SSRF guard)."""

    def __init__(self, options: Options, allows: Callable[[str], bool]) -> None:
        self._retries = options.retries
        self._allows = allows
        self._names: dict[str, Name] = {}
        self._wanted: list[str] = []

    def lookup(self, name: str, now: float) -> Name:
        """What is known at *now*; an expired answer counts as UNKNOWN."""
        known = self._names.get(name)
        if known is None:
            return Name()
        if known.expires <= now and not known.hosts:
            known.status = NameStatus.UNKNOWN
        return known

    def want(self, name: str, host: Host) -> None:
        """Ask for *name* on behalf of *host*; several hosts share one question."""
        known = self._names.setdefault(name, Name())
        if not known.hosts:
            known.status = NameStatus.UNKNOWN
            self._wanted.append(name)
        known.hosts.add(host)

    def take_wanted(self) -> list[str]:
        """The names to be resolved now; each is given out once."""
        wanted = self._wanted
        self._wanted = []
        return wanted

    def resolved(self, name: str, addresses: tuple[str, ...], ttl_s: float, now: float) -> set[Host]:
        """Note the answer; returns the hosts that waited for it."""
        self._prune()
        known = self._names.setdefault(name, Name())
        known.address = next(filter(self._allows, addresses), "")
        known.status = NameStatus.FRESH if known.address else NameStatus.FORBIDDEN
        known.expires = now + ttl_s
        known.failures = 0
        return _release(known)

    def unresolved(self, name: str, permanent: bool, now: float) -> set[Host]:
        """Note a failure: DEAD at once (*permanent*) or after the retries; returns the hosts that waited."""
        known = self._names.setdefault(name, Name())
        known.failures += 1
        if permanent or known.failures > self._retries:
            known.status = NameStatus.DEAD
            known.expires = now + DEAD_FOR_S
            known.failures = 0
        else:
            pause = min(intervals.RETRY_DELAY_S * 2.0 ** (known.failures - 1), intervals.MAX_PAUSE_S)
            known.status = NameStatus.PAUSED
            known.expires = now + pause
        return _release(known)

    def forget(self) -> None:
        """Let all answers expire."""
        for known in self._names.values():
            known.expires = 0.0

    def _prune(self) -> None:
        """If there are too many names, keep the newer half and those that hosts wait for."""
        if len(self._names) > MAX_NAMES:
            names = list(self._names.items())
            newer = len(names) // 2
            self._names = {name: known for name, known in names[:newer] if known.hosts} | dict(names[newer:])


def _release(known: Name) -> set[Host]:
    waiting = known.hosts
    known.hosts = set()
    return waiting


_MIN = 8
"""Places that any group may hold, however few there are (chosen: a tenth of ten would be one host an address)."""
TURNS = 16  # requests after which a host gives its place to one in the backlog (chosen)
_LOOKS_PER_STEP = 16  # hosts of the backlog that are looked at in one call, so that none takes long; chosen
_NOTHING = YieldAccount()
_PLACE = "a place (SPIDERLING_ACTIVE_HOSTS)"  # what a host in the backlog waits for


def _wait_of(host: Host, now: float) -> str:
    """What *host*, which has a place, waits for at *now*."""
    if host.in_transit:
        return host.asking.file.value.rpartition("/")[2] if host.asking is not None else "a page"
    if host.state is HostState.RESOLVING:
        return "the address"
    return "the interval" if host.due > now else "the turn"


class Schedule:
    """Names, workbench and backlog together."""

    def __init__(
        self,
        options: Options,
        hosts: HostTable,
        queues: Queues,
        allows: Callable[[str], bool],
        vet: Callable[[Host], None],
        strategy: Strategy,
        knows_rules: Callable[[str, float], bool],
    ) -> None:
        """*vet* may close a host that is about to get a place; *knows_rules*: whether we know those of an origin."""
        ranks = hosts.states.ranks
        draw = Draw(strategy.power, options.random_seed)
        self._strategy = strategy
        self._hosts = hosts
        self._queues = queues
        self._vet = vet
        self._knows_rules = knows_rules
        self._places_in_all = options.active_hosts
        self.places_used = 0
        self._places = Places(
            options.active_hosts, MAX_SHARE, lambda: self.intervals.host_s / max(self.intervals.ip_s, 0.001)
        )
        self._backlog = Backlog(hosts.states.preferred.__getitem__, ranks.__getitem__, draw, self._places.is_full)
        self.names = Names(options, allows)
        self._opened = Opened(lambda: self.intervals.host_s)
        self.workbench = Workbench(draw, lambda host: ranks[host.id], MAX_SHARE, self._opened.has_room)
        self.intervals = Intervals(options, self.workbench)
        self.throttle = Throttle(strategy.thrift, strategy.is_foreign, lambda: self.intervals.host_s)

    def next_due(self) -> float | None:
        """When ``pop`` is to be called next; None if nothing waits for a point in time."""
        waiting = self._backlog.next_due() if self.places_used < self._places_in_all else None
        dues = (self.workbench.next_due(), self.throttle.next_due(), waiting)
        return min((due for due in dues if due is not None), default=None)

    def pop(self, now: float) -> tuple[Host, str] | None:
        """Take a host that is due at *now* off the workbench, by rank; returns it with its address."""
        if (released := self.throttle.released(now)) is not None:
            self.workbench.add_host(*released)
        self._make_room(now)
        self._fill(now)
        while (found := self.workbench.pop(now)) is not None and self._keeps(*found, now):
            pass  # it waits again: better hosts have come
        return found

    def _make_room(self, now: float) -> None:
        """If no place is free, a long-throttled host gives its own to one of the backlog that is two ranks better."""
        if self.places_used >= self._places_in_all and (best := self._backlog.best_rank()) < LAST_RANK:
            host = self.throttle.pop_worse(best + 1, LONG_S)
            if host is not None:
                self._leave_place(host)
                self._put_back(host.id, host.due, now)

    def restore(self, waiting: Sequence[int], now: float) -> None:
        """Put the hosts *waiting* into the backlog in this order; no host is due before the intervals are over."""
        self.intervals.begin_anew(now, len(self._hosts) > 0)
        self._hosts.states.set_ready(waiting)
        self._backlog.extend(waiting)

    def awaited(self, now: float) -> Counter[str]:
        """What the hosts with a place, and those in the backlog, wait for at *now* -> how many do."""
        found = Counter(_wait_of(host, now) for host in self._hosts.in_memory() if host.active)
        found[_PLACE] += len(self._backlog)
        return found

    # -- places

    def wake(self, host_id: int, now: float, rank: int = 0) -> None:
        """Note new work of a host, the best of it of *rank*; a host at rest gets a place or joins the backlog."""
        states = self._hosts.states
        is_at_rest = states.is_at_rest(host_id)
        if not is_at_rest and rank >= states.heads[host_id]:
            return  # it has a URL as good as that already
        if self._strategy.ranks_hosts:
            self._rank(host_id, rank, now, is_at_rest)
        if not is_at_rest:
            return
        if self.places_used < self._places_in_all and not len(self._backlog):
            host = self._hosts.by_id(host_id)
            self._vet(host)
            host.postpone(now)
            if not host.is_closed:
                self._give_place(host, now)
        else:
            live = self._hosts.live(host_id)
            self._put_back(host_id, self.intervals.due(live, now) if live else now, now)

    def _rank(self, host_id: int, rank: int, now: float, is_at_rest: bool) -> None:
        """Compute the host's rank with new work of *rank*; if it is better than before, place the host anew."""
        states = self._hosts.states
        live = self._hosts.live(host_id)
        worth = self._strategy.host_rank(host_id, live.account if live else _NOTHING, rank)
        states.heads[host_id] = rank
        if is_at_rest:
            states.ranks[host_id] = worth
        elif worth < states.ranks[host_id]:
            states.ranks[host_id] = worth
            if live is not None and live.active:
                self.place(live, now)
            elif states.state(host_id) is HostState.READY:
                self._backlog.push(host_id, now, now)

    def place(self, host: Host, now: float) -> None:
        """Put *host* where it belongs; a host in transit is left alone until it is released."""
        if host.in_transit:
            return
        if host.is_closed or not host.has_work:
            self.rest(host)
            return
        if not host.active and host.robots_requests:
            self._consider(host, True, now)  # others keep their places until it has answered
            return
        if not host.active:
            self.wake(host.id, now)
            return
        head = self._queues.next_up(host)
        states = self._hosts.states
        if isinstance(head, RobotsRequest):
            host.needs_file = True
            wanted = head.name
        else:
            host.needs_file = not self._knows_rules(head.target.origin, now)
            wanted = head.target.name
            states.heads[host.id] = head.rank
            states.ranks[host.id] = self._strategy.host_rank(host.id, host.account, head.rank)
        name = self.names.lookup(wanted, now)
        self.throttle.count(host, states.ranks[host.id])
        if not host.robots_requests and len(self._backlog) and self._goes_back(host, name, now):
            self._leave_place(host)
            self._put_back(host.id, host.due, now)
            return
        if name.status is NameStatus.UNKNOWN and host.due <= now + LONG_S:
            host.state = HostState.RESOLVING
            self.workbench.remove(host)
            self.names.want(wanted, host)
            return
        if name.status is NameStatus.PAUSED:
            host.postpone(name.expires)
        self.wait_at(host, name.address if name.status is NameStatus.FRESH else NO_ADDRESS, now)

    def _goes_back(self, host: Host, name: Name, now: float) -> bool:
        """Whether *host* makes room for others: its turn is over, it is not due, or its address is crowded."""
        if host.turns and self._backlog.has_others(now) and self._places.has_too_many(host):
            return True
        if host.turns >= TURNS or host.due > now + LONG_S:
            return True
        if name.status is NameStatus.FRESH and name.address != host.place and self._places.is_full(name.address):
            host.address = name.address  # with whose hosts it waits apart next time
            return True
        return False

    def wait_at(self, host: Host, address: str, now: float) -> None:
        """Put *host* on the workbench under *address*, until it and the address are due."""
        interval_s = self.intervals.of(host)
        state = HostState.SNOOZED if host.due > now + interval_s else HostState.READY
        self._hosts.states.set_state(host.id, state)
        if address != host.place:
            self._places.move(host, address)
        if host.due > now + LONG_S + interval_s:
            self._discount(host)  # no other host waits for one that does not answer
        else:
            self._opened.note(host, self._opened_rank(host, address))
        if not self._keeps(host, address, now):
            self.workbench.add_host(host, address)

    def _opened_rank(self, host: Host, address: str) -> int | None:
        """The rank of *host*, which waits for *address*, if it is opened; hosts of groups over their share are not."""
        if host.needs_file or host.account.pages or host.failures:
            return None
        return None if self.workbench.shares.groups_over(host.domain, address) else self._hosts.states.ranks[host.id]

    def _keeps(self, host: Host, address: str, now: float) -> bool:
        """Whether *host* waits in the throttle."""
        return not host.is_awaited and self.throttle.keeps(host, address, self._hosts.states.ranks[host.id], now)

    def set_aside(self, host: Host) -> None:
        """*host* waits for a file that another host is asked for; no other host waits for it meanwhile."""
        host.state = HostState.SNOOZED
        self._discount(host)

    def _discount(self, host: Host) -> None:
        """*host* does not count among the hosts at work."""
        self.throttle.count(host, None)
        self._opened.note(host, None)

    def rest(self, host: Host) -> None:
        """*host* has no work or is closed."""
        if not host.is_closed:
            host.state = HostState.EXHAUSTED
        self._leave_place(host)

    def _fill(self, now: float) -> None:
        """Give free places to the hosts that are next in the backlog."""
        for _ in range(_LOOKS_PER_STEP):
            if self.places_used >= self._places_in_all:
                return
            host_id = self._backlog.pop(now)
            is_alone = host_id is None and not self._backlog.has_others(now)
            if is_alone:
                host_id = self._backlog.pop_apart(now)
            if host_id is None:
                return
            if self._hosts.states.state(host_id) is HostState.READY:  # else it was closed meanwhile
                self._consider(self._hosts.by_id(host_id), is_alone, now)

    def _consider(self, host: Host, is_alone: bool, now: float) -> None:
        """Give a place to *host*, unless its groups have enough of them; *is_alone*: no host in the line needs one."""
        if host.active:
            return
        self._vet(host)
        if host.is_closed or not host.has_work:
            self.rest(host)
            return
        full = None if is_alone else self._places.full_group(host)
        if full is not None:
            self._backlog.set_apart(full, host.id, self.intervals.due(host, now), now)
        else:
            self._give_place(host, now)

    def _give_place(self, host: Host, now: float) -> None:
        host.due = max(self.intervals.due(host, now), now)  # what it waited for a place does not count
        host.active = True
        host.turns = 0
        self.places_used += 1
        self._places.acquire(host)
        self.place(host, now)

    def _leave_place(self, host: Host) -> None:
        self.workbench.remove(host)
        if host.active:
            host.active = False
            self.places_used -= 1
            self._places.release(host)
            self._discount(host)
            self._hosts.changed.add(host)
            self._hosts.release_host(host)

    def _put_back(self, host_id: int, due: float, now: float) -> None:
        self._hosts.states.set_state(host_id, HostState.READY)
        self._backlog.push(host_id, due, now)

    # -- requests

    def change_intervals(self, host_s: float, ip_s: float, now: float) -> None:
        """From now on these are the intervals, in seconds: what waits for longer ones is due sooner."""
        is_shorter = host_s < self.intervals.host_s or ip_s < self.intervals.ip_s
        self.intervals.host_s = host_s
        self.intervals.ip_s = ip_s
        if not is_shorter:
            return
        for host in self._hosts.in_memory():
            self.intervals.hasten(host)
        self.throttle.set_waits()
        self.workbench.hasten(now + ip_s)
        for host in (*self.workbench.hosts(), *self.throttle.hosts()):
            self.place(host, now)
        self._backlog.hasten(now)

    def hand_out(self, host: Host, address: str, now: float, goes_on: bool = False) -> None:
        """A request to *host* at *address* was handed out; one by which a visit *goes on* is no turn of its own."""
        self.workbench.remove(host)
        self.workbench.shares.charge(host.domain, address)
        self.intervals.handed_out(host, address, now)
        self._opened.note(host, None)
        self._opened.count_request(now)
        host.state = HostState.IN_PROCESS
        host.in_transit += 1
        host.turns += not goes_on
        host.address = address

    def count_yield(self, host: Host, kept_bytes: int, downloaded_bytes: int, now: float) -> None:
        """Note what one request to *host* gave.

        What an address or a domain gives beyond its share of the requests does not count: a link farm that is rich in
        text would else raise the bar above all other hosts.
        """
        if not self.workbench.shares.groups_over(host.domain, host.address):
            self.throttle.learn(host, kept_bytes, downloaded_bytes, now)

    def release(self, host: Host, now: float) -> None:
        """The request in transit to *host* is over: place the host."""
        self.end_request(host)
        self.place(host, now)

    def end_request(self, host: Host) -> None:
        """The request in transit to *host* is over; the caller places the host."""
        host.in_transit -= 1
        self.intervals.released(host)


class Places:
    """How many places on the workbench each address and each registrable domain holds, and how many it may."""

    def __init__(self, number: int, share: float, usable: Callable[[], float]) -> None:
        """*number* of places; *share* of them that one group may hold, 0 to 1; *usable*: those that an address can use.

        An address holds twice as many as it can use at most, and _MIN besides.
        """
        self._most = max(_MIN, share * number)
        self._usable = usable
        self.held: Counter[Group] = Counter()  # places by group

    def acquire(self, host: Host) -> None:
        """*host* gets a place, under the address that it had last."""
        self._count(host.domain, 1)
        self.move(host, host.address)

    def release(self, host: Host) -> None:
        """*host* gives its place up."""
        self._count(host.domain, -1)
        self.move(host, "")

    def move(self, host: Host, address: str) -> None:
        """Count the place of *host* under *address* from now on."""
        self._count(host.place, -1)
        self._count(address, 1)
        host.place = address

    def is_full(self, group: Group, more: int = 0) -> bool:
        """Whether *group*, with *more* further places, would hold as many as it may, or more."""
        held = self.held.get(group, 0) + more
        return held >= self._most or (isinstance(group, str) and held >= 2 * self._usable() + _MIN)

    def full_group(self, host: Host) -> Group | None:
        """The group of *host* that holds its share of the places; None if neither does."""
        return next((group for group in (host.domain, host.address) if self.is_full(group)), None)

    def has_too_many(self, host: Host) -> bool:
        """Whether a group of *host*, which holds a place, has more than its share, since no other host needed it."""
        return self.is_full(host.domain, -1) or self.is_full(host.place, -1)

    def _count(self, group: Group, change: int) -> None:
        if group:
            self.held[group] += change
            if not self.held[group]:
                del self.held[group]
