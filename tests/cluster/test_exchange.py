"""Shards are killed while their transport loses, repeats and reorders: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest
import xxhash
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_transport import FRAME, Inboxes, entries
from needs import needs
from redis_server import RedisServer

from spiderling.base.errors import JobdirError
from spiderling.base.link_batch import Link, LinkBatch, gathered
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS, canonicalize, page_elsewhere, shard_of_page
from spiderling.cluster import exchange, redis_transport
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import ShardExchange, TransportError
from spiderling.frontier.admission import Mention
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import FarHost, LinkingPage
from spiderling.jobdir.snapshots import renumber

SEAL = Seal(bytes(16), b"the key")
LINKS = 3  # links of a page, beside one single URL
PART = 40_000  # bytes that one shard adds to an inbox in a round, at most


def digest(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode()) >> 1


def kept(shard: int, page: int) -> tuple[list[int], np.ndarray]:
    """What a shard tells of its *page*: a digest of its text, and of its paragraphs."""
    return [-1 - digest(f"{shard} {page}")], np.array([digest(f"{shard} {page} {at}") for at in (0, 1)], np.uint64)


class Shard:
    """A process: its memory is lost when it is killed, its store is not.

    It has pages without end, each with URLs of its own; `links` are those of page *number*.
    """

    former = b""  # what its inbox held some time

    def __init__(self, me: int, shards: int, inboxes: Inboxes, opened: Callable[[], SqliteStore] | None = None) -> None:
        """*opened* opens its store as a new process does; None: one in memory."""
        self.me, self.shards, self.inboxes = me, shards, inboxes
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
        self.learnt: list[int] = []
        self.batch: Changes | None = None

    def links(self, number: int) -> list[str]:
        return [f"http://host{(number * 7 + at * 5) % 23}.cz/{self.me}/{number}/{at}" for at in range(LINKS + 1)]

    def page(self, tells: bool = True) -> None:
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
        if tells:
            self.exchange.tell_kept(*kept(self.me, self.pages))
            self.exchange.tell_visit(self.me, digest(f"{self.me} {self.pages} visit"))
        self.pages += 1

    def learn(self, digests: array[int], paragraphs: np.ndarray) -> None:
        self.learnt += [*digests, *paragraphs.tolist()]

    # what the exchange uses of a frontier

    def put_links(self, page: LinkingPage, links: LinkBatch, now: float, key: int) -> None:
        self.taken += [url for url, _, _ in links.rows()]
        assert all(self.exchange.owns(name) for name in links.hosts) and key

    def put_found(self, mention: Mention, now: float) -> None:
        assert (mention.payload, mention.salt, mention.redirects) == (b"payload", b"salt", 1)
        self.taken.append(mention.target.url)

    def put_visits(self, visits: list[list[int]], now: float) -> None:
        self.learnt += [page for _, page in visits]
        assert self.me not in {shard for shard, _ in visits}

    # a checkpoint in its three steps

    def cut(self, now: float) -> None:
        if self.batch is None:
            digests = [*map(digest, self.taken), *self.learnt]
            changes = Changes(meta={"pages": json.dumps(self.pages)}, digests=digests)
            self.batch = self.exchange.drain(changes, now)
            self.taken = []
            self.learnt = []

    def commit(self, is_killed: bool = False) -> None:
        if self.batch is not None:
            self.store.commit(self.batch)
            self.batch = None
            if is_killed:
                self.begin()
            else:
                self.exchange.committed()

    def round(self, now: float, fault: str = "", chance: Random | None = None) -> None:
        outgoing = self.exchange.outgoing(now)
        try:
            if fault == "lost request":
                raise TransportError(fault)
            inbox, full = self.inboxes.exchange(self.me, outgoing, fault != "takes nothing")
            if fault == "lost answer":
                raise TransportError(fault)
        except TransportError:
            self.exchange.refused(outgoing)
            return
        self.exchange.refused(full)
        if chance is not None:
            self.former = chance.choice([inbox, inbox + self.former])
            inbox = distorted(self.former, chance)
        for message in self.exchange.take(inbox, now):
            self.exchange.deliver(message, self, now, self.learn)


def distorted(inbox: bytes, chance: Random) -> bytes:
    """*inbox* with entries lost, repeated, reordered and damaged."""
    found = [one for one in entries(inbox) if chance.random() < 0.8]
    found += [one for one in found if chance.random() < 0.3]
    chance.shuffle(found)
    return b"".join([one[:-1] if chance.random() < 0.1 else one for one in found])


EVENTS = (
    *("page", "page", "page", "cut", "commit", "round", "round", "checkpoint", "checkpoint", "killed commit", "kill"),
    *("lost request", "lost answer", "takes nothing", "distorted", "flush", "lose some", "away"),
)


def crawled(crawl: list[Shard], events: Iterable[tuple[str, int, int]], full_links: int, window: int) -> int:
    """Let *events* happen, then let all come to rest, and compare; returns the number of URLs."""
    inboxes, shards, now = crawl[0].inboxes, len(crawl), 1000.0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exchange, "FULL_LINKS", full_links)
        patched.setattr(exchange, "WINDOW_MESSAGES", window)
        patched.setattr(redis_transport, "INBOX_BYTES", 500 * window)
        for event, number, seed in events:
            now += seed / 20
            happen(event, crawl[number % shards], inboxes, now, Random(seed))
            assert inboxes.longest() <= 500 * window + PART, "Redis is not filled"
        come_to_rest(crawl, now)
    for one in crawl:
        assert one.store.load().outboxes == {}
    found = [url for one in crawl for number in range(one.pages) for url in one.links(number)]
    for one in crawl:
        own = [digest(url) for url in found if one.exchange.owns(canonicalize(url).host)]
        told = [value for other in crawl if other is not one for number in range(other.pages)
                for column in (*kept(other.me, number), [digest(f"{other.me} {number} visit")])
                for value in column]  # fmt: skip
        assert Counter(one.store.load().digests) == Counter(own + told), "what it owns and what others kept, once"
    return len(found)


def happen(event: str, shard: Shard, inboxes: Inboxes, now: float, chance: Random) -> None:
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
        "takes nothing": lambda: shard.round(now, "takes nothing"),
        "distorted": lambda: shard.round(now, chance=chance),
        "flush": inboxes.forget_all,
        "lose some": lambda: inboxes.lose_some(chance),
        "away": lambda: setattr(inboxes, "is_away", not inboxes.is_away),
    }[event]()


def started(shards: int) -> list[Shard]:
    inboxes = Inboxes()
    return [Shard(me, shards, inboxes) for me in range(shards)]


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


def two(inboxes: Inboxes) -> tuple[Shard, Shard]:
    """Both know of each other, and each has answered the other's question."""
    one, other = (Shard(me, 2, inboxes) for me in range(2))
    told(one, other, 500.0, pages=1)
    assert one.exchange.counts["links sent"] == other.exchange.counts["links taken"] > 0
    for shard in (one, other):
        shard.exchange.counts.clear()
    return one, other


