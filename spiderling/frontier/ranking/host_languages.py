"""How likely a host's next page is in a wanted language, by its pages so far and by how much hosts differ.

The model (empirical Bayes): hosts' shares of wanted pages have a beta distribution with the crawl's mean m.  The share
to be expected of a host is then (wanted + s * m) / (pages + s): the mean counts like s pages.  s is estimated during
the crawl by the method of moments: from how often two pages of one host differ in being wanted, compared with any two
pages of the crawl.  It is near 0 where every host keeps to one language.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

_MOST_HOSTS = 50_000
"""Hosts that are remembered (chosen); the one that came first is forgotten first."""
_SPLIT = 0.23
"""Prior of how often two pages of one host differ, divided by how often any two pages of the crawl do.

From the Thai web (Somboonviwat et al. 2006): 84 % of the links of a wanted page to its own server lead to wanted
pages, and 12 % of all pages are wanted.
"""
_PAIRS = 20.0
"""Weight of this prior, in pairs of pages (chosen)."""
_LEAST = 0.05
_MOST = 0.75
"""Bounds of the estimate of `_SPLIT` (chosen)."""
MOST = 2**50
"""More pages or bytes than any crawl has; larger numbers in a state are damage."""


class HostLanguages:
    """Counts of pages in a wanted language and in others, for each host and for the whole crawl."""

    def __init__(self) -> None:
        self._hosts: dict[int, list[int]] = {}
        self._pages = [1, 1]
        self.mean = 0.5
        """The share of wanted pages in the whole crawl."""
        self._differ = self._pairs = 0.0
        self._prior: float | None = None
        """``prior_pages``, if they were computed since the last page."""

    def count_page(self, host_id: int, is_wanted: bool) -> None:
        """Count a page of the host."""
        self._prior = None
        seen = self._hosts.setdefault(host_id, [0, 0])
        if pages := sum(seen):
            self._differ += seen[is_wanted] / pages
            self._pairs += 1.0
        seen[not is_wanted] += 1
        self._pages[not is_wanted] += 1
        self.mean = self._pages[0] / sum(self._pages)
        if len(self._hosts) > _MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]

    @property
    def prior_pages(self) -> float:
        """The weight s of the crawl's mean, in pages."""
        by_chance = 2.0 * self.mean * (1.0 - self.mean)
        split = (self._differ / by_chance + _SPLIT * _PAIRS) / (self._pairs + _PAIRS)
        split = max(_LEAST, min(_MOST, split))
        return split / (1.0 - split)

    def expected(self, host_id: int) -> float | None:
        """The share of wanted pages to be expected of a host; None if no page of it was read."""
        seen = self._hosts.get(host_id)
        if seen is None:
            return None
        if self._prior is None:
            self._prior = self.prior_pages
        return (seen[0] + self._prior * self.mean) / (seen[0] + seen[1] + self._prior)

    def foreign_pages(self, host_id: int) -> int:
        """Pages in other languages of a host that gave none in a wanted one; 0 for any other host."""
        wanted, others = self._hosts.get(host_id, (0, 0))
        return 0 if wanted else others

    def columns(self) -> list[bytes]:
        """All counts, packed for the store."""
        pages = chain(self._pages, chain.from_iterable(self._hosts.values()))
        spread = (self._differ, self._pairs)
        return [column.tobytes() for column in (array("Q", self._hosts), array("Q", pages), array("d", spread))]

    def fill(self, columns: Sequence[bytes]) -> None:
        """Restore what ``columns`` returned; raises ValueError for what it cannot have returned."""
        kinds = (np.uint64, np.uint64, np.float64)
        hosts, pages, spread = (np.frombuffer(c, kind) for c, kind in zip(columns, kinds, strict=True))
        counts: Any = pages.reshape(len(hosts) + 1, 2).tolist()
        self._pages = counts.pop(0)
        if not (min(self._pages) > 0 and max(map(max, counts), default=0) <= max(self._pages) < MOST):
            raise ValueError("hosts that are none")
        self.mean = self._pages[0] / sum(self._pages)
        self._differ, self._pairs = spread.tolist()
        if not 0 <= self._differ <= self._pairs < MOST:
            raise ValueError("a spread that is none")
        self._hosts = dict(zip(hosts.tolist(), counts, strict=True))
        self._prior = None
