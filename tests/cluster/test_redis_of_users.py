"""Crawls of shards over a Redis as users have it: with a password, TLS, slow, full; and a shard that stood still."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import time
from collections import Counter

import pytest
from conftest import pages_asked, refusal, serving
from handled import server_context
from needs import needs
from redis_server import RedisServer
from relay import Relay
from test_crawl_of_shards import ADDRESSES, EVERY, SEED, SITES, SOON, kept, shards

from spiderling.cluster.redis_transport import connect, end_tasks
from webs.web import FixedWeb

pytestmark = needs("redis")

PASSWORD = "of-the-redis"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


async def call_again_and_again(redis) -> None:
    while True:
        await redis.ping()
        await asyncio.sleep(0.001)


async def test_a_task_that_calls_redis_ends_at_whatever_step_it_is_cancelled():
    """In Python 3.11 redis-py loses a cancellation at three of these steps; a shard then never ended at Ctrl-C."""
    with RedisServer() as store:
        redis = connect(store.url)
        for steps in range(12):
            await redis.ping()
            task = asyncio.ensure_future(call_again_and_again(redis))
            for _ in range(steps):
                await asyncio.sleep(0)
            await asyncio.wait_for(end_tasks(task), 60)
            assert task.cancelled()
        await redis.aclose()


@pytest.mark.slow
@needs("redis with TLS")
def test_two_shards_over_tls_with_a_password(tmp_path):
    server_context(tmp_path, names=("127.0.0.1",))
    own = str(tmp_path / "both.pem")  # a certificate that is its own authority, and its key
    port = free_port()
    files = [part for name in ("cert", "key", "ca-cert") for part in (f"--tls-{name}-file", own)]
    arguments = ["--tls-port", str(port), *files, "--tls-auth-clients", "no"]
    with RedisServer(*arguments, "--requirepass", PASSWORD) as store:
        key = tmp_path / "key"
        key.write_bytes(bytes(range(32)))
        key.chmod(0o600)
        place = f"127.0.0.1:{port}/0"
        good = f"rediss://:{PASSWORD}@{place}?ssl_ca_certs={own}"
        for url, said in (
            (good.replace(PASSWORD, "wrong"), "invalid username-password pair"),
            (good.replace(f":{PASSWORD}@", ""), "Authentication required"),
        ):
            settings = {"CLUSTER": url, "CLUSTER_KEY_FILE": key, "SHARDS": 2}
            given = [part for name, value in settings.items() for part in ("-s", f"SPIDERLING_{name}={value}")]
            why = refusal(tmp_path / "cs", "-a", "lang=cs", *given)
            assert f"Redis at 127.0.0.1:{port} cannot be used" in why and said in why and PASSWORD not in why
        with serving(FixedWeb(SITES, ADDRESSES)) as server:
            crawl = shards(tmp_path / "cs", server, store, 2, CLUSTER_KEY_FILE=key)
            ended = [one.wait() for one in [crawl.start(SEED, CLUSTER=good) for _ in range(2)]]
        assert [(one.code, one.lines("ERROR")) for one in ended] == [(0, []), (0, [])], ended
        assert not any(PASSWORD in line for one in ended for line in one.output.splitlines()), "it is in no log"
        assert kept(tmp_path / "cs") == EVERY


@pytest.mark.slow
def test_a_redis_that_is_full_is_waited_for_at_the_start_and_pauses_the_crawl(tmp_path):
    """It has no room at the claim of the first, in the middle of the crawl, and at the claim of a third process."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 2, HOST_INTERVAL_S=0.3)
        store.command("CONFIG", "SET", "maxmemory", "1")
        full = crawl.run(SEED, CONSTANTS=SOON | {"cluster.claims.PATIENCE_S": 0.5})
        assert full.code == 1 and full.lines("ERROR", "cannot be used: ", "maxmemory")
        one, other = crawl.start(SEED), crawl.start(SEED)
        for begun in (one, other):
            begun.until(lambda begun=begun: "takes nothing (" in begun.output())
        store.command("CONFIG", "SET", "maxmemory", "0")
        one.until(lambda: len(server.log_entries) > 8)
        store.command("CONFIG", "SET", "maxmemory", "1")
        one.until(lambda: "is full (" in one.output())
        other.until(lambda: "is full (" in other.output())
        assert crawl.run(SEED).code in (0, 1), "a further process finds no shard, or no room"
        asked = len(server.log_entries)
        time.sleep(0.5)
        assert len(server.log_entries) <= asked + 2, "those that were under way"
        store.command("CONFIG", "SET", "maxmemory", "0")
        ended = [one.wait(), other.wait()]
        assert [(one.code, one.lines("ERROR")) for one in ended] == [(0, []), (0, [])], ended
        assert all(one.lines("goes on after") for one in ended)
        assert kept(tmp_path / "cs") == EVERY


@pytest.mark.slow
def test_a_shard_with_a_slow_way_to_redis_finishes_with_the_others(tmp_path):
    """Meanwhile nothing goes through at all, as when a cable is pulled out: it pauses, and goes on by itself."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store, Relay(store.socket) as relay:
        relay.state = "slow"
        crawl = shards(tmp_path / "cs", server, store, 2, HOST_INTERVAL_S=0.5)
        waits = SOON | {"cluster.heartbeat.WAIT_MISSING_S": 1000.0}  # for one that begins late, or whose lease runs out
        begun = [crawl.start(SEED, CONSTANTS=waits), crawl.start(SEED, CLUSTER=relay.url, CONSTANTS=waits)]
        begun[1].until(lambda: "This is shard" in begun[1].output() and server.log_entries)
        relay.state = "hole"
        begun[1].until(lambda: "paused: Redis" in begun[1].output())
        relay.state = "slow"
        ended = [one.wait() for one in begun]
        assert [(one.code, one.lines("ERROR")) for one in ended] == [(0, []), (0, [])], ended
        assert ended[1].lines("The crawl goes on after") and not ended[0].lines("paused: ")
        assert kept(tmp_path / "cs") == EVERY
        asked = Counter((entry.host, entry.path) for entry in server.log_entries)
        assert set(asked.values()) == {1}


@pytest.mark.slow
def test_a_shard_that_stood_still_asks_nothing_more_once_another_process_has_its_lease(tmp_path):
    """Its directory was copied meanwhile, and the copy goes on; who wakes up finds its number taken, and ends."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 1, HOST_INTERVAL_S=0.2)
        sleeps = crawl.start(SEED)
        sleeps.until(lambda: len(server.log_entries) > 20)
        sleeps.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # what was under way has been answered
        before = len(server.log_entries)
        shutil.copytree(tmp_path / "cs", tmp_path / "copy" / "cs")
        takes = shards(tmp_path / "copy" / "cs", server, store, 1, HOST_INTERVAL_S=0.2).start(SEED)
        takes.until(lambda: len(server.log_entries) > before + 2)
        sleeps.process.send_signal(signal.SIGCONT)
        woken = sleeps.wait()
        assert woken.code == 1 and woken.lines("ERROR", "another process runs shard 0", "or it was taken over while")
        ended = takes.wait()
        assert ended.code == 0 and not ended.lines("ERROR")
        assert kept(tmp_path / "copy" / "cs", 1) == EVERY
        since = Counter((entry.host, entry.path) for entry in pages_asked(server.log_entries[before:]))
        assert {page: number for page, number in since.items() if number > 1} == {}, "one of the two asks"