def told(one: Shard, other: Shard, now: float, pages: int = 5) -> None:
    """*one* has pages, and *other* takes what they tell it."""
    for _ in range(pages):
        one.page()
    for moment in (now, now + exchange.MAX_AGE_S):
        one.cut(moment)
        one.commit()
    for _ in range(6):
        for shard in (one, other):
            shard.round(now + exchange.MAX_AGE_S)
            shard.cut(now)
            shard.commit()


def numbers(sent: dict[int, bytes]) -> list[int]:
    """Those of the messages to shard 1 in what is *sent* by shard 0."""
    opened = [SEAL.open("inbox:1 0", one[FRAME.size :]) for one in entries(sent.get(1, b""))]
    found = [exchange.Marks._make(exchange.MARKS.unpack_from(one)).number for one in opened]
    return [number for number in found if number]


def test_links_are_gathered_until_the_message_is_full_or_old():
    one, _ = two(Inboxes())
    for second in range(5):
        one.page(tells=False)
        one.cut(1000.0 + second)
        one.commit()
        assert one.exchange.waiting() == {1: 1}
        assert one.exchange.outgoing(1000.0 + second) == {}, "it still grows"
    found = one.store.messages(1, 1, 1)
    assert [row.links for row in found] == [one.exchange.counts["links sent"]]
    assert not one.exchange.has_changes
    one.exchange.outgoing(1005.0)
    assert one.exchange.has_changes, "it is old now"
    one.cut(1005.0)
    one.commit()
    assert numbers(one.exchange.outgoing(1005.0)) == [2]
    one.page()
    for moment in (1006.0, 1006.0 + exchange.TEXTS_AGE_S):
        assert numbers(one.exchange.outgoing(moment)) == []
        one.cut(moment)
        one.commit()
    assert numbers(one.exchange.outgoing(moment)) == [3], "of texts it tells sooner"


def test_a_message_that_was_growing_at_a_kill_is_sent_as_it_is_once_the_other_has_answered():
    one, other = two(Inboxes())
    one.page()
    one.cut(1000.0)
    one.commit(is_killed=True)
    one.round(1000.0)
    assert numbers(one.exchange.outgoing(1000.1)) == []
    for shard in (other, other, one):
        shard.round(1000.1)
    assert numbers(one.exchange.outgoing(1000.1)) == [2]


