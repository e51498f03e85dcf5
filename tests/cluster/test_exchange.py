"""Shards are killed while their transport loses, repeats and reorders: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest
import xxhash
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_transport import Streams
from needs import needs
from redis_server import RedisServer

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Link, LinkBatch, gathered
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, canonicalize, page_elsewhere, shard_of_page
from spiderling.cluster import exchange
from spiderling.cluster.content import Seal, pack
from spiderling.cluster.exchange import Answer, Round, ShardExchange, TransportError
from spiderling.frontier.admission import Mention
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import FarHost, LinkingPage

SEAL = Seal(bytes(16), b"the key")
LINKS = 3  # links of a page, beside one single URL


def digest(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode()) >> 1


class Shard:
    """A process: its memory is lost when it is killed, its store is not.

    It has pages without end, each with URLs of its own; `links` are those of page *number*.
    """

    def __init__(self, me: int, shards: int, streams: Streams, opened: Callable[[], SqliteStore] | None = None) -> None:
        """*opened* opens its store as a new process does; None: one in memory."""
        self.me, self.shards, self.streams = me, shards, streams
        memory = SqliteStore()
        self.opened = opened or (lambda: memory)
        self.begin()

    def begin(self) -> None:
        self.store = self.opened()
        state = self.store.load()
        self.exchange = ShardExchange(self.me, self.shards, SEAL, self.store)
        self.exchange.restore(state)
        self.pages = json.loads(state.meta.get("pages", "0"))
        self.taken: list[str] = []
        self.batch: Changes | None = None

    def links(self, number: int) -> list[str]:
        return [f"http://host{(number * 7 + at * 5) % 23}.cz/{self.me}/{number}/{at}" for at in range(LINKS + 1)]

    def page(self) -> None:
        *links, single = self.links(self.pages)
        page = LinkingPage(FarHost(self.pages % 3), Reason.KEPT, 1, badness=self.pages % 5)
        batch = gathered(map(Link, links))
        own = self.exchange.keep_own(page, batch)
        self.taken += [batch.target(at).url for at in (range(batch.size) if own is None else own.tolist())]
        mention = Mention(canonicalize(single), 1, 2, 0, b"payload", b"salt", 1)
        if self.exchange.owns(mention.target.host):
            self.put_found(mention, 0.0)
        else:
            self.exchange.give(mention)
        self.pages += 1

    # what the exchange uses of a frontier

    def put_links(self, page: LinkingPage, links: LinkBatch, now: float, key: int) -> None:
        self.taken += [url for url, _, _ in links.rows()]
        assert all(self.exchange.owns(name) for name in links.hosts) and key

    def put_found(self, mention: Mention, now: float) -> None:
        assert (mention.payload, mention.salt, mention.redirects) == (b"payload", b"salt", 1)
        self.taken.append(mention.target.url)

    # a checkpoint in its three steps

    def cut(self, now: float) -> None:
        if self.batch is None:
            changes = Changes(meta={"pages": json.dumps(self.pages)}, digests=list(map(digest, self.taken)))
            self.batch = self.exchange.drain(changes, now)
            self.taken = []

    def commit(self, is_killed: bool = False) -> None:
        if self.batch is not None:
            self.store.commit(self.batch)
            self.batch = None
            if is_killed:
                self.begin()
            else:
                self.exchange.committed()

    def round(self, now: float, fault: str = "", chance: Random | None = None) -> None:
        asked = self.exchange.ask(now)
        try:
            if fault == "lost request":
                raise TransportError(fault)
            answer = self.streams.exchange(self.me, asked)
            if fault == "lost answer":
                raise TransportError(fault)
        except TransportError:
            return
        if chance is not None:
            answer = distorted(answer, self.streams, chance)
        for message in self.exchange.take_answer(answer):
            self.exchange.deliver(message, self, now)


def distorted(answer: Answer, streams: Streams, chance: Random) -> Answer:
    """*answer* with messages lost, repeated, reordered and damaged, and receipts that are out of date."""
    messages = [one for one in answer.messages if chance.random() < 0.8]
    messages += [one for one in messages if chance.random() < 0.3]
    chance.shuffle(messages)
    messages = [one._replace(data=one.data[:-1]) if chance.random() < 0.1 else one for one in messages]
    receipts = {shard: chance.choice(streams.old_receipts[shard]) for shard in answer.receipts if chance.random() < 0.7}
    return Answer(receipts, answer.lengths, messages)


EVENTS = (
    *("page", "page", "page", "cut", "commit", "round", "round", "checkpoint", "checkpoint", "killed commit", "kill"),
    *("lost request", "lost answer", "distorted", "flush", "lose some", "away"),
)


def crawled(crawl: list[Shard], events: Iterable[tuple[str, int, int]], full_links: int, window: int) -> int:
    """Let *events* happen, then let all come to rest, and compare; returns the number of URLs."""
    streams, shards, now = crawl[0].streams, len(crawl), 1000.0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exchange, "FULL_LINKS", full_links)
        patched.setattr(exchange, "WINDOW_MESSAGES", window)
        for event, number, seed in events:
            now += seed / 20
            happen(event, crawl[number % shards], streams, now, Random(seed))
            assert streams.longest() <= window, "Redis is not filled"
        streams.is_away = False
        for _ in range(4 * sum(one.pages for one in crawl) + 10):
            now += exchange.MAX_AGE_S
            for one in crawl:
                one.commit()
                one.cut(now)
                one.commit()
                one.round(now)
            if not any(one.exchange.waiting() or one.exchange.has_changes for one in crawl):
                break
    assert [one.exchange.waiting() for one in crawl] == [{}] * shards
    for one in crawl:
        assert one.store.load().outboxes == {}
    found = [digest(url) for one in crawl for number in range(one.pages) for url in one.links(number)]
    assert Counter(key for one in crawl for key in one.store.load().digests) == Counter(found)
    for one in crawl:
        own = {digest(url) for other in crawl for number in range(other.pages) for url in other.links(number)
               if one.exchange.owns(canonicalize(url).host)}  # fmt: skip
        assert set(one.store.load().digests) == own, "each has what it owns"

    return len(found)


def happen(event: str, shard: Shard, streams: Streams, now: float, chance: Random) -> None:
    def checkpoint() -> None:
        shard.commit()
        shard.cut(now)
        shard.commit()

    {
        "page": shard.page,
        "cut": lambda: shard.cut(now),
        "commit": shard.commit,
        "checkpoint": checkpoint,
        "killed commit": lambda: shard.commit(is_killed=True),
        "kill": shard.begin,
        "round": lambda: shard.round(now),
        "lost request": lambda: shard.round(now, "lost request"),
        "lost answer": lambda: shard.round(now, "lost answer"),
        "distorted": lambda: shard.round(now, chance=chance),
        "flush": streams.forget_all,
        "lose some": lambda: streams.lose_some(chance),
        "away": lambda: setattr(streams, "is_away", not streams.is_away),
    }[event]()


def started(shards: int) -> list[Shard]:
    streams = Streams()
    return [Shard(me, shards, streams) for me in range(shards)]


@settings(max_examples=examples(150), deadline=None)
@given(
    shards=st.integers(2, 4),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 3), st.integers(0, 99)), max_size=90),
    full_links=st.sampled_from([1, 5, 30]),
    window=st.sampled_from([1, 3, 64]),
)
def test_nothing_is_lost_and_nothing_comes_twice(shards, events, full_links, window):
    crawled(started(shards), events, full_links, window)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_in_a_long_crawl(seed):
    """What only shows when much is under way: a full window, a stream that was lost in its middle."""
    chance = Random(seed)
    usual = ["checkpoint", "round"] * chance.randrange(1, 8)
    events = [(chance.choice([*EVENTS, *usual]), chance.randrange(4), chance.randrange(100)) for _ in range(800)]
    assert crawled(started(2 + seed % 3), events, chance.choice([1, 4, 20]), chance.choice([2, 5, 64])) > 100


def two(streams: Streams) -> tuple[Shard, Shard]:
    one, other = (Shard(me, 2, streams) for me in range(2))
    return one, other


def told(one: Shard, other: Shard, now: float, pages: int = 5) -> None:
    """*one* has pages, and *other* takes what they tell it."""
    for _ in range(pages):
        one.page()
    for moment in (now, now + exchange.MAX_AGE_S):
        one.cut(moment)
        one.commit()
    for shard in (one, other, one):
        shard.round(now + exchange.MAX_AGE_S)
        shard.cut(now)
        shard.commit()
    other.round(now + exchange.MAX_AGE_S)
    one.round(now + exchange.MAX_AGE_S)


def test_links_are_gathered_until_the_message_is_full_or_old():
    one, _ = two(Streams())
    for second in range(5):
        one.page()
        one.cut(1000.0 + second)
        one.commit()
        assert one.exchange.waiting() == {1: 1}
        assert one.exchange.ask(1000.0 + second).messages[1] == [], "it still grows"
    found = one.store.messages(1, 0, 1)
    assert [row.links for row in found] == [one.exchange.counts["links sent"]]
    assert not one.exchange.has_changes
    one.exchange.ask(1005.0)
    assert one.exchange.has_changes, "it is old now"
    one.cut(1005.0)
    one.commit()
    assert len(one.exchange.ask(1005.0).messages[1]) == 1


def test_a_message_that_was_growing_at_a_kill_is_sent_as_it_is():
    one, _ = two(Streams())
    one.page()
    one.cut(1000.0)
    one.commit(is_killed=True)
    assert [number for number, _ in one.exchange.ask(1000.0).messages[1]] == [1]


def test_a_shard_that_is_away_does_not_fill_the_transport():
    streams = Streams()
    one, _ = two(streams)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exchange, "FULL_LINKS", 1)
        for second in range(200):
            one.page()
            one.cut(1000.0 + second)
            one.commit()
            one.round(1000.0 + second)
    assert len(streams.streams[0, 1].entries) == exchange.WINDOW_MESSAGES
    assert one.exchange.waiting()[1] > 2 * exchange.WINDOW_MESSAGES
    assert len(one.store.messages(1, 0, 1 << 40)) == one.exchange.waiting()[1]


@pytest.mark.parametrize("loser", [0, 1])
def test_a_directory_that_was_put_back_from_a_backup_is_noticed(loser, tmp_path):
    crawl = two(Streams())
    path = tmp_path / "crawl" / "state.sqlite"
    path.parent.mkdir()
    crawl[loser].opened = lambda: SqliteStore(path)
    crawl[loser].begin()
    told(*crawl, 1000.0)
    backup = shutil.copytree(path.parent, tmp_path / "backup") / path.name
    told(*crawl, 2000.0)
    told(*crawl, 3000.0)
    assert crawl[1].exchange.counts["links taken"]
    crawl[loser].opened = lambda: SqliteStore(backup)
    crawl[loser].begin()
    with pytest.raises(JobdirError, match=f"shard {loser} is older than what shard {1 - loser} knows of it"):
        crawl[loser].round(4000.0)


def test_forged_messages_and_receipts_change_nothing():
    streams = Streams()
    one, other = two(streams)
    forger = ShardExchange(0, 2, Seal(bytes(16), b"another key"), SqliteStore())
    streams.exchange(0, forger.ask(0.0)._replace(messages={1: [(1, b"\x01" + pack([b"x"]) + bytes(16))]}))
    for _ in range(3):
        other.round(1000.0)
    assert other.exchange.counts == {"messages refused": 1, "receipts refused": 3}, "the stream was emptied"
    told(one, other, 2000.0)
    assert one.exchange.waiting() == {}
    assert other.exchange.counts["messages taken"] == 1


def test_a_sealed_message_that_cannot_be_read_is_passed_over():
    streams = Streams()
    _, other = two(streams)
    data = SEAL.seal("0:1 1", b"no zstd")
    streams.exchange(0, Round(b"?", {1: [(1, data)]}, {1: 0}, {}))
    other.round(1000.0)
    assert other.exchange.counts == {"messages taken": 1, "messages unreadable": 1, "receipts refused": 1}
    other.cut(1000.0)
    other.commit()
    assert [row.received for row in other.store.load().peers] == [1]


def test_the_url_log_tells_other_shards_from_pages():
    assert [page_elsewhere(shard) for shard in (0, 15)] == [1, 16], "no page has such a key, and 0 is none"
    assert [shard_of_page(page_elsewhere(shard)) for shard in (0, 1023)] == [0, 1023]
    assert [shard_of_page(page) for page in (0, 1 << HASH_BITS, -(1 << HASH_BITS))] == [None] * 3


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
