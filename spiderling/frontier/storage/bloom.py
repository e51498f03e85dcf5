"""A Bloom filter of 64-bit keys, for seen sets that no longer fit in memory.

It has split blocks (Putze, Sanders & Singler 2007; Parquet has the same): a key sets one bit in each of the eight
64-bit words of one block, so a look-up reads one cache line.  With 24 bits a key, a full filter takes one new key in
10,000 for a known one, and fewer before it is full.  It never takes a known key for a new one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS_PER_KEY = 24
_WORDS = 8
"""64-bit words of a block."""
_MIX = 0x9E3779B97F4A7C15
"""Odd multiplier that spreads the keys over the blocks: 2**64 divided by the golden ratio."""
_SALTS = (
    0x47B6137B44974D91,
    0x8824AD5BA2B7289D,
    0x705495C72DF1424B,
    0x9EFC49475C6BFB31,
    0x2DF1424B9EFC4947,
    0x5C6BFB3144974D91,
    0xA2B7289D705495C7,
    0xB7289D7047B6137B,
)
"""Odd multipliers, one for each word of a block: each chooses the bit of its word."""
_ALL = (1 << 64) - 1


class Bloom:
    """The filter.  Keys may be added beyond the capacity; errors become more frequent then."""

    def __init__(self, capacity: int) -> None:
        self._blocks = max(1, capacity * BITS_PER_KEY // (64 * _WORDS))
        self._array: NDArray[np.uint64] = np.zeros(self._blocks * _WORDS, np.uint64)
        self._words = memoryview(self._array)  # type: ignore[arg-type]

    def __contains__(self, key: int) -> bool:
        mixed = key * _MIX & _ALL
        word = (mixed >> 32) * self._blocks >> 32 << 3
        for salt in _SALTS:
            if not self._words[word] >> ((key * salt & _ALL) >> 58) & 1:
                return False
            word += 1
        return True

    def add(self, key: int) -> bool:
        """Add *key*; True if it was certainly not there."""
        if key in self:
            return False
        word = ((key * _MIX & _ALL) >> 32) * self._blocks >> 32 << 3
        for salt in _SALTS:
            self._words[word] |= 1 << ((key * salt & _ALL) >> 58)
            word += 1
        return True

    def update(self, keys: NDArray[np.uint64]) -> None:
        """Add many keys."""
        first = ((keys * np.uint64(_MIX) >> np.uint64(32)) * np.uint64(self._blocks) >> np.uint64(32)) << np.uint64(3)
        for number, salt in enumerate(_SALTS):
            bits = np.uint64(1) << (keys * np.uint64(salt) >> np.uint64(58))
            np.bitwise_or.at(self._array, (first + np.uint64(number)).astype(np.int64), bits)
