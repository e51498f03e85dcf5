"""What a host fetches next: a file of its site or the head of its queue, if name, traps and robots.txt allow it."""

from __future__ import annotations

from dataclasses import replace

from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize, origins_of
from spiderling.frontier.core import Core, Fetch, Part
from spiderling.frontier.hosts import Host, HostState, QueuedUrl, RobotsRequest, identity
from spiderling.frontier.intake import Sitemaps
from spiderling.frontier.recrawl.recrawl import Revisit
from spiderling.frontier.redirects import MAX_REDIRECTS, Redirects
from spiderling.frontier.robots import ENDS, RobotsVerdict
from spiderling.frontier.schedule import NameStatus
from spiderling.frontier.site_files import FileAnswer, SiteFile

MAX_ENDS_PER_STEP = 100  # URLs of one host that may end unfetched in one call (chosen: the event loop goes on)
_STEP_PAUSE_S = 0.01  # seconds until the host's turn after such a call; chosen


MAX_CRAWL_DELAY_S = 120.0  # a host that asks for a longer delay is left alone; chosen: 700 pages of it a day


class NextFetch(Part):
    """Finds the next fetch of a host whose turn has come."""

    def __init__(self, core: Core, robots_requests: RobotsRequests, redirects: Redirects) -> None:
        super().__init__(core)
        self._robots_requests = robots_requests
        self._redirects = redirects
        self.shunned: frozenset[int | str | None] = frozenset()
        """URLs and files of sites (by `identity`) on which the crawl has failed: they end when their turn comes."""
        self.examined: QueuedUrl | RobotsRequest | None = None  # the URL or site file that was examined last

    def of_host(self, host: Host, address: str, now: float) -> Fetch | None:
        """The host's next Fetch from *address*; without one the host is put where it has to wait."""
        for _ in range(MAX_ENDS_PER_STEP):
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
        keeps_open = request.is_at_home and not self._robots.asks_last_for(request.file)
        fetch = Fetch(0, request.url, address, host, robots=request, name=request.name, keeps_open=keeps_open)
        target = canonicalize(request.url) if request.file is SiteFile.LICENCE else None
        if target is None:
            return fetch
        return self._if_allowed(fetch, target, self._robots.judge(target.origin, target.url, now, is_file=True), now)

    def _judge(self, url: QueuedUrl, address: str, now: float) -> Fetch | Host | None:
        """Apply traps and robots.txt to *url*; returns what ``_examine`` does."""
        target = url.target
        revisit = url if isinstance(url, Revisit) else None
        end = self._admission.left_out(url) if revisit is None else self._admission.outside(target, url.host)
        if end is not None:
            self._end_head(url.host, end, now)
            return None
        cookies = self._redirects.cookies_for(url)
        fetch = Fetch(
            url.key, url.url, address, url.host, url.payload, name=target.name, revisit=revisit, cookies=cookies
        )
        return self._if_allowed(fetch, target, self._robots.judge(target.origin, target.url, now), now)

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
            self._schedule.place(host, now)
            return host
        self._end_head(host, ENDS[verdict], now)
        return None

    def _end_head(self, host: Host, reason: Reason, now: float) -> None:
        if host.robots_requests:
            self._robots_requests.fail(host.robots_requests.popleft(), now)
        elif host.queued:
            self._url_states.end_head(host, reason)
        elif isinstance(revisit := self._url_states.queues.next_revisit(host), Revisit):
            self._recrawl.end_head(revisit, reason, now)


