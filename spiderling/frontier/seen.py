"""The seen set: 64-bit keys, exact.  A key enters once; ``add`` tells whether it was new."""

from __future__ import annotations

from collections.abc import Iterable


class SeenSet:
    """Keys in memory, with the ones added since the last ``drain`` kept apart for the store."""

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self._keys = set(keys)
        self._new: list[int] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def add(self, key: int) -> bool:
        """Enter *key*; True if it was not there."""
        if key in self._keys:
            return False
        self._keys.add(key)
        self._new.append(key)
        return True

    def drain(self) -> list[int]:
        """The keys entered since the last call, in order."""
        new, self._new = self._new, []
        return new
