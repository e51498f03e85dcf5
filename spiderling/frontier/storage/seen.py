"""The seen set: the 64-bit keys of all URLs ever discovered.

It is exact up to a given number of keys, with 10 to 12 bytes a key.  Then a Bloom filter of about the same
size takes over, which takes about one new URL in 10,000 for a known one.  The store has the exact keys in any case.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, key_of
from spiderling.frontier.storage.bloom import Bloom
from spiderling.frontier.storage.key_table import PARTS, Keys, KeyTable

BLOOM_KEYS_PER_EXACT = 4
"""Keys for which the filter is made, for each key that the exact set may hold: about the same memory."""
_HASH_MASK = (1 << HASH_BITS) - 1
_KEYS_MOVED_AT_ONCE = 4096
"""Keys that one ``add`` moves to the filter (chosen: the event loop is not held up)."""
_HASH_SHIFT = np.uint64(64 - HASH_BITS)
_ID_SHIFT = np.uint64(HASH_BITS)
_LEAST = np.uint64(1)


class SeenSet:
    """The keys of all URLs; those added since the last ``drain`` are also listed for the store.

    The tables want keys whose upper bits are evenly spread.  So a key is *turned*: its hash comes first, then the host
    id.  0, which is no URL's key, becomes 1, since a KeyTable cannot hold 0.
    """

    def __init__(self, keys: Iterable[int] = (), max_exact: int = 1 << 62) -> None:
        """*keys*: signed 64-bit integers.  With more than *max_exact* keys the set is a Bloom filter."""
        self._max_exact = max_exact
        self._table = KeyTable()
        self._bloom: Bloom | None = None
        self._moving: list[NDArray[np.uint64]] = []
        self._new = array("q")
        self._table.update(_turned_all(np.frombuffer(keys if isinstance(keys, array) else array("q", keys), np.int64)))
        self._number = len(self._table)
        if self._number > max_exact:
            self._begin_bloom()
            while self._moving:
                self._move()

    def __len__(self) -> int:
        return self._number

    def __contains__(self, key: int) -> bool:
        turned = _turned(key)
        return turned in self._table or (self._bloom is not None and turned in self._bloom)

    def missing(self, host_ids: Keys, digests: Keys) -> list[int]:
        """The indices of the keys that are not in the set; a key is given by its two parts."""
        turned = _spread(host_ids, digests)
        missing = self._table.missing(turned)
        return missing if self._bloom is None else [at for at in missing if int(turned[at]) not in self._bloom]

    def add(self, key: int) -> bool:
        """Add *key*; True if it was not there."""
        turned = _turned(key)
        if self._bloom is None:
            if not self._table.add(turned):
                return False
            if self._number >= self._max_exact:
                self._begin_bloom()
        else:
            if self._moving:
                self._move()
            if turned in self._table or not self._bloom.add(turned):
                return False
        self._number += 1
        self._new.append(key)
        return True

    def enter(self, host_ids: Sequence[int], digests: Sequence[int]) -> list[int]:
        """``add`` for keys given by their two parts; returns each key, or 0 in its place if it was there."""
        keys = list(map(key_of, host_ids, digests))
        if self._bloom is not None or self._number + len(keys) > self._max_exact:
            return [key if self.add(key) else 0 for key in keys]
        parts = zip(host_ids, digests, strict=True)
        known = self._table.add_all([digest << 64 - HASH_BITS | host_id or 1 for host_id, digest in parts])
        for at in known:
            keys[at] = 0
        self._number += len(keys) - len(known)
        self._new.extend(filter(None, keys))
        return keys

    def drain(self) -> array[int]:
        """The keys added since the last call, in order."""
        new, self._new = self._new, array("q")
        return new

    def _begin_bloom(self) -> None:
        """From now on new keys are added to the filter; ``add`` moves the old ones, a few at a time."""
        self._bloom = Bloom(BLOOM_KEYS_PER_EXACT * max(self._max_exact, 1))
        self._moving = [self._table.keys_of(part) for part in range(PARTS)]

    def _move(self) -> None:
        assert self._bloom is not None
        keys = self._moving[-1]
        self._bloom.update(keys[:_KEYS_MOVED_AT_ONCE])
        self._moving[-1] = keys[_KEYS_MOVED_AT_ONCE:]
        if not len(self._moving[-1]):
            self._moving.pop()
        if not self._moving:
            self._table = KeyTable()


def _turned(key: int) -> int:
    """*key* with its hash in the upper bits and its host id in the lower ones; see SeenSet."""
    return (key & _HASH_MASK) << 24 | key >> HASH_BITS & MAX_HOST_ID or 1


def _turned_all(keys: NDArray[np.int64]) -> Keys:
    unsigned = keys.view(np.uint64)
    return _spread(unsigned >> _ID_SHIFT, unsigned & np.uint64(_HASH_MASK))


def _spread(host_ids: Keys, digests: Keys) -> Keys:
    """``_turned`` of the keys with these parts."""
    turned: Keys = np.maximum(digests << _HASH_SHIFT | host_ids, _LEAST)
    return turned
