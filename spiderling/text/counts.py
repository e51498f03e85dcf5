"""How often each n-gram stands in a text, as arrays: a model has tens of thousands of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spiderling.text.ngrams import Hashes, codepoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """The n-grams of a text with their counts."""

    sizes: Mapping[int, tuple[Hashes, Hashes]]
    """For each size the n-grams, an array (n-gram, size) of code points, and how often each stands there."""

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

    def first(self, number: int) -> NgramCounts:
        """The *number* most frequent of all sizes together, ties in the order of size and code points."""
        counts = np.concatenate([np.zeros(0, np.uint32), *(numbers for _, numbers in self.sizes.values())])
        if len(counts) <= number:
            return self
        order = np.argsort(-counts.astype(np.int64), kind="stable")
        chosen = np.zeros(len(counts), np.bool_)
        chosen[order[:number]] = True
        sizes, start = {}, 0
        for size, (grams, numbers) in self.sizes.items():
            mine = chosen[start : start + len(numbers)]
            sizes[size] = grams[mine], numbers[mine]
            start += len(numbers)
        return NgramCounts(sizes)


def count_ngrams(texts: Iterable[str], order: int) -> NgramCounts:
    """The 1- to *order*-grams of normalised *texts*; each size in the order of code points."""
    chars = codepoints("".join(texts))
    letters = np.flatnonzero(np.bincount(chars)).astype(np.uint32)
    # a letter's rank has 16 bits, so that four of them make one number: no text has more different letters
    ranks = np.zeros(int(letters.max(initial=0)) + 1, np.uint64)
    ranks[letters] = np.minimum(np.arange(len(letters)), 0xFFFF)
    ranks = ranks[chars]
    between = (chars[:-1] == ord(" ")) & (chars[1:] == ord(" "))  # where one text ends and the next begins
    sizes, keys = {}, np.zeros(len(chars), np.uint64)
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


def added(first: NgramCounts, second: NgramCounts) -> NgramCounts:
    """The counts of both."""
    counts = first.as_dict()
    for gram, number in second.as_dict().items():
        counts[gram] = counts.get(gram, 0) + number
    return NgramCounts.of(dict(sorted(counts.items(), key=lambda item: (len(item[0]), item[0]))))
