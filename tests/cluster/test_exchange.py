"""Shards on virtual time are killed while their transport loses, repeats and reorders: nothing lost, nothing twice."""

from __future__ import annotations

import shutil
from random import Random

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_transport import Streams
from shards_on_virtual_time import EVENTS, SEAL, Shard, crawled

from spiderling.base.errors import JobdirError
from spiderling.base.urls import HASH_BITS, page_elsewhere, shard_of_page
from spiderling.cluster import exchange
from spiderling.cluster.content import Seal, pack
from spiderling.cluster.exchange import Round, ShardExchange
from spiderling.frontier.storage.sqlite import SqliteStore


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
    assert one.store.load().outboxes[1].messages == one.exchange.waiting()[1]


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
