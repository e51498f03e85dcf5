"""One contract, two transports: what shards add to an inbox is read by its owner in order, and it is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from memory_transport import Inboxes, MemoryTransport
from needs import needs
from redis_server import RedisServer

from spiderling.base.errors import BadInput
from spiderling.cluster import redis_transport
from spiderling.cluster.exchange import TransportError
from spiderling.cluster.redis_transport import RedisTransport

CRAWL = bytes(range(16))
Made = Callable[[int], Any]
DATA = b"\x00\xff\r\n 7"


class Setup:
    """A transport for each shard, and the way to make it lose everything."""

    def __init__(self, make: Made, lose: Callable[[], object]) -> None:
        self._make = make
        self.lose = lose
        self._shards: dict[int, Any] = {}

    async def round(
        self, me: int, outgoing: dict[int, bytes] | None = None, is_emptied: bool = True
    ) -> tuple[bytes, list[int]]:
        """One round of the shard *me*."""
        if me not in self._shards:
            self._shards[me] = self._make(me)
        return await self._shards[me].exchange(outgoing or {}, is_emptied)

    async def __aenter__(self) -> Setup:
        return self

    async def __aexit__(self, *error: object) -> None:
        for transport in self._shards.values():
            await transport.close()


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["memory", pytest.param("redis", marks=needs("redis"))])
async def setup(request: pytest.FixtureRequest):
    if request.param == "memory":
        inboxes = Inboxes()
        made = Setup(lambda me: MemoryTransport(inboxes, me), inboxes.forget_all)
    else:
        server = request.getfixturevalue("redis")
        made = Setup(lambda me: RedisTransport(server.url, CRAWL, me), lambda: server.command("FLUSHALL"))
    async with made:
        made.lose()
        yield made


async def test_an_inbox_is_read_once_in_the_order_in_which_all_wrote_into_it(setup: Setup) -> None:
    assert await setup.round(0, {1: DATA, 2: b"c"}) == (b"", [])
    assert await setup.round(3, {1: b"b"}) == (b"", [])
    assert await setup.round(1) == (DATA + b"b", [])
    assert await setup.round(1, {2: DATA, 0: DATA}) == (b"", [])
    assert await setup.round(2, {0: b"x"}) == (b"c" + DATA, [])
    assert await setup.round(0) == (DATA + b"x", [])


async def test_an_inbox_that_is_not_emptied_stays(setup: Setup) -> None:
    await setup.round(0, {1: b"a"})
    assert await setup.round(1, {0: b"z"}, is_emptied=False) == (b"", [])
    await setup.round(0, {1: b"b"})
    assert await setup.round(1) == (b"ab", [])


async def test_an_inbox_that_is_full_takes_no_more_and_says_so(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_transport, "INBOX_BYTES", 10)
    assert await setup.round(0, {1: b"123456789"}) == (b"", [])
    assert await setup.round(0, {2: b"a", 1: b"b" * 20}) == (b"", []), "it was not yet full"
    assert await setup.round(0, {3: b"a", 1: b"c", 2: b"b"}) == (b"", [1])
    assert [await setup.round(me) for me in (1, 2, 3)] == [(b"123456789" + b"b" * 20, []), (b"ab", []), (b"a", [])]
    assert await setup.round(0, {1: b"c"}) == (b"", [])


async def test_what_is_lost_is_lost(setup: Setup) -> None:
    await setup.round(0, {1: DATA})
    setup.lose()
    assert await setup.round(1) == (b"", [])


# -- Redis alone


def connected(server: RedisServer, crawl: bytes = CRAWL, url: str = "") -> Setup:
    return Setup(lambda number: RedisTransport(url or server.url, crawl, number), lambda: None)


@needs("redis")
async def test_two_crawls_in_one_redis_do_not_meet(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    async with connected(redis) as one, connected(redis, crawl=CRAWL[::-1]) as other:
        await one.round(0, {1: b"one"})
        await other.round(0, {1: b"other"})
        assert [await each.round(1) for each in (one, other)] == [(b"one", []), (b"other", [])]


@needs("redis")
async def test_of_what_somebody_wrote_no_more_is_read_than_shards_write(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.command("FLUSHALL")
    monkeypatch.setattr(redis_transport, "MOST_BYTES", 1000)
    redis.command("SETRANGE", f"spiderling:{CRAWL.hex()}:inbox:1", "100000", "z")
    async with connected(redis) as setup:
        assert await setup.round(1) == (bytes(1000), [])
        assert await setup.round(1) == (b"", [])


@needs("redis")
async def test_a_redis_that_goes_away_and_comes_back() -> None:
    with RedisServer() as server:
        async with connected(server) as setup:
            await setup.round(0, {1: b"a"})
            server.kill()
            for _ in range(2):
                with pytest.raises(TransportError, match=f"Redis at {server.socket} does not answer"):
                    await setup.round(0, {1: b"b"})
            server.start()
            await setup.round(0, {1: b"c"})
            assert await setup.round(1) == (b"c", [])


@needs("redis")
async def test_a_redis_that_stands_still_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked of it meanwhile may be done later, by a connection that is no more: that does no harm."""
    with RedisServer() as server:
        async with connected(server) as patient, connected(server) as hasty:
            monkeypatch.setattr(redis_transport, "TIMEOUT_S", 60)
            await patient.round(0, {1: b"a"})
            monkeypatch.setattr(redis_transport, "TIMEOUT_S", 0.2)
            server.pause(True)
            with pytest.raises(TransportError, match="does not answer"):
                await hasty.round(0, {1: b"b"})
            server.pause(False)
            assert (await patient.round(1))[0] in (b"a", b"ab")


