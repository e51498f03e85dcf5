"""Damage to SQLite's write-ahead log, which SQLite takes for the log's end, is told of; what a kill leaves is not."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from conftest import ROOT

from spiderling.jobdir.check import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.write_ahead_log import damaged_log

PAGE, HEADER, FRAME = 4096, 32, 24


@pytest.fixture
def database(tmp_path):
    """A database beside whose file stands a log of a crawl that was killed, with one frame of an older log behind."""
    path, left = tmp_path / "open.sqlite", tmp_path / "state.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as state:
        state.execute("PRAGMA journal_mode=WAL")
        state.execute("CREATE TABLE t(x)")
        for _ in range(4):
            state.execute("INSERT INTO t VALUES (zeroblob(9000))")
        state.execute("PRAGMA wal_checkpoint(RESTART)")
        for _ in range(3):
            state.execute("INSERT INTO t VALUES (zeroblob(100))")
        for name in ("", "-wal"):
            left.with_name(left.name + name).write_bytes(path.with_name(path.name + name).read_bytes())
    return left


def log_of(database):
    return database.with_name(database.name + "-wal")


def flip(database, offset, bit=0):
    data = bytearray(log_of(database).read_bytes())
    data[offset] ^= 1 << bit
    log_of(database).write_bytes(data)


def frame(number):
    """Where a frame begins."""
    return HEADER + number * (FRAME + PAGE)


def test_a_log_that_a_kill_left_is_whole_whatever_stood_there_before(database):
    assert log_of(database).stat().st_size > frame(8), "frames of the log before"
    assert list(damaged_log(database)) == []
    log_of(database).write_bytes(log_of(database).read_bytes()[:20])
    assert list(damaged_log(database)) == []
    log_of(database).unlink()
    assert list(damaged_log(database)) == []


def test_a_transaction_that_was_rolled_back_or_half_written_is_no_damage(database):
    data = log_of(database).read_bytes()
    for number in range(20):  # no frame is a commit any more, and none agrees with its checksum
        at = frame(number) + 4
        if at < len(data):
            data = data[:at] + bytes(4) + data[at + 4 :]
    log_of(database).write_bytes(data)
    assert list(damaged_log(database)) == []


@pytest.mark.parametrize("offset", [0, 9, 17, 31])
def test_a_damaged_header_hides_the_whole_log(database, offset):
    flip(database, offset)
    assert [line for line in damaged_log(database) if "cannot be read from its beginning on" in line]


@pytest.mark.parametrize("place", [1, 9, 13, 17, FRAME, FRAME + PAGE - 1])
@pytest.mark.parametrize("number", [0, 2])
def test_a_bit_in_a_commit_hides_it_and_all_behind_it(database, number, place):
    flip(database, frame(number) + place)
    found = list(damaged_log(database))
    assert len(found) == 1
    assert f"is damaged at byte {frame(number):,}: the last {3 - number} commits are lost" in found[0]


def test_the_check_of_a_crawl_tells_of_it(tmp_path):
    job = shutil.copytree(ROOT / "tests/jobdirs/schema-5", tmp_path / "job")
    flip(job / "state/frontier.sqlite", frame(1) + 500)
    with closing(Inspection(job)) as crawl:
        assert "commits are lost" in next(problems(crawl))
