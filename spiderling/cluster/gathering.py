"""The links and single URLs of a shard that lead to hosts of others, until the next checkpoint.

A link that was sent lately is not sent again, unless it shortens the distance of its host.  The memory for that is
bounded and ends with the process: the receiver knows what it has seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.link_batch import LinkBatch, Other
from spiderling.base.owners import owner_of
from spiderling.cluster.content import Content, FoundLinks, section
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.ranking.linking_page import FarHost, LinkingPage
from spiderling.frontier.storage.key_table import Keys, KeyTable

MAX_SECTION_LINKS = 1000
"""Links of one section: with the longest URLs they stay far below MAX_PLAIN_BYTES."""
MAX_URL_BYTES = 8192
"""Longer paths are left out, since no setting of SPIDERLING_MAX_URL_CHARS takes them."""
_REMEMBERED = 1_000_000
"""Links that are known as sent, at most (chosen: 12 MB)."""
_KNOWN_HOSTS = 200_000
"""Hosts whose owner and distance are remembered, at most (chosen: 40 MB)."""
_TAIL_BITS = 24
"""Bits of a host name's hash below the 40 of a URL's hash, in a key of the links that were sent."""

Places = NDArray[np.int64]
_Found = tuple[LinkBatch, NDArray[np.uint16], Places, list[tuple[int, Other]]]
"""Links of a page, the owner of each, the places of those to be sent; owner and link of those that have no place."""


class Gathering:
    """What leaves one shard."""

    def __init__(self, me: int, shards: int) -> None:
        self._me = me
        self._shards = shards
        self._hosts: dict[str, tuple[int, int]] = {}
        """Name of a host -> its owner, and bits of the name's hash."""
        self._distances: dict[str, int] = {}
        """Name of a foreign host -> the smallest distance of the pages whose links to it were sent."""
        self._sent = KeyTable()
        self._sent_before = KeyTable()
        self._links: defaultdict[LinkingPage, list[_Found]] = defaultdict(list)
        self._mentions: defaultdict[int, list[Mention]] = defaultdict(list)

    def owner(self, name: str) -> int:
        """The shard of a host."""
        return self._host(name)[0]

    def _host(self, name: str) -> tuple[int, int]:
        known = self._hosts.get(name)
        if known is None:
            if len(self._hosts) >= _KNOWN_HOSTS:
                self._hosts.clear()
            tail = xxhash.xxh3_64_intdigest(name.encode()) & (1 << _TAIL_BITS) - 1
            known = self._hosts[name] = (owner_of(name, self._shards), tail)
        return known

    def __bool__(self) -> bool:
        return bool(self._links or self._mentions)

    # -- in

    def give(self, mention: Mention) -> None:
        """Take a single URL of a foreign host."""
        self._mentions[self.owner(mention.target.host)].append(mention)

    def keep_own(self, page: LinkingPage, links: LinkBatch) -> LinkBatch:
        """Take the links to foreign hosts; returns the others."""
        me = self._me
        owners = [self._host(name)[0] for name in links.hosts]
        others = [(self.owner(other[1]), other) for other in links.others]
        if all(owner == me for owner in chain(owners, (owner for owner, _ in others))):
            return links
        of_host = np.frombuffer(links.of_host, np.uint16)
        owner_of_link = np.array(owners, np.uint16)[of_host]
        is_own = owner_of_link == me
        places = self._not_sent(page, links, of_host, np.flatnonzero(~is_own))
        foreign = [(owner, other) for owner, other in others if owner != me]
        if len(places) or foreign:
            self._links[_alike(page)].append((links, owner_of_link, places, foreign))
        return links.only(np.flatnonzero(is_own).tolist(), tuple(other for owner, other in others if owner == me))

    def _not_sent(self, page: LinkingPage, links: LinkBatch, of_host: NDArray[np.uint16], places: Places) -> Places:
        """Those of *places* that were not sent lately, or not from as near; the first of equal links."""
        tails = np.array([self._host(name)[1] for name in links.hosts], np.uint64)
        hashes = np.frombuffer(links.hashes, np.uint64)
        keys = hashes[places] << np.uint64(_TAIL_BITS) | tails[of_host[places]]
        first = np.sort(np.unique(keys, return_index=True)[1])
        keys = keys[first]
        places = places[first]
        numbers = of_host[places]
        nearer = [at for at in np.unique(numbers).tolist() if self._is_nearer(links.hosts[at], page.host.distance)]
        is_new = np.isin(numbers, nearer)
        is_new[self._remember(keys)] = True
        return places[is_new]

    def _is_nearer(self, name: str, distance: int) -> bool:
        known = self._distances.get(name)
        if known is not None and known <= distance:
            return False
        if len(self._distances) >= _KNOWN_HOSTS:
            self._distances.clear()
        self._distances[name] = distance
        return known is not None

    def _remember(self, keys: Keys) -> list[int]:
        """The places of the keys that were not known; from now on they are."""
        new = self._sent.missing(keys)
        if len(self._sent_before):
            new = [new[at] for at in self._sent_before.missing(keys[new])]
        self._sent.add_all(keys[new].tolist())
        if len(self._sent) > _REMEMBERED // 2:
            self._sent_before = self._sent
            self._sent = KeyTable()
        return new

    # -- out

    def sections(self) -> Iterator[tuple[int, bytes, int]]:
        """(Shard, section, links in it) of what has gathered, which is forgotten then."""
        found: defaultdict[int, list[FoundLinks]] = defaultdict(list)
        for page, batches in self._links.items():
            for shard, links in _by_shard(batches):
                found[shard].append(FoundLinks(page, links))
        mentions = self._mentions
        self._links = defaultdict(list)
        self._mentions = defaultdict(list)
        for shard in sorted(found.keys() | mentions.keys()):
            for content, number in _contents(found[shard], mentions[shard]):
                yield shard, section(content), number


