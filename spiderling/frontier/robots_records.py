"""Records of robots.txt and other files of origins, in memory and in the store; and a cache for parsed files."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from spiderling.base.errors import DamageError
from spiderling.frontier.storage.protocol import RobotsRow, Store

MAX_RECORDS = 20_000
"""Records kept in memory, some 300 bytes each beside their files.  Chosen."""
MAX_RECORD_BYTES = 32_000_000
"""Bytes of their compressed files, of which one may have up to 500 kB (chosen)."""

Value = TypeVar("Value")


class RobotsStatus(Enum):
    """What came of the last request for a file."""

    NO_RULES = "no rules"
    RULES = "rules"
    STALE = "stale"
    """A newer file cannot be had; the last one counts."""
    FAILED = "failed"
    """It is asked for again after a pause."""
    REFUSED = "refused"
    """The site refuses us (refusals.py).  The record under the name of a host says until when, and how often it did."""
    UNREACHABLE = "unreachable"
    """The retries failed too, and no copy counts."""


@dataclass(slots=True)
class RobotsRecord:
    """What was learned of one file of an origin; a row of the store's table ``robots``."""

    status: RobotsStatus
    fetched: float
    """When ``body`` was fetched; without one, when it was asked for."""
    expires: float
    failures: int = 0
    body: bytes = b""
    """zlib-compressed text of the rules; empty if no answer ever came or counts."""


class RobotsRecords:
    """Records by origin (other files: by address); ``changed`` names those that the store does not have yet."""

    def __init__(self, lookup: Callable[[str], RobotsRecord | None]) -> None:
        """*lookup* gives a record that the store has."""
        self._lookup = lookup
        self.in_memory: dict[str, RobotsRecord] = {}
        self._bytes = 0
        """Upper bound on the bytes of their bodies."""
        self._is_whole = True
        """Whether the store has only records that are in memory."""
        self._unknown: set[str] = set()
        """Keys that the store does not have either; kept, since pages of archives ask for them again and again."""
        self.changed: set[str] = set()

    def find(self, key: str) -> RobotsRecord | None:
        """What is known of the robots.txt of an origin, or of another file by its address."""
        record = self.in_memory.get(key)
        if record is None and not self._is_whole and key not in self._unknown:
            record = self._lookup(key)
            if record is not None:
                self._keep(key, record)
            else:
                self._unknown.add(key)
        return record

    def put(self, key: str, record: RobotsRecord) -> None:
        """Enter a record that the store does not have yet."""
        self._keep(key, record)
        self._unknown.discard(key)
        self.changed.add(key)

    def _keep(self, key: str, record: RobotsRecord) -> None:
        self.in_memory[key] = record
        self._bytes += len(record.body)

    def look_in_store(self) -> None:
        """From now on the store may have records that are not in memory, and is asked for them."""
        self._is_whole = False

    def forget_stored(self) -> None:
        """If the records take too much memory, drop the oldest of those that the store has."""
        if len(self._unknown) > MAX_RECORDS:
            self._unknown.clear()
        if len(self.in_memory) <= MAX_RECORDS and self._bytes <= MAX_RECORD_BYTES:
            return
        self.look_in_store()
        self._bytes = sum(len(record.body) for record in self.in_memory.values())
        for key in [key for key in self.in_memory if key not in self.changed]:
            if len(self.in_memory) <= MAX_RECORDS // 2 and self._bytes <= MAX_RECORD_BYTES // 2:
                break
            self._bytes -= len(self.in_memory.pop(key).body)

    def drain(self) -> list[RobotsRow]:
        """Rows of the records that have changed since the last call."""
        rows = [robots_row(key, self.in_memory[key]) for key in self.changed]
        self.changed = set()
        return rows


def robots_row(origin: str, record: RobotsRecord) -> RobotsRow:
    return RobotsRow(origin, record.status.value, record.fetched, record.expires, record.failures, record.body)


def stored_robots(store: Store) -> Callable[[str], RobotsRecord | None]:
    """The record that *store* has of an origin's robots.txt, or of another file by its address."""

    def lookup(key: str) -> RobotsRecord | None:
        row = store.robots(key)
        return robots_of(row) if row is not None else None

    return lookup


def robots_of(row: RobotsRow) -> RobotsRecord:
    """The record of *row*; raises DamageError if its body cannot be decompressed."""
    try:
        zlib.decompress(row.body) if row.body else None
    except zlib.error as error:
        raise DamageError(f"the robots.txt of {row.origin} in the state is damaged: {error}.") from error
    return RobotsRecord(RobotsStatus(row.status), row.fetched, row.expires, row.failures, row.body)


class Recent(Generic[Value]):
    """A cache of at most *most* values whose weights, in any unit, add up to *most_weight* at most.

    The least recently used value leaves first.  A value heavier than *most_weight* is kept alone.
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
        """The value of *key*, from now on the most recently used; None if there is none."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: str, value: Value, weight: int) -> None:
        """Set the value of *key*; others leave if there is no room."""
        self.drop(key)
        self._values[key] = value, weight
        self.weight += weight
        while len(self._values) > self._most or (self.weight > self._most_weight and len(self._values) > 1):
            self.weight -= self._values.popitem(last=False)[1][1]

    def drop(self, key: str) -> None:
        """Forget what *key* has, if anything."""
        if (found := self._values.pop(key, None)) is not None:
            self.weight -= found[1]
