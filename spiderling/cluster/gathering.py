"""The links and single URLs of a shard that lead to hosts of others, until the next checkpoint.

A link that was sent lately is not sent again, unless it shortens the distance of its host.  The memory for that is
bounded and ends with the process: the receiver knows what it has seen.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.link_batch import NONE, LinkBatch
from spiderling.base.owners import owner_of
from spiderling.cluster.content import section
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
"""Hosts whose distance is remembered, at most (chosen: 20 MB)."""
_TAIL_BITS = 24
"""Bits of a host name's hash below the 40 of a URL's hash, in a key of the links that were sent."""
_TAIL_MASK = (1 << _TAIL_BITS) - 1

Places = NDArray[np.int64]
_Found = tuple[LinkBatch, NDArray[np.uint16], Places]
"""Links of a page, the owner of each, and the places of those to be sent."""
_NOBODY = np.iinfo(np.uint16).max
"""The owner of links that are left out."""


class Gathering:
    """What leaves one shard."""

    def __init__(self, me: int, shards: int) -> None:
        self._me = me
        self._shards = shards
        self._distances: dict[str, int] = {}
        """Name of a foreign host -> the smallest distance of the pages whose links to it were sent."""
        self._sent = KeyTable()
        self._sent_before = KeyTable()
        self._links: defaultdict[LinkingPage, list[_Found]] = defaultdict(list)
        self._mentions: defaultdict[int, list[Mention]] = defaultdict(list)

    def owner(self, name: str) -> int:
        """The shard of a host."""
        return owner_of(name, self._shards)

    def __bool__(self) -> bool:
        return bool(self._links or self._mentions)

    # -- in

    def give(self, mention: Mention) -> None:
        """Take a single URL of a foreign host."""
        self._mentions[self.owner(mention.target.host)].append(mention)

    def keep_own(self, page: LinkingPage, links: LinkBatch) -> Places | None:
        """Take the links to foreign hosts; returns the places of the others, None if that is all."""
        owners = array("H", links.owners)
        if max(owners, default=self._shards) >= self._shards:  # nobody has looked, or a worker has made them up
            owners = array("H", map(self.owner, links.hosts))
        if owners.count(self._me) == len(owners):
            return None
        of_host = np.frombuffer(links.of_host, np.uint16)
        owner_of_link = np.array(owners)[of_host]
        is_own = owner_of_link == self._me
        places = self._not_sent(page, links, of_host, np.flatnonzero(~is_own))
        if len(places):
            self._links[_alike(page)].append((links, owner_of_link, places))
        return np.flatnonzero(is_own)

    def _not_sent(self, page: LinkingPage, links: LinkBatch, of_host: NDArray[np.uint16], places: Places) -> Places:
        """Those of *places* that were not sent lately, or not from as near; the first of equal links."""
        tails = np.array([xxhash.xxh3_64_intdigest(name.encode()) & _TAIL_MASK for name in links.hosts], np.uint64)
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
        links = self._links
        mentions = self._mentions
        self._links = defaultdict(list)
        self._mentions = defaultdict(list)
        for shard, pages, batch in _by_shard(links) if links else ():
            yield shard, section(pages, batch, ()), batch.size
        for shard, some in mentions.items():
            for mention in some:
                yield shard, section((), NONE, (mention,)), 1


def _alike(page: LinkingPage) -> LinkingPage:
    """What a strategy reads of *page*; badness to a tenth."""
    badness = round(page.badness, 1)
    return LinkingPage(FarHost(page.host.distance), page.reason, page.rank, page.relevant, page.language, badness)


def _by_shard(
    found: dict[LinkingPage, list[_Found]],
) -> Iterator[tuple[int, list[tuple[LinkingPage, int]], LinkBatch]]:
    """(Shard, pages and how many links each has, their links) for sections.

    The links lack the columns that follow from their URLs.
    """
    batches = [one for some in found.values() for one in some]
    of_page = np.repeat(np.arange(len(found)), [sum(len(places) for *_, places in some) for some in found.values()])
    # all links of all pages one behind the other, and the places of those to be sent
    sizes = [links.size for links, _, _ in batches]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    at = np.concatenate([places + start for (_, _, places), start in zip(batches, starts[:-1], strict=True)])
    every_line = b"\n".join([links.paths for links, _, _ in batches]).split(b"\n")
    lines = [every_line[place] for place in at.tolist()]
    owners = np.concatenate([owner_of_link for _, owner_of_link, _ in batches])[at]
    names: dict[str, int] = {}
    table = np.array([names.setdefault(name, len(names)) for links, _, _ in batches for name in links.hosts])
    before = np.concatenate([[0], np.cumsum([len(links.hosts) for links, _, _ in batches])])[:-1]
    of_host = np.frombuffer(b"".join([links.of_host for links, _, _ in batches]), np.uint16)
    of_host = table[of_host + np.repeat(before, sizes)][at]
    cues = zip(*((links.prefixes, links.flags, links.scores, links.anchors) for links, _, _ in batches), strict=True)
    cues_of_link = [np.frombuffer(b"".join(column), np.uint8)[at] for column in cues]
    owners[np.fromiter((len(line) > MAX_URL_BYTES for line in lines), bool, len(lines))] = _NOBODY
    every_page = list(found)
    every_name = list(names)
    for shard in np.unique(owners[owners != _NOBODY]).tolist():
        of_shard = np.flatnonzero(owners == shard)
        for start in range(0, len(of_shard), MAX_SECTION_LINKS):
            chosen = of_shard[start : start + MAX_SECTION_LINKS]
            used, numbers = np.unique(of_host[chosen], return_inverse=True)
            linking = zip(*(column.tolist() for column in np.unique(of_page[chosen], return_counts=True)), strict=True)
            prefixes, flags, scores, anchors = (column[chosen].tobytes() for column in cues_of_link)
            urls = LinkBatch(
                tuple(every_name[at] for at in used.tolist()),
                b"\n".join([lines[at] for at in chosen.tolist()]),
                numbers.astype(np.uint16).tobytes(),
                prefixes=prefixes,
            )
            batch = urls._replace(flags=flags, scores=scores, anchors=anchors)
            yield shard, [(every_page[at], number) for at, number in linking], batch
