"""What a host fetches next: a site file or the head of its queue, if name, traps and robots.txt allow it."""

from __future__ import annotations

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.frontier.discovery.core import Core, Fetch, Part
from spiderling.frontier.discovery.robots_requests import RobotsRequests
from spiderling.frontier.hosts import Host, QueuedUrl, RobotsRequest, identity
from spiderling.frontier.robots import ENDS, RobotsVerdict
from spiderling.frontier.scheduling.names import NameStatus
from spiderling.frontier.site_files import SiteFile
from spiderling.frontier.watching.planning import Look

_MAX_ENDS_PER_STEP = 100
"""URLs of one host that may end unfetched in one call (chosen: the event loop goes on)."""
_STEP_PAUSE_S = 0.01
"""Seconds until the host's turn after such a call; chosen."""


class NextFetch(Part):
    """Finds the next fetch of a host whose turn has come."""

    def __init__(self, core: Core, robots_requests: RobotsRequests) -> None:
        super().__init__(core)
        self._robots_requests = robots_requests
        self.shunned: frozenset[int | str | None] = frozenset()
        """URLs and files of sites (by `identity`) on which the crawl has failed: they end when their turn comes."""
        self.answered: set[int] = set()
        """Ids of pages that were fetched and wait for files of sites, while whoever fetched them holds the answers."""
        self.examined: QueuedUrl | RobotsRequest | None = None
        """The URL or site file that was examined last."""

    def of_host(self, host: Host, address: str, now: float) -> Fetch | None:
        """The host's next Fetch from *address*; without one the host is put where it has to wait."""
        for _ in range(_MAX_ENDS_PER_STEP):
            if host.is_closed or not host.has_work:
                self._schedule.rest(host)
                return None
            step = self._examine(host, now)
            if step is None:
                continue
            if isinstance(step, Host):
                return None
            if step.address == address:
                return step
            self._schedule.wait_at(host, step.address, now)
            return None
        host.postpone(now + _STEP_PAUSE_S)
        self._schedule.wait_at(host, address, now)
        return None

    def _examine(self, host: Host, now: float) -> Fetch | Host | None:
        """A Fetch for the head of the queue; the host if it must wait; None if another head is to be examined."""
        self.examined = None
        head = self.examined = self._url_states.queues.next_up(host)
        if self.shunned and not self.shunned.isdisjoint(identity(head)):
            self._end_head(host, Reason.INTERNAL_ERROR, now)
            return None
        name = self._schedule.names.lookup(head.name if isinstance(head, RobotsRequest) else head.target.name, now)
        if name.status in (NameStatus.UNKNOWN, NameStatus.PAUSED):
            self._schedule.place(host, now)
            return host
        if name.status is not NameStatus.FRESH:
            self._end_head(host, Reason.DNS if name.status is NameStatus.DEAD else Reason.ADDRESS_FORBIDDEN, now)
            return None
        if isinstance(head, RobotsRequest):
            return self._file(host, head, name.address, now)
        return self._judge(head, name.address, now)

    def _file(self, host: Host, request: RobotsRequest, address: str, now: float) -> Fetch | Host | None:
        """The Fetch of a file of the site; of a licence only if robots.txt of its own origin allows it."""
        keeps_open = request.is_at_home and not self._robots.asks_last_for(request.origin, request.file)
        fetch = Fetch(0, request.url, address, host, robots=request, name=request.name, keeps_open=keeps_open)
        target = canonicalize(request.url) if request.file is SiteFile.LICENCE else None
        if target is None:
            return fetch
        return self._if_allowed(fetch, target, self._robots.judge_file(target.origin, target.url, now), now)

    def _judge(self, url: QueuedUrl, address: str, now: float) -> Fetch | Host | None:
        """Apply traps and robots.txt to *url*; returns what ``_examine`` does."""
        target = url.target
        look = url if isinstance(url, Look) else None
        if look is None and (end := self._admission.left_out(url)) is not None:
            self._end_head(url.host, end, now)
            return None
        cookies = self._core.cookies.of(url.key).header(target)
        fetch = Fetch(url.key, url.url, address, url.host, url.payload, name=target.name, look=look, cookies=cookies)
        verdict = self._robots.judge(target.origin, target.url, now)
        if verdict is RobotsVerdict.OPTED_OUT and fetch.id in self.answered:
            return fetch._replace(is_reserved=True)
        if self._robots.comes_before_files(target.origin, now):
            fetch = fetch._replace(before_files=True)
        return self._if_allowed(fetch, target, verdict, now)

    def _if_allowed(
        self, fetch: Fetch, target: CanonicalUrl, verdict: RobotsVerdict, now: float
    ) -> Fetch | Host | None:
        """Carry out the *verdict* on *fetch*; returns what ``_examine`` does."""
        host = fetch.host
        if verdict is RobotsVerdict.ALLOWED:
            return fetch
        if verdict is RobotsVerdict.MISSING:
            return None if self._robots_requests.ask(host, target, now) else host
        if verdict is RobotsVerdict.PAUSED:
            host.postpone(self._robots.paused_until(target.origin))
            self._schedule.wait_at(host, fetch.address, now)
            return host
        self._end_head(host, ENDS[verdict], now)
        return None

    def _end_head(self, host: Host, reason: Reason, now: float) -> None:
        if host.robots_requests:
            self._robots_requests.fail(host.robots_requests.popleft(), now)
        elif host.queued:
            self._url_states.end_head(host, reason)
        elif isinstance(look := self._url_states.queues.next_look(host), Look):
            self._watch.end_head(look, reason, now)
