"""A host and what it is made of; a URL waiting in its queue; and what is kept of every host in memory."""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl
from spiderling.frontier.hosts.yields import YieldAccount
from spiderling.frontier.site_files import SiteFile

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HostState(Enum):
    """Where a host stands; RETIRED, SPENT, BLOCKED, FORBIDDEN and MIRROR last until somebody reopens it."""

    __hash__ = object.__hash__  # a third of the time that Enum's takes

    RESOLVING = "resolving"
    READY = "ready"
    IN_PROCESS = "in process"
    SNOOZED = "snoozed"
    RETIRED = "retired"
    BLOCKED = "blocked"
    FORBIDDEN = "forbidden"
    MIRROR = "mirror"
    EXHAUSTED = "exhausted"
    SPENT = "spent"


CLOSED_STATES = {
    HostState.RETIRED: Reason.HOST_RETIRED,
    HostState.SPENT: Reason.HOST_SPENT,
    HostState.BLOCKED: Reason.HOST_BLOCKED,
    HostState.FORBIDDEN: Reason.CRAWL_DELAY,
    HostState.MIRROR: Reason.MIRROR,
}
"""States in which no URL of the host is handed out, with the Reason its URLs end as."""
_STATES = list(HostState)
_CODES = {state: code for code, state in enumerate(_STATES)}
STATE_OF = {state.value: state for state in HostState}
_AT_REST, _READY = _CODES[HostState.EXHAUSTED], _CODES[HostState.READY]
_CODES_AT_REST = {name: _CODES[state] if state in CLOSED_STATES else _AT_REST for name, state in STATE_OF.items()}
_CLOSED_CODES = frozenset(_CODES[state] for state in CLOSED_STATES)
_MAX_DISTANCE = 65535


class HostStates:
    """State, distance and length of the queue of every host, by id, in 12 bytes each."""

    def __init__(self) -> None:
        self._states = array("B", [_CODES[HostState.EXHAUSTED]])  # no host has the id 0
        self._distances = array("H", [0])
        self.queued = array("I", [0])
        """URLs in each host's queue, parked ones included."""
        self.ranks = bytearray(1)
        """What each host is worth now, 0 to 9 (ranking/strategies.py) ..."""
        self.heads = bytearray(1)
        """... and the rank of the best of its URLs, by which that was worked out; 255: not known."""
        self.preferred = bytearray(1)
        """Whether each host is under a preferred top-level domain."""
        self.domains = array("H", [0])
        """What stands for each host's registrable domain (`domain_mark`); 0: the host has not been in memory."""
        self._tally = [0] * len(_STATES)

    def add_host(
        self, state: HostState, distance: int, queued: int = 0, preferred: bool = False, rank: int = 0, domain: int = 0
    ) -> None:
        """Note the host of the next id."""
        self.domains.append(domain)
        self.preferred.append(preferred)
        self.ranks.append(rank)
        self.heads.append(0)
        self._states.append(_CODES[state])
        self._distances.append(min(distance, _MAX_DISTANCE))
        self.queued.append(queued)
        self._tally[_CODES[state]] += 1

    def load_columns(self, columns: HostColumns, preferred: Iterable[bool], rank: int) -> None:
        """Note the hosts of the next ids as the store has them: those that are not closed are at rest."""
        codes = [_CODES_AT_REST[state] for state in columns.states]
        self._states.extend(codes)
        self._distances.extend([min(distance, _MAX_DISTANCE) for distance in columns.distances])
        self.queued.extend(columns.queued)
        self.preferred.extend(preferred)
        self.domains.frombytes(bytes(self.domains.itemsize * len(codes)))
        self.ranks.extend(bytes([rank]) * len(codes))
        self.heads.extend(b"\xff" * len(codes))
        for code, number in Counter(codes).items():
            self._tally[code] += number

    def waiting(self) -> NDArray[np.int64]:
        """The ids of those at rest that have URLs."""
        return np.flatnonzero((np.array(self._states) == _AT_REST) & (np.array(self.queued) > 0))

    def set_ready(self, host_ids: Sequence[int]) -> None:
        """These were at rest and are ready."""
        for host_id in host_ids:
            self._states[host_id] = _READY
        self._tally[_AT_REST] -= len(host_ids)
        self._tally[_READY] += len(host_ids)

    def __len__(self) -> int:
        return len(self._states) - 1

    def state(self, host_id: int) -> HostState:
        return _STATES[self._states[host_id]]

    def is_closed(self, host_id: int) -> bool:
        return self._states[host_id] in _CLOSED_CODES

    def is_at_rest(self, host_id: int) -> bool:
        """Whether it is EXHAUSTED."""
        return self._states[host_id] == _AT_REST

    def set_state(self, host_id: int, state: HostState) -> None:
        self._tally[self._states[host_id]] -= 1
        code = self._states[host_id] = _CODES[state]
        self._tally[code] += 1

    def distance(self, host_id: int) -> int:
        return self._distances[host_id]

    def farther(self, host_ids: Iterable[int], distance: int) -> list[int]:
        """Those of *host_ids*, 0 for unknown ones, that were found at more than *distance* so far."""
        distances = self._distances
        return [host_id for host_id in host_ids if distances[host_id] > distance]

    def set_distance(self, host_id: int, distance: int) -> None:
        self._distances[host_id] = min(distance, _MAX_DISTANCE)

    def hosts_by_state(self) -> dict[HostState, int]:
        """How many hosts are in each state."""
        return {state: number for state, number in zip(_STATES, self._tally, strict=True) if number}


