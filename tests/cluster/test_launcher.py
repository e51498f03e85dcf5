"""All shards on one machine: how each is read, and the Redis of their own."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from needs import needs

from spiderling.base.errors import BadInput
from spiderling.cluster.claims import is_own_socket
from spiderling.cluster.launcher import DEATHS_S, MAX_DEATHS, MAX_PATH_BYTES, OwnRedis, may_start_again, worst
from spiderling.cluster.redis_transport import connect


def test_the_worst_exit_code() -> None:
    assert [worst(codes) for codes in ([], [0, 3, 0], [3, 1], [0, 2], [0, -9, 3])] == [0, 3, 1, 1, 1]


def test_a_process_is_started_again_a_few_times_an_hour() -> None:
    assert may_start_again([5.0] * MAX_DEATHS) and not may_start_again([5.0] * (MAX_DEATHS + 1))
    assert may_start_again([5.0] * 9 + [5.0 + DEATHS_S])


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
