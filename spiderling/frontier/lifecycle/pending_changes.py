"""What the store does not know yet: collected while the crawl goes on, drained into one batch."""

from __future__ import annotations

from spiderling.frontier.lifecycle.ledger import Ledger
from spiderling.frontier.robots import Robots
from spiderling.frontier.storage.host_table import HostTable
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.queues import Queues
from spiderling.frontier.storage.seen import SeenSet

GENERATION = "generation"
"""The count under which the store holds the number of the last flush."""


class PendingChanges:
    """Changed hosts and queues, and events.  A URL that came and ended between two batches leaves only its seen key."""

    def __init__(self, hosts: HostTable, queues: Queues) -> None:
        self._hosts = hosts
        self._queues = queues
        self._events: list[tuple[float, str]] = []

    def note_event(self, now: float, what: str) -> None:
        """Something that a person did or should know."""
        self._events.append((now, what))

    @property
    def is_empty(self) -> bool:
        return not (self._hosts.has_changed or self._queues.has_changed or self._events)

    def drain(self, seen: SeenSet, robots: Robots, ledger: Ledger) -> Changes:
        """One immutable batch of everything since the last call."""
        queues, flush = self._queues.drain_changes()
        hosts, host_updates = self._hosts.drain(queues.grown)
        changes = Changes(
            hosts=hosts,
            host_updates=host_updates,
            added=queues.added,
            popped=queues.popped,
            used=queues.used,
            dropped=queues.dropped,
            flush=flush,
            seen=seen.drain(),
            robots=robots.records.drain(),
            consent=robots.ledger,
            counts=ledger.counts() | {GENERATION: self._queues.generation},
            events=self._events,
        )
        self._events = []
        robots.ledger = []
        return changes
