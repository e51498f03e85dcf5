"""The same faults over a real Redis, which is killed, emptied and away, with states in real files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from needs import needs
from redis_server import RedisServer
from shards_on_virtual_time import EVENTS, Shard, crawled

from spiderling.cluster.exchange import Answer, Round
from spiderling.frontier.storage.sqlite import SqliteStore

CRAWL = bytes(16)


class RedisStreams:
    """A real server in the place of `Streams`."""

    def __init__(self, server: RedisServer) -> None:
        from spiderling.cluster.redis_transport import RedisTransport

        self._server = server
        self._loop = asyncio.new_event_loop()
        self._connect = lambda me: RedisTransport(server.url, CRAWL, me)
        self._connections: dict[int, RedisTransport] = {}
        self.old_receipts: dict[int, list[bytes]] = {}
        self._is_away = False

    def exchange(self, me: int, asked: Round) -> Answer:
        self.old_receipts.setdefault(me, []).append(asked.receipt)
        if me not in self._connections:
            self._connections[me] = self._connect(me)
        return self._loop.run_until_complete(self._connections[me].exchange(asked))

    def forget_all(self) -> None:
        if not self._is_away:
            self._server.command("FLUSHALL")

    def lose_some(self, chance: Random) -> None:
        """Some streams and receipts are gone, as if by eviction."""
        if not self._is_away:
            for key in self._server.names():
                if chance.random() < 0.4:
                    self._server.command("DEL", key)

    @property
    def is_away(self) -> bool:
        return self._is_away

    @is_away.setter
    def is_away(self, is_away: bool) -> None:
        """A server that comes back has lost everything: it was killed."""
        if is_away and not self._is_away:
            self._server.kill()
        elif self._is_away and not is_away:
            self._server.start()
        self._is_away = is_away

    def longest(self) -> int:
        if self._is_away:
            return 0
        return max((self._server.length(key) for key in self._server.names() if key.count(":") == 3), default=0)

    def close(self) -> None:
        for connection in self._connections.values():
            self._loop.run_until_complete(connection.close())
        self._loop.close()


@needs("redis")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_is_lost_and_nothing_comes_twice_over_a_real_redis(seed: int, tmp_path: Path) -> None:
    with RedisServer() as server:
        streams = RedisStreams(server)
        chance = Random(seed)
        usual = ["checkpoint", "round"] * 4
        events = [(chance.choice([*EVENTS, *usual]), chance.randrange(4), chance.randrange(100)) for _ in range(250)]
        crawl = [
            Shard(me, 2 + seed, streams, lambda me=me: SqliteStore(tmp_path / f"{me}.sqlite")) for me in range(2 + seed)
        ]
        try:
            assert crawled(crawl, events, 5, 3) > 50
        finally:
            streams.close()
