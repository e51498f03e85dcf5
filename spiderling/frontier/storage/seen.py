"""The seen set: the 64-bit keys of all URLs ever discovered, with 9 to 11 bytes a key."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spiderling.base.urls import HASH_BITS, key_of

PREFIX_SHIFT = 24  # `KeyTable.values` finds keys by the bits from this one on
PARTS = 1 << 13  # arrays of a table (chosen: of 10^7 keys each holds 1,200, so a new one moves some kB at most)


class KeyTable:
    """A set of signed 64-bit keys, in 8 to 9 bytes each; 10^7 keys are taken in within some seconds.

    The keys lie in sorted arrays.  A key's bits from PREFIX_SHIFT on choose its array, so they must be evenly spread.
    """

    def __init__(self) -> None:
        self._parts = [array("q") for _ in range(PARTS)]
        self._size = 0

    def load(self, keys: NDArray[np.int64]) -> None:
        """Take in many keys at once; the set must be empty."""
        keys = np.sort(keys)
        first = np.ones(len(keys), bool)  # numpy's ``unique`` takes ten times as long
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
        self._size = len(keys)
        numbers = (keys >> PREFIX_SHIFT & len(self._parts) - 1).astype(np.uint16)
        keys = keys[np.argsort(numbers, kind="stable")]
        end = 0
        for part, number in enumerate(np.bincount(numbers).tolist()):
            self._parts[part].frombytes(keys[end : end + number].tobytes())
            end += number

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: int) -> bool:
        return not self.missing((key,))

    def add(self, key: int) -> bool:
        """Add *key*; True if it was not there."""
        return not self.add_all((key,))

    def add_all(self, keys: Iterable[int]) -> list[int]:
        """Add a few keys; returns the indices in *keys* of those that were there."""
        parts = self._parts
        mask = len(parts) - 1
        known = []
        at = -1
        for at, key in enumerate(keys):
            part = parts[key >> PREFIX_SHIFT & mask]
            place = bisect_left(part, key)
            if place < len(part) and part[place] == key:
                known.append(at)
            else:
                part.insert(place, key)
        self._size += at + 1 - len(known)
        return known

    def missing(self, keys: Iterable[int]) -> list[int]:
        """The indices in *keys* of those that are not there."""
        parts = self._parts
        mask = len(parts) - 1
        missing = []
        for at, key in enumerate(keys):
            part = parts[key >> PREFIX_SHIFT & mask]
            place = bisect_left(part, key)
            if place == len(part) or part[place] != key:
                missing.append(at)
        return missing

    def values(self, prefix: int) -> Iterator[int]:
        """The lower bits of the keys whose bits from PREFIX_SHIFT on are *prefix*."""
        part = self._parts[prefix & len(self._parts) - 1]
        first = prefix << PREFIX_SHIFT
        for place in range(bisect_left(part, first), bisect_left(part, first + (1 << PREFIX_SHIFT))):
            yield part[place] - first


class SeenSet:
    """The keys of all URLs; those added since the last ``drain`` are also listed for the store."""

    def __init__(self, keys: Iterable[int] = ()) -> None:
        """*keys*: signed 64-bit integers."""
        known = keys if isinstance(keys, array) else array("q", keys)
        self._table = KeyTable()
        self._table.load(np.frombuffer(known, np.int64))
        self._new = array("q")

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, key: int) -> bool:
        return key in self._table

    def missing(self, host_ids: NDArray[np.uint64], digests: NDArray[np.uint64]) -> list[int]:
        """The indices of the keys that are not in the set; a key is given by its two parts."""
        keys: list[int] = (host_ids << np.uint64(HASH_BITS) | digests).view(np.int64).tolist()
        return self._table.missing(keys)

    def add(self, key: int) -> bool:
        """Add *key*; True if it was not there."""
        is_new = self._table.add(key)
        if is_new:
            self._new.append(key)
        return is_new

    def enter(self, host_ids: Sequence[int], digests: Sequence[int]) -> list[int]:
        """``add`` for keys given by their two parts; returns each key, or 0 in its place if it was there."""
        keys = list(map(key_of, host_ids, digests))
        for at in self._table.add_all(keys):
            keys[at] = 0
        self._new.extend(filter(None, keys))
        return keys

    def drain(self) -> array[int]:
        """The keys added since the last call, in order."""
        new, self._new = self._new, array("q")
        return new
