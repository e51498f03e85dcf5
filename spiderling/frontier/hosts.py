"""What is known of hosts, in memory: the record of one (Host), columns of all (HostStates)."""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl
from spiderling.frontier.site_files import SiteFile

SEED_RANK = 0  # the rank of seeds
REQUEST_RANK = 1  # the rank of requests that a subclass of the spider makes
SITEMAP_RANK = 6  # the rank of sitemaps and of their URLs: they come after the links of pages with text and of hubs
LAST_RANK = 9  # the rank of the URLs that are fetched last
RANKS = LAST_RANK + 1  # number of ranks
STEP = 1.7
"""Yield rate that a rank promises / that of the next worse one (chosen: ten ranks reach over two powers of ten)."""


@dataclass(slots=True)
class YieldAccount:
    """What was downloaded from and kept of one host."""

    pages: int = 0  # judged responses: final status, not robots.txt, redirects or 304
    downloaded_bytes: int = 0  # bytes of response bodies, as UTF-8
    kept_bytes: int = 0  # bytes of new clean text, as UTF-8

    @property
    def rate(self) -> float:
        """Kept / downloaded bytes; 0 before anything was downloaded."""
        return self.kept_bytes / self.downloaded_bytes if self.downloaded_bytes else 0.0


class HostState(Enum):
    """The state of a host.  Those in CLOSED_STATES last until the host is reopened."""

    __hash__ = object.__hash__  # a third of the time that Enum's takes

    RESOLVING = "resolving"
    READY = "ready"
    IN_PROCESS = "in process"
    SNOOZED = "snoozed"
    RETIRED = "retired"
    BLOCKED = "blocked"
    FORBIDDEN = "forbidden"
    MIRROR = "mirror"
    MOVED = "moved"
    REFUSED = "refused"
    EXHAUSTED = "exhausted"
    SPENT = "spent"


CLOSED_STATES = {
    HostState.RETIRED: Reason.HOST_RETIRED,
    HostState.SPENT: Reason.HOST_SPENT,
    HostState.BLOCKED: Reason.HOST_BLOCKED,
    HostState.FORBIDDEN: Reason.CRAWL_DELAY,
    HostState.MIRROR: Reason.MIRROR,
    HostState.MOVED: Reason.MOVED,
    HostState.REFUSED: Reason.HOST_REFUSED,
}
"""States in which no URL of the host is handed out -> the Reason as which its URLs end."""
_STATES = list(HostState)
_CODES = {state: code for code, state in enumerate(_STATES)}
STATE_OF = {state.value: state for state in HostState}
_AT_REST = _CODES[HostState.EXHAUSTED]
_READY = _CODES[HostState.READY]
_CODES_AT_REST = {name: _CODES[state] if state in CLOSED_STATES else _AT_REST for name, state in STATE_OF.items()}
"""Name of a host's state in the store -> the code it has after a restart: hosts that are not closed are at rest."""
_CLOSED_CODES = frozenset(_CODES[state] for state in CLOSED_STATES)
_AT_WORK = [_CODES[state] for state in HostState if state not in {*CLOSED_STATES, HostState.EXHAUSTED}]
_MAX_DISTANCE = 65535  # the largest number of two bytes; hosts farther away count as this far


