"""Counts over time: one row every ten seconds, thinned as they grow old."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from spiderling.base.options import Options
from spiderling.frontier import Frontier
from spiderling.frontier.storage.protocol import Changes, HistoryRow
from spiderling.frontier.storage.sqlite import SqliteStore

HOUR = 360
DAY = 24 * HOUR


@pytest.fixture
def store(tmp_path):
    with closing(SqliteStore(tmp_path / "state.sqlite")) as opened:
        yield opened


def row(tick: int, second: float = 0.0, pages: int = 0) -> HistoryRow:
    return HistoryRow(tick, tick * 10 + second, 0, pages, *(0,) * 9)


def test_a_row_holds_the_totals_of_its_moment():
    frontier = Frontier(Options(lang="cs"))
    frontier.put_seed("http://a.test/", 1000.0)
    frontier.ledger.totals.update(pages=7, words=300, downloaded_bytes=9000, kept_bytes=800, time_s=60, documents=3)
    frontier.drain(1030.0)
    assert frontier.history(1030.0) == HistoryRow(
        103, 1030.0, 60, 7, 3, 300, 9000, 800, discovered=1, waiting=1, hosts=1, at_work=1, retired=0
    )


def test_each_batch_takes_the_place_of_its_ticks_former_row(store, tmp_path):
    for row_ in (row(5, 1, 10), row(5, 9, 20), row(6, 0, 30)):
        store.commit(Changes(history=row_))
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as other:
        assert other.execute("SELECT time, pages FROM history ORDER BY tick").fetchall() == [(59.0, 20), (60.0, 30)]


@pytest.mark.slow
def test_old_rows_are_thinned_to_the_last_of_each_step(store, tmp_path):
    store.commit(Changes(history=row(0)))
    gap = 38 * DAY
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as other:
        with other:
            other.executemany(
                "REPLACE INTO history VALUES (?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
                ((t, t * 10.0) for t in range(40 * DAY)),
            )
            other.execute("DELETE FROM history WHERE tick = ?", (gap + 59,))
        store.commit(Changes(history=row(40 * DAY)))
        kept = [tick for (tick,) in other.execute("SELECT tick FROM history ORDER BY tick")]
    assert [t for t in kept if t < 10 * DAY] == list(range(719, 10 * DAY, 720)), "two hours"
    assert [t for t in kept if 10 * DAY <= t < gap] == list(range(10 * DAY + 59, gap, 60)), "ten minutes"
    assert gap + 58 in kept, "the last one that there is"
    assert [t for t in kept if 39 * DAY <= t < 40 * DAY - HOUR] == list(range(39 * DAY + 5, 40 * DAY - HOUR, 6))
    assert [t for t in kept if t >= 40 * DAY - HOUR] == list(range(40 * DAY - HOUR, 40 * DAY + 1))
