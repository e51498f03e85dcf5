"""Whatever somebody writes into Redis: each key is told and mended, no shard stops, nothing is lost or asked too soon.

The table of slots was once replaced by a string, and one of its times by 9e18: all shards stood still for ever, and
said that too few hosts had URLs.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from conftest import Running, page, pages_asked, serving
from needs import needs
from redis import Redis
from redis.exceptions import ResponseError
from redis_server import RedisServer
from test_crawl_of_shards import kept, shards

from spiderling.base.urls import owner_of
from spiderling.cluster.claims import name_of
from spiderling.cluster.content import Seal
from spiderling.cluster.redis_transport import key_types
from webs.web import FixedWeb

pytestmark = needs("redis")

SHARDS = 2
HOST_INTERVAL_S = 0.5
HOSTS = [f"host{number}.test" for number in range(8)]
PAGES = 80
SITES = {
    host: {
        f"/{at}": page(f"{host} {at}", f"/{at + 1}", *(f"http://{other}/{at}" for other in HOSTS))
        for at in range(PAGES)
    }
    for host in HOSTS
}
ADDRESSES = {host: f"127.84.47.{number // 2}" for number, host in enumerate(HOSTS, 2)}
"""Two hosts share each address, and some of these pairs belong to different shards."""
SEED = f"http://{HOSTS[0]}/0"
TYPES = {
    "string": lambda client, key: client.set(key, "zz"),
    "hash": lambda client, key: client.hset(key, "zz", "zz"),
    "list": lambda client, key: client.rpush(key, "zz"),
    "set": lambda client, key: client.sadd(key, "zz"),
    "zset": lambda client, key: client.zadd(key, {"zz": 5}),
    "stream": lambda client, key: client.xadd(key, {"m": "zz"}),
}
NUMBERS = ["0", "-1", "nan", "inf", "9e18", "-9e18", "9" * 400]


def written(client: Redis, key: str, kind: str) -> Iterator[str]:
    """Write each wrong thing in turn in the place of *key*; yields what."""
    client.delete(key)
    yield "nothing"
    for other, write in TYPES.items():
        if other != kind:
            client.delete(key)
            with suppress(ResponseError):  # a shard was first
                write(client, key)
            yield f"a {other}"
    stranger = Seal(bytes(range(16)), b"").seal("lease:0", b"x" * 40)
    for value in (b"zz", b"", b"\xff" * 40, stranger, *NUMBERS):
        with suppress(ResponseError):
            put(client, key, kind, value)
        yield repr(value)[:20]


def put(client: Redis, key: str, kind: str, value: str | bytes) -> None:
    """Write *value* into *key*, whose type it has."""
    if kind == "string":
        client.set(key, value)
    elif kind == "hash":
        for field in (b"0", b"1", b"7", b"zz", b"\xff", *NUMBERS):
            client.hset(key, field, value)
    elif isinstance(value, str) and value != "nan" and len(value) < 9:
        client.zadd(key, {name: value for name in ("", "127.84.47.1", "127.84.47.2", "zz")})


MAP_KEY = "spiderling:cs:cs:map"


def seal_of(directory: Path) -> Seal:
    """That of the crawl in *directory*, which has no key."""
    with sqlite3.connect(directory / name_of(0) / "state" / "frontier.sqlite") as connection:
        (row,) = connection.execute("SELECT value FROM meta WHERE key = 'shard_map'").fetchone()
    return Seal(bytes.fromhex(json.loads(row)["crawl_id"]), b"")


def swept(client: Redis, kinds: dict[str, str], running: list[Running]) -> Counter[str]:
    """Write all of it while the shards run; returns how often each key was written to."""
    faults = [written(client, key, kind) for key, kind in kinds.items()]
    times: Counter[str] = Counter()
    chance = Random(5)
    names = dict(zip(map(id, faults), kinds, strict=True))
    while faults:
        fault = chance.choice(faults)
        if next(fault, None) is None:
            faults.remove(fault)
            continue
        times[names[id(fault)]] += 1
        assert all(one.process.poll() is None for one in running), [one.output()[-2000:] for one in running]
        time.sleep(0.07)
    return times


@pytest.mark.slow
def test_every_key_may_hold_anything_while_shards_run(tmp_path: Path) -> None:
    assert len({owner_of(host, SHARDS) for host in HOSTS}) == SHARDS
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, SHARDS, HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=0.1)
        running = [crawl.start(SEED) for _ in range(SHARDS)]
        for one in running:
            one.until(lambda one=one: "This is shard" in one.output())
        running[0].until(lambda: len(server.log_entries) > 4)
        client = Redis.from_url(store.url)
        seal = seal_of(tmp_path / "cs")
        kinds = key_types(seal, MAP_KEY, SHARDS)
        known = re.compile("|".join([*map(re.escape, kinds), re.escape(seal.key("file")) + r":\d+:\d+"]))
        assert all(known.fullmatch(name) for name in store.names()), "a key that key_types does not list"
        times = swept(client, kinds, running)
        assert min(times.values()) > 5
        ended = [one.wait() for one in running]
        assert [(one.code, one.lines("ERROR")) for one in ended] == [(0, []), (0, [])], ended
        said = "".join(one.output for one in ended)
        assert "Traceback" not in said
        told = {*re.findall(r"in the place of (\S+): it is", said)}
        every = "slots", "shards"
        assert {MAP_KEY, *map(seal.key, every)} <= told
        for pattern in (r"lease:\d", r"inbox:\d"):
            assert any(re.fullmatch(seal.key(pattern), key) for key in told), pattern
        lines = re.findall(r"\[spiderling.cluster.redis_transport\] WARNING: (.*)", ended[0].output)
        assert max(Counter(lines).values()) == 1
        assert kept(tmp_path / "cs") == sorted(f"http://{host}{path}" for host in HOSTS for path in SITES[host])
        asked = pages_asked(server.log_entries)
        assert set(Counter((entry.host, entry.path) for entry in asked).values()) == {1}, "nothing twice"
        for host in HOSTS:
            times_of = sorted(entry.time_s for entry in server.log_entries if entry.host == host)
            gaps = [later - earlier for earlier, later in pairwise(times_of)]
            assert min(gaps) >= HOST_INTERVAL_S - 0.1, "a shard's own intervals hold, whatever Redis says"


@pytest.mark.slow
def test_a_shard_that_begins_finds_its_way_through_anything(tmp_path: Path) -> None:
    """All of it was written while no shard ran, and nobody was there to mend it."""
    with serving(FixedWeb(SITES, ADDRESSES)) as server, RedisServer() as store:
        crawl = shards(tmp_path / "cs", server, store, 1, HOST_INTERVAL_S=0.01, MAX_PAGES=5)
        assert crawl.run(SEED).code == 0
        client = Redis.from_url(store.url)
        kinds = key_types(seal_of(tmp_path / "cs"), MAP_KEY, 1)
        for pages, write in enumerate((*TYPES.values(), lambda client, key: client.set(key, "9e18")), 2):
            for key in kinds:
                client.delete(key)
                write(client, key)
            ended = crawl.run(SEED, MAX_PAGES=5 * pages)
            assert ended.code == 0 and not ended.lines("ERROR"), ended
            assert ended.lines("budget-pages") or ended.lines("is reached")
