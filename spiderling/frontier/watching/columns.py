"""What is watched, in memory: columns of 20 bytes a page, in the order of the keys, host by host."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from spiderling.base.urls import HASH_BITS
from spiderling.frontier.watching.groups import Standing, WatchedPage

_PAGE = np.dtype([("key", "u8"), ("found_at", "f4"), ("last", "f4"), ("part", "u2"), ("kind", "u1"), ("flags", "u1")])
ANNOUNCED, PLANNED, MISSED, OVER = 1, 2, 4, 8
"""Flags: a date says that it has changed; a look is planned or in transit; its last answer was 404; it is not looked at
any more."""
_BLOCK_PAGES = 20_000
"""Pages that one step of a sweep judges, in some milliseconds (chosen)."""
_BLOCK_HOSTS = 5_000
"""And most hosts, each of which costs some 2 microseconds.  Chosen."""


class Columns:
    """All watched pages, by key; added ones count from the next ``merge`` on."""

    def __init__(self) -> None:
        self.rows: NDArray[np.void] = np.empty(0, _PAGE)
        self._added: list[NDArray[np.void]] = []
        self._new: list[tuple[int, float, float, int, int, int]] = []
        self.over = 0
        """Pages that are not looked at any more."""

    def __len__(self) -> int:
        return len(self.rows) + len(self._new) + sum(map(len, self._added))

    @property
    def live(self) -> int:
        """Pages that are looked at."""
        return len(self) - self.over

    def add(self, pages: Iterable[WatchedPage], part: int) -> None:
        """Add *pages* of one group."""
        for page in pages:
            flags = flags_of(page.state)
            self.over += bool(flags & OVER)
            self._new.append((page.key & (1 << 64) - 1, page.found_at, page.last, part, page.kind, flags))
        if len(self._new) >= _BLOCK_PAGES:
            self._pack()

    def _pack(self) -> None:
        self._added.append(np.array(self._new, _PAGE))
        self._new = []

    def merge(self) -> None:
        """Bring the added pages into order."""
        if self._new:
            self._pack()
        if self._added:
            rows = np.concatenate([self.rows, *self._added])
            self._added = []
            self.rows = rows[np.argsort(rows["key"], kind="stable")]

    def find(self, key: int) -> int | None:
        """The place of a page; None if it is not watched, or not merged yet."""
        wanted = np.uint64(key & (1 << 64) - 1)
        at = self.place(key)
        return at if at < len(self.rows) and self.rows["key"][at] == wanted else None

    def place(self, key: int) -> int:
        """Where a page with this key stands, or would stand."""
        # numpy's own search would copy the whole column first, as its numbers do not lie side by side
        return bisect_left(self.rows["key"], np.uint64(key & (1 << 64) - 1))

    def flag(self, at: int, flag: int, is_set: bool) -> None:
        """Set a flag of the page at a place."""
        flags = self.rows["flags"]
        flags[at] = flags[at] | flag if is_set else flags[at] & (255 - flag)

    def update(self, at: int, page: WatchedPage) -> None:
        """Take in what a look has changed; the page is not planned any more."""
        row = self.rows[at]
        was_over = bool(row["flags"] & OVER)
        row["last"] = page.last
        row["kind"] = page.kind
        row["flags"] = flags_of(page.state)
        self.over += bool(row["flags"] & OVER) - was_over

    def blocks(self) -> Iterator[tuple[int, int]]:
        """(first, behind the last) of parts that hold whole hosts, but for hosts larger than a part."""
        hosts = self.rows["key"] >> np.uint64(HASH_BITS)
        starts = np.flatnonzero(hosts[1:] != hosts[:-1]) + 1
        bounds = np.append(starts, len(hosts))
        begin = 0
        while begin < len(hosts):
            following, behind = np.searchsorted(bounds, (begin, begin + _BLOCK_PAGES), "right")
            last = min(following + _BLOCK_HOSTS, max(following + 1, behind)) - 1
            end = min(int(bounds[last]), begin + _BLOCK_PAGES)
            yield begin, end
            begin = end


def flags_of(state: Standing) -> int:
    """The flags of a page that is not planned."""
    if state is Standing.MISSED:
        return MISSED
    return 0 if state is Standing.LIVE else OVER


def hosts_of(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """The ids of the hosts of *rows*."""
    hosts: NDArray[np.int64] = (rows["key"] >> np.uint64(HASH_BITS)).astype(np.int64)
    return hosts
