"""The links of a generated web, made a block of pages at a time when they are first asked for.

A link stays on the server, goes to another server of the domain, or leaves the domain.  The
shares of the three kinds, and how many of each lead to wanted pages, follow from the ratios by
server and by domain in Tamura, Somboonviwat & Kitsuregawa 2006, Table 3, which admit one
solution; pages in the wanted language have other shares than the rest.  Every page can be
reached: the pages of a host form a tree, and an older host links to each younger one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simulator.pages import CODES, TEXT_SCORE, Array, Pages
from spiderling.base.reasons import Reason

STAY = (0.50, 0.719)
"""Share of a page's links that stay on its server: of a page in another language, of one in the wanted language.

The next three constants have the same two places; Table 3 gives them all.
"""
DOMAIN = (0.295, 0.057)
"""Share of the links that lead to another server of the same domain."""
DOMAIN_WANTED = (0.011, 0.69)
"""Share of these that lead to wanted pages."""
OTHER_WANTED = (0.062, 0.307)
"""Share of the links to other domains that lead to wanted pages."""
TEXT_IF_GOOD = 0.640
"""How often a link to a page that is kept stands in running text (Schäfer et al. 2014, Table 3)."""
TEXT_IF_BAD = 58_039 / 580_389
"""How often a link to any other page does (the same table)."""
_TREE_LINKS = 2
"""Mean number of links of a page to the front page and down the tree of its host."""
BLOCK = 1 << 14
"""Pages whose links are made at once (chosen)."""
_BLOCKS_KEPT = 1 << 12
"""Blocks that stay in memory (chosen: more than the largest web has)."""
_POPULARITY = 4.0
"""The links that a page gets from elsewhere fall with its rank like a power, -(1 - 1/4)."""


class Linking:
    """Who links to whom; ``links(page)`` is deterministic, whatever was asked before."""

    def __init__(self, seed: int, mean: float, first: Array, pages: Pages, address: Array, order: Array) -> None:
        """*mean*: links of a page; *first*: as in Hosts; *order*: the hosts, the oldest first.

        *address*: one for each host; hosts with the same address are of one domain.
        """
        self.order = order
        self._seed = seed
        self._mean = mean
        self._first = first
        self._pages = pages
        rng = np.random.default_rng([seed, 2])
        self._wanted = pages.language == 0
        self._good = pages.verdict == CODES[Reason.KEPT]
        numbers = rng.permutation(len(pages.host)).astype(np.int32)
        self._pools = [numbers[~self._wanted[numbers]], numbers[self._wanted[numbers]]]
        if not len(self._pools[0]):
            self._pools[0] = self._pools[1]
        by_address = np.argsort(address, kind="stable")
        self._neighbours = by_address
        self._place = np.argsort(by_address)
        self._group = np.searchsorted(address[by_address], [address, address + 1]).T
        self._entries = self._entrances(rng)
        self._block = lru_cache(maxsize=_BLOCKS_KEPT)(self._make)

    def links(self, page: int) -> tuple[Array, Array]:
        """The pages that *page* links to, and the scores of the links' blocks."""
        number, at = divmod(page, BLOCK)
        starts, targets, scores = self._block(number)
        span = slice(starts[at], starts[at + 1])
        return targets[span], scores[span]

    def _entrances(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Pages, sorted, and for each the front page of a younger host that it has to link to."""
        older = (np.arange(1, len(self.order)) * rng.random(len(self.order) - 1)).astype(np.int64)
        hosts = self.order[older]
        source = self._first[hosts] + (np.diff(self._first)[hosts] * rng.random(len(hosts)) ** 2).astype(np.int64)
        by_source = np.argsort(source, kind="stable")
        return source[by_source], self._first[self.order[1:]][by_source]

    def _make(self, number: int) -> tuple[Array, Array, Array]:
        rng = np.random.default_rng([self._seed, 3, number])
        low = number * BLOCK
        high = min((number + 1) * BLOCK, len(self._pages.host))
        page = np.arange(low, high)
        degree = np.clip(3 + (self._mean - 3) * rng.lognormal(-0.5, 1.0, len(page)), 3, 300).astype(np.int64)
        source = np.repeat(page, degree)
        targets = self._drawn(source, rng)
        ends = np.cumsum(degree)
        starts = np.concatenate(([0], ends))
        self._make_tree(page, starts, targets)
        entry = slice(*np.searchsorted(self._entries[0], [low, high]))
        source, target = (column[entry] for column in self._entries)
        extra = ends[source - low]
        targets = np.insert(targets, extra, target)
        starts = starts + np.concatenate(([0], np.cumsum(np.bincount(source - low, minlength=len(page)))))
        good = self._good[targets]
        is_text = rng.random(len(targets)) < np.where(good, TEXT_IF_GOOD, TEXT_IF_BAD)
        scores = np.where(
            is_text, rng.integers(TEXT_SCORE, 256, len(targets)), rng.integers(0, TEXT_SCORE, len(targets))
        )
        return starts, targets.astype(np.int32), scores.astype(np.uint8)

    def _make_tree(self, page: Array, starts: Array, targets: Array) -> None:
        """The first three links of a page lead to the front page and to its two children."""
        host = self._pages.host[page]
        first = self._first[host]
        end = self._first[host + 1]
        targets[starts[:-1]] = first
        for child in (1, 2):
            number = first + 2 * (page - first) + child
            exists = number < end
            targets[(starts[:-1] + child)[exists]] = number[exists]

    def _drawn(self, source: Array, rng: np.random.Generator) -> Array:
        """A target for each link of the pages *source*."""
        host = self._pages.host[source]
        wanted = self._wanted[source].astype(np.int64)
        kind = rng.random(len(source))
        draw = rng.random(len(source))
        tree = min(_TREE_LINKS / self._mean, 0.45)  # these links stay on the server, so fewer of the others do
        stays = (np.array(STAY)[wanted] - tree) / (1 - tree)
        in_domain = kind < stays + np.array(DOMAIN)[wanted] / (1 - tree)
        first = self._first[host]
        end = self._first[host + 1]
        targets: Array = first + ((end - first) * rng.random(len(source)) ** 1.5).astype(np.int64)
        leaves = kind >= stays
        near = leaves & in_domain & ((self._group[host, 1] - self._group[host, 0]) > 1)
        away = leaves & ~near
        to_wanted = draw < np.where(near, np.array(DOMAIN_WANTED)[wanted], np.array(OTHER_WANTED)[wanted])
        targets[away] = self._anywhere(to_wanted[away], rng)
        targets[near] = self._in_domain(host[near], to_wanted[near], rng)
        return targets

    def _anywhere(self, to_wanted: Array, rng: np.random.Generator) -> Array:
        """Popular pages, half of the time the front page of their host if that is in the same language."""
        targets = np.empty(len(to_wanted), np.int64)
        for wish, pool in enumerate(self._pools):
            chosen = to_wanted == wish
            targets[chosen] = pool[(len(pool) * rng.random(int(chosen.sum())) ** _POPULARITY).astype(np.int64)]
        front = self._first[self._pages.host[targets]]
        goes_front = (rng.random(len(targets)) < 0.5) & (self._wanted[front] == self._wanted[targets])
        chosen_pages: Array = np.where(goes_front, front, targets)
        return chosen_pages

    def _in_domain(self, host: Array, to_wanted: Array, rng: np.random.Generator) -> Array:
        """A page of another host of the same domain; after some tries in the wrong language, one of anywhere."""
        targets = self._anywhere(to_wanted, rng)
        low = self._group[host, 0]
        number = self._group[host, 1] - self._group[host, 0]
        open_ = np.ones(len(host), bool)
        for _ in range(6):
            step = 1 + (rng.random(len(host)) * (number - 1)).astype(np.int64)
            other = self._neighbours[low + (self._place[host] - low + step) % number]
            first = self._first[other]
            end = self._first[other + 1]
            page = first + ((end - first) * rng.random(len(host))).astype(np.int64)
            fits = open_ & (self._wanted[page] == to_wanted)
            targets[fits] = page[fits]
            open_ &= ~fits
        return targets