class HostStates:
    """State, distance, length of the queue and more of every host, by id, in 18 bytes a host."""

    def __init__(self) -> None:
        self.codes = array("B", [_CODES[HostState.EXHAUSTED]])  # no host has the id 0
        """The state of each host; only `set_state`, `set_ready` and restarts change it."""
        self.distances = array("H", [0])  # host hops from the seeds to each host; only `Admission.lower` changes them
        self.queued = array("I", [0])
        """URLs in each host's queue, parked ones included; only storage/queues.py changes it."""
        self.ranks = bytearray(1)  # rank of each host, 0 (best) to 9, as the strategy's ``host_rank`` computed it last
        self.heads = bytearray(1)  # rank of each host's best URL when `ranks` was computed; 255: unknown
        self.preferred = bytearray(1)  # whether each host is under a preferred top-level domain
        self.last_starts = array("d", [-math.inf])
        """When the last request of this process to each host started, if it has left memory since; else -inf."""
        self.revisits: dict[int, deque[int]] = {}
        """Host id -> keys of the pages that it is to be asked for again; only recrawl/recrawl.py changes it."""
        self._tally = [0] * len(_STATES)

    def add_host(self, distance: int, preferred: bool) -> None:
        """Add the host of the next id, at rest."""
        self.preferred.append(preferred)
        self.ranks.append(0)
        self.heads.append(0)
        self.last_starts.append(-math.inf)
        self.codes.append(_AT_REST)
        self.distances.append(min(distance, _MAX_DISTANCE))
        self.queued.append(0)
        self._tally[_AT_REST] += 1

    def load_columns(self, columns: HostColumns, preferred: Iterable[bool], rank: int) -> None:
        """Add the hosts of the next ids from the store; those that are not closed are at rest, with the rank *rank*."""
        codes = [_CODES_AT_REST[state] for state in columns.states]
        self.codes.extend(codes)
        self.distances.extend([min(distance, _MAX_DISTANCE) for distance in columns.distances])
        self.queued.extend(columns.queued)
        self.preferred.extend(preferred)
        self.ranks.extend(bytes([rank]) * len(codes))
        self.heads.extend(b"\xff" * len(codes))
        self.last_starts.extend([-math.inf] * len(codes))
        for code, number in Counter(codes).items():
            self._tally[code] += number

    def waiting(self) -> NDArray[np.int64]:
        """Ids of the hosts at rest that have URLs."""
        return np.flatnonzero((np.array(self.codes) == _AT_REST) & (np.array(self.queued) > 0))

    def set_ready(self, host_ids: Sequence[int]) -> None:
        """Change the state of these hosts from EXHAUSTED to READY."""
        for host_id in host_ids:
            self.codes[host_id] = _READY
        self._tally[_AT_REST] -= len(host_ids)
        self._tally[_READY] += len(host_ids)

    def __len__(self) -> int:
        return len(self.codes) - 1

    def state(self, host_id: int) -> HostState:
        return _STATES[self.codes[host_id]]

    def is_closed(self, host_id: int) -> bool:
        return self.codes[host_id] in _CLOSED_CODES

    def is_at_rest(self, host_id: int) -> bool:
        return self.codes[host_id] == _AT_REST

    def set_state(self, host_id: int, state: HostState) -> None:
        self._tally[self.codes[host_id]] -= 1
        code = self.codes[host_id] = _CODES[state]
        self._tally[code] += 1

    def farther(self, host_ids: Iterable[int], distance: int) -> list[int]:
        """The hosts among *host_ids* that are farther than *distance*; the id 0, of unknown hosts, never is."""
        distances = self.distances
        return [host_id for host_id in host_ids if distances[host_id] > distance]

    def hosts_by_state(self) -> dict[HostState, int]:
        return {state: number for state, number in zip(_STATES, self._tally, strict=True) if number}

    def at_work(self) -> int:
        """How many hosts have URLs to be fetched."""
        return sum([self._tally[code] for code in _AT_WORK])


@dataclass(slots=True, eq=False)
class QueuedUrl:
    """A discovered URL that has not ended, with its host; in a queue it is one line (storage/queues.py)."""

    key: int
    url: str  # the canonical URL, or a server's own spelling of it
    host: Host
    rank: int
    target: CanonicalUrl
    tries: int = 0  # attempts that failed
    redirects: int = 0  # redirects that led to it
    payload: bytes | None = None  # a serialised request of a subclass, or the mark of a sitemap; None for a plain page


@dataclass(frozen=True, slots=True)
class RobotsRequest:
    """A request for a file of a site, such as robots.txt, on behalf of an origin."""

    origin: str  # for a licence its own address, as it is named
    url: str  # where it is fetched; after a redirect it may be of another origin
    name: str  # the host name in ``url``
    redirects: int = 0
    file: SiteFile = SiteFile.ROBOTS
    asker: tuple[int, int] | None = None  # the shard of the crawl that wants it, and its number there; None: this one

    @property
    def is_at_home(self) -> bool:
        """Whether it is fetched where it speaks for: at its own origin, for this shard."""
        return self.asker is None and not self.redirects and self.file is not SiteFile.LICENCE


def identity(head: QueuedUrl | RobotsRequest) -> tuple[str, int | None]:
    """(URL, key) or (URL of a file of a site, None): it stays the same over restarts."""
    if isinstance(head, QueuedUrl):
        return head.url, head.key
    return (head.origin if head.file is SiteFile.LICENCE else head.origin + head.file.value), None


