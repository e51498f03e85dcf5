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
from collections.abc import Iterable

_BITS = 16
_MASK = (1 << _BITS) - 1
_MAX_WORDS = 6
_PRIOR = 8
"""Pages that a word known beforehand counts for."""
_SURE = 3.0
"""Log-odds that stand for certainty."""
_WORDS = re.compile(r"[a-z]{2,}")
_SEEN_AT_MOST = 20_000.0


class UrlWords:
    """Counts of words on pages in a wanted language and on others, hashed into tables of fixed size (512 kB)."""

    def __init__(self, languages: Iterable[str], top_level_domains: Iterable[str]) -> None:
        """*languages*: codes of the wanted ones."""
        self._good, self._bad = array("f", bytes(4 << _BITS)), array("f", bytes(4 << _BITS))
        self._pages = [1.0, 1.0]
        wanted = {*(f"/{code}" for code in languages), *(f".{name}" for name in top_level_domains)}
        for word in wanted:
            self._good[zlib.crc32(word.encode()) & _MASK] = _PRIOR
        if wanted:
            for code in ("en", "de", "fr", "es", "ru", "ja", "zh", "pt", "it"):
                if f"/{code}" not in wanted:
                    self._bad[zlib.crc32(f"/{code}".encode()) & _MASK] = _PRIOR

    @staticmethod
    def words(host: str, path: str) -> list[int]:
        """The places of a URL's words: top-level domain, first label of the host, first words of the path."""
        words = [host[host.rfind(".") :]]
        words += ["/" + word for word in _WORDS.findall(path[:80].lower())[: _MAX_WORDS - 2]]
        label = host.partition(".")[0]
        if len(label) == 2:
            words.append("/" + label)
        return [zlib.crc32(word.encode()) & _MASK for word in words]

    def learn(self, host: str, path: str, is_wanted: bool) -> None:
        """A page was read."""
        table = self._good if is_wanted else self._bad
        self._pages[not is_wanted] += 1
        for place in self.words(host, path):
            if table[place] < _SEEN_AT_MOST:
                table[place] += 1.0

    def guess(self, host: str, path: str) -> float:
        """-1 (not wanted) to 1: the mean over the words of how much likelier each is on wanted pages, in log-odds."""
        good, bad, (all_good, all_bad) = self._good, self._bad, self._pages
        bias = math.log(all_bad / all_good)
        odds = 0.0
        for place in self.words(host, path):
            one, other = good[place], bad[place]
            if one + other >= 2.0:
                odds += math.log((one + 0.5) / (other + 0.5)) + bias * (1.0 - 1.0 / (one + other))
        return max(-1.0, min(1.0, odds / _SURE))
