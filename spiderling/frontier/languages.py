"""Two models of languages that Worth asks: of hosts by their pages so far, and of URLs by their words."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spiderling.base.url_features import BITS, OF_NAME, word_hash

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
    """How likely a host's next page is in a wanted language, by its pages so far and by how much hosts differ.

    The model (empirical Bayes): hosts' shares of wanted pages have a beta distribution with the crawl's mean m.  The
    share to be expected of a host is then (wanted + s * m) / (pages + s): the mean counts like s pages.  s is estimated
    during the crawl by the method of moments: from how often two pages of one host differ in being wanted, compared
    with any two pages of the crawl.  It is near 0 where every host keeps to one language.
    """

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


_PRIOR = 8
"""Weight of a word that is known at the start, in pages (chosen)."""
_SURE = 3.0
"""Log-odds that count as certainty, 1 or -1 (chosen)."""


class UrlWords:
    """Guesses whether a page is in a wanted language, from the words of its URL alone.

    The features are those of Baykan, Henzinger & Weber 2008: the words of host and path.  There is no training
    beforehand: words are counted during the crawl over the pages that it has read, in tables of fixed size (1.5 MB).
    At the start the top-level domains and codes of the languages are known.
    """

    def __init__(self, languages: Iterable[str], top_level_domains: Iterable[str]) -> None:
        """*languages*: codes of the wanted ones."""
        self._good = array("f", bytes(4 << BITS))
        """For each word, pages in a wanted language."""
        self._bad = array("f", bytes(4 << BITS))
        """For each word, other pages."""
        self._odds = array("d", bytes(16 << BITS))
        """For each word two numbers: its log-odds, and how well they are known, 0 to 1."""
        self._columns = np.frombuffer(self._odds, np.complex128)
        self._pages = [1.0, 1.0]
        wanted = {*(f"/{code}" for code in languages), *(f".{name}" for name in top_level_domains)}
        for word in wanted:
            self._count(self._good, word_hash(word), _PRIOR)
        if wanted:
            for code in ("en", "de", "fr", "es", "ru", "ja", "zh", "pt", "it"):
                if f"/{code}" not in wanted:
                    self._count(self._bad, word_hash(f"/{code}"), _PRIOR)

    def _count(self, table: array[float], place: int, pages: float) -> None:
        table[place] += pages
        one = self._good[place]
        other = self._bad[place]
        if one + other >= 2.0:
            self._odds[2 * place] = math.log((one + 0.5) / (other + 0.5))
            self._odds[2 * place + 1] = 1.0 - 1.0 / (one + other)

    def count_page(self, words: Iterable[int], is_wanted: bool) -> None:
        """Count a page whose URL has these *words*."""
        table = self._good if is_wanted else self._bad
        self._pages[not is_wanted] += 1
        for place in words:
            if place:
                self._count(table, place, 1.0)

    def columns(self) -> list[bytes]:
        """All counts, packed for the store."""
        return [self._good.tobytes(), self._bad.tobytes(), array("d", self._pages).tobytes()]

    def fill(self, columns: Sequence[bytes]) -> None:
        """Restore what ``columns`` returned; raises ValueError for what it cannot have returned."""
        good = array("f", columns[0])
        bad = array("f", columns[1])
        pages = array("d", columns[2])
        counts = np.concatenate((good, bad, pages))
        if not len(good) == len(bad) == 1 << BITS or not ((counts >= 0) & (counts < np.inf)).all():
            raise ValueError("counts that are none")
        one, other = pages
        if not (one and other):
            raise ValueError("no pages")
        self._good = good
        self._bad = bad
        self._pages = [one, other]
        for place in np.flatnonzero(np.array(good) + np.array(bad)).tolist():
            self._count(good, place, 0.0)

    def guesses(self, words: NDArray[np.uint16], doubts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The languages guessed of URLs, each from -1 (not wanted) to 1; each row of *words* has the words of one.

        A guess is the sum of the words' log-odds.  *doubts*, 0 to 1, are the weights of the words of the hosts' names:
        a known host tells more than its name, but its paths may still lead to several languages.
        """
        found = self._columns.take(words)
        sums = np.add.reduce(found[:, :OF_NAME], 1) * doubts + np.add.reduce(found[:, OF_NAME:], 1)
        odds = sums.real + math.log(self._pages[1] / self._pages[0]) * sums.imag
        guesses: NDArray[np.float64] = np.minimum(np.maximum(odds / _SURE, -1.0), 1.0)
        return guesses