def _alike(page: LinkingPage) -> LinkingPage:
    """What a strategy reads of *page*; badness to a tenth."""
    badness = round(page.badness, 1)
    return LinkingPage(FarHost(page.host.distance), page.reason, page.rank, page.relevant, page.language, badness)


def _contents(found: list[FoundLinks], mentions: list[Mention]) -> Iterator[tuple[Content, int]]:
    """The contents of sections, none of them too large, with the number of their links."""
    chosen: list[FoundLinks] = []
    number = 0
    for one in found:
        if chosen and number + one.links.number > MAX_SECTION_LINKS:
            yield Content(tuple(chosen)), number
            chosen = []
            number = 0
        chosen.append(one)
        number += one.links.number
    if chosen:
        yield Content(tuple(chosen)), number
    for mention in mentions:
        yield Content((), (mention,)), 1


def _by_shard(found: list[_Found]) -> Iterator[tuple[int, LinkBatch]]:
    """The links of alike pages as a batch for each shard, without the columns that follow from the URLs."""
    names: dict[str, int] = {}
    numbers: list[NDArray[np.uint32]] = []
    lines: list[bytes] = []
    columns: list[list[NDArray[np.uint8]]] = []
    owners: list[NDArray[np.uint16]] = []
    others: defaultdict[int, list[Other]] = defaultdict(list)
    for batch, owner_of_link, places, foreign in found:
        table = np.array([names.setdefault(name, len(names)) for name in batch.hosts], np.uint32)
        numbers.append(table[np.frombuffer(batch.of_host, np.uint16)[places]])
        every = batch.paths.split(b"\n")
        lines += [every[at] for at in places.tolist()]
        cues = batch.prefixes, batch.flags, batch.scores, batch.anchors
        columns.append([np.frombuffer(column, np.uint8)[places] for column in cues])
        owners.append(owner_of_link[places])
        for shard, other in foreign:
            others[shard].append(other)
    number = np.concatenate(numbers)
    owner = np.concatenate(owners)
    whole = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    owner[np.array([len(line) > MAX_URL_BYTES for line in lines], bool)] = np.iinfo(np.uint16).max
    hosts = list(names)
    for shard in sorted({*np.unique(owner).tolist(), *others} - {np.iinfo(np.uint16).max}):
        of_shard = np.flatnonzero(owner == shard)
        for start in range(0, max(len(of_shard), 1), MAX_SECTION_LINKS):
            chosen = of_shard[start : start + MAX_SECTION_LINKS]
            used, of_host = np.unique(number[chosen], return_inverse=True)
            prefixes, flags, scores, anchors = (column[chosen].tobytes() for column in whole)
            yield (
                shard,
                LinkBatch(
                    hosts=tuple(hosts[at] for at in used.tolist()),
                    paths=b"\n".join([lines[at] for at in chosen.tolist()]),
                    of_host=of_host.astype(np.uint16).tobytes(),
                    prefixes=prefixes,
                    flags=flags,
                    scores=scores,
                    anchors=anchors,
                    others=() if start else tuple(others[shard]),
                ),
            )
