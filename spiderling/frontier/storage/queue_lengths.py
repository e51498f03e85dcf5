"""Lengths of queues that are newer than the rows of their hosts.

Most hosts that a batch changes only got URLs, and the rows of so many hosts stand on as many pages of the file.  So
what changed of them is one row of the table ``length``, which is only appended to.  sqlite.py folds that table into the
hosts' rows from time to time: of many hosts at once, and in the order of the file, so that each page is written once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain

Length = tuple[int, int, int, int]
"""(waiting, parked, distance, id) of a host; its distance is that from the seeds, in host hops."""
LENGTH_BYTES = 32
"""Bytes of a packed Length."""


def packed_lengths(lengths: Iterable[Length]) -> bytes:
    """The column ``lengths`` of a batch; raises OverflowError for more than 64 bits."""
    return array("q", chain.from_iterable(lengths)).tobytes()


def newest_lengths(rows: Iterable[tuple[int, bytes]]) -> dict[int, Length]:
    """Host id -> its newest Length in the *rows* (batch, lengths); raises ValueError for what is no such row."""
    newest: dict[int, Length] = {}
    for _, lengths in rows:
        numbers = iter(array("q", lengths))
        newest.update((length[-1], length) for length in zip(numbers, numbers, numbers, numbers, strict=True))
    return newest