@needs("redis")
async def test_a_redis_that_is_full_says_so_also_to_who_adds_nothing() -> None:
    with RedisServer("--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as server:
        async with connected(server) as setup:
            await setup.round(0)
            server.command("SETRANGE", "other", "3000000", "z")
            for outgoing in ({}, {1: b"a"}):
                with pytest.raises(TransportError, match=r"is full .*give it more maxmemory"):
                    await setup.round(0, outgoing)
            server.command("CONFIG", "SET", "maxmemory", "0")
            assert await setup.round(0) == (b"", [])


@needs("redis")
async def test_a_redis_with_a_password() -> None:
    with RedisServer("--requirepass", "s3cret") as server:
        let_in_by = f"unix://:s3cret@{server.socket}"
        async with connected(server) as refused, connected(server, url=let_in_by) as let_in:
            with pytest.raises(TransportError, match=r"refuses us .*password in SPIDERLING_CLUSTER") as caught:
                await refused.round(0, {1: b"a"})
            assert await let_in.round(0, {1: b"a"}) == (b"", [])
            assert "s3cret" not in str(caught.value)
            server.kill()
            with pytest.raises(TransportError, match="does not answer") as caught:
                await let_in.round(0, {1: b"a"})
            assert "s3cret" not in str(caught.value)


@needs("redis")
async def test_only_commands_of_redis_6_2_are_used() -> None:
    with RedisServer() as server:
        async with connected(server) as setup:
            await setup.round(0, {1: b"a"})
            await setup.round(1)
        lines = server.command("INFO", "commandstats").decode().splitlines()
    used = {line.partition(":")[0].removeprefix("cmdstat_") for line in lines if line.startswith("cmdstat_")}
    assert used == {"evalsha", "eval", "del", "append", "strlen", "getrange", "ping"}


@needs("redis")
@pytest.mark.parametrize("url", ["redis", "http://localhost", "redis://localhost/x?socket_timeout=soon", ""])
def test_what_is_no_address_of_a_redis(url: str) -> None:
    with pytest.raises(BadInput, match=r"SPIDERLING_CLUSTER is no address of a Redis.*Give one such as redis://host"):
        RedisTransport(url, CRAWL, 0)
