"""A cache of bounded number and weight: what was asked for longest ago leaves first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by key, at most *most* of them, and together of at most *most_weight*, in any unit.

    A value that is heavier than that by itself is kept alone.
    """

    def __init__(self, most: int, most_weight: int) -> None:
        self._most = most
        self._most_weight = most_weight
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self.weight = 0
        """The weight of all values together."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """The value, which was asked for last now."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: str, value: Value, weight: int) -> None:
        """Enter *value*, in place of the one that *key* may have; others leave for it."""
        self.drop(key)
        self._values[key] = value, weight
        self.weight += weight
        while len(self._values) > self._most or (self.weight > self._most_weight and len(self._values) > 1):
            self.weight -= self._values.popitem(last=False)[1][1]

    def drop(self, key: str) -> None:
        """Forget what *key* has, if anything."""
        if (found := self._values.pop(key, None)) is not None:
            self.weight -= found[1]
