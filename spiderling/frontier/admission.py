"""Which mentions of URLs become discovered URLs: scope, distance, seen set, the state of the host."""

from __future__ import annotations

from collections.abc import Callable

from spiderling.frontier.books import Books
from spiderling.frontier.hosts import CLOSED_STATES, Host, HostState, QueuedUrl
from spiderling.frontier.priority import LAST_RANK
from spiderling.frontier.scope import Scope
from spiderling.options import Options
from spiderling.reasons import Reason
from spiderling.urls import CanonicalUrl, canonicalize, url_key


class Admission:
    """Accepts or refuses; an accepted URL waits in its host's queue or ends at once."""

    def __init__(self, options: Options, books: Books) -> None:
        self._books = books
        self._scope = Scope(options)
        self.allows_port = self._scope.allows_port
        self._max_distance = options.max_distance
        self._max_queue = options.max_host_queue
        self.is_blocked: Callable[[str], bool] = lambda name: False
        """Whether the user blocked a host of this name."""

    def accept(
        self, target: CanonicalUrl, distance: int, rank: int,
        redirects: int = 0, payload: bytes | None = None, salt: bytes = b"", page: int = 0,
    ) -> QueuedUrl | Reason:  # fmt: skip
        """The URL, waiting; or why not: a refused mention, or an end at once.  *page*: key of that it was found on."""
        host = self._books.hosts.get(target.host)
        refusal = self._refusal(target, min(distance, host.distance) if host else distance, payload)
        if refusal is not None:
            return self.refuse(refusal)
        if host is None:
            host = self.host(target.host, distance)
        elif distance < host.distance:
            host.distance = distance
            self._books.journal.hosts.add(host)
        key = url_key(host.id, target.url, salt)
        if not self._books.seen.add(key):
            return self.refuse(Reason.SEEN)
        self._books.ledger.discover()
        self._books.trail.found(key, page)
        return self._enqueue(QueuedUrl(key, target.url, host, min(rank, LAST_RANK), 0, redirects, payload))

    def refuse(self, reason: Reason) -> Reason:
        """Count a refused mention."""
        self._books.ledger.mentions[reason] += 1
        return reason

    def host(self, name: str, distance: int) -> Host:
        """The record of *name*, created if it is new."""
        host = self._books.hosts.get(name)
        if host is None:
            host = self._books.new_host(name, distance)
            if self.is_blocked(name):
                host.state = HostState.BLOCKED
            elif any(member.state is HostState.RETIRED for member in self._books.hosts.unit_of(host)):
                host.state = HostState.RETIRED
        return host

    def found_on(self, source: str | None, target: CanonicalUrl) -> tuple[int, int]:
        """Host hops from the seeds of *target* when it is found on the page *source*, and the page's key, or 0, 0."""
        page = canonicalize(source) if source else None
        host = self._books.hosts.get(page.host) if page else None
        if page is None or host is None:
            return 0, 0
        return host.distance + (target.host != host.name), url_key(host.id, page.url)

    def _refusal(self, target: CanonicalUrl, distance: int, payload: bytes | None) -> Reason | None:
        if not self.allows_port(target):
            return Reason.PORT_FORBIDDEN
        # what a subclass asks for by a Request of its own is not judged by its form
        refusal = None if payload else self._scope.refusal(target)
        return Reason.TOO_FAR if refusal is None and distance > self._max_distance else refusal

    def _enqueue(self, url: QueuedUrl) -> QueuedUrl | Reason:
        host = url.host
        if host.is_closed:
            reason = CLOSED_STATES[host.state]
        elif host.waiting >= self._max_queue and url.payload is None:
            reason = Reason.HOST_FULL
        else:
            self._books.wait(url)
            return url
        self._books.end_waiting(url, reason)
        return reason
