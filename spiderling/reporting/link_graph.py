"""The pages that a crawl has read, and the links between them, by its ``links/``.

What tables.py makes of them are the analyses of a crawl in Somboonviwat, Tamura & Kitsuregawa 2006, section 2.  Only
links to pages that were read count, since the language of the others is not known.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from spiderling.base.urls import canonicalize
from spiderling.corpus.links import LinkLine

_Places = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_MOST_LINKS = 20_000_000
"""Links that are looked at (chosen: at 52 bytes each they take 1 GB for a while); those of later pages are left out."""
_MOST_REDIRECTS = 5
"""Redirects in a row that a link is followed through."""


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """The pages that were read, in the order of their lines, and the links between them."""

    languages: list[str]
    """Of each page; "" if it is unknown."""
    relevant: _Mask
    hosts: list[str]
    host: _Places
    """Of each page its place among `hosts`."""
    sources: _Places
    """Of each link the place of its page."""
    targets: _Places
    """Of each link the place of the page to which it leads."""
    left_out: int
    """Pages whose links are not looked at."""

    def distances(self) -> _Places:
        """Of each page the number of links from the nearest relevant page, through pages that are not; 0: no way.

        Breadth first.  A way may end where it began.
        """
        found = np.zeros(len(self.languages), np.int64)
        begins = self.relevant
        number = 0
        while begins.any():
            number += 1
            new = np.zeros(len(found), bool)
            new[self.targets[begins[self.sources]]] = True
            new &= found == 0
            found[new] = number
            begins = new & ~self.relevant
        return found


def link_graph(lines: Iterable[LinkLine], most_links: int = _MOST_LINKS) -> LinkGraph | None:
    """The graph of *lines*, None if there are none; of a URL with several lines the last one counts.

    A redirect stands for its target.
    """
    keys, redirects, links = array("Q"), array("Q"), array("Q")
    hosts: dict[str, int] = {}
    languages: list[str] = []
    host, numbers = array("q"), array("q")
    relevant = bytearray()
    left_out = 0
    for line in lines:
        target = canonicalize(line.url)
        if target is None or not line.status:
            continue
        further = canonicalize(line.redirect_to) if line.redirect_to else None
        keys.append(_key(line.url))
        redirects.append(_key(further.url) if further else 0)
        host.append(hosts.setdefault(target.host, len(hosts)))
        languages.append(line.page_language)
        relevant.append(line.relevant)
        is_taken = len(links) + len(line.links) <= most_links
        left_out += not is_taken
        numbers.append(len(line.links) if is_taken else 0)
        links.extend(map(_key, line.links if is_taken else ()))
    if not keys:
        return None
    ends = _Ends(np.array(keys, np.uint64), np.array(redirects, np.uint64))
    sources = np.repeat(np.arange(len(keys)), np.array(numbers, np.int64))
    targets = ends.of(np.array(links, np.uint64))
    inside = (targets >= 0) & ends.is_page[sources] & (targets != sources)
    place = np.cumsum(ends.is_page) - 1
    chosen = np.flatnonzero(ends.is_page)
    return LinkGraph(
        [languages[at] for at in chosen.tolist()],
        np.frombuffer(bytes(relevant), np.bool_)[chosen],
        list(hosts),
        np.array(host, np.int64)[chosen],
        place[sources[inside]],
        place[targets[inside]],
        left_out,
    )


def _key(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode("utf-8", "replace"))


class _Ends:
    """Finds the line of the page to which a URL leads at last."""

    def __init__(self, keys: npt.NDArray[np.uint64], redirects: npt.NDArray[np.uint64]) -> None:
        """Of each line the key of its URL, and that of the URL to which it redirects, or 0."""
        order = np.argsort(keys, kind="stable")
        is_last = np.append(keys[order][1:] != keys[order][:-1], True)[: len(keys)]
        self._lines = order[is_last]
        self._keys = keys[self._lines]
        self.is_page = np.zeros(len(keys), bool)
        """Of each line whether it is the last one of its URL, and no redirect."""
        self.is_page[self._lines] = redirects[self._lines] == 0
        self._next = np.where(redirects == 0, np.arange(len(keys)), self._line_of(redirects))

    def _line_of(self, keys: npt.NDArray[np.uint64]) -> _Places:
        """The last line of each URL; -1 for unknown ones."""
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._lines[at], -1)

    def of(self, keys: npt.NDArray[np.uint64]) -> _Places:
        """The line of the page to which each URL leads; -1: none was read."""
        lines = self._line_of(keys)
        for _ in range(_MOST_REDIRECTS):
            lines = np.where(lines >= 0, self._next[lines], -1)
        return np.where((lines >= 0) & self.is_page[lines], lines, -1)