@dataclass(slots=True, eq=False)
class Host:
    """The record of a host while it is in memory; host_table.py makes it of a row of the table ``host`` and back.

    In brackets stands who alone changes a field; nobody changes the first four after host_table.py has made the record.
    """

    id: int
    name: str
    states: HostStates = field(repr=False)  # the columns of all hosts: its state, distance and length of the queue
    domain: int = 0  # 16 bits of the hash of its registrable domain (workbench.py)
    account: YieldAccount = field(default_factory=YieldAccount)
    """(HostTable.count_bytes)"""
    documents: int = 0  # (Frontier, when a page is reported; the words too)
    words: int = 0
    due: float = 0.0
    """The earliest time at which its next request may start (Schedule, Intervals; all others call ``postpone``)."""
    quiet_until: float = 0.0  # the same, but for its interval (``postpone``)
    crawl_delay_s: float = 0.0  # (next_fetch.py)
    failures: int = 0  # failed requests in a row (Frontier, HostClosing, UrlStates)
    slowdown: float = 1.0  # factor on the host's interval while it says that it is busy (Intervals)
    address: str = ""  # the address of the last request (Schedule)
    needs_file: bool = False  # whether it is to be asked for a file of the site next (Schedule)
    pinned: bool = False  # reopened by the user: not retired again (UrlStates.reopen_queue)
    has_second_chance: bool = False  # reopened for lack of hosts: not retired again by its yield (HostClosing)
    last_start: float = -math.inf
    """When its last request started (Intervals).  After a restart it is not known, and an interval is waited for."""
    in_transit: int = 0
    """Requests, of pages or files of the site, that are not over: 0 or 1 (Schedule, Probes, ArchivePages)."""
    fetching: QueuedUrl | None = None  # the URL in transit (UrlStates; intake.py for pages of archives)
    robots_requests: deque[RobotsRequest] = field(default_factory=deque)
    """Files of the site to be fetched before its URLs (RobotsRequests; Frontier takes one out or puts it back)."""
    asking: RobotsRequest | None = None  # the file of the site in transit (Frontier)
    version: int = 0
    """Changes whenever it enters or leaves workbench or throttle, which do that: entries of another one are stale."""
    active: bool = False  # whether it has a place on the workbench (Schedule)
    turns: int = 0  # requests since it got its place (Schedule)
    throttle_class: int | None = None  # the class in which it is counted while it has a place (Throttle)
    opened_in: int | None = None  # the rank in which it counts as opened (Opened)
    entered_class: int | None = None
    """The class in which its first page was read; None: before it came into memory (Throttle)."""
    place: str = ""  # the address under which its place is counted (Places)

    def postpone(self, until: float) -> None:
        """Its next request starts at the time *until* or later, whatever its interval is by then."""
        self.quiet_until = max(self.quiet_until, until)
        self.due = max(self.due, until)

    @property
    def is_unopened(self) -> bool:
        """Whether no page of it was read, and nothing was asked for since it got its place."""
        return self.needs_file and not (self.turns or self.account.pages or self.is_awaited)

    @property
    def is_awaited(self) -> bool:
        """Whether it is to be asked for a file that others wait for."""
        return bool(self.robots_requests) and not self.robots_requests[0].is_at_home

    @property
    def state(self) -> HostState:
        return _STATES[self.states.codes[self.id]]

    @state.setter
    def state(self, state: HostState) -> None:
        self.states.set_state(self.id, state)

    @property
    def distance(self) -> int:
        """Host hops from the seeds."""
        return self.states.distances[self.id]

    @property
    def queued(self) -> int:
        """URLs in its queue; they are parked if the host is closed."""
        return self.states.queued[self.id]

    @property
    def waiting(self) -> int:
        """URLs in its queue that will be handed out; 0 if the host is closed."""
        return 0 if self.is_closed else self.queued

    @property
    def is_closed(self) -> bool:
        return self.states.codes[self.id] in _CLOSED_CODES

    @property
    def has_work(self) -> bool:
        """Whether it has something to be fetched: a file of the site, a URL, or a page to be revisited."""
        if self.robots_requests:
            return True
        waits = self.states.queued[self.id] or self.id in self.states.revisits
        return bool(waits) and self.states.codes[self.id] not in _CLOSED_CODES


class HostColumns(NamedTuple):
    """What a restart reads of a block of hosts with consecutive ids: lists with an entry for each host."""

    names: list[str]
    states: list[str]
    distances: list[int]
    queued: list[int]  # URLs in the queue, waiting or parked
    dues: list[float]  # when the host is due, intervals aside; rounded to 15 digits
