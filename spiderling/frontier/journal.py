"""What the store does not know yet: collected while the crawl goes on, drained into one batch."""

from __future__ import annotations

from spiderling.frontier.hosts import Host, QueuedUrl
from spiderling.frontier.ledger import Ledger
from spiderling.frontier.robots import Robots
from spiderling.frontier.rows import host_row, robots_row, url_row
from spiderling.frontier.seen import SeenSet
from spiderling.frontier.store import Changes


class Journal:
    """Changed hosts and URLs; a URL that came and ended between two batches leaves only its seen key."""

    def __init__(self) -> None:
        self.hosts: set[Host] = set()
        self._urls: dict[int, tuple[QueuedUrl, bool]] = {}
        self._gone: list[int] = []
        self._events: list[tuple[float, str]] = []

    def waits(self, url: QueuedUrl, parked: bool = False) -> None:
        """*url* is new or changed; *parked* with its host, it has ended but may come back."""
        self._urls[url.key] = (url, parked)
        self.hosts.add(url.host)

    def ended(self, url: QueuedUrl) -> None:
        """*url* has ended for good."""
        self._urls.pop(url.key, None)
        self.hosts.add(url.host)
        if url.stored:
            self._gone.append(url.key)

    def event(self, now: float, what: str) -> None:
        """Something that a person did or should know."""
        self._events.append((now, what))

    @property
    def is_empty(self) -> bool:
        return not (self.hosts or self._urls or self._gone or self._events)

    def drain(self, seen: SeenSet, robots: Robots, ledger: Ledger) -> Changes:
        """One immutable batch of everything since the last call."""
        changes = Changes(
            hosts=[host_row(host) for host in self.hosts],
            urls=[url_row(url, parked) for url, parked in self._urls.values()],
            gone=self._gone,
            seen=seen.drain(),
            robots=[robots_row(origin, robots.records[origin]) for origin in robots.changed],
            consent=robots.ledger,
            counts=ledger.counts(),
            events=self._events,
        )
        for url, _ in self._urls.values():
            url.stored = True
        self.hosts, self._urls, self._gone, self._events = set(), {}, [], []
        robots.changed, robots.ledger = set(), []
        return changes
