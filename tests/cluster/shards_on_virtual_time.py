"""Shards as processes on virtual time, which are killed while their transport fails, and the sum of what they took."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import pytest
import xxhash
from memory_transport import Streams

from spiderling.base.link_batch import Link, LinkBatch, gathered
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.cluster import exchange
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import Answer, ShardExchange, TransportError
from spiderling.frontier.admission import Mention
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import FarHost, LinkingPage

SEAL = Seal(bytes(16), b"the key")
LINKS = 3
"""Links of a page, beside one single URL."""


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