def test_a_shard_that_has_nothing_to_say_says_nothing():
    one, other = two(Inboxes())
    assert [shard.exchange.outgoing(1e9) for shard in (one, other)] == [{}, {}]


@pytest.mark.parametrize("is_read", [False, True])
def test_a_shard_that_is_away_is_asked_ever_more_seldom_and_its_inbox_is_bounded(is_read):
    """Or its answers are lost."""
    inboxes = Inboxes()
    one, _ = two(inboxes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exchange, "FULL_LINKS", 1)
        patched.setattr(exchange, "WINDOW_MESSAGES", 5)
        sent = []
        for second in range(1000, 2000):
            one.page()
            one.cut(second)
            one.commit()
            said = one.exchange.outgoing(second)
            sent.append((numbers(said), len(said)))
            inboxes.exchange(0, said)
            if is_read:
                inboxes.exchange(1, {})
    assert sorted({number for some, _ in sent for number in some}) == list(range(2, 7)), "the window"
    assert sum(len(some) for some, _ in sent) == 5, "each once"
    assert 15 < sum(number for _, number in sent) < 30
    assert inboxes.longest() < 10_000
    assert one.exchange.waiting()[1] > 1000


def test_a_full_inbox_takes_nothing_until_it_is_emptied():
    inboxes = Inboxes()
    one, other = two(inboxes)
    inboxes.held[1] = bytes(redis_transport.INBOX_BYTES)
    told(one, Shard(1, 2, Inboxes()), 1000.0)
    assert inboxes.longest() == redis_transport.INBOX_BYTES
    inboxes.forget_all()
    told(one, other, 1001.0)
    told(one, other, 1010.0)
    assert one.exchange.waiting() == {} and other.exchange.counts["messages out of order"] == 0


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_an_emptied_transport_has_lost_comes_again(is_lost):
    inboxes = Inboxes()
    one, other = two(inboxes)
    for _ in range(3):
        one.page()
    for moment in (1000.0, 1005.0):
        one.cut(moment)
        one.commit()
    one.round(1005.0)
    if is_lost:
        inboxes.forget_all()
    for second in range(1006, 1020):
        for shard in (one, other):
            shard.round(second)
            shard.cut(second)
            shard.commit()
        if not one.exchange.waiting():
            break
    assert second < 1010 if not is_lost else exchange.RESEND_S < second - 1005 < 12
    assert other.exchange.counts["messages taken"] == 1


@pytest.mark.parametrize("loser", [0, 1])
@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_directory_that_was_put_back_from_a_backup_is_noticed(loser, is_quiet, tmp_path):
    """Before anything is sent: as many messages as the others know of may have been made by then."""
    inboxes = Inboxes()
    path = tmp_path / "crawl" / "state.sqlite"
    path.parent.mkdir()
    crawl = [Shard(me, 2, inboxes, (lambda: SqliteStore(path)) if me == loser else None) for me in range(2)]
    told(*crawl, 1000.0)
    backup = shutil.copytree(path.parent, tmp_path / "backup") / path.name
    told(*crawl, 2000.0)
    told(*crawl, 3000.0)
    assert crawl[1].exchange.counts["links taken"]
    crawl[loser].opened = lambda: SqliteStore(backup)
    crawl[loser].begin()
    for second in () if is_quiet else range(4000, 4100, 5):
        crawl[loser].page()
        crawl[loser].cut(second)
        crawl[loser].commit()
    for number in (loser, 1 - loser, 1 - loser):
        crawl[number].round(4100.0)
    with pytest.raises(JobdirError, match=f"shard {loser} is older than what shard {1 - loser} knows of it"):
        crawl[loser].round(4100.0)


def test_forged_entries_change_nothing():
    inboxes = Inboxes()
    one, other = two(inboxes)
    forger = Shard(0, 2, inboxes)
    forger.exchange = ShardExchange(0, 2, Seal(bytes(16), b"another key"), forger.store)
    for _ in range(3):
        forger.page()
        forger.cut(1000.0)
        forger.commit()
        forger.round(1000.0)
        other.round(1000.0)
    assert other.exchange.counts == {"messages refused": 1}
    told(one, other, 2000.0)
    assert one.exchange.waiting() == {}
    assert other.exchange.counts["messages taken"] == 1


def entry(number: int, data: bytes, place: str = "inbox:1 0", sender: int = 0, seal: Seal = SEAL) -> bytes:
    """As shard 0 would write it for shard 1."""
    sealed = seal.seal(place, exchange.MARKS.pack(number, 0, 0, 0, 0, 0) + data)
    return FRAME.pack(sender, len(sealed)) + sealed


