"""How the links of a page come in: one batch, of which only the new ones are looked at.

Known hosts are found by name once a batch, and the keys that are in the seen set by one pass over them.  What a new
link has to pass is in admission.py; those that pass are ranked side by side (strategies.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from spiderling.frontier.admission import Admission
from spiderling.frontier.books import Books
from spiderling.frontier.entries import HEADS
from spiderling.frontier.foundlink import FoundLink, NewLinks
from spiderling.frontier.hosts import Host
from spiderling.frontier.schedule import Schedule
from spiderling.frontier.strategies import DROPPED, BatchRanker, LinkingPage
from spiderling.frontier.traps import Visit
from spiderling.linkbatch import TEXT_BLOCK, LinkBatch
from spiderling.reasons import Reason
from spiderling.urls import PREFIXES, canonicalize

Entry = tuple[int, bytes, int]
"""Rank and line of a URL that comes into a queue, and its place in the batch."""


class Intake:
    """Accepts what is new in a batch; a batch that a worker made up harms no more than the page's own links could."""

    def __init__(self, books: Books, admission: Admission, schedule: Schedule) -> None:
        self._books, self._admission, self._schedule = books, admission, schedule

    def put(
        self, linking: LinkingPage, links: LinkBatch, rank_of: BatchRanker, now: float, page: int, visit: Visit | None
    ) -> None:
        """Accept the links of a page, ranked by *rank_of*; *page* is its key."""
        source = linking.host
        if links.bad:
            self._admission.refuse(Reason.BAD_URL, links.bad)
        if visit is not None and visit.is_copy:
            links = self._leaving(links, visit)
        if links.size:
            self._put_columns(source, links, rank_of, now, page, visit)
        for url, _, flags, _, _ in links.others:
            self._put_other(source, url, flags, rank_of, now, page, visit)

    def _put_columns(
        self, source: Host, links: LinkBatch, rank_of: BatchRanker, now: float, page: int, visit: Visit | None
    ) -> None:
        books, ids = self._books, self._ids(source, links.hosts)
        of_host, hashes = np.frombuffer(links.of_host, np.uint16), np.frombuffer(links.hashes, np.uint64)
        places = books.seen.missing(np.array(ids, np.uint64)[of_host], hashes)
        if len(places) < links.size:
            self._admission.refuse(Reason.SEEN, links.size - len(places))
        allowed = self._allowed(source, links, ids, places) if places else []
        if not allowed:
            return
        ranks = rank_of(NewLinks(links, allowed, ids))
        keys, waiting = self._entered(source, links, ids, zip(allowed, ranks, strict=True))
        books.ledger.discover(len(keys))
        books.trail.found(keys, page)
        for host_id, entries in waiting.items():
            if visit is not None and visit.fruitless:
                self._wait_singly(host_id, entries, links, visit, now)
            elif books.wait_all(host_id, entries):
                self._schedule.wake(host_id, now, min([entry[0] for entry in entries]))

    def _entered(
        self, source: Host, links: LinkBatch, ids: list[int], ranked: Iterable[tuple[int, int]]
    ) -> tuple[list[int], dict[int, list[Entry]]]:
        """The keys of *ranked* links (place, rank), seen from now on, and what comes into each host's queue."""
        enter, refuse, keys = self._books.seen.enter, self._admission.refuse, []
        of_host, digests, lines = array("H", links.of_host), array("Q", links.hashes), links.paths.split(b"\n")
        waiting: dict[int, list[Entry]] = {}
        for at, rank in ranked:
            if rank == DROPPED:
                refuse(Reason.UNPROMISING)
                continue
            number = of_host[at]
            host_id = ids[number] = ids[number] or self._admission.host(links.hosts[number], source.distance + 1).id
            key = enter(host_id, digests[at])
            if key is None:
                refuse(Reason.SEEN)
                continue
            keys.append(key)
            waiting.setdefault(host_id, []).append((rank, HEADS[links.prefixes[at]][rank] + lines[at], at))
        return keys, waiting

    def _ids(self, source: Host, names: Sequence[str]) -> list[int]:
        """The ids of hosts, 0 for unknown ones; the others may be nearer now than they were."""
        distance_of, distance = self._books.marks.distance, source.distance + 1
        ids = list(map(self._books.hosts.find, names))
        for host_id in ids:
            if host_id and distance < distance_of(host_id) and host_id != source.id:
                self._admission.lower(host_id, distance)
        return ids

    def _allowed(self, source: Host, links: LinkBatch, ids: list[int], places: Sequence[int]) -> list[int]:
        """Those of *places* whose links are not refused."""
        refusal_of_form, traps, names = self._books.scope.refusal_of_form, self._admission.traps, links.hosts
        numbers, lines = array("H", links.of_host), links.paths.split(b"\n")
        gates: dict[int, tuple[Reason | None, Reason | None]] = {}
        allowed = []
        for at in places:
            number, prefix, path = numbers[at], links.prefixes[at], lines[at]
            if number not in gates:
                gates[number] = self._gate(source, names[number], ids[number])
            reason = gates[number][prefix & 1] or refusal_of_form(
                links.forms[at], links.depths[at], len(PREFIXES[prefix]) + len(names[number]) + len(path)
            )
            if reason is None and ids[number] in traps.closed:
                reason = traps.refusal(ids[number], names[number], path.decode("ascii"))
            if reason is None:
                allowed.append(at)
            else:
                self._admission.refuse(reason)
        return allowed

    def _gate(self, source: Host, name: str, host_id: int) -> tuple[Reason | None, Reason | None]:
        """``Admission.gate``; a name that no worker of ours makes is no host."""
        if not host_id and ((target := canonicalize(f"http://{name}/")) is None or target.host != name):
            return Reason.BAD_URL, Reason.BAD_URL
        distance = self._books.marks.distance(host_id) if host_id else source.distance + 1
        return self._admission.gate(name, host_id, distance)

    def _wait_singly(self, host_id: int, entries: list[Entry], links: LinkBatch, visit: Visit, now: float) -> None:
        """Each is shown to *visit* as soon as it waits."""
        for entry in entries:
            if self._books.wait_all(host_id, [entry]):
                self._schedule.wake(host_id, now, entry[0])
                visit.found(links.target(entry[2]))

    def _put_other(
        self, source: Host, url: str, flags: int, rank_of: BatchRanker, now: float, page: int, visit: Visit | None
    ) -> None:
        target = canonicalize(url)
        if target is None:
            self._admission.refuse(Reason.BAD_URL)
            return
        link = FoundLink.to(target, self._books.hosts.find(target.host), bool(flags & TEXT_BLOCK))
        if (rank := rank_of(NewLinks.of(link))[0]) == DROPPED:
            self._admission.refuse(Reason.UNPROMISING)
            return
        accepted = self._admission.accept(target, source.distance + (target.host != source.name), rank, page=page)
        if not isinstance(accepted, Reason):
            self._schedule.wake(accepted, now, rank)
            if visit is not None:
                visit.found(target)

    def _leaving(self, links: LinkBatch, visit: Visit) -> LinkBatch:
        """The links of a copy that lead out of its domain."""
        stays = [visit.refuses(name) for name in links.hosts]
        places = [at for at, number in enumerate(array("H", links.of_host)) if not stays[number]]
        others = tuple(other for other in links.others if not visit.refuses(other[1]))
        self._admission.refuse(Reason.TRAP_COPY, links.size - len(places) + len(links.others) - len(others))
        return links.only(places, others)
