"""One contract, two transports: what a shard adds is read by its receiver in order, and its length is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from memory_transport import MemoryTransport, Streams
from needs import needs
from redis_server import RedisServer

from spiderling.base.errors import BadInput
from spiderling.cluster.exchange import Answer, Round, TransportError

CRAWL = bytes(range(16))
Made = Callable[[int], Any]


class Outgoing(NamedTuple):
    """What becomes of the stream to one shard."""

    messages: list[tuple[int, bytes]]
    acknowledged: int = 0
    is_emptied: bool = False


NOTHING = Outgoing([])


class Setup:
    """A transport for each shard, and the way to make it lose everything."""

    def __init__(self, make: Made, lose: Callable[[], object]) -> None:
        self._make = make
        self.lose = lose
        self._shards: dict[int, Any] = {}

    async def round(
        self, me: int, to: dict[int, Outgoing] | None = None, after: dict[int, int] | None = None
    ) -> Answer:
        """One round of the shard *me*, whose receipt names it."""
        if me not in self._shards:
            self._shards[me] = self._make(me)
        to = to or {}
        messages = {receiver: one.messages for receiver, one in to.items()}
        acknowledged = {receiver: one.acknowledged for receiver, one in to.items()}
        emptied = frozenset((me, receiver) for receiver, one in to.items() if one.is_emptied)
        asked = Round(b"receipt of %d" % me, messages, acknowledged, after or {}, emptied)
        return await self._shards[me].exchange(asked)

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
        streams = Streams()
        made = Setup(lambda me: MemoryTransport(streams, me), streams.forget_all)
    else:
        server = request.getfixturevalue("redis")
        from spiderling.cluster.redis_transport import RedisTransport

        made = Setup(lambda me: RedisTransport(server.url, CRAWL, me), lambda: server.command("FLUSHALL"))
    async with made:
        made.lose()
        yield made


def outgoing(*numbers: int, acknowledged: int = 0, anew: bool = False) -> Outgoing:
    return Outgoing([(number, b"\x00\xff\r\n%d" % number) for number in numbers], acknowledged, anew)


def numbers(answer: Answer) -> list[tuple[int, int]]:
    assert all(message.data == b"\x00\xff\r\n%d" % message.number for message in answer.messages)
    return [(message.sender, message.number) for message in answer.messages]


async def test_messages_are_read_in_order_behind_the_mark(setup: Setup) -> None:
    assert (await setup.round(0, {1: outgoing(1, 2), 2: outgoing(7)})).lengths == {1: 2, 2: 1}
    assert (await setup.round(0, {1: outgoing(3, 12), 2: NOTHING})).lengths == {1: 4, 2: 1}
    assert numbers(await setup.round(1, after={0: 0})) == [(0, 1), (0, 2), (0, 3), (0, 12)]
    assert numbers(await setup.round(1, after={0: 2})) == [(0, 3), (0, 12)]
    assert numbers(await setup.round(1, after={0: 12})) == []
    assert numbers(await setup.round(2, after={0: 6, 1: 0})) == [(0, 7)]


async def test_messages_of_several_senders_come_together(setup: Setup) -> None:
    for sender in (3, 1, 0):
        await setup.round(sender, {2: outgoing(1, 2)})
    found = numbers(await setup.round(2, after={0: 0, 1: 1, 3: 0}))
    assert sorted(found) == [(0, 1), (0, 2), (1, 2), (3, 1), (3, 2)]
    assert [number for sender, number in found if sender == 3] == [1, 2]


async def test_a_message_is_added_once(setup: Setup) -> None:
    await setup.round(0, {1: outgoing(1, 2, 3)})
    assert (await setup.round(0, {1: outgoing(3, 4)})).lengths == {1: -1}
    assert (await setup.round(0, {1: NOTHING})).lengths == {1: 4}
    assert [number for *_, number in numbers(await setup.round(1, after={0: 0}))] == [1, 2, 3, 4]


async def test_what_was_acknowledged_is_taken_out(setup: Setup) -> None:
    await setup.round(0, {1: outgoing(1, 2, 3)})
    assert (await setup.round(0, {1: outgoing(4, acknowledged=2)})).lengths == {1: 2}
    assert [number for *_, number in numbers(await setup.round(1, after={0: 0}))] == [3, 4]
    assert (await setup.round(0, {1: outgoing(acknowledged=4)})).lengths == {1: 0}
    assert (await setup.round(0, {1: outgoing(4, acknowledged=4)})).lengths == {1: -1}, (
        "its number is known all the same"
    )


async def test_a_stream_is_made_anew(setup: Setup) -> None:
    await setup.round(0, {1: outgoing(5, 9)})
    assert (await setup.round(0, {1: outgoing(3, 4, acknowledged=2, anew=True)})).lengths == {1: 2}
    assert [number for *_, number in numbers(await setup.round(1, after={0: 0}))] == [3, 4]


async def test_what_was_lost_shows_in_the_length(setup: Setup) -> None:
    await setup.round(0, {1: outgoing(1, 2)})
    setup.lose()
    answer = await setup.round(0, {1: outgoing(3)}, {1: 0})
    assert (answer.lengths, answer.receipts) == ({1: 1}, {})
    assert (await setup.round(0, {1: outgoing(1, 2, 3, anew=True)})).lengths == {1: 3}


async def test_receipts_of_others(setup: Setup) -> None:
    await setup.round(0)
    await setup.round(2)
    assert (await setup.round(1, after={0: 0, 2: 0, 3: 0})).receipts == {0: b"receipt of 0", 2: b"receipt of 2"}
    assert (await setup.round(0, after={1: 0})).receipts == {1: b"receipt of 1"}


async def test_an_answer_is_bounded(setup: Setup) -> None:
    await setup.round(0, {1: outgoing(*range(1, 60))})
    found = [number for *_, number in numbers(await setup.round(1, after={0: 7}))]
    assert found == list(range(8, 8 + len(found))) and 8 <= len(found) <= 16


# -- Redis alone


def connected(server: RedisServer, crawl: bytes = CRAWL, url: str = "") -> Setup:
    from spiderling.cluster.redis_transport import RedisTransport

    return Setup(lambda number: RedisTransport(url or server.url, crawl, number), lambda: None)


@needs("redis")
async def test_two_crawls_in_one_redis_do_not_meet(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    async with connected(redis) as one, connected(redis, crawl=CRAWL[::-1]) as other:
        await one.round(0, {1: outgoing(1)})
        await other.round(0, {1: outgoing(5)})
        assert [number for *_, number in numbers(await one.round(1, after={0: 0}))] == [1]
        assert [number for *_, number in numbers(await other.round(1, after={0: 0}))] == [5]


@needs("redis")
async def test_a_redis_that_goes_away_and_comes_back() -> None:
    with RedisServer() as server:
        async with connected(server) as setup:
            await setup.round(0, {1: outgoing(1)})
            server.kill()
            for _ in range(2):
                with pytest.raises(TransportError, match=f"Redis at {server.socket} does not answer"):
                    await setup.round(0, {1: outgoing(2)})
            server.start()
            assert (await setup.round(0, {1: outgoing(1, 2, anew=True)})).lengths == {1: 2}


@needs("redis")
async def test_a_redis_that_stands_still_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked of it meanwhile may be done later, by a connection that is no more: that does no harm."""
    from spiderling.cluster import redis_transport

    with RedisServer() as server:
        async with connected(server) as patient, connected(server) as hasty:
            monkeypatch.setattr(redis_transport, "TIMEOUT_S", 60)
            await patient.round(0, {1: outgoing(1)})
            monkeypatch.setattr(redis_transport, "TIMEOUT_S", 0.2)
            server.pause(True)
            with pytest.raises(TransportError, match="does not answer"):
                await hasty.round(0, {1: outgoing(2, 3)})
            server.pause(False)
            assert (await patient.round(0, {1: outgoing(1, 2, 3, 4, anew=True)})).lengths[1] in (4, -1)
            assert (await patient.round(0, {1: NOTHING})).lengths[1] <= 4


