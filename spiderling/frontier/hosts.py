"""A host: its record, its queue, and a URL waiting in it."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from spiderling.frontier.sitefiles import SiteFile
from spiderling.frontier.yields import YieldAccount
from spiderling.reasons import Reason
from spiderling.urls import MAX_HOST_ID, registrable_domain


class HostState(Enum):
    """Where a host stands; RETIRED, BLOCKED and FORBIDDEN last until somebody reopens it."""

    RESOLVING = "resolving"
    READY = "ready"
    IN_PROCESS = "in process"
    SNOOZED = "snoozed"
    RETIRED = "retired"
    BLOCKED = "blocked"
    FORBIDDEN = "forbidden"
    EXHAUSTED = "exhausted"


CLOSED_STATES = {
    HostState.RETIRED: Reason.HOST_RETIRED,
    HostState.BLOCKED: Reason.HOST_BLOCKED,
    HostState.FORBIDDEN: Reason.CRAWL_DELAY,
}
"""States in which no URL of the host is handed out, with the Reason its URLs end as."""


@dataclass(slots=True, eq=False)
class QueuedUrl:
    """A URL that the frontier has accepted and that has not ended."""

    key: int
    url: str
    host: Host
    rank: int
    tries: int = 0
    redirects: int = 0
    payload: bytes | None = None
    """A serialised request of a subclass (callback, meta, method ...); None for a plain page."""
    stored: bool = False
    """Whether the store has a row of it."""


@dataclass(frozen=True, slots=True)
class RobotsTask:
    """A robots.txt or the like to be fetched for an origin; ``url`` differs from the origin's after redirects."""

    origin: str
    url: str
    redirects: int = 0
    file: SiteFile = SiteFile.ROBOTS


@dataclass(slots=True, eq=False)
class Host:
    """One host record; a row of the store's table ``host``."""

    id: int
    name: str
    distance: int
    state: HostState = HostState.EXHAUSTED
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
    """Its interval is stretched so many times, because it said that it is busy (pace.py)."""
    address: str = ""
    """The address of the last request."""
    exempt: bool = False
    """Reopened by the user: not retired again."""
    last_start: float = -math.inf
    """When its last request started."""
    in_transit: int = 0
    """Requests handed out and not over, of pages and robots.txt: 0 or 1."""
    tasks: deque[RobotsTask] = field(default_factory=deque)
    asking: RobotsTask | None = None
    """The robots.txt that is in transit."""
    ticket: int = 0
    """Changes whenever the host enters or leaves the workbench, so that stale entries are known."""
    _queue: list[tuple[int, int, QueuedUrl]] = field(default_factory=list)
    _pushed: int = 0

    @property
    def waiting(self) -> int:
        """URLs in its queue."""
        return len(self._queue)

    @property
    def is_closed(self) -> bool:
        return self.state in CLOSED_STATES

    @property
    def has_work(self) -> bool:
        return bool(self._queue or self.tasks)

    def push(self, url: QueuedUrl) -> None:
        """Queue *url* behind those of the same rank."""
        self._pushed += 1
        heapq.heappush(self._queue, (url.rank, self._pushed, url))

    def push_first(self, url: QueuedUrl) -> None:
        """Queue *url* before all of its rank: it was handed out and came back unasked."""
        heapq.heappush(self._queue, (url.rank, -self._pushed, url))

    def next_up(self) -> RobotsTask | QueuedUrl:
        """The robots.txt to be fetched first, or else the best URL; it stays where it is.  There must be work."""
        return self.tasks[0] if self.tasks else self._queue[0][2]

    def pop(self) -> QueuedUrl:
        return heapq.heappop(self._queue)[2]

    def clear(self) -> list[QueuedUrl]:
        """Empty the queue and give what was in it, best first."""
        urls = [item[2] for item in sorted(self._queue, key=lambda item: item[:2])]
        self._queue.clear()
        return urls


class HostTable:
    """All hosts by name and id, and the accounts that are retired together.

    Ids count from 1 and are persistent: they are the upper bits of the URL keys.
    """

    def __init__(self, unit: str) -> None:
        """*unit* is ``host`` or ``registrable``: whose bytes are measured together."""
        self._by_registrable = unit == "registrable"
        self._hosts: dict[str, Host] = {}
        self._ids: dict[int, Host] = {}
        self._units: dict[str, list[Host]] = {}

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def __len__(self) -> int:
        return len(self._hosts)

    def get(self, name: str) -> Host | None:
        return self._hosts.get(name)

    def by_id(self, host_id: int) -> Host:
        return self._ids[host_id]

    def create(self, name: str, distance: int) -> Host:
        """A new host record; raises OverflowError beyond 16.7 million hosts."""
        if len(self._hosts) >= MAX_HOST_ID:
            raise OverflowError(f"more than {MAX_HOST_ID} hosts in one crawl")
        return self.add(Host(id=len(self._hosts) + 1, name=name, distance=distance))

    def add(self, host: Host) -> Host:
        self._hosts[host.name] = host
        self._ids[host.id] = host
        if self._by_registrable:
            self._units.setdefault(registrable_domain(host.name), []).append(host)
        return host

    def unit_of(self, host: Host) -> list[Host]:
        """The hosts that are measured and retired together with *host*, itself included."""
        return self._units[registrable_domain(host.name)] if self._by_registrable else [host]

    def account_of(self, host: Host) -> YieldAccount:
        """The account that decides on *host*: its own, or the sum over its unit."""
        if not self._by_registrable:
            return host.account
        accounts = [member.account for member in self.unit_of(host)]
        return YieldAccount(
            sum(account.pages for account in accounts),
            sum(account.downloaded_bytes for account in accounts),
            sum(account.kept_bytes for account in accounts),
        )
