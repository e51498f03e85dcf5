"""Damage to SQLite's write-ahead log, which SQLite takes for the log's end, is told of; what a kill leaves is not."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from conftest import ROOT

from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.state_reader import damaged_log, has_torn_commit

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


def frame(number):
    """Where a frame begins."""
    return HEADER + number * (FRAME + PAGE)


def rolled_back(data):
    """No frame is a commit any more, and none agrees with its checksum."""
    for at in range(frame(0) + 4, len(data), FRAME + PAGE):
        data = data[:at] + bytes(4) + data[at + 4 :]
    return data


def flipped(data, offset):
    """With another bit there."""
    return data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]


def test_what_a_kill_or_a_rollback_left_of_a_log_is_no_damage_whatever_stood_there_before(database):
    log, data = log_of(database), log_of(database).read_bytes()
    assert len(data) > frame(8), "frames of the log before"
    for left in (data, data[:20], rolled_back(data)):
        log.write_bytes(left)
        assert damaged_log(database) == ""
    log.unlink()
    assert damaged_log(database) == ""


@pytest.mark.parametrize("place", [1, 9, 13, 17, FRAME, FRAME + PAGE - 1])
def test_a_bit_in_a_commit_hides_it_and_all_behind_it_and_one_in_the_header_the_whole_log(database, place):
    data = log_of(database).read_bytes()
    for number in (0, 1):
        log_of(database).write_bytes(flipped(data, frame(number) + place))
        said = f"is damaged at byte {frame(number):,}: the last {3 - number} commits are lost"
        assert said in damaged_log(database)
    log_of(database).write_bytes(flipped(data, min(place, HEADER - 1)))
    assert "cannot be read from its beginning on" in damaged_log(database)


def test_the_last_commit_may_be_torn_by_a_kill_or_a_power_cut(database):
    """SQLite writes the head of a frame before its page, and a power cut may leave either."""
    assert not has_torn_commit(database)
    log_of(database).write_bytes(flipped(log_of(database).read_bytes(), frame(2) + FRAME + 5))
    assert damaged_log(database) == "" and has_torn_commit(database)


def test_the_check_of_a_crawl_tells_of_it(tmp_path):
    job, killed = shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job"), tmp_path / "killed"
    with closing(sqlite3.connect(job / "state/frontier.sqlite", isolation_level=None)) as state:
        state.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for _ in range(2):
            state.execute("UPDATE count SET value = value + 1")
        shutil.copytree(job, killed)
    compared = []
    with closing(Inspection(killed)) as crawl:
        assert not any("log" in line for line in problems(crawl, compared)) and "left torn" not in str(compared)
    log = log_of(killed / "state/frontier.sqlite")
    log.write_bytes(flipped(log.read_bytes(), log.stat().st_size - 9))
    with closing(Inspection(killed)) as crawl:
        list(problems(crawl, compared))
        assert "not compared: the last commit in SQLite's log, which a kill or power cut left torn" in compared
    log.write_bytes(flipped(log.read_bytes(), frame(0) + 500))
    with closing(Inspection(killed)) as crawl:
        assert "commits are lost" in next(problems(crawl))