@needs("redis")
async def test_a_redis_that_is_full_says_so() -> None:
    with RedisServer("--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as server:
        async with connected(server) as setup:
            with pytest.raises(TransportError, match=r"is full .*give it more maxmemory"):
                await setup.round(0, {1: Outgoing([(number, bytes(100_000)) for number in range(1, 50)])})
            server.command("CONFIG", "SET", "maxmemory", "0")
            assert (await setup.round(0, {1: outgoing(1, anew=True)})).lengths == {1: 1}


@needs("redis")
async def test_a_redis_with_a_password() -> None:
    with RedisServer("--requirepass", "s3cret") as server:
        let_in_by = f"unix://:s3cret@{server.socket}"
        async with connected(server) as refused, connected(server, url=let_in_by) as let_in:
            with pytest.raises(TransportError, match=r"refuses us .*password in SPIDERLING_CLUSTER") as caught:
                await refused.round(0, {1: outgoing(1)})
            assert (await let_in.round(0, {1: outgoing(1)})).lengths == {1: 1}
            assert "s3cret" not in str(caught.value)
            server.kill()
            with pytest.raises(TransportError, match="does not answer") as caught:
                await let_in.round(0, {1: outgoing(2)})
            assert "s3cret" not in str(caught.value)


@needs("redis")
async def test_only_commands_of_redis_6_2_are_used() -> None:
    with RedisServer() as server:
        async with connected(server) as setup:
            await setup.round(0, {1: outgoing(1, anew=True)}, {1: 0})
            await setup.round(0, {1: outgoing(2, acknowledged=1)}, {1: 0})
        lines = server.command("INFO", "commandstats").decode().splitlines()
    used = {line.partition(":")[0].removeprefix("cmdstat_") for line in lines if line.startswith("cmdstat_")}
    assert used == {"evalsha", "eval", "set", "del", "xadd", "xlen", "xtrim", "mget", "xread", "ping"}


@needs("redis")
@pytest.mark.parametrize("url", ["redis", "http://localhost", "redis://localhost/x?socket_timeout=soon", ""])
def test_what_is_no_address_of_a_redis(url: str) -> None:
    from spiderling.cluster.redis_transport import RedisTransport

    with pytest.raises(BadInput, match=r"SPIDERLING_CLUSTER is no address of a Redis.*Give one such as redis://host"):
        RedisTransport(url, CRAWL, 0)