@dataclass(slots=True, eq=False)
class QueuedUrl:
    """A URL that the frontier has accepted and that has not ended, on its way into or out of a queue."""

    key: int
    url: str
    """Canonical, or a server's own spelling of it."""
    host: Host
    rank: int
    target: CanonicalUrl
    tries: int = 0
    redirects: int = 0
    payload: bytes | None = None
    """A serialised request of a subclass (callback, meta, method ...); None for a plain page."""


@dataclass(frozen=True, slots=True)
class RobotsTask:
    """A robots.txt or the like to be fetched for an origin; ``url`` differs from the origin's after redirects."""

    origin: str
    url: str
    name: str
    """The name in ``url``."""
    redirects: int = 0
    file: SiteFile = SiteFile.ROBOTS


def identity(head: QueuedUrl | RobotsTask) -> tuple[str, int | None]:
    """What tells a URL, by its key, or a file of a site, by its own URL, from all others, over restarts."""
    return (head.origin + head.file.value, None) if isinstance(head, RobotsTask) else (head.url, head.key)


@dataclass(slots=True, eq=False)
class Host:
    """One host record while it is in memory; a row of the store's table ``host``."""

    id: int
    name: str
    states: HostStates = field(repr=False)
    account: YieldAccount = field(default_factory=YieldAccount)
    """Its own bytes and pages, whatever unit is retired together."""
    documents: int = 0
    words: int = 0
    due: float = 0.0
    """Earliest time of the next request's start."""
    crawl_delay_s: float = 0.0
    failures: int = 0
    """Failed requests in a row."""
    slowdown: float = 1.0
    """Its interval is stretched so many times, because it said that it is busy (scheduling/slowdown.py)."""
    domain: int = 0
    """What stands for its registrable domain (scheduling/shares.py)."""
    address: str = ""
    """The address of the last request."""
    pinned: bool = False
    """Reopened by the user: not retired again."""
    second_chances: int = 0
    """How many times it was reopened because the web ran dry: it is judged by so many milder steps (yields.py)."""
    last_start: float = -math.inf
    """When its last request started; forgotten with the host, for ``due`` is at least an interval later."""
    in_transit: int = 0
    """Requests handed out and not over, of pages and robots.txt: 0 or 1."""
    fetching: QueuedUrl | None = None
    """The URL that is in transit."""
    tasks: deque[RobotsTask] = field(default_factory=deque)
    asking: RobotsTask | None = None
    """The robots.txt that is in transit."""
    version: int = 0
    """Changes whenever the host enters or leaves the workbench, so that stale entries are known."""
    active: bool = False
    """Whether it holds one of the workbench's places."""
    turns: int = 0
    """Requests since it has held its place."""
    rank_group: int | None = None
    """The kind (scheduling/holding.py) as which it is counted among those that hold a place."""
    benched: float = 0.0
    """When it was last put on the workbench."""
    place: str = ""
    """The address under which its place is counted."""

    @property
    def state(self) -> HostState:
        return self.states.state(self.id)

    @state.setter
    def state(self, state: HostState) -> None:
        self.states.set_state(self.id, state)

    @property
    def distance(self) -> int:
        """Host hops from the seeds."""
        return self.states.distance(self.id)

    @property
    def queued(self) -> int:
        """URLs in its queue, wherever that is stored; parked if the host is closed."""
        return self.states.queued[self.id]

    @property
    def waiting(self) -> int:
        """URLs in its queue that will be handed out."""
        return 0 if self.is_closed else self.queued

    @property
    def is_closed(self) -> bool:
        return self.states.is_closed(self.id)

    @property
    def has_work(self) -> bool:
        return bool(self.tasks or (self.states.queued[self.id] and not self.states.is_closed(self.id)))


class HostColumns(NamedTuple):
    """What the frontier keeps of every host in memory, whether it is active or not: hosts by id, a column of each."""

    names: list[str]
    states: list[str]
    distances: list[int]
    queued: list[int]
    """``waiting`` or ``parked``."""
    dues: list[float]
    """To 15 digits."""
