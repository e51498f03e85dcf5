"""The seen set: the 64-bit keys of all URLs ever discovered, with 10 to 12 bytes a key."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

import numpy as np
from numpy.typing import NDArray

from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, key_of

Keys = NDArray[np.uint64]

PARTS = 256
_PART_SHIFT = 56  # the upper 8 bits of a key choose its part
PLACE_SHIFT = 24  # the next 32 bits choose its place in the part; NameIndex keeps its ids in the bits below
_PLACE_MASK = (1 << 32) - 1
_MAX_LOAD = 0.8  # share of used cells above which a part grows (chosen)
_LOAD_AFTER_GROWTH = 0.68  # share of used cells of a part that has just grown (chosen)
_MIN_SIZE = 32  # cells of an empty part (chosen)
_PART, _PLACE, _WITHIN, _WIDTH = map(np.uint64, (_PART_SHIFT, PLACE_SHIFT, _PLACE_MASK, 32))
"""The numbers above for arithmetic in numpy; 32 is the number of bits that choose the place."""
_MAPPED = 1 << 12  # cells from which on a part has memory pages of its own (``_empty``; chosen)
_SPARE = 64  # cells behind the last place, so that probing need not wrap round (chosen); the last one stays empty


class KeyTable:
    """Holds keys from 1 to 2**64 - 1 whose upper bits must be evenly spread; 0 marks an empty cell.

    A hash table with open addressing, in 256 parts that grow one at a time.  Each part is an array with linear probing.
    A key's place is proportional to the key, and the keys lie in order (Amble & Knuth 1974).  So a search ends at the
    first larger key, and a part can be built from sorted keys in one pass.  Of 10^7 keys a part holds 40,000, and grows
    in about a millisecond, so no insertion holds up the event loop.  A key takes 10 to 11.8 bytes (load .8 to .68).
    """

    def __init__(self) -> None:
        self._sizes = [_MIN_SIZE] * PARTS
        self._size_of = np.full(PARTS, _MIN_SIZE, np.uint64)  # the same, for numpy
        self._used = [0] * PARTS
        self._limits = [int(_MIN_SIZE * _MAX_LOAD)] * PARTS
        self._cells: list[memoryview] = [_empty(_MIN_SIZE + _SPARE) for _ in range(PARTS)]

    def __len__(self) -> int:
        return sum(self._used)

    def __contains__(self, key: int) -> bool:
        part = key >> _PART_SHIFT
        cells = self._cells[part]
        place = (key >> PLACE_SHIFT & _PLACE_MASK) * self._sizes[part] >> 32
        while 0 < (found := cells[place]) < key:
            place += 1
        return found == key

    def add(self, key: int) -> bool:
        """Add *key*; True if it was not there."""
        return not self.add_all((key,))

    def add_all(self, keys: Sequence[int]) -> list[int]:
        """Add a few keys; returns the indices in *keys* of those that were there."""
        all_cells = self._cells
        sizes = self._sizes
        used = self._used
        limits = self._limits
        known = []
        for at, key in enumerate(keys):
            part = key >> _PART_SHIFT
            cells = all_cells[part]
            place = (key >> PLACE_SHIFT & _PLACE_MASK) * sizes[part] >> 32
            while 0 < (found := cells[place]) < key:
                place += 1
            if found == key:
                known.append(at)
                continue
            end = place
            while cells[end]:
                end += 1
            cells[place + 1 : end + 1] = cells[place:end]
            cells[place] = key
            used[part] += 1
            if used[part] > limits[part] or end == len(cells) - 1:
                self._build(part, self.keys_of(part))
        return known

    def missing(self, keys: Keys) -> list[int]:
        """The indices in *keys* of those that are not there; their cells are computed for all keys at once."""
        parts = keys >> _PART
        wanted = (keys >> _PLACE & _WITHIN) * self._size_of[parts] >> _WIDTH
        all_cells = self._cells
        missing = []
        for at, (key, part, place) in enumerate(zip(keys.tolist(), parts.tolist(), wanted.tolist(), strict=True)):
            cells = all_cells[part]
            while 0 < (found := cells[place]) < key:
                place += 1
            if found != key:
                missing.append(at)
        return missing

    def values(self, prefix: int) -> Iterator[int]:
        """The lower 24 bits of the keys whose upper 40 are *prefix*."""
        part = prefix >> 32
        cells = self._cells[part]
        place = (prefix & _PLACE_MASK) * self._sizes[part] >> 32
        while (found := cells[place]) and found >> PLACE_SHIFT <= prefix:
            if found >> PLACE_SHIFT == prefix:
                yield found & 0xFFFFFF
            place += 1

    def update(self, keys: Keys) -> None:
        """Add many keys: 10^7 in about a second."""
        keys = np.sort(keys)
        ends = np.searchsorted(keys, np.arange(1, PARTS, dtype=np.uint64) << _PART)
        for part, more in enumerate(np.split(keys, ends)):
            if len(more):
                self._build(part, np.sort(np.concatenate([self.keys_of(part), more])) if self._used[part] else more)

    def keys_of(self, part: int) -> Keys:
        """The keys of one part, in order."""
        cells = np.frombuffer(self._cells[part], np.uint64)
        keys: Keys = cells[cells != 0]
        return keys

    def _build(self, part: int, keys: Keys) -> None:
        """Make the part anew of *keys*, which are sorted: each at its place, or right behind the key before it."""
        first = np.ones(len(keys), bool)  # numpy's ``unique`` takes ten times as long
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
        size = max(_MIN_SIZE, int(len(keys) / _LOAD_AFTER_GROWTH))
        order = np.arange(len(keys), dtype=np.int64)
        wanted = (keys >> _PLACE & _WITHIN) * np.uint64(size) >> _WIDTH
        places = np.maximum.accumulate(wanted.astype(np.int64) - order) + order
        cells = _empty(max(size, int(places[-1]) + 1 if len(keys) else 0) + _SPARE)
        np.frombuffer(cells, np.uint64)[places] = keys
        self._cells[part] = cells
        self._sizes[part] = self._size_of[part] = size
        self._used[part] = len(keys)
        self._limits[part] = int(size * _MAX_LOAD)


def _empty(size: int) -> memoryview:
    """*size* cells of 0, as a memoryview: reading one item takes a third of the time that it takes in numpy.

    Large arrays get memory pages of their own.  On the heap, parts that grow in turn leave holes of half their size.
    The pages are private, so that a forked process does not share them.
    """
    if size < _MAPPED:
        return memoryview(bytearray(8 * size)).cast("Q")
    return memoryview(mmap(-1, 8 * size, flags=MAP_PRIVATE | MAP_ANONYMOUS)).cast("Q")


_HASH_MASK = (1 << HASH_BITS) - 1
_HASH_SHIFT = np.uint64(64 - HASH_BITS)
_ID_SHIFT = np.uint64(HASH_BITS)
_MIN = np.uint64(1)


class SeenSet:
    """The keys of all URLs; those added since the last ``drain`` are also listed for the store.

    The tables want keys whose upper bits are evenly spread.  So a key is *turned*: its hash comes first, then the host
    id.  0, which is no URL's key, becomes 1, since a KeyTable cannot hold 0.
    """

    def __init__(self, keys: Iterable[int] = ()) -> None:
        """*keys*: signed 64-bit integers."""
        self._table = KeyTable()
        self._new = array("q")
        signed = np.frombuffer(keys if isinstance(keys, array) else array("q", keys), np.int64)
        unsigned = signed.view(np.uint64)
        self._table.update(_spread(unsigned >> _ID_SHIFT, unsigned & np.uint64(_HASH_MASK)))

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, key: int) -> bool:
        return _turn(key) in self._table

    def missing(self, host_ids: Keys, digests: Keys) -> list[int]:
        """The indices of the keys that are not in the set; a key is given by its two parts."""
        return self._table.missing(_spread(host_ids, digests))

    def add(self, key: int) -> bool:
        """Add *key*; True if it was not there."""
        is_new = self._table.add(_turn(key))
        if is_new:
            self._new.append(key)
        return is_new

    def enter(self, host_ids: Sequence[int], digests: Sequence[int]) -> list[int]:
        """``add`` for keys given by their two parts; returns each key, or 0 in its place if it was there."""
        keys = list(map(key_of, host_ids, digests))
        parts = zip(host_ids, digests, strict=True)
        for at in self._table.add_all([digest << 64 - HASH_BITS | host_id or 1 for host_id, digest in parts]):
            keys[at] = 0
        self._new.extend(filter(None, keys))
        return keys

    def drain(self) -> array[int]:
        """The keys added since the last call, in order."""
        new, self._new = self._new, array("q")
        return new


def _turn(key: int) -> int:
    """*key* with its hash in the upper bits and its host id in the lower ones; see SeenSet."""
    return (key & _HASH_MASK) << 24 | key >> HASH_BITS & MAX_HOST_ID or 1


def _spread(host_ids: Keys, digests: Keys) -> Keys:
    """``_turn`` of the keys with these parts."""
    turned: Keys = np.maximum(digests << _HASH_SHIFT | host_ids, _MIN)
    return turned
