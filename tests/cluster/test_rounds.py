"""While a crawl runs, its messages come and go by themselves; failures pause it, end it, or are left out next time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from memory_transport import Inboxes, MemoryTransport

from spiderling.base.errors import InternalError, JobdirError, SpiderlingError
from spiderling.base.link_batch import Link, gathered
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import owner_of
from spiderling.cluster import shard as running_shard
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import MAX_AGE_S, ShardExchange
from spiderling.cluster.shard import Rounds
from spiderling.crawl.internal_errors import InternalErrors
from spiderling.frontier import Frontier
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import FarHost, LinkingPage

THEIRS = [name for name in (f"host{number}.cz" for number in range(20)) if owner_of(name, 2) == 1]
DEADLINE_S = 20


class Shard:
    """One of two shards, as its rounds see a crawl; a checkpoint is made by hand."""

    def __init__(self, me: int, inboxes: Inboxes, store: SqliteStore | None = None) -> None:
        self.store = store or SqliteStore()
        self.exchange = ShardExchange(me, 2, Seal(bytes(16), b"k"), self.store)
        self.frontier = Frontier(Options(), store=self.store, elsewhere=self.exchange)
        self.time = 1000.0
        if store is not None:
            self.frontier.restore(store.load(), self.time)
        self.failed: list[SpiderlingError] = []
        self.fail = self.failed.append
        self.errors = InternalErrors(self.failed.append)
        self.woken = 0
        self.is_disk_full = False
        self.transport = MemoryTransport(inboxes, me)
        self.rounds = Rounds(self.exchange, self.transport, self, self.wake)

    def now(self) -> float:
        return self.time

    def wake(self) -> None:
        self.woken += 1

    def learn(self, *told: object) -> None:
        """These shards keep nothing."""

    def find(self, *paths: str) -> None:
        links = gathered(Link(f"http://{THEIRS[0]}/{path}") for path in paths)
        self.frontier.put_links(LinkingPage(FarHost(0), Reason.KEPT), links, self.time)

    def checkpoint(self) -> None:
        for _ in range(2):
            self.store.commit(self.frontier.drain(self.time))
            self.frontier.committed()
            self.time += MAX_AGE_S


@asynccontextmanager
async def running(*shards: Shard) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(shard.rounds.run()) for shard in shards]
    yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for shard in shards:
        await shard.transport.close()


async def until(condition: Callable[[], object]) -> None:
    async def poll() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(poll(), DEADLINE_S)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_shard, "ROUND_S", 0.01)


async def test_a_transport_that_is_away_pauses_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    inboxes = Inboxes()
    one, other = Shard(0, inboxes), Shard(1, inboxes)
    inboxes.is_away = True
    with caplog.at_level(logging.WARNING):
        async with running(one, other):
            await until(lambda: one.rounds.away_since is not None)
            one.find("a")
            one.checkpoint()
            await asyncio.sleep(0.05)
            said = [line for line in caplog.messages if "paused: away, since " in line]
            assert len(said) == 2, "each shard says it once"
            woken = one.woken
            inboxes.is_away = False
            await until(lambda: other.frontier.ledger.discovered == 1)
            assert one.rounds.away_since is None and one.woken > woken
    assert sum("goes on after" in line for line in caplog.messages) == 2


async def test_a_shard_whose_disk_is_full_takes_nothing_and_what_waits_comes_afterwards() -> None:
    inboxes = Inboxes()
    one, other = Shard(0, inboxes), Shard(1, inboxes)
    other.is_disk_full = True
    async with running(one, other):
        one.find("a", "b")
        one.checkpoint()
        await asyncio.sleep(0.05)
        assert other.frontier.ledger.discovered == 0 and one.exchange.waiting() == {1: 1}
        other.is_disk_full = False
        await until(lambda: other.frontier.ledger.discovered == 2)
    assert other.exchange.counts["messages out of order"] == 0


async def test_a_directory_from_a_backup_ends_the_crawl() -> None:
    inboxes = Inboxes()
    one, other = Shard(0, inboxes), Shard(1, inboxes)
    async with running(one, other):
        one.find("a")
        one.checkpoint()
        await until(lambda: other.frontier.ledger.discovered == 1)
        other.checkpoint()
        await until(lambda: not one.exchange.waiting())
    again = Shard(0, inboxes)
    async with running(again, other):
        await until(lambda: again.failed)
    assert isinstance(again.failed[0], JobdirError) and "older than what shard 1 knows" in str(again.failed[0])


async def test_a_message_that_breaks_the_frontier_stops_the_crawl_and_is_left_out_next_time(monkeypatch) -> None:
    inboxes = Inboxes()
    one, other = Shard(0, inboxes), Shard(1, inboxes)
    one.find("a")
    one.checkpoint()

    def broken(*arguments: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(other.frontier, "put_links", broken)
        async with running(one, other):
            await until(lambda: other.failed)
    assert isinstance(other.failed[0], InternalError) and "at message 1 of shard 0" in str(other.failed[0])
    again = Shard(1, inboxes)
    again.frontier.next_fetch.shunned = frozenset({"message 1 of shard 0"})
    async with running(one, again):
        one.find("b")
        one.checkpoint()
        await until(lambda: again.frontier.ledger.discovered == 1)
    assert again.exchange.counts["messages left out"] == 1 and not again.failed