@pytest.mark.parametrize(
    "strange",
    [
        *(b"", b"zz", b"\xff" * 40, bytes(5), bytes(1 << 20), b"9" * 400, entry(1, b"x")[:-1], entry(1, b"x")[:9]),
        *(entry(1, b"x", sender=sender) for sender in (1, 2, 0xFFFF)),
        *(entry(1, b"x", place=place) for place in ("inbox:0 1", "inbox:1 1", "0:1 1", "lease:0")),
        entry(1, b"x", seal=Seal(bytes(range(16)), b"the key")),
        entry(1, b"x", place="inbox:1 2", sender=2),  # a shard that there is not
        FRAME.pack(0, 3) + b"abc",
        FRAME.pack(0, 1 << 31) + b"abc",
        FRAME.pack(0, 20) + SEAL.seal("inbox:1 0", b"abcd"),
    ],
)  # fmt: skip
def test_an_inbox_may_hold_anything(strange):
    other = Shard(1, 2, Inboxes())
    before = entry(7, b"a")
    assert [one.number for one in other.exchange.take(before + strange + entry(8, b"b"), 0.0)][:1] == [7]
    assert other.exchange.counts["messages refused"] == bool(strange)
    assert other.exchange.take(strange, 0.0) == []
    assert [one.data for one in other.exchange.take(entry(8, b"b"), 0.0)] == [b"b"]


def test_a_sealed_message_that_cannot_be_read_is_passed_over():
    other = Shard(1, 2, Inboxes())
    [message] = other.exchange.take(entry(1, b"no zstd"), 0.0)
    assert other.exchange.deliver(message, other, 1000.0, other.learn)
    assert other.exchange.counts == {"messages taken": 1, "messages unreadable": 1}
    other.cut(1000.0)
    other.commit()
    assert [row.received for row in other.store.load().peers] == [1]


def test_the_url_log_tells_other_shards_from_pages():
    assert [page_elsewhere(shard) for shard in (0, 15)] == [1, 16], "no page has such a key, and 0 is none"
    assert [shard_of_page(page_elsewhere(shard)) for shard in (0, 1023)] == [0, 1023]
    assert [shard_of_page(page) for page in (0, 1 << HASH_BITS, -(1 << HASH_BITS))] == [None] * 3


CRAWL = bytes(16)


class RedisInboxes:
    """A real server in the place of `Inboxes`."""

    def __init__(self, server: RedisServer) -> None:
        from spiderling.cluster.redis_transport import RedisTransport

        self._server = server
        self._loop = asyncio.new_event_loop()
        self._connect = lambda me: RedisTransport(server.url, CRAWL, me)
        self._connections: dict[int, RedisTransport] = {}
        self._is_away = False

    def exchange(self, me: int, outgoing: dict[int, bytes], is_emptied: bool) -> tuple[bytes, list[int]]:
        if me not in self._connections:
            self._connections[me] = self._connect(me)
        return self._loop.run_until_complete(self._connections[me].exchange(outgoing, is_emptied))

    def forget_all(self) -> None:
        if not self._is_away:
            self._server.command("FLUSHALL")

    def lose_some(self, chance: Random) -> None:
        """Some inboxes are gone, as if by eviction."""
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
        return max((int(self._server.command("STRLEN", key)[1:]) for key in self._server.names()), default=0)

    def close(self) -> None:
        for connection in self._connections.values():
            self._loop.run_until_complete(connection.close())
        self._loop.close()


class Lasting(Shard):
    """Its disk may be lost: then it goes on from its last snapshot, in a new epoch."""

    def __init__(self, me: int, shards: int, inboxes: Inboxes, directory: Path) -> None:
        self.path = directory / f"{me}.sqlite"
        self.saved: bytes | None = None
        self.received: dict[int, int] = {}
        self.most_pages = self.epoch = 0
        super().__init__(me, shards, inboxes, lambda: SqliteStore(self.path))

    def begin(self) -> None:
        super().begin()
        self.exchange.kept = lambda: self.received

    def page(self) -> None:
        super().page()
        self.most_pages = max(self.most_pages, self.pages)

    def snapshot(self) -> None:
        with closing(sqlite3.connect(":memory:")) as copy:
            with closing(sqlite3.connect(self.path)) as state:
                state.backup(copy)
            self.saved = copy.serialize()
        self.received = {row.shard: row.received for row in self.store.load().peers}

    def lose(self) -> None:
        if self.saved is not None:
            self.store.close()
            self.path.write_bytes(self.saved)
            self.epoch += 1
            with closing(SqliteStore(self.path)) as store:
                renumber(store, [other for other in range(self.shards) if other != self.me], self.epoch)
            self.begin()


