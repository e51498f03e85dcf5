"""What a shard says is told once more by the process that has started it, as far as a person must read it."""

from __future__ import annotations

import logging
import sys

import pytest

import spiderling.extensions.live_page
from spiderling.cluster import launcher
from spiderling.cluster.launcher import Repeater, ShardProcess

NAMED = "INFO spiderling.cluster.shard: This is shard 7 of 8, at Redis /s"


def told(caplog: pytest.LogCaptureFixture, *lines: str, repeater: Repeater | None = None) -> list[tuple[int, str]]:
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    shard = ShardProcess(None, repeater or Repeater())  # type: ignore[arg-type]
    for line in lines:
        shard.take(line)
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_warnings_and_errors_are_told_with_the_number_of_their_shard(caplog):
    assert told(
        caplog,
        "WARNING a.b: early",
        NAMED,
        "  a table",
        "INFO a: no",
        "WARNING a.b: w",
        "ERROR a: e: f",
        "Traceback:",
        "  x",
    ) == [
        (logging.WARNING, "a shard: early"),
        (logging.WARNING, "shard 7: w"),
        (logging.ERROR, "shard 7: e: f"),
        (logging.ERROR, "shard 7: Traceback:"),
        (logging.ERROR, "shard 7:   x"),
    ]


def test_the_place_of_the_live_page_is_told(caplog):
    assert told(caplog, "INFO spiderling.extensions.live_page: The live page: http://127.0.0.1:8580/") == [
        (logging.INFO, "a shard: The live page: http://127.0.0.1:8580/")
    ]
    assert spiderling.extensions.live_page.logger.name == "spiderling.extensions.live_page"


def test_what_something_else_writes_is_told_too(caplog):
    assert told(caplog, "INFO a: summary", "  pages 3", "Fatal Python error: Segmentation fault", "") == [
        (logging.WARNING, "a shard: Fatal Python error: Segmentation fault")
    ]


def test_what_several_shards_say_at_once_is_told_once(caplog, monkeypatch):
    repeater = Repeater()
    one = ("ERROR a: full disk", "Traceback", "INFO a: x")
    assert len(told(caplog, *one, repeater=repeater)) == 2
    assert told(caplog, *one, repeater=repeater) == []
    later = launcher.time.monotonic() + launcher.SAME_S
    monkeypatch.setattr(launcher.time, "monotonic", lambda: later)
    assert len(told(caplog, *one, repeater=repeater)) == 2, "it happens again"


async def test_a_process_is_read_to_its_end(caplog):
    """Also a line without an end, one that is no UTF-8, and one that is longer than a buffer."""
    text = r"import os; os.write(2, b'ERROR a: ' + b'x' * 200_000 + b'\nWARNING a: \xff\nERROR a: last'); os._exit(3)"
    shard = await ShardProcess.started([sys.executable, "-c", text], Repeater())
    assert await shard.ended() == 3
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("a shard: xxx") and said[-2:] == ["a shard: \ufffd", "a shard: last"]
    assert sum(line.count("x") for line in said) == 200_000


async def test_a_process_that_is_killed_tells_by_which_signal():
    shard = await ShardProcess.started([sys.executable, "-c", "import time; time.sleep(100)"], Repeater())
    shard.process.kill()
    assert await shard.ended() == -9
