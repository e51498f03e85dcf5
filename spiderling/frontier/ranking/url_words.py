"""Guesses whether a page is in a wanted language, from the words of its URL alone.

The features are those of Baykan, Henzinger & Weber 2008: the words of host and path.  There is no training beforehand:
words are counted during the crawl over the pages that it has read.  At the start the top-level domains and codes of the
languages are known.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spiderling.base.url_features import BITS, OF_NAME, word_hash

_PRIOR = 8
"""Weight of a word that is known at the start, in pages (chosen)."""
_SURE = 3.0
"""Log-odds that count as certainty, 1 or -1 (chosen)."""


class UrlWords:
    """Counts of words on pages in a wanted language and on others, hashed into tables of fixed size (1.5 MB)."""

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
