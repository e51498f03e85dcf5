"""All shards on one machine: how each is read, and the Redis of their own."""

from __future__ import annotations

import logging
import stat
import sys
from pathlib import Path

import pytest
from needs import needs

import spiderling.extensions.live_page
from spiderling.base.errors import BadInput
from spiderling.cluster import launcher
from spiderling.cluster.claims import is_own_socket
from spiderling.cluster.launcher import (
    DEATHS_S,
    MAX_DEATHS,
    MAX_PATH_BYTES,
    OwnRedis,
    ShardProcess,
    may_start_again,
    worst,
)
from spiderling.cluster.redis_transport import connect

def test_the_worst_exit_code() -> None:
    assert [worst(codes) for codes in ([], [0, 3, 0], [3, 1], [0, 2], [0, -9, 3])] == [0, 3, 1, 1, 1]


def test_a_process_is_started_again_a_few_times_an_hour() -> None:
    assert may_start_again([5.0] * MAX_DEATHS) and not may_start_again([5.0] * (MAX_DEATHS + 1))
    assert may_start_again([5.0] * 9 + [5.0 + DEATHS_S])


# -- what a shard says is told once more by the process that has started it, as far as a person must read it


NAMED = "INFO spiderling.cluster.shard: This is shard 7 of 8, at Redis /s"


def logged(
    caplog: pytest.LogCaptureFixture, lines: str, lately: dict[tuple[int, str], float] | None = None
) -> list[str]:
    """What is logged, each with its level, of the *lines* that a shard writes."""
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    shard = ShardProcess({} if lately is None else lately)
    for line in lines.split("\n"):
        shard.take(line)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


PAGE = "The live page: http://127.0.0.1:8580/"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            f"WARNING a.b: early\n{NAMED}\n  a table\nINFO a: no\nWARNING a.b: w\nERROR a: e: f\nTraceback:\n  x",
            ["WARNING a shard: early", "WARNING shard 7: w", "ERROR shard 7: e: f", "ERROR shard 7: Traceback:",
             "ERROR shard 7:   x"],
        ),
        (f"INFO {spiderling.extensions.live_page.logger.name}: {PAGE}", [f"INFO a shard: {PAGE}"]),
        ("INFO a: summary\n  pages 3\nFatal Python error: x\n", ["WARNING a shard: Fatal Python error: x"]),
    ],
    ids=["warnings and errors with their number", "the place of the live page", "what something else writes"],
)  # fmt: skip
def test_what_a_shard_says_is_told_as_far_as_it_matters(caplog, lines: str, said: list[str]) -> None:
    assert logged(caplog, lines) == said


def test_what_several_shards_say_at_once_is_told_once(caplog, monkeypatch):
    lately = {}
    one = "ERROR a: full disk\nTraceback\nINFO a: x"
    assert len(logged(caplog, one, lately)) == 2
    assert logged(caplog, one, lately) == []
    later = launcher.time.monotonic() + launcher.SAME_S
    monkeypatch.setattr(launcher.time, "monotonic", lambda: later)
    assert len(logged(caplog, one, lately)) == 2, "it happens again"


async def test_a_process_is_read_to_its_end(caplog):
    """Also a line without an end, one that is no UTF-8, and one that is longer than a buffer."""
    text = r"import os; os.write(2, b'ERROR a: ' + b'x' * 200_000 + b'\nWARNING a: \xff\nERROR a: last'); os._exit(3)"
    shard = ShardProcess({})
    await shard.start([sys.executable, "-c", text])
    assert await shard.ended() == 3
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("a shard: xxx") and said[-2:] == ["a shard: \ufffd", "a shard: last"]
    assert sum(line.count("x") for line in said) == 200_000


async def test_a_process_that_is_killed_tells_by_which_signal():
    shard = ShardProcess({})
    await shard.start([sys.executable, "-c", "import time; time.sleep(100)"])
    shard.process.kill()
    assert await shard.ended() == -9


# -- a Redis that a crawl starts for itself: private, at a path that fits, gone with it


@needs("redis")
@pytest.mark.parametrize("name", ["cs", "d" * 200, "a b#c%41?d"])
async def test_it_answers_at_a_socket_of_ours_wherever_the_crawl_is(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir(mode=0o700)
    redis = OwnRedis(directory)
    try:
        await redis.start()
        assert is_own_socket(redis.url), "so it needs no key"
        socket = Path(redis.url.removeprefix("unix://"))
        assert len(bytes(socket)) <= MAX_PATH_BYTES and (socket.parent == directory) == (name == "cs")
        assert stat.S_IMODE(socket.stat().st_mode) == stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        client = connect(redis.url, blocks=True)
        settings = client.config_get("save") | client.config_get("appendonly")  # Redis 6 takes one name at a time
        assert settings == {"save": "", "appendonly": "no"}
        client.set("a", 1)
        redis.process.kill()
        await redis.process.wait()
        await redis.start()
        assert client.get("a") is None, "the socket that was left is no hindrance"
        client.close()
    finally:
        await redis.close()
    assert redis.process.returncode is not None
    assert [path.name for path in directory.iterdir()] == ["log"]
    assert socket.parent == directory or not socket.parent.exists()


async def test_a_server_that_does_not_start_is_told(tmp_path: Path, monkeypatch) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho no memory today\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    redis = OwnRedis(tmp_path)
    with pytest.raises(BadInput, match=r"redis-server does not start \(no memory today\); .*/log has more\."):
        await redis.start()
    await redis.close()


def test_without_a_server_it_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match=r"there is no redis-server on PATH, .*: apt install redis-server\), or give "):
        OwnRedis(tmp_path)
