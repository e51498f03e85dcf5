"""The crawl's totals over time, from which reports draw how yield and speed changed.

A *tick* is ten seconds.  Each batch overwrites the row of its tick.  Old rows are thinned: one row a minute stays after
an hour, one in ten minutes after a day, one in two hours after thirty days.  A year takes under 10,000 rows of 100
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

TICK_S = 10
_HOUR = 3600 // TICK_S
"""An hour, in ticks."""
_THINNED = ((_HOUR, _HOUR // 60), (24 * _HOUR, _HOUR // 6), (30 * 24 * _HOUR, 2 * _HOUR))
"""(age, step), both in ticks: of rows older than *age* the last one of each *step* stays."""


class HistoryRow(NamedTuple):
    """Totals of the crawl at the end of one tick; the columns of table ``history``."""

    tick: int
    time: float
    time_s: int
    """Running time over all sessions."""
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    discovered: int
    waiting: int
    hosts: int
    at_work: int
    """Hosts with URLs to be fetched."""
    retired: int


def thinning(row: HistoryRow) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Conditions (SQL, values) of the rows to delete after *row* was written, at every sixth tick."""
    for age, step in () if row.tick % 6 else _THINNED:
        condition = (
            "tick < ? AND EXISTS (SELECT 1 FROM history AS later "
            "WHERE later.tick > history.tick AND later.tick < (history.tick / ? + 1) * ?)"
        )
        yield condition, (row.tick - age, step, step)
