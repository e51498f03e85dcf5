"""The crawl's counts over time, so that reports can draw how yield and speed went.

Each batch overwrites the row of its *tick*, ten seconds.  Of what is older than an hour the last row of each minute
stays, of a day that of ten minutes, of thirty days that of two hours: under 10,000 rows of 100 bytes for a year.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spiderling.frontier.hosts.host import HostState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spiderling.frontier.storage.host_table import HostTable

AT_WORK = (HostState.RESOLVING, HostState.READY, HostState.IN_PROCESS, HostState.SNOOZED)
"""States of hosts with URLs to be fetched."""
TICK_S = 10
_HOUR = 3600 // TICK_S
_THINNED = ((_HOUR, _HOUR // 60), (24 * _HOUR, _HOUR // 6), (30 * 24 * _HOUR, 2 * _HOUR))
"""(age, length of the steps of which one row stays), in ticks."""

SCHEMA = """
CREATE TABLE history(tick INTEGER PRIMARY KEY, time REAL NOT NULL, time_s INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, discovered INTEGER NOT NULL, waiting INTEGER NOT NULL, hosts INTEGER NOT NULL,
    at_work INTEGER NOT NULL, retired INTEGER NOT NULL, checksum INTEGER NOT NULL);
"""


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


def at_work(hosts: HostTable) -> int:
    """How many hosts have URLs to be fetched."""
    states = hosts.states.hosts_by_state()
    return sum(states.get(state, 0) for state in AT_WORK)


def thinning(row: HistoryRow) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Which rows have grown old with *row*, now and then: a condition on the table, and its values."""
    for age, step in () if row.tick % 6 else _THINNED:
        condition = (
            "tick < ? AND EXISTS (SELECT 1 FROM history AS later "
            "WHERE later.tick > history.tick AND later.tick < (history.tick / ? + 1) * ?)"
        )
        yield condition, (row.tick - age, step, step)
