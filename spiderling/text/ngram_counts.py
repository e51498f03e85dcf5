"""How often each n-gram occurs in a text; as arrays, because a model has tens of thousands of n-grams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import Array, Hashes, codepoints

_FIRST_OF_BLOCK = np.array([0, 0x370, 0x400, 0x530, 0x590, 0x600, 0x700, 0x900, 0x1E00, 0x1F00, 0x2C00])
"""First code points of stretches of one alphabet (Unicode, Blocks.txt)."""
_ALPHABET = np.array([1, 0, 2, 0, 0, 3, 0, 0, 1, 0, 0])
"""Number of each stretch's alphabet: 1 Latin, 2 Cyrillic, 3 Arabic, 0 any other or none."""
_WRITTEN_SHARE = 0.15
"""Share of a text's n-grams from which on the language counts as written in their alphabet; chosen."""


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """The n-grams of a text with their counts."""

    sizes: Mapping[int, tuple[Hashes, Hashes]]
    """For each size the n-grams as an array (n-gram, size) of code points, and the count of each."""

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> NgramCounts:
        """From a table of n-grams."""
        groups: dict[int, list[str]] = {}
        for gram in counts:
            groups.setdefault(len(gram), []).append(gram)
        return cls(
            {
                size: (codepoints("".join(grams)).reshape(-1, size), np.array([counts[g] for g in grams], np.uint32))
                for size, grams in groups.items()
            }
        )

    def __len__(self) -> int:
        return sum(len(numbers) for _, numbers in self.sizes.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NgramCounts) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> dict[str, int]:
        """As a table, in the order of the arrays."""
        found: dict[str, int] = {}
        for size, (grams, numbers) in self.sizes.items():
            text = grams.astype("<u4").tobytes().decode("utf-32-le")
            found |= zip((text[i : i + size] for i in range(0, len(text), size)), numbers.tolist(), strict=True)
        return found

    @property
    def letters(self) -> int:
        """Number of different characters."""
        return len(self.sizes[1][1]) if 1 in self.sizes else 0

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return sum(int(numbers.sum(dtype=np.uint64)) for _, numbers in self.sizes.values())

    def weights(self) -> dict[int, Array]:
        """The counts by size, as if the text were written in one alphabet only.

        A page is in one alphabet.  So in a language with two, the counts of each alphabet are
        scaled up to the sum of both.
        """
        parts, factors = self._alphabets()
        return {size: numbers * factors[parts[size]] for size, (_, numbers) in self.sizes.items()}

    def _alphabets(self) -> tuple[dict[int, npt.NDArray[np.intp]], Array]:
        """The alphabet of each n-gram by size, and the factor of each alphabet's counts."""
        parts = {size: _alphabets(grams) for size, (grams, _) in self.sizes.items()}
        totals = np.zeros(int(_ALPHABET.max()) + 1)
        for size, (_, numbers) in self.sizes.items():
            totals += np.bincount(parts[size], numbers, len(totals))
        written = np.flatnonzero(totals[1:] >= _WRITTEN_SHARE * totals.sum()) + 1
        factors = np.ones(len(totals), np.float32)
        factors[written] = totals[written].sum() / totals[written]
        return parts, factors

    def first(self, number: int) -> NgramCounts:
        """Those with the largest `weights`, ties in the order of size and code points; *number* for each alphabet."""
        _, factors = self._alphabets()
        number *= max(1, int((factors > 1).sum()))
        counts = np.concatenate([np.zeros(0, np.float32), *self.weights().values()])
        if len(counts) <= number:
            return self
        order = np.argsort(-counts, kind="stable")
        chosen = np.zeros(len(counts), np.bool_)
        chosen[order[:number]] = True
        sizes = {}
        start = 0
        for size, (grams, numbers) in self.sizes.items():
            mine = chosen[start : start + len(numbers)]
            sizes[size] = grams[mine], numbers[mine]
            start += len(numbers)
        return NgramCounts(sizes)


def _alphabets(grams: Hashes) -> npt.NDArray[np.intp]:
    """The alphabet of each n-gram, by its first letter."""
    first = grams[:, 0]
    if grams.shape[1] > 1:
        first = np.where(first == ord(" "), grams[:, 1], first)
    found: npt.NDArray[np.intp] = _ALPHABET[np.searchsorted(_FIRST_OF_BLOCK, first, "right") - 1]
    found[first == ord(" ")] = 0
    return found


def count_ngrams(texts: Iterable[str], order: int) -> NgramCounts:
    """The 1- to *order*-grams of normalised *texts*; each size in the order of code points."""
    chars = codepoints("".join(texts))
    letters = np.flatnonzero(np.bincount(chars)).astype(np.uint32)
    # a letter's rank has 16 bits, enough for the letters of any text: four ranks make one number
    ranks = np.zeros(int(letters.max(initial=0)) + 1, np.uint64)
    ranks[letters] = np.minimum(np.arange(len(letters)), 0xFFFF)
    ranks = ranks[chars]
    between = (chars[:-1] == ord(" ")) & (chars[1:] == ord(" "))  # where one text ends and the next begins
    sizes = {}
    keys = np.zeros(len(chars), np.uint64)
    inside = np.ones(len(chars), np.bool_)
    for size in range(1, order + 1):
        length = max(0, len(chars) - size + 1)
        keys = (keys[:length] << np.uint64(16)) | ranks[size - 1 :]
        inside = inside[:length]
        if size > 1:
            inside = inside & ~between[size - 2 : size - 2 + length]
        grams, numbers = np.unique(keys[inside], return_counts=True)
        shifts = np.arange(size - 1, -1, -1, dtype=np.uint64) * np.uint64(16)
        sizes[size] = letters[(grams[:, None] >> shifts) & np.uint64(0xFFFF)], numbers.astype(np.uint32)
    return NgramCounts(sizes)


def sum_of(first: NgramCounts, second: NgramCounts) -> NgramCounts:
    """The counts of two texts together."""
    counts = first.as_dict()
    for gram, number in second.as_dict().items():
        counts[gram] = counts.get(gram, 0) + number
    return NgramCounts.of(dict(sorted(counts.items(), key=lambda item: (len(item[0]), item[0]))))