@settings(max_examples=examples(60), deadline=None)
@given(
    shards=st.integers(2, 3),
    events=st.lists(
        st.tuples(
            st.sampled_from([*EVENTS, *["snapshot", "lose", "checkpoint", "round", "page"] * 3]),
            st.integers(0, 2), st.integers(0, 99),
        ), max_size=90,
    ),
    full_links=st.sampled_from([1, 5, 30]),
    window=st.sampled_from([1, 3, 64]),
)  # fmt: skip
def test_nothing_that_a_snapshot_has_is_lost_with_a_disk(shards, events, full_links, window):
    """Links of all pages that were read come to their shards; who reads some again tells of no others."""
    with tempfile.TemporaryDirectory() as directory:
        inboxes = Inboxes()
        crawl = [Lasting(me, shards, inboxes, Path(directory)) for me in range(shards)]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(exchange, "FULL_LINKS", full_links)
            patched.setattr(exchange, "WINDOW_MESSAGES", window)
            now = 1000.0
            for event, number, seed in events:
                now += seed / 20
                shard = crawl[number % shards]
                if event in ("snapshot", "lose"):
                    getattr(shard, event)()
                else:
                    happen(event, shard, inboxes, now, Random(seed))
            come_to_rest(crawl, now)
            for one in crawl:
                one.snapshot()
            come_to_rest(crawl, now + 1e6, least=4)
        assert [one.store.load().outboxes for one in crawl] == [{}] * shards, "what snapshots have is forgotten"
        for one in crawl:
            needed, possible = (
                {key for other in crawl for number in range(pages(other)) for key in due(one, other, number)}
                for pages in (lambda other: other.pages, lambda other: other.most_pages)
            )
            assert needed <= {*one.store.load().digests} <= possible
        for one in crawl:
            one.store.close()


def due(one: Shard, other: Shard, number: int) -> list[int]:
    """What *one* learns of page *number* of *other*."""
    found = [digest(url) for url in other.links(number) if one.exchange.owns(canonicalize(url).host)]
    if one is not other:
        texts, paragraphs = kept(other.me, number)
        found += [*texts, *paragraphs.tolist(), digest(f"{other.me} {number} visit")]
    return found


@pytest.mark.parametrize("loser", [0, 1])
def test_a_shard_that_was_taken_over_goes_on_with_the_others(loser, tmp_path):
    """Others send it again what it took since its snapshot; they take its messages, which have other numbers."""
    inboxes = Inboxes()
    one, other = crawl = [Lasting(me, 2, inboxes, tmp_path) for me in range(2)]
    told(one, other, 500.0, pages=2)
    for shard in crawl:
        shard.snapshot()
    told(one, other, 600.0, pages=2)
    assert one.store.load().outboxes == {1: 2}, "it is kept until the next snapshot has it"
    told(one, other, 700.0, pages=2)
    crawl[loser].lose()
    told(one, other, 800.0, pages=5)
    come_to_rest(crawl, 900.0)
    wanted = {key for number in range(one.pages) for key in due(other, one, number)}
    assert wanted <= {*other.store.load().digests}
    for shard in crawl:
        shard.store.close()


def come_to_rest(crawl: list[Shard], now: float, least: int = 0) -> None:
    """Go on until nothing waits, for *least* rounds."""
    crawl[0].inboxes.is_away = False
    for turn in range(4 * sum(one.pages for one in crawl) + 60):
        now += exchange.MAX_AGE_S
        for one in crawl:
            one.commit()
            one.cut(now)
            one.commit()
            one.round(now)
        if turn >= least and not any(one.exchange.waiting() or one.exchange.has_changes for one in crawl):
            break
    assert [one.exchange.waiting() for one in crawl] == [{}] * len(crawl)


@needs("redis")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_is_lost_and_nothing_comes_twice_over_a_real_redis(seed: int, tmp_path: Path) -> None:
    with RedisServer() as server:
        inboxes = RedisInboxes(server)
        chance = Random(seed)
        usual = ["checkpoint", "round"] * 4
        events = [(chance.choice([*EVENTS, *usual]), chance.randrange(4), chance.randrange(100)) for _ in range(250)]
        crawl = [
            Shard(me, 2 + seed, inboxes, lambda me=me: SqliteStore(tmp_path / f"{me}.sqlite")) for me in range(2 + seed)
        ]
        try:
            assert crawled(crawl, events, 5, 3) > 50
        finally:
            inboxes.close()
