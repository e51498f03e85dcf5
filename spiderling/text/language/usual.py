"""The usual n-grams of a language, and how many of them a text has.

Most n-grams of a text are usual in its language, fewer in others.  One language at a time is looked up, when it is
asked for: a page asks for one or two of those that are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import Array, Hashes, NgramCounts, Places, crossing, hash_rows

_BITS = 18
"""Binary logarithm of the number of hashes of usual n-grams; chosen."""
_USUAL_SHARE = 0.8
"""Share of a text's n-grams that the usual ones make up; chosen."""
_SHARING = 8
"""Languages that share a table, in which each has a bit."""


@dataclass(frozen=True, slots=True)
class UsualNgrams:
    """The usual n-grams of a language."""

    size: int
    """Their characters."""
    expected: float
    """Share of a text's n-grams that they make up."""
    table: npt.NDArray[np.uint8]
    """A byte for each hash."""
    bit: np.uint8
    """The bit that is set in the bytes of the usual ones."""

    def share(self, grams: Hashes, starts: Places) -> Array:
        """Share of usual n-grams in each text; *grams* are hashed, *starts* as from `normalised`."""
        usual = self.table.take(grams & np.uint32(len(self.table) - 1)) & self.bit != 0
        usual[crossing(starts, self.size)] = False
        shares: Array = np.add.reduceat(usual, starts[:-1], dtype=np.float32)
        shares /= np.maximum(1, numbers(starts, self.size))
        return shares


@dataclass(frozen=True, slots=True)
class TextNgrams:
    """The n-grams of some texts, to be compared with the usual ones of a language."""

    grams: Mapping[int, Hashes]
    """Size -> hash of the n-gram that begins at each character."""
    starts: Places
    """As from `normalised`."""
    usual_in: Callable[[str], UsualNgrams]
    """The usual n-grams of a language."""
    _found: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[TextNgrams]) -> TextNgrams:
        """The n-grams of all texts of *parts*, of which there is at least one."""
        grams = {size: np.concatenate([part.grams[size] for part in parts]) for size in parts[0].grams}
        return cls(grams, joined_starts([part.starts for part in parts]), parts[0].usual_in)

    def likeness(self, code: str) -> Array:
        """Share of usual n-grams in each text, in units of the share expected in the language *code*."""
        if code not in self._found:
            usual = self.usual_in(code)
            self._found[code] = usual.share(self.grams[usual.size], self.starts) / np.float32(usual.expected)
        return self._found[code]


def usual_ngrams(languages: Iterable[tuple[str, NgramCounts, int, float]]) -> dict[str, UsualNgrams]:
    """Code -> usual n-grams, of languages: code, n-grams, their size that counts, the share expected in texts."""
    of_size: dict[int, list[UsualNgrams]] = {}
    found = {}
    for code, ngrams, size, expected in languages:
        same = of_size.setdefault(size, [])
        place = len(same) % _SHARING
        table = same[-1].table if place else np.zeros(1 << _BITS, np.uint8)
        mine = UsualNgrams(size, expected, table, np.uint8(1 << place))
        if size in ngrams.sizes:
            weights = ngrams.weights()[size]
            usual = ngrams.sizes[size][0][weights >= _least_usual(weights)]
            table[hash_rows(usual, size) & np.uint32(len(table) - 1)] |= mine.bit
        same.append(mine)
        found[code] = mine
    return found


def numbers(starts: Places, size: int) -> Array:
    """Number of n-grams of *size* in each text; *starts* as from `normalised`."""
    found: Array = np.maximum(0, starts[1:] - starts[:-1] - (size - 1)).astype(np.float32)
    return found


def joined_starts(parts: Sequence[Places]) -> Places:
    """Where each text begins, and the last one ends, when *parts* stand one behind the other."""
    ends = np.cumsum([0, *(part[-1] for part in parts)])
    return np.concatenate([*(part[:-1] + end for part, end in zip(parts, ends, strict=False)), ends[-1:]])


def _least_usual(weights: Array) -> float:
    """The least weight of a usual n-gram: those make up _USUAL_SHARE of a text.

    Rarer n-grams (names, foreign words) tell little, and a longer training text has more of them.  By counts instead of
    weights, all n-grams in the rarer of two alphabets would be rare.
    """
    falling = np.sort(weights)[::-1]
    mass = np.cumsum(falling, dtype=np.float64)
    return float(falling[np.searchsorted(mass, _USUAL_SHARE * mass[-1])]) if len(mass) else 0.0