class RobotsRequests(Part):
    """Requests for files of sites (robots.txt and others), queued or in transit, and the hosts that wait for them.

    There is one request per origin at a time; a redirect may move it to the queue of another host.
    """

    def __init__(self, core: Core, sitemaps: Sitemaps) -> None:
        super().__init__(core)
        self._sitemaps = sitemaps
        # Hosts by their ids: one that is closed, or loses its queue, may leave memory before the answer comes.
        self._awaited: dict[str, int] = {}  # origin that was asked for a file -> the host that waits for the answer
        self._wanting: dict[str, set[int]] = {}
        """Address of a licence that was asked for -> the hosts that wait for it."""

    def ask(self, host: Host, target: CanonicalUrl, now: float) -> bool:
        """Queue the next missing file of *target*'s origin as the host's next; False if it is asked for elsewhere."""
        if target.origin in self._awaited:
            self._schedule.set_aside(host)
            return False
        file = self._robots.missing(target.origin, now) or SiteFile.ROBOTS
        if isinstance(file, str):
            return self._ask_for_licence(host, file, now)
        self._awaited[target.origin] = host.id
        request = RobotsRequest(target.origin, target.origin + file.value, target.name, file=file)
        host.robots_requests.appendleft(request)
        return True

    def _ask_for_licence(self, host: Host, address: str, now: float) -> bool:
        """Queue the licence at *address* at its own host, once for all who want it; False if *host* waits for that."""
        target = canonicalize(address)
        if target is None or not self._admission.scope.allows_port(target.port):
            self._robots.note_failure(address, now, SiteFile.LICENCE, "no address", is_final=True)
            return True
        is_elsewhere = self._core.is_elsewhere(target.host)
        owner = None if is_elsewhere else self._admission.host(target.host, host.distance)
        if owner is not None and owner.is_closed:
            answer = f"its host is {owner.state.value}"
            self._robots.note_failure(address, now, SiteFile.LICENCE, answer, is_final=True)
            return True
        is_new = address not in self._wanting
        self._wanting.setdefault(address, set()).add(host.id)
        request = RobotsRequest(address, target.url, target.name, file=SiteFile.LICENCE)
        if is_new and owner is host:
            host.robots_requests.append(request)
            return True
        self._schedule.set_aside(host)
        if is_new:
            self._queue(request, target, host.distance, now)
        return False

    def ask_for_another(self, request: RobotsRequest, distance: int, now: float) -> None:
        """Queue the *request* of another shard at its host, which is ours; that gets *distance* if it is new."""
        target = canonicalize(request.url)
        if target is None:
            self.fail(request, now)
        else:
            self._queue(request, target, distance, now)

    def take_answer(self, request: RobotsRequest, answer: FileAnswer, now: float) -> tuple[Host, HostState] | None:
        """Note an answer or follow its redirect; returns a host to be closed, and with which state.

        What another shard wants to know, it notes and follows itself.
        """
        if request.asker is not None:
            return self._settle(request, answer, now)
        target = canonicalize(answer.location) if answer.location else None
        if target and request.redirects < MAX_REDIRECTS and self._admission.scope.allows_port(target.port):
            self._follow(request, target, now)
            return None
        return self._settle(request, answer, now)

    def fail(self, request: RobotsRequest, now: float) -> None:
        """*request* cannot be made: note that no answer came."""
        self._settle(request, FileAnswer(), now)

    def drop(self, host: Host) -> None:
        """Drop the requests of *host*, which was closed; hosts that redirected to it ask again when they are due."""
        while host.robots_requests:
            request = host.robots_requests.popleft()
            if request.asker is not None:
                self._settle(request, FileAnswer(), host.due)
                continue
            origin = request.origin
            waiting = self._wanting.pop(origin, set()) | {self._awaited.pop(origin, host.id)}
            for other in map(self._url_states.hosts.by_id, waiting - {host.id}):
                self._schedule.place(other, other.due)

    def _follow(self, request: RobotsRequest, target: CanonicalUrl, now: float) -> None:
        """Queue the request at the redirect's host, whose own intervals count."""
        distance = self._url_states.host_states.distances[self._awaited.get(request.origin, 0)]
        further = replace(request, url=target.url, name=target.name, redirects=request.redirects + 1)
        self._queue(further, target, distance, now)

    def _queue(self, request: RobotsRequest, target: CanonicalUrl, distance: int, now: float) -> None:
        """Queue *request* at the host of its *target*, or give it to the shard that owns that."""
        elsewhere = self._core.elsewhere
        if elsewhere is not None and not elsewhere.owns(target.host):
            elsewhere.ask_file(request, distance)
            return
        host = self._admission.host(target.host, distance)
        if host.is_closed:
            self.fail(request, now)
            return
        host.robots_requests.append(request)
        self._schedule.place(host, now)

    def _settle(self, request: RobotsRequest, answer: FileAnswer, now: float) -> tuple[Host, HostState] | None:
        if request.asker is not None:
            assert self._core.elsewhere is not None, "another shard has asked"
            self._core.elsewhere.answer_file(request, answer)
            return None
        if answer.status:
            self._robots.note_answer(request.origin, answer, now, request.file)
        else:  # apart, since the answer may be what a former run stopped at
            self._robots.note_failure(request.origin, now, request.file)
        for waiting in map(self._url_states.hosts.by_id, self._wanting.pop(request.origin, ())):
            if not waiting.is_closed:
                self._schedule.place(waiting, now)
        host_id = self._awaited.pop(request.origin, None)
        if host_id is None:
            return None
        host = self._url_states.hosts.by_id(host_id)
        is_robots = request.file is SiteFile.ROBOTS
        if is_robots and self._robots.refuses(request.origin):
            return host, HostState.REFUSED
        if is_robots:
            if host.waiting or host.id in host.states.revisits:  # else it was asked for the sake of a licence
                self._sitemaps.put_named(host, self._robots.sitemaps(request.origin), now)
            host.crawl_delay_s = max(self._robots.crawl_delay(folded) for folded in origins_of(host.name))
        self._schedule.intervals.keep(host)
        self._url_states.hosts.changed.add(host)
        if host.crawl_delay_s > MAX_CRAWL_DELAY_S and not host.pinned:
            return host, HostState.FORBIDDEN
        self._schedule.place(host, now)
        return None
