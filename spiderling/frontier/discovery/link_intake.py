"""Takes in the links of a page as one batch, and examines only those with new URLs.

Each host is looked up once a batch, and all keys are compared with the seen set in one pass.  admission.py judges the
new links; those that it admits are ranked together (ranking/strategies.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import TEXT_BLOCK, LinkBatch
from spiderling.base.reasons import Reason
from spiderling.base.urls import PREFIXES, canonicalize
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.discovery.core import Part
from spiderling.frontier.discovery.traps import Visit
from spiderling.frontier.ranking.strategy import DROPPED, BatchRanker, FoundLink, LinkingHost, LinkingPage, NewLinks
from spiderling.frontier.scope import MAX_PATH_DEPTH
from spiderling.frontier.storage.queues import HEADS

_PREFIX_CHARS = [len(prefix) for prefix in PREFIXES]
Places = NDArray[np.int64]
Entry = tuple[int, bytes, int]
"""(rank, line, index in the batch) of a URL that comes into a queue."""


class Intake(Part):
    """Accepts what is new in a batch; a forged batch from a worker can do no more harm than a page with those links."""

    def put(self, linking: LinkingPage, links: LinkBatch, now: float, page: int, visit: Visit | None) -> None:
        """Accept the links of a page, whose key is *page*."""
        source = linking.host
        rank_of = self._strategy.batch_ranker(linking)
        if links.bad:
            self._admission.refuse(Reason.BAD_URL, links.bad)
        if visit is not None and visit.is_copy:
            links = self._leaving(links, visit)
        elsewhere = self._core.elsewhere
        own = None if elsewhere is None else elsewhere.keep_own(self._strategy.what_is_read(linking), links)
        if links.size:
            self._put_columns(source, links, own, rank_of, now, page, visit)
        for url, _, flags, _, _ in links.others:
            mention = self._mention(source, url, flags, rank_of, page)
            if mention is not None and self._core.put(mention, now) is None and visit is not None:
                visit.found(mention.target)

    def _put_columns(
        self,
        source: LinkingHost,
        links: LinkBatch,
        own: Places | None,
        rank_of: BatchRanker,
        now: float,
        page: int,
        visit: Visit | None,
    ) -> None:
        """Accept the links in the columns; those at the places *own* alone, unless that is None."""
        url_states = self._url_states
        ids = self._ids(source, links.hosts)
        of_host = np.frombuffer(links.of_host, np.uint16)
        hashes = np.frombuffer(links.hashes, np.uint64)
        id_of_link = np.array(ids, np.uint64)[of_host]
        if own is None:
            places = url_states.seen.missing(id_of_link, hashes)
        else:
            places = own[url_states.seen.missing(id_of_link[own], hashes[own])].tolist()
        number = links.size if own is None else len(own)
        if len(places) < number:
            self._admission.refuse(Reason.SEEN, number - len(places))
        if not places:
            return
        new = NewLinks(links, places, ids)
        new.places = self._allowed(source, links, new, ids)
        if not new.places:
            return
        keys, waiting = self._entered(source, links, new, ids, rank_of(new))
        url_states.ledger.discover(len(keys))
        url_states.url_log.log_found(keys, page)
        for host_id, entries in waiting.items():
            if visit is not None and visit.fruitless:
                self._wait_singly(host_id, entries, links, visit, now)
            elif url_states.wait_all(host_id, entries):
                self._schedule.wake(host_id, now, min(entries)[0])

    def _entered(
        self, source: LinkingHost, links: LinkBatch, new: NewLinks, ids: list[int], ranks: list[int]
    ) -> tuple[list[int], dict[int, list[Entry]]]:
        """Add *new* links to the seen set; returns their keys, and host id -> entries for its queue."""
        numbers = new.numbers
        digests = new.digests
        lines = new.lines
        places = new.places
        if DROPPED in ranks:
            places = [at for at, rank in zip(places, ranks, strict=True) if rank != DROPPED]
            self._admission.refuse(Reason.UNPROMISING, len(ranks) - len(places))
            ranks = [rank for rank in ranks if rank != DROPPED]
        for at in places:
            if not ids[number := numbers[at]]:
                ids[number] = self._admission.host_id(links.hosts[number], source.distance + 1)
                self._url_states.graph.note(source.id, (ids[number],))
        hosts = [ids[numbers[at]] for at in places]
        keys = self._url_states.seen.enter(hosts, [digests[at] for at in places])
        waiting: dict[int, list[Entry]] = {host_id: [] for host_id in hosts}
        for at, rank, host_id, key in zip(places, ranks, hosts, keys, strict=True):
            if key:
                waiting[host_id].append((rank, HEADS[links.prefixes[at]][rank] + lines[at], at))
        if 0 in keys:  # some are in the batch twice
            self._admission.refuse(Reason.SEEN, keys.count(0))
            return [key for key in keys if key], {host_id: some for host_id, some in waiting.items() if some}
        return keys, waiting

    def _ids(self, source: LinkingHost, names: Sequence[str]) -> list[int]:
        """The ids of the hosts *names*, 0 for unknown ones; known ones may get a lower distance."""
        ids = self._url_states.hosts.find_all(names)
        self._url_states.graph.note(source.id, ids)
        for host_id in self._url_states.host_states.farther(ids, source.distance + 1):
            if host_id != source.id:
                self._admission.lower(host_id, source.distance + 1)
        return ids

    def _allowed(self, source: LinkingHost, links: LinkBatch, new: NewLinks, ids: list[int]) -> list[int]:
        """The indices in *links* of the *new* links that are not refused."""
        scope = self._url_states.scope
        closed = self._admission.traps.closed
        names = links.hosts
        fetched = scope.fetched
        max_chars = scope.max_chars
        numbers = new.numbers
        lines = new.lines
        prefixes = links.prefixes
        forms = links.forms
        depths = links.depths
        gates: dict[int, tuple[Reason | None, Reason | None]] = {}
        allowed = []
        for at in new.places:
            number = numbers[at]
            prefix = prefixes[at]
            path = lines[at]
            if number not in gates:
                gates[number] = self._gate(source, names[number], ids[number])
            chars = _PREFIX_CHARS[prefix] + len(names[number]) + len(path)
            reason = gates[number][prefix & 1]
            if reason is None and (forms[at] not in fetched or depths[at] > MAX_PATH_DEPTH or chars > max_chars):
                reason = scope.refusal_of_form(forms[at], depths[at], chars)
            if reason is None and ids[number] in closed:
                reason = self._admission.traps.refusal(ids[number], names[number], path.decode("ascii"))
            if reason is None:
                allowed.append(at)
            else:
                self._admission.refuse(reason)
        return allowed

    def _gate(self, source: LinkingHost, name: str, host_id: int) -> tuple[Reason | None, Reason | None]:
        """``Admission.gate``; BAD_URL for a new name that is not canonical, or not ours, as only a forged batch has."""
        if not host_id:
            target = canonicalize(f"http://{name}/")
            if target is None or target.host != name or self._core.is_elsewhere(name):
                return Reason.BAD_URL, Reason.BAD_URL
        distance = self._url_states.host_states.distance(host_id) if host_id else source.distance + 1
        return self._admission.gate(name, host_id, distance)

    def _wait_singly(self, host_id: int, entries: list[Entry], links: LinkBatch, visit: Visit, now: float) -> None:
        """Queue the entries one by one; each is shown to *visit* as soon as it waits."""
        for entry in entries:
            if self._url_states.wait_all(host_id, [entry]):
                self._schedule.wake(host_id, now, entry[0])
                visit.found(links.target(entry[2]))

    def _mention(self, source: LinkingHost, url: str, flags: int, rank_of: BatchRanker, page: int) -> Mention | None:
        """The Mention of a link that is not in the columns of the batch; None if it is refused."""
        target = canonicalize(url)
        if target is None:
            self._admission.refuse(Reason.BAD_URL)
            return None
        link = FoundLink.to(target, self._url_states.hosts.find(target.host), bool(flags & TEXT_BLOCK))
        if (rank := rank_of(NewLinks.of(link))[0]) == DROPPED:
            self._admission.refuse(Reason.UNPROMISING)
            return None
        return Mention(target, source.distance + (target.host != source.name), rank, page)

    def _leaving(self, links: LinkBatch, visit: Visit) -> LinkBatch:
        """The links of a copy that lead out of its domain; the others are refused."""
        stays = [visit.refuses(name) for name in links.hosts]
        places = [at for at, number in enumerate(array("H", links.of_host)) if not stays[number]]
        others = tuple(other for other in links.others if not visit.refuses(other[1]))
        self._admission.refuse(Reason.TRAP_COPY, links.size - len(places) + len(links.others) - len(others))
        return links.only(places, others)
