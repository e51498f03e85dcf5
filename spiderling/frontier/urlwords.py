"""Whether a page is in a wanted language, from the words of its URL alone.

After Baykan, Henzinger & Weber 2008, whose features are the words of host and path.  They
are not trained beforehand but counted while the crawl goes on, over the pages that it has
read, and begin with what is known of old: the languages' top-level domains and codes.
"""

from __future__ import annotations

import math
import re
import zlib
from array import array
from collections.abc import Callable, Iterable
from functools import lru_cache

_BITS = 16
_MASK = (1 << _BITS) - 1
_MAX_WORDS = 6
_PRIOR = 8
"""Pages that a word known beforehand counts for."""
_SURE = 3.0
"""Log-odds that stand for certainty."""
_WORDS = re.compile(r"[a-z]{2,}")
_SEEN_AT_MOST = 20_000.0
_SLASH = zlib.crc32(b"/")


class UrlWords:
    """Counts of words on pages in a wanted language and on others, hashed into tables of fixed size (1.5 MB)."""

    def __init__(self, languages: Iterable[str], top_level_domains: Iterable[str]) -> None:
        """*languages*: codes of the wanted ones."""
        self._good, self._bad = array("f", bytes(4 << _BITS)), array("f", bytes(4 << _BITS))
        self._odds, self._sure = array("d", bytes(8 << _BITS)), array("d", bytes(8 << _BITS))
        """What is worked out of the two: the log-odds of each word, and how far they are known, 0 to 1."""
        self._pages = [1.0, 1.0]
        wanted = {*(f"/{code}" for code in languages), *(f".{name}" for name in top_level_domains)}
        for word in wanted:
            self._count(self._good, zlib.crc32(word.encode()) & _MASK, _PRIOR)
        if wanted:
            for code in ("en", "de", "fr", "es", "ru", "ja", "zh", "pt", "it"):
                if f"/{code}" not in wanted:
                    self._count(self._bad, zlib.crc32(f"/{code}".encode()) & _MASK, _PRIOR)

    def _count(self, table: array[float], place: int, pages: float) -> None:
        table[place] += pages
        one, other = self._good[place], self._bad[place]
        if one + other >= 2.0:
            self._odds[place] = math.log((one + 0.5) / (other + 0.5))
            self._sure[place] = 1.0 - 1.0 / (one + other)

    def learn(self, host: str, path: str, is_wanted: bool) -> None:
        """A page was read."""
        table = self._good if is_wanted else self._bad
        self._pages[not is_wanted] += 1
        for place in (*_of_host(host), *_of_path(path)):
            if table[place] < _SEEN_AT_MOST:
                self._count(table, place, 1.0)

    def guess(self, host: str, path: str) -> float:
        """-1 (not wanted) to 1: the mean over the words of how much likelier each is on wanted pages, in log-odds."""
        return self.guesser(host)(path)

    def guesser(self, host: str) -> Callable[[str], float]:
        """``guess`` for many paths of one host, until more is learnt."""
        odds_of, sure_of = self._odds, self._sure
        bias = math.log(self._pages[1] / self._pages[0])
        first, *last = [odds_of[place] + bias * sure_of[place] for place in _of_host(host)]
        of_label = sum(last)

        def guess(path: str) -> float:
            odds = first
            for place in _of_path(path):
                odds += odds_of[place] + bias * sure_of[place]
            return max(-1.0, min(1.0, (odds + of_label) / _SURE))

        return guess


@lru_cache(maxsize=4096)
def _of_host(host: str) -> list[int]:
    """The places of a host's words: its top-level domain, and its first label if that may be a code."""
    label = host.partition(".")[0]
    words = [host[host.rfind(".") :], *(["/" + label] if len(label) == 2 else ())]
    return [zlib.crc32(word.encode()) & _MASK for word in words]


def _of_path(path: str) -> list[int]:
    """The places of the first words of a path."""
    crc32 = zlib.crc32
    return [crc32(word.encode(), _SLASH) & _MASK for word in _WORDS.findall(path[:80].lower())[: _MAX_WORDS - 2]]
