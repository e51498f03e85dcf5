"""Whether a page is in a wanted language, from the words of its URL alone.

After Baykan, Henzinger & Weber 2008, whose features are the words of host and path.  They
are not trained beforehand but counted while the crawl goes on, over the pages that it has
read, and begin with what is known of old: the languages' top-level domains and codes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spiderling.base.url_features import BITS, OF_NAME, word_hash

_PRIOR = 8
"""Pages that a word known beforehand counts for."""
_SURE = 3.0
"""Log-odds that stand for certainty."""
_SEEN_AT_MOST = 20_000.0


class UrlWords:
    """Counts of words on pages in a wanted language and on others, hashed into tables of fixed size (1.5 MB)."""

    def __init__(self, languages: Iterable[str], top_level_domains: Iterable[str]) -> None:
        """*languages*: codes of the wanted ones."""
        self._good, self._bad = array("f", bytes(4 << BITS)), array("f", bytes(4 << BITS))
        self._odds = array("d", bytes(16 << BITS))
        """What is worked out of the two: each word's log-odds, and, beside them, how far they are known, 0 to 1."""
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
        one, other = self._good[place], self._bad[place]
        if one + other >= 2.0:
            self._odds[2 * place] = math.log((one + 0.5) / (other + 0.5))
            self._odds[2 * place + 1] = 1.0 - 1.0 / (one + other)

    def count_page(self, words: Iterable[int], is_wanted: bool) -> None:
        """A page was read whose URL has *words*."""
        table = self._good if is_wanted else self._bad
        self._pages[not is_wanted] += 1
        for place in words:
            if place and table[place] < _SEEN_AT_MOST:
                self._count(table, place, 1.0)

    def columns(self) -> list[bytes]:
        """All counts."""
        return [self._good.tobytes(), self._bad.tobytes(), array("d", self._pages).tobytes()]

    def fill(self, columns: Sequence[bytes]) -> None:
        """Take up what ``columns`` gave; raises ValueError for what that cannot be."""
        good, bad, pages = array("f", columns[0]), array("f", columns[1]), array("d", columns[2])
        counts = np.concatenate((good, bad, pages))
        if not len(good) == len(bad) == 1 << BITS or not ((counts >= 0) & (counts < np.inf)).all():
            raise ValueError("counts that are none")
        one, other = pages
        if not (one and other):
            raise ValueError("no pages")
        self._good, self._bad, self._pages = good, bad, [one, other]
        for place in np.flatnonzero(np.array(good) + np.array(bad)).tolist():
            self._count(good, place, 0.0)

    def guesser(self) -> Callable[..., float]:
        """``guess`` by the hashes of a URL's words, until more is learnt; those of the name count *doubt*, 0 to 1.

        Who knows a host need not guess by its name, but its paths may lead to several languages.
        """
        table, bias = self._odds, math.log(self._pages[1] / self._pages[0])

        def guess(words: Sequence[int], doubt: float) -> float:
            odds, weight = 0.0, doubt
            for at, word in enumerate(words):
                if at == OF_NAME:
                    weight = 1.0
                if word:
                    odds += weight * (table[2 * word] + bias * table[2 * word + 1])
            return max(-1.0, min(1.0, odds / _SURE))

        return guess

    def guesses(self, words: NDArray[np.uint16], doubts: NDArray[np.float64]) -> NDArray[np.float64]:
        """``guess`` for the URLs of which each row of *words* holds the hashes."""
        found = self._columns.take(words)
        sums = found[:, :OF_NAME].sum(1) * doubts + found[:, OF_NAME:].sum(1)
        odds = sums.real + math.log(self._pages[1] / self._pages[0]) * sums.imag
        guesses: NDArray[np.float64] = np.minimum(np.maximum(odds / _SURE, -1.0), 1.0)
        return guesses
