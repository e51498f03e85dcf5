"""Strategies that know the web, which no real crawl does; real ones are measured by them.

``perfect`` knows each page's yield and follows links from the seeds, by shortest paths.

``known-hosts`` is the yardstick.  Which page of a host has text can mostly not be known before it is read, but what
the host gives can be learnt.  So it knows the words that each host gives for its bytes, all URLs, and nothing of
single pages.  It asks whole hosts, the richest first, under the politeness of any crawl: the hosts that hold the first
25 % of the words side by side, then those up to 50 %, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simulator.pages import BYTES_PER_WORD, Array, PageWeb
from spiderling.frontier.hosts import YieldAccount
from spiderling.frontier.strategy import DROPPED, FoundLink, LinkingPage, Ranker, Strategy

_RANKS = 10
"""Ranks among which pages that are worth something are shared out evenly (chosen)."""


class Tree(NamedTuple):
    """The breadth-first tree of a web."""

    parent: Array
    """The page by which each page was found; -1: it is a seed or out of reach."""
    levels: list[Array]
    """Pages by their distance from the seeds."""


def breadth_first(starts: Array, targets: Array, seeds: Array) -> Tree:
    """*starts* and *targets* as in ``stored_links``."""
    parent = np.full(len(starts) - 1, -1, np.int64)
    reached = np.zeros(len(parent), bool)
    level = np.unique(seeds)
    levels = []
    while len(level):
        reached[level] = True
        levels.append(level)
        number = starts[level + 1] - starts[level]
        places = np.repeat(starts[level + 1] - np.cumsum(number), number) + np.arange(number.sum())
        found, first = np.unique(targets[places], return_index=True)
        is_new = ~reached[found]
        parent[found[is_new]] = np.repeat(level, number)[first[is_new]]
        level = found[is_new]
    return Tree(parent, levels)


def all_links(web: PageWeb) -> tuple[Array, Array, Array]:
    """Starts, targets and scores of every link of *web*."""
    found = [web.links(page) for page in range(len(web.pages.host))]
    starts = np.concatenate(([0], np.cumsum([len(targets) for targets, _ in found])))
    return starts, np.concatenate([targets for targets, _ in found]), np.concatenate([score for _, score in found])


@dataclass(frozen=True)
class Perfect(Strategy):
    """Follows only links to pages with text and to pages that lead to such, the richest first; it knows the web.

    The "perfect" of Somboonviwat et al. 2006 follows the links that lead to relevant pages, known from a breadth-first
    crawl.  Here a page is relevant if it gives words.  Its worth is its text per byte or, if that is more, the text per
    byte of its whole branch of the breadth-first tree, where branches without text do not count.
    """

    ranks_hosts = True
    ranks: bytes
    """Rank of each page; 255: it leads to nothing."""
    find: Callable[[str], int]

    @classmethod
    def of(cls, web: PageWeb, by_language: bool = False) -> Perfect:
        """The strategy for a crawl of *web* from its seeds; *by_language*: relevant pages count, not their words."""
        starts, targets, _ = all_links(web)
        tree = breadth_first(starts, targets, np.array(web.seeds))
        kept = web.pages.kept_bytes.astype(float)
        body = web.pages.body_bytes.astype(float)
        if by_language:
            kept = web.relevant.astype(float)
            body = np.ones(len(body))
        gain = kept.copy()
        cost = body.copy()
        for level in reversed(tree.levels[1:]):
            fruitful = level[gain[level] > 0]
            np.add.at(gain, tree.parent[fruitful], gain[fruitful])
            np.add.at(cost, tree.parent[fruitful], cost[fruitful])
        worth = np.maximum(kept / np.maximum(body, 1), gain / np.maximum(cost, 1))
        ranks = np.full(len(worth), 255, np.uint8)
        good = worth > 0
        edges = np.quantile(worth[good], np.linspace(0, 1, _RANKS + 1)[1:-1]) if good.any() else np.empty(0)
        ranks[good] = _RANKS - 1 - np.searchsorted(edges, worth[good])
        return cls(ranks.tobytes(), web.find)

    def host_rank(self, host_id: int, account: YieldAccount, head: int = 0) -> int:
        return head

    def ranker(self, page: LinkingPage) -> Ranker:
        def rank(link: FoundLink) -> int:
            number = self.find(link.target.url)
            rank = self.ranks[number] if number >= 0 else 255
            return DROPPED if rank == 255 else rank

        return rank


class KnownHosts(Strategy):
    """Follows no link; its URLs are the seeds, which ``stages`` gives."""

    def ranker(self, page: LinkingPage) -> Ranker:
        return lambda link: DROPPED


def stages(web: PageWeb, shares: Sequence[float]) -> list[list[str]]:
    """The URLs of each stage: all pages of the hosts that bring the words kept from one of *shares* to the next.

    Hosts without words are in none of them.
    """
    host = web.pages.host
    words = np.bincount(host, web.new_kept_bytes // BYTES_PER_WORD, len(web.hosts.names))
    sizes = np.bincount(host, web.pages.body_bytes, len(web.hosts.names))
    richest = np.argsort(-words / np.maximum(sizes, 1), kind="stable")[: np.count_nonzero(words)]
    before = np.cumsum(words[richest]) - words[richest]
    stage = np.full(len(words), len(shares) + 1)
    stage[richest] = np.searchsorted(np.array(shares) * words.sum(), before, side="right")
    stage_of_page = stage[host]
    return [list(map(web.url, np.flatnonzero(stage_of_page == at).tolist())) for at in range(len(shares) + 1)]
