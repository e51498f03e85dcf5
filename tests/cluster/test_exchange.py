"""Shards on virtual time are killed while their transport loses, repeats and reorders: nothing lost, nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from random import Random

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_transport import Streams

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Link, LinkBatch, gathered
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.cluster import lane
from spiderling.cluster.content import packed
from spiderling.cluster.envelope import Kind, Place, Seal
from spiderling.cluster.exchange import Exchange, page_elsewhere
from spiderling.cluster.transport import Answer, Outgoing, Round, TransportError
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.ranking.linking_page import FarHost, LinkingPage
from spiderling.frontier.storage.memory import MemoryStore
from spiderling.frontier.storage.protocol import Changes

SEAL = Seal(bytes(16), b"the key")
LINKS = 3
"""Links of a page, beside one single URL."""


def digest(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode()) >> 1


class Shard:
    """A process: its memory is lost when it is killed, its store is not.

    It has pages without end, each with URLs of its own; `links` are those of page *number*.
    """

    def __init__(self, me: int, shards: int, store: MemoryStore, streams: Streams) -> None:
        self.me, self.shards, self.store, self.streams = me, shards, store, streams
        self.begin()

    def begin(self) -> None:
        state = self.store.load()
        self.exchange = Exchange(self.me, self.shards, SEAL, self.store)
        self.exchange.restore(state)
        self.pages = json.loads(state.meta.get("pages", "0"))
        self.taken: list[str] = []
        self.batch: Changes | None = None

    def links(self, number: int) -> list[str]:
        return [f"http://host{(number * 7 + at * 5) % 23}.cz/{self.me}/{number}/{at}" for at in range(LINKS + 1)]

    def page(self) -> None:
        *links, single = self.links(self.pages)
        page = LinkingPage(FarHost(self.pages % 3), Reason.KEPT, 1, badness=self.pages % 5)
        own = self.exchange.keep_own(page, gathered(map(Link, links)))
        self.put_links(page, own, 0.0, 0)
        mention = Mention(canonicalize(single), 1, 2, 0, b"payload", b"salt", 1)
        if self.exchange.owns(mention.target.host):
            self.put_found(mention, 0.0)
        else:
            self.exchange.give(mention)
        self.pages += 1

    # what the exchange uses of a frontier

    def put_links(self, page: LinkingPage, links: LinkBatch, now: float, key: int) -> None:
        self.taken += [url for url, _, _ in links.rows()]
        assert all(self.exchange.owns(name) for name in links.hosts) or not key

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


def crawled(shards: int, events: Iterable[tuple[str, int, int]], full_links: int, window: int) -> int:
    """Let *events* happen, then let all come to rest, and compare; returns the number of pages."""
    streams, now = Streams(), 1000.0
    crawl = [Shard(me, shards, MemoryStore(), streams) for me in range(shards)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lane, "FULL_LINKS", full_links)
        patched.setattr(lane, "WINDOW_MESSAGES", window)
        for event, number, seed in events:
            now += seed / 20
            happen(event, crawl[number % shards], streams, now, Random(seed))
            assert all(len(stream.entries) <= window for stream in streams.streams.values()), "Redis is not filled"
        streams.is_away = False
        for _ in range(4 * sum(one.pages for one in crawl) + 10):
            now += lane.MAX_AGE_S
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


@settings(max_examples=150, deadline=None)
@given(
    shards=st.integers(2, 4),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 3), st.integers(0, 99)), max_size=90),
    full_links=st.sampled_from([1, 5, 30]),
    window=st.sampled_from([1, 3, 64]),
)
def test_nothing_is_lost_and_nothing_comes_twice(shards, events, full_links, window):
    crawled(shards, events, full_links, window)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_in_a_long_crawl(seed):
    """What only shows when much is under way: a full window, a stream that was lost in its middle."""
    chance = Random(seed)
    usual = ["checkpoint", "round"] * chance.randrange(1, 8)
    events = [(chance.choice([*EVENTS, *usual]), chance.randrange(4), chance.randrange(100)) for _ in range(800)]
    assert crawled(2 + seed % 3, events, chance.choice([1, 4, 20]), chance.choice([2, 5, 64])) > 100


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


def two(streams: Streams) -> tuple[Shard, Shard]:
    one, other = (Shard(me, 2, MemoryStore(), streams) for me in range(2))
    return one, other


def told(one: Shard, other: Shard, now: float, pages: int = 5) -> None:
    """*one* has pages, and *other* takes what they tell it."""
    for _ in range(pages):
        one.page()
    for moment in (now, now + lane.MAX_AGE_S):
        one.cut(moment)
        one.commit()
    for shard in (one, other, one):
        shard.round(now + lane.MAX_AGE_S)
        shard.cut(now)
        shard.commit()
    other.round(now + lane.MAX_AGE_S)
    one.round(now + lane.MAX_AGE_S)


def test_links_are_gathered_until_the_message_is_full_or_old():
    one, _ = two(Streams())
    for second in range(5):
        one.page()
        one.cut(1000.0 + second)
        one.commit()
        assert one.exchange.waiting() == {1: 1}
        assert one.exchange.ask(1000.0 + second).to[1].entries == [], "it still grows"
    found = one.store.messages(1, 0, 1)
    assert [row.links for row in found] == [one.exchange.counts["links sent"]]
    assert not one.exchange.has_changes
    one.exchange.ask(1005.0)
    assert one.exchange.has_changes, "it is old now"
    one.cut(1005.0)
    one.commit()
    assert len(one.exchange.ask(1005.0).to[1].entries) == 1


def test_a_message_that_was_growing_at_a_kill_is_sent_as_it_is():
    one, _ = two(Streams())
    one.page()
    one.cut(1000.0)
    one.commit(is_killed=True)
    assert [number for number, _ in one.exchange.ask(1000.0).to[1].entries] == [1]


def test_a_shard_that_is_away_does_not_fill_the_transport():
    streams = Streams()
    one, _ = two(streams)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lane, "FULL_LINKS", 1)
        for second in range(200):
            one.page()
            one.cut(1000.0 + second)
            one.commit()
            one.round(1000.0 + second)
    assert len(streams.streams[0, 1].entries) == lane.WINDOW_MESSAGES
    assert one.exchange.waiting()[1] > 2 * lane.WINDOW_MESSAGES
    assert one.store.load().outboxes[1].messages == one.exchange.waiting()[1]


@pytest.mark.parametrize("loser", [0, 1])
def test_a_directory_that_was_put_back_from_a_backup_is_noticed(loser):
    streams = Streams()
    crawl = two(streams)
    told(*crawl, 1000.0)
    backup = deepcopy(crawl[loser].store)
    told(*crawl, 2000.0)
    told(*crawl, 3000.0)
    assert crawl[1].exchange.counts["links taken"]
    crawl[loser].store = backup
    crawl[loser].begin()
    with pytest.raises(JobdirError, match=f"shard {loser} is older than what shard {1 - loser} knows of it"):
        crawl[loser].round(4000.0)


def test_forged_messages_and_receipts_change_nothing():
    streams = Streams()
    one, other = two(streams)
    forger = Exchange(0, 2, Seal(bytes(16), b"another key"), MemoryStore())
    streams.exchange(0, forger.ask(0.0)._replace(to={1: Outgoing(1, [(1, b"\x01" + packed([b"x"]) + bytes(16))])}))
    for _ in range(3):
        other.round(1000.0)
    assert other.exchange.counts == {"messages refused": 3, "receipts refused": 3}
    told(one, other, 2000.0)
    assert one.exchange.waiting() == {}
    assert other.exchange.counts["messages taken"] == 1


def test_a_sealed_message_that_cannot_be_read_is_passed_over():
    streams = Streams()
    _, other = two(streams)
    data = SEAL.sealed(Place(Kind.MESSAGE, 0, 1, 1, 1), b"no zstd")
    streams.exchange(0, Round(1, b"", {1: Outgoing(1, [(1, data)])}, {}))
    other.round(1000.0)
    assert other.exchange.counts == {"messages taken": 1, "messages unreadable": 1, "receipts refused": 1}
    other.cut(1000.0)
    other.commit()
    assert [row.received for row in other.store.load().peers] == [1]


def test_the_url_log_tells_other_shards_from_pages():
    assert [page_elsewhere(shard) for shard in (0, 15)] == [1, 16], "no page has such a key, and 0 is none"
