"""The links and single URLs of a shard that lead to hosts of others, until the next checkpoint.

A link that was sent lately is not sent again, unless it shortens the distance of its host.  The memory for that is
bounded and ends with the process: the receiver knows what it has seen.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.link_batch import NONE, LinkBatch
from spiderling.base.owners import owner_of
from spiderling.cluster.content import section
from spiderling.frontier.admission import Mention
from spiderling.frontier.storage.seen import KeyTable
from spiderling.frontier.strategy import FarHost, LinkingPage

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
_KEY_MASK = (1 << 64) - 1

Places = NDArray[np.int64]
_Found = tuple[LinkBatch, NDArray[np.uint16], Places]
"""Links of a page, the owner of each, and the places of those to be sent."""


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
        """Those of *places* that were not sent lately, or not from as near; the first of equal links.

        A page has a few dozen of them, for which Python is faster than arrays.
        """
        numbers = of_host[places].tolist()
        hosts = {number: links.hosts[number] for number in numbers}
        tails = {number: xxhash.xxh3_64_intdigest(name.encode()) & _TAIL_MASK for number, name in hosts.items()}
        hashes = np.frombuffer(links.hashes, np.uint64)[places].tolist()
        found: dict[int, int] = {}
        for at, (digest, number) in enumerate(zip(hashes, numbers, strict=True)):
            found.setdefault((digest << _TAIL_BITS | tails[number]) & _KEY_MASK, at)
        new = self._remember(list(found))
        nearer = {number for number, name in hosts.items() if self._is_nearer(name, page.host.distance)}
        if nearer:
            return places[[at for key, at in found.items() if key in new or numbers[at] in nearer]]
        return places[[found[key] for key in new]]

    def _is_nearer(self, name: str, distance: int) -> bool:
        known = self._distances.get(name)
        if known is not None and known <= distance:
            return False
        if len(self._distances) >= _KNOWN_HOSTS:
            self._distances.clear()
        self._distances[name] = distance
        return known is not None

    def _remember(self, keys: list[int]) -> dict[int, None]:
        """Those of different *keys* that were not known; from now on they are."""
        new = keys
        if len(self._sent_before):
            new = [key for key in keys if key not in self._sent_before]
        for at in reversed(self._sent.add_all(new)):
            del new[at]
        if len(self._sent) > _REMEMBERED // 2:
            self._sent_before = self._sent
            self._sent = KeyTable()
        return dict.fromkeys(new)

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


class _Columns(NamedTuple):
    """Links to be sent, by the shards that they go to; of each shard, in the order of their pages."""

    owners: NDArray[np.uint16]
    of_page: Places
    """Place of each link's page among the pages that are alike."""
    of_host: Places
    """Place of each link's host in ``names``."""
    names: list[str]
    paths: list[bytes]
    cues: list[bytes]
    """Prefixes, flags, scores, anchors."""


def _columns(found: dict[LinkingPage, list[_Found]]) -> _Columns:
    batches = [one for some in found.values() for one in some]
    of_page = np.repeat(np.arange(len(found)), [sum(len(places) for *_, places in some) for some in found.values()])
    # all links of all pages one behind the other, and the places of those to be sent
    sizes = [links.size for links, _, _ in batches]
    starts = _starts(sizes)
    at = np.concatenate([places + start for (_, _, places), start in zip(batches, starts.tolist(), strict=True)])
    owners = np.concatenate([owner_of_link for _, owner_of_link, _ in batches])[at]
    order = np.argsort(owners, kind="stable")
    every_path = b"\n".join([links.paths for links, _, _ in batches]).split(b"\n")
    paths = [every_path[place] for place in at[order].tolist()]
    if max(map(len, paths)) > MAX_URL_BYTES:
        short = [place for place, path in enumerate(paths) if len(path) <= MAX_URL_BYTES]
        paths = [paths[place] for place in short]
        order = order[short]
    at = at[order]
    every_host = list(chain.from_iterable([links.hosts for links, _, _ in batches]))
    first_hosts = np.repeat(_starts([len(links.hosts) for links, _, _ in batches]), sizes)
    of_host = np.frombuffer(b"".join([links.of_host for links, _, _ in batches]), np.uint16)
    linked, numbers = np.unique(of_host[at] + first_hosts[at], return_inverse=True)
    names: dict[str, int] = {}
    table = np.array([names.setdefault(every_host[place], len(names)) for place in linked.tolist()], np.int64)
    cues = zip(*((links.prefixes, links.flags, links.scores, links.anchors) for links, _, _ in batches), strict=True)
    taken = [np.frombuffer(b"".join(column), np.uint8)[at].tobytes() for column in cues]
    return _Columns(owners[order], of_page[order], table[numbers], list(names), paths, taken)


def _by_shard(
    found: dict[LinkingPage, list[_Found]],
) -> Iterator[tuple[int, list[tuple[LinkingPage, int]], LinkBatch]]:
    """(Shard, pages and how many links each has, their links) for sections.

    The links lack the columns that follow from their URLs.
    """
    owners, of_page, of_host, names, paths, cues = _columns(found)
    if not paths:
        return
    shards, ends = _sections(owners)
    section_of_link = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    # the hosts of each section, and the place of each link's host among them
    used, numbers = np.unique(section_of_link * len(names) + of_host, return_inverse=True)
    first_hosts = np.searchsorted(used, np.arange(len(ends) + 1) * len(names))
    hosts = [names[number] for number in (used % len(names)).tolist()]
    host_numbers = (numbers - first_hosts[section_of_link]).astype(np.uint16).tobytes()
    # its pages, and how many links each has
    page_of_link = section_of_link * len(found) + of_page
    firsts = np.flatnonzero(np.diff(page_of_link, prepend=-1))
    every_page = list(found)
    pages = [every_page[number] for number in of_page[firsts].tolist()]
    counts = np.diff(firsts, append=len(paths)).tolist()
    page_ends = np.searchsorted(firsts, ends).tolist()
    start = page_start = 0
    for number, (shard, end, page_end) in enumerate(zip(shards, ends, page_ends, strict=True)):
        prefixes, flags, scores, anchors = (column[start:end] for column in cues)
        batch = LinkBatch(
            tuple(hosts[first_hosts[number] : first_hosts[number + 1]]),
            b"\n".join(paths[start:end]),
            host_numbers[2 * start : 2 * end],
            prefixes=prefixes,
            flags=flags,
            scores=scores,
            anchors=anchors,
        )
        yield shard, list(zip(pages[page_start:page_end], counts[page_start:page_end], strict=True)), batch
        start = end
        page_start = page_end


def _starts(sizes: list[int]) -> Places:
    """Where each of as many runs of *sizes* begins."""
    return np.cumsum([0, *sizes[:-1]])


def _sections(owners: NDArray[np.uint16]) -> tuple[list[int], list[int]]:
    """The shard of each section, and where it ends among links whose *owners* are sorted."""
    shards, ends = [], []
    end = 0
    for shard, number in zip(*(column.tolist() for column in np.unique(owners, return_counts=True)), strict=True):
        start = end
        end += number
        for section_start in range(start, end, MAX_SECTION_LINKS):
            shards.append(shard)
            ends.append(min(section_start + MAX_SECTION_LINKS, end))
    return shards, ends
