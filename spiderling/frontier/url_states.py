"""Holds every host and URL of the crawl; only its methods change the state of a URL."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from spiderling.base.errors import DamageError
from spiderling.base.option_values import parse_tlds
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, CanonicalUrl, canonicalize, top_level_domain, url_key
from spiderling.frontier.hosts import (
    CLOSED_STATES,
    SEED_RANK,
    STATE_OF,
    Host,
    HostState,
    HostStates,
    QueuedUrl,
    YieldAccount,
)
from spiderling.frontier.robots import Robots
from spiderling.frontier.storage.host_table import HostTable
from spiderling.frontier.storage.protocol import Changes, State
from spiderling.frontier.storage.queues import Queues, line_of, url_of
from spiderling.frontier.storage.seen import SeenSet
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import UrlEnd, UrlLog
from spiderling.frontier.strategy import Draw, Strategy

_MAX_FACTS = 500
"""Facts that are counted by name (chosen); of further ones only the kind, since pages can name any licence."""


class Balance(NamedTuple):
    """The URLs that were discovered, and where they are."""

    discovered: int
    ended: int
    waiting: int
    in_transit: int

    @property
    def error(self) -> int:
        """discovered - ended - waiting - in transit; 0 unless there is a bug."""
        return self.discovered - self.ended - self.waiting - self.in_transit


class Ledger:
    """Counts of one crawl, over all its sessions: of URLs (`Balance`), of refused mentions, and totals.

    A retry is waiting or in transit; a purge counts each URL of the queue.
    """

    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self.ends: Counter[Reason] = Counter()
        self.refused_links: Counter[Reason] = Counter()
        self.totals: Counter[str] = Counter()  # requests, pages, documents, words, and bytes: wire, downloaded, kept
        self.languages: Counter[str] = Counter()  # documents kept by language
        self.facts: Counter[str] = Counter()
        """Kept documents by what they are (``encoding/utf-8``, ``licence/...``), and words kept (``words/cs``)."""
        counts = counts or {}
        self.discovered = counts.get("discovered", 0)
        self.waiting = counts.get("waiting", 0)
        self.in_transit = 0
        self._by_reason = {"end": self.ends, "mention": self.refused_links}
        self._by_name = {"total": self.totals, "language": self.languages, "fact": self.facts}
        for key, value in counts.items():
            kind, _, name = key.partition("/")
            if kind in self._by_reason:
                self._by_reason[kind][_reason(name)] = value
            elif kind in self._by_name:
                self._by_name[kind][name] = value

    def discover(self, number: int = 1) -> None:
        self.discovered += number
        self.waiting += number

    def end_waiting(self, reason: Reason, number: int = 1) -> None:
        """*number* URLs end without being fetched."""
        self.waiting -= number
        self.ends[reason] += number

    def reopen_ended(self, reason: Reason, number: int) -> None:
        """*number* URLs that had ended as *reason* wait again."""
        self.waiting += number
        self.ends[reason] -= number

    def hand_out(self) -> None:
        self.waiting -= 1
        self.in_transit += 1

    def give_back(self) -> None:
        self.waiting += 1
        self.in_transit -= 1

    def end_in_transit(self, reason: Reason) -> None:
        self.in_transit -= 1
        self.ends[reason] += 1

    def count_outcome(self, outcome: Outcome) -> None:
        """Add the sizes of one outcome to the totals."""
        totals = self.totals
        totals["downloaded_bytes"] += outcome.body_bytes
        totals["kept_bytes"] += outcome.kept_bytes
        totals["pages"] += outcome.is_judged
        self._count_text(outcome)

    def count_revisit(self, outcome: Outcome) -> None:
        """Add those of a revisit: its documents are documents, its bytes are counted apart."""
        totals = self.totals
        totals["revisit_downloaded_bytes"] += outcome.body_bytes
        totals["revisit_kept_bytes"] += outcome.kept_bytes
        self._count_text(outcome)

    def _count_text(self, outcome: Outcome) -> None:
        totals = self.totals
        totals["wire_bytes"] += outcome.wire_bytes
        totals["words"] += outcome.words
        if outcome.links_cut:
            self.refused_links[Reason.TOO_MANY_LINKS] += outcome.links_cut
        if outcome.reason is Reason.KEPT:
            totals["documents"] += 1
            self.languages[outcome.language or ""] += 1
            self.facts[f"words/{outcome.language or ''}"] += outcome.words
            for fact in outcome.facts:
                is_known = fact in self.facts or len(self.facts) < _MAX_FACTS
                self.facts[fact if is_known else fact.partition("/")[0] + "/other"] += 1

    @property
    def balance(self) -> Balance:
        return Balance(self.discovered, self.ends.total(), self.waiting, self.in_transit)

    @property
    def yield_rate(self) -> float:
        """Kept bytes for each downloaded byte."""
        down = self.totals["downloaded_bytes"]
        return self.totals["kept_bytes"] / down if down else 0.0

    def counts(self) -> dict[str, int]:
        """All counts under one name space, for the store; what is in transit counts as waiting again."""
        counts = {f"{kind}/{reason.value}": n for kind, ends in self._by_reason.items() for reason, n in ends.items()}
        counts |= {f"{kind}/{name}": n for kind, totals in self._by_name.items() for name, n in totals.items()}
        return counts | {"discovered": self.discovered, "waiting": self.waiting + self.in_transit}


def spent_of(total: str, totals: Mapping[str, int]) -> int:
    """What *totals* have spent of the budget for *total*: of bytes also those of revisits, which are counted apart."""
    revisits = totals.get("revisit_downloaded_bytes", 0) if total == "downloaded_bytes" else 0
    return totals.get(total, 0) + revisits


def _reason(key: str) -> Reason:
    try:
        return Reason.of(key)
    except KeyError:
        raise DamageError(f"the state counts URLs that ended as {key[:80]!r}, which is no way to end.") from None


GENERATION = "generation"  # key in the store's counts: the number of the last flush (storage/protocol.py)


class UrlStates:
    """Hosts, queues, seen set and counts, changed together so that they always agree.

    All URLs of a closed host have ended.  Its queue is dropped, or parked as it is; parked URLs wait again when the
    host is reopened.
    """

    def __init__(self, options: Options, store: SqliteStore, strategy: Strategy) -> None:
        preferred = parse_tlds(options.prefer_tlds, "PREFER_TLDS") or ()
        self.host_states = HostStates()
        self.queues = Queues(store, self.host_states, Draw(strategy.power, options.random_seed))
        self.hosts = HostTable(
            self.host_states, self.queues, lambda name: top_level_domain(name) in preferred, strategy.host_rank
        )
        self.ledger = Ledger()
        self.seen = SeenSet()
        self.url_log = UrlLog(options.trail)
        self.in_transit: dict[int, QueuedUrl] = {}
        self._events: list[tuple[float, str]] = []
        self.failed_seeds = FailedSeeds()
        self._max_queue = options.max_host_queue

    @property
    def totals(self) -> Counter[str]:
        return self.ledger.totals

    def account_at_hand(self, host_id: int) -> YieldAccount | None:
        return self.hosts.account_at_hand(host_id)

    def rank_of_host(self, host_id: int) -> int:
        return self.host_states.ranks[host_id]

    def restore(self, state: State, store: SqliteStore) -> list[int]:
        """Take up what was committed; returns the ids of the open hosts with URLs, in the order in which they are due.

        What was in transit waits again, or is parked if its host was closed.
        """
        self.ledger = Ledger(state.counts)
        self.seen = SeenSet(state.seen)
        open_hosts = self.hosts.load_hosts()
        parked = []
        for row in store.used_hosts():
            self.hosts.load_used(row)
            if row.transit is not None and (reason := CLOSED_STATES.get(STATE_OF[row.state])) is not None:
                self.ledger.end_waiting(reason)
                parked.append(row.id)
        self.queues.load_tails(state.tails, state.counts.get(GENERATION, 0))
        self.hosts.changed.update(map(self.hosts.by_id, parked))  # their rows are to say that nothing is in transit
        return open_hosts

    def note_event(self, now: float, what: str) -> None:
        self._events.append((now, what))

    @property
    def has_changes(self) -> bool:
        """Whether a host, a queue or an event waits for the store."""
        return self.hosts.has_changed or self.queues.has_changed or bool(self._events)

    def drain(self, robots: Robots) -> Changes:
        """One immutable batch of what the store does not know yet.

        A URL that came and ended between two batches leaves only its seen key.
        """
        of_queues, grown = self.queues.drain_changes()
        hosts, host_updates = self.hosts.drain(grown)
        changes = replace(
            of_queues,
            hosts=hosts,
            host_updates=host_updates,
            seen=self.seen.drain(),
            robots=robots.files.records.drain(),
            consent=robots.files.ledger,
            counts=self.ledger.counts() | {GENERATION: self.queues.generation},
            events=self._events,
        )
        self._events = []
        robots.files.ledger = []
        return changes

    def wait(self, host_id: int, rank: int, line: bytes, is_request: bool) -> Reason | None:
        """Queue a discovered URL at the end of its band; returns the Reason if it ends instead.

        In a full queue the oldest URL of the worst band makes room for one of a better band.  Requests of a subclass
        (*is_request*) are never refused.
        """
        state = self.host_states.state(host_id)
        is_full = self.host_states.queued[host_id] >= self._max_queue
        if state in CLOSED_STATES:
            reason = CLOSED_STATES[state]
            self.ledger.end_waiting(reason)
            if is_request or not is_full:
                self.queues.push(host_id, rank, line)
            else:
                self._log_end(line, host_id, reason)
            return reason
        if is_full and not is_request:
            self.ledger.end_waiting(Reason.HOST_FULL)
            host = self.hosts.by_id(host_id)
            if rank >= self.queues.worst_band(host):
                self._log_end(line, host_id, Reason.HOST_FULL)
                return Reason.HOST_FULL
            self.url_log.log_end(self.queues.drop_worst_url(host), Reason.HOST_FULL)
            self.hosts.changed.add(host)
        self.queues.push(host_id, rank, line)
        return None

    def requeue_failed_seed(self, target: CanonicalUrl) -> int:
        """Requeue *target* if it is a failed seed, and clear its host's failures; returns the host's id, or 0."""
        host_id = self.hosts.find(target.host) if self.failed_seeds else 0
        key = url_key(host_id, target.url) if host_id else 0
        reason = self.failed_seeds.failed_as(key)
        if reason is None or self.host_states.is_closed(host_id):
            return 0
        host = self.hosts.by_id(host_id)
        host.failures = 0
        self.hosts.changed.add(host)
        self.failed_seeds.wait_again(key, reason.value)
        self.ledger.reopen_ended(reason, 1)
        self.queues.push(host_id, SEED_RANK, line_of(QueuedUrl(key, target.url, host, SEED_RANK, target)))
        return host_id

    def wait_once_more(self, end: UrlEnd) -> int | None:
        """The URL of *end* waits again, last in its band; returns the id of its host, or 0 if it ends again.

        None: it was named again as a seed, and so has waited since.  Else it may not be waiting already.
        """
        if not self.failed_seeds.wait_again(end.key, end.reason):
            return None
        host = self.hosts.by_id(end.key >> HASH_BITS & MAX_HOST_ID)
        target = canonicalize(end.url)
        if target is None:
            raise ValueError(f"{end.url!r} has ended and is no URL")
        payload = b64decode(end.payload) if end.payload else None
        line = line_of(QueuedUrl(end.key, end.url, host, end.rank, target, payload=payload))
        self.ledger.reopen_ended(Reason.of(end.reason), 1)
        ended = self.wait(host.id, end.rank, line, payload is not None)
        if ended is None:
            return host.id
        self.failed_seeds.end_again(end.key, ended)
        return 0

    def wait_all(self, host_id: int, entries: Sequence[tuple[int, bytes, object]]) -> bool:
        """``wait`` for links of one page to one host: (rank, line, anything); returns whether any of them waits."""
        if (
            not self.host_states.is_closed(host_id)
            and self.host_states.queued[host_id] + len(entries) <= self._max_queue
        ):
            self.queues.push_all(host_id, entries)
            return True
        return any([self.wait(host_id, rank, line, False) is None for rank, line, _ in entries])

    def _log_end(self, line: bytes, host_id: int, reason: Reason) -> None:
        if self.url_log.keeps_ends:
            self.url_log.log_end(url_of(line, self.hosts.by_id(host_id)), reason)

    def hand_out(self, host: Host) -> None:
        """Move the head of the queue of *host* into transit."""
        url = self.queues.pop(host)
        self.in_transit[url.key] = host.fetching = url
        self.hosts.changed.add(host)
        self.ledger.hand_out()

    def take_back(self, url_id: int | None) -> QueuedUrl | None:
        """Take the URL of this id out of transit, if it is there; the caller must end or requeue it."""
        url = self.in_transit.pop(url_id, None) if url_id is not None else None
        if url is not None:
            url.host.fetching = None
            self.hosts.changed.add(url.host)
        return url

    def wait_again(self, url: QueuedUrl, first: bool) -> None:
        """Requeue a URL that was in transit, *first* or last in its band; it ends if its host is closed."""
        self.ledger.give_back()
        if first:
            self.queues.push_front(url)
        else:
            self.queues.push(url.host.id, url.rank, line_of(url))
        if url.host.is_closed:
            self.ledger.end_waiting(CLOSED_STATES[url.host.state])

    def end_in_transit(self, url: QueuedUrl, reason: Reason, outcome: Outcome | None = None) -> None:
        self.ledger.end_in_transit(reason)
        self.url_log.log_end(url, reason, outcome)
        self.failed_seeds.note_end(url, reason)

    def end_head(self, host: Host, reason: Reason) -> None:
        """The head of the queue ends without being fetched."""
        url = self.queues.pop(host)
        self.url_log.log_end(url, reason)
        self.failed_seeds.note_end(url, reason)
        self.hosts.changed.add(host)
        self.ledger.end_waiting(reason)

    def purge(self, host: Host, reason: Reason) -> int:
        """End all URLs in the queue of *host*; returns how many."""
        number = self.queues.drop_queue(host)
        self.hosts.changed.add(host)
        self.ledger.end_waiting(reason, number)
        self.url_log.log_purge(host, reason, number)
        return number

    def close_queue(self, host: Host, state: HostState) -> int:
        """Close *host* and end its URLs, which are parked in place; returns how many."""
        number = host.queued
        reason = CLOSED_STATES[state]
        self.ledger.end_waiting(reason, number)
        self.url_log.log_purge(host, reason, number)
        self.hosts.set_closed(host, state)
        return number

    def reopen_queue(self, host: Host, is_pinned: bool) -> int:
        """Reopen a closed host: its parked URLs wait again; returns how many.  *is_pinned*: it is not retired again."""
        self.ledger.reopen_ended(CLOSED_STATES[host.state], host.queued)
        self.hosts.set_closed(host, HostState.EXHAUSTED)
        if is_pinned:
            host.pinned = True
            self.hosts.pinned.add(host.id)
        return host.queued


OUT_OF_REACH = frozenset({
    Reason.DNS, Reason.ADDRESS_FORBIDDEN, Reason.CONNECTION, Reason.TIMEOUT, Reason.TOO_SLOW, Reason.TLS,
    Reason.ROBOTS_UNREACHABLE,
})  # fmt: skip
FAILED_SEEDS = "failed_seeds"
"""Key, in the table ``meta``, of `FailedSeeds`: URL key -> the Reason with which it ended last; '': it waits again."""
_MAX_FAILED = 10_000
"""Seeds that are remembered, 200 kB of the state; of more, those that failed first are refused as seen.  Chosen."""


class FailedSeeds:
    """Seeds whose host was out of reach, to be tried again when they are named again; and how each has ended since.

    Whoever names a seed wants it, so it is not refused as seen because its host could not be reached before, or because
    its address was not allowed: an option may allow it now.
    """

    def __init__(self) -> None:
        self._ends: dict[int, str] = {}  # key -> the Reason with which it ended last; '': it has waited again since
        self._is_changed = False

    def __bool__(self) -> bool:
        return bool(self._ends)

    def failed_as(self, key: int) -> Reason | None:
        """The Reason with which the seed of this key ended last, if its host was out of reach; else None."""
        last = self._ends.get(key)
        reason = Reason.of(last) if last else None
        return reason if reason in OUT_OF_REACH else None

    def note_end(self, url: QueuedUrl, reason: Reason) -> None:
        """*url* has ended with *reason*: remember it if it is a seed out of reach, or was one."""
        is_seed = url.rank == SEED_RANK and url.payload is None
        if is_seed and (reason in OUT_OF_REACH or url.key in self._ends):
            self._ends[url.key] = reason.value
            self._is_changed = True
            if len(self._ends) > _MAX_FAILED:
                del self._ends[next(iter(self._ends))]

    def wait_again(self, key: int, reason: str) -> bool:
        """Note that the URL of this key waits again, after its end with *reason*; False if it has done so before."""
        if key not in self._ends:
            return True
        if self._ends[key] != reason:
            return False
        self._ends[key] = ""
        self._is_changed = True
        return True

    def end_again(self, key: int, reason: Reason) -> None:
        """The URL of this key was to wait again, and has ended at once with *reason*."""
        if key in self._ends:
            self._ends[key] = reason.value

    def state(self) -> dict[str, str]:
        """What survives the process, if it has changed since the last call."""
        is_changed = self._is_changed
        self._is_changed = False
        ends = {str(key): reason for key, reason in self._ends.items()}
        return {FAILED_SEEDS: json.dumps(ends)} if is_changed else {}

    def restore(self, meta: Mapping[str, str]) -> None:
        self._ends = {int(key): reason for key, reason in json.loads(meta.get(FAILED_SEEDS, "{}")).items()}
