"""The books: every host and URL of the crawl, and the only places where a URL changes its state."""

from __future__ import annotations

from spiderling.frontier.hosts import CLOSED_STATES, Host, HostState, HostTable, QueuedUrl
from spiderling.frontier.journal import Journal
from spiderling.frontier.ledger import Ledger
from spiderling.frontier.rows import host_of, queued_url_of
from spiderling.frontier.seen import SeenSet
from spiderling.frontier.store import State, UrlRow
from spiderling.frontier.trail import Trail
from spiderling.options import Options
from spiderling.reasons import Reason


class Books:
    """Hosts, seen set, counts and journal, changed together so that they always agree."""

    def __init__(self, options: Options) -> None:
        self.hosts = HostTable(options.yield_unit)
        self.ledger = Ledger()
        self.journal = Journal()
        self.seen = SeenSet()
        self.trail = Trail(options.trail)
        self.in_transit: dict[int, QueuedUrl] = {}
        self._parks_retired = options.retired_queue == "park"

    def restore(self, state: State) -> None:
        """Take up what was committed; parked URLs stay in the store, what was in transit waits or is parked too."""
        self.ledger = Ledger(state.counts)
        self.seen = SeenSet(state.seen)
        for row in state.hosts:
            self.hosts.add(host_of(row))
        for url_row in state.urls:
            if not url_row.parked:
                host = self.hosts.by_id(url_row.host)
                host.push(queued_url_of(url_row, host))
        for host in self.hosts:
            if host.is_closed:
                self.purge(host, CLOSED_STATES[host.state])

    def new_host(self, name: str, distance: int) -> Host:
        host = self.hosts.create(name, distance)
        self.journal.hosts.add(host)
        return host

    def wait(self, url: QueuedUrl) -> None:
        """A discovered URL waits in its host's queue."""
        url.host.push(url)
        self.journal.waits(url)

    def hand_out(self, url: QueuedUrl) -> None:
        """The head of its host's queue is in transit."""
        self.in_transit[url.key] = url
        self.ledger.hand_out()

    def wait_again(self, url: QueuedUrl, first: bool) -> None:
        """A URL that was in transit waits again: *first*, or behind those of its rank."""
        self.ledger.give_back()
        (url.host.push_first if first else url.host.push)(url)
        self.journal.waits(url)

    def end_in_transit(self, url: QueuedUrl, reason: Reason) -> None:
        self.ledger.end_in_transit(reason)
        self.trail.ended(url, reason)
        self.journal.ended(url)

    def end_waiting(self, url: QueuedUrl, reason: Reason) -> None:
        """End a URL that was not fetched; those of a closed host are parked like its queue."""
        self.ledger.end_waiting(reason)
        parks = self._parks(reason)
        if not parks:
            self.trail.ended(url, reason)
        self._end(url, parks)

    def purge(self, host: Host, reason: Reason) -> int:
        """End all URLs in the queue of *host*; returns how many."""
        urls = host.clear()
        self.ledger.end_waiting(reason, len(urls))
        self.trail.purged(host, reason, len(urls))
        parks = self._parks(reason)
        for url in urls:
            self._end(url, parks)
        return len(urls)

    def reopen(self, host: Host, parked: list[UrlRow]) -> None:
        """The parked URLs of a closed host wait again."""
        self.ledger.reopen(CLOSED_STATES[host.state], len(parked))
        host.state, host.exempt = HostState.EXHAUSTED, True
        for row in parked:
            self.wait(queued_url_of(row, host))
        self.journal.hosts.add(host)

    def _parks(self, reason: Reason) -> bool:
        """Whether URLs that end so may come back when their host is reopened."""
        return reason in CLOSED_STATES.values() and (reason is not Reason.HOST_RETIRED or self._parks_retired)

    def _end(self, url: QueuedUrl, parks: bool) -> None:
        if parks:
            self.journal.waits(url, parked=True)
        else:
            self.journal.ended(url)
