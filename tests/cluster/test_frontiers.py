"""Real frontiers as shards of one crawl, killed again and again: together they fetch what one frontier fetches."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from memory_transport import Inboxes

from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, owner_of
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import MAX_AGE_S, ShardExchange
from spiderling.frontier import Frontier
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.sqlite import SqliteStore

HOSTS, PAGES = 20, 8
SEEDS = [f"http://host{host}.cz/0" for host in range(4)]
OPTIONS = Options(strategy="bfs", host_interval_s=1.0, optouts="", traps="off", max_distance=50)


def links(host: int, page: int) -> list[str]:
    """Most links lead to other hosts; some have a port, some are too long, some are of no page."""
    places = [(host, page + 1), (host + page, page * 5 + 1), (host * 3 + 1, page + 2), (7, 7), (host, page)]
    urls = [f"http://host{one % HOSTS}.cz/{number % PAGES}" for one, number in places]
    return [
        *urls,
        f"http://host{(host + 1) % HOSTS}.cz:443/{page % 3}",
        f"http://host{page}.cz/{'x' * 600}",
        "mailto:a@b.cz",
    ]


class Shard:
    """One process; `me` None: the whole crawl."""

    def __init__(self, me: int | None, shards: int, store: SqliteStore, inboxes: Inboxes, fetched: list[str]) -> None:
        self.me, self.shards, self.store, self.inboxes, self.fetched = me, shards, store, inboxes, fetched
        self.now = 1000.0
        self.begin()

    def begin(self) -> None:
        state = self.store.load()
        self.exchange = (
            None if self.me is None else ShardExchange(self.me, self.shards, Seal(bytes(16), b"k"), self.store)
        )
        self.frontier = Frontier(OPTIONS, store=self.store, elsewhere=self.exchange)
        self.pending: list[str] = []
        if state.counts:
            self.frontier.restore(state, self.now)
        for seed in SEEDS:
            self.frontier.put_seed(seed, self.now)

    def fetch(self, number: int) -> int:
        """Fetch up to *number* pages; returns how many were due."""
        done = 0
        while done < number:
            fetch = self.frontier.take(self.now)
            for name in self.frontier.names_wanted():
                self.frontier.resolved(name, (f"192.0.2.{len(name)}",), 1e9, self.now)
            if fetch is None:
                due = self.frontier.next_due()
                if due is None:
                    break
                self.now = max(self.now, due)
            elif fetch.robots is not None:
                self.frontier.started(fetch, self.now)
                self.frontier.robots_answered(fetch, FileAnswer(404), self.now)
            else:
                self.page(fetch)
                done += 1
        return done

    def page(self, fetch) -> None:
        self.frontier.started(fetch, self.now)
        target = canonicalize(fetch.url)
        host, page = int(target.host.removeprefix("host").partition(".")[0]), int(target.path[1:])
        self.pending.append(fetch.url if fetch.payload is None else f"{fetch.url} {fetch.payload!r}")
        if self.me is not None:
            assert owner_of(target.host, self.shards) == self.me, "a shard asks its own hosts alone"
        if page % 5 == 4:
            to = f"http://host{(host + 5) % HOSTS}.cz/{page - 1}"
            outcome = Outcome(fetch.id, fetch.url, Reason.REDIRECTED, 301, redirect_to=to)
        else:
            found = tuple(Link(url, text_block=at % 2 == 0) for at, url in enumerate(links(host, page)))
            outcome = Outcome(fetch.id, fetch.url, Reason.KEPT, 200, body_bytes=900, kept_bytes=300, links=found)
        if page % 4 == 1 and fetch.payload is None:
            self.frontier.put_request(f"http://host{(host + 3) % HOSTS}.cz/{page}", b"of %d" % host, b"\0%d" % host,
                                      fetch.url, self.now)  # fmt: skip
        self.frontier.report(outcome, self.now)

    def checkpoint(self, is_killed: bool = False) -> None:
        self.store.commit(self.frontier.drain(self.now))
        self.fetched += self.pending
        self.pending = []
        if is_killed:
            self.begin()
        else:
            self.frontier.committed()

    def round(self) -> None:
        if self.exchange is not None:
            self.now += MAX_AGE_S
            inbox, _ = self.inboxes.exchange(self.me, self.exchange.outgoing(self.now))
            for message in self.exchange.take(inbox, self.now):
                self.exchange.deliver(message, self.frontier, self.now, lambda *told: None)

    @property
    def is_idle(self) -> bool:
        return self.frontier.is_finished and not (self.exchange is not None and self.exchange.waiting())


def crawled(shards: list[Shard], inboxes: Inboxes, chance: Random, faults: float) -> None:
    for _ in range(3000):
        for shard in shards:
            shard.fetch(chance.randrange(1, 9))
            if chance.random() < faults:
                shard.begin()
            shard.checkpoint(chance.random() < faults)
            if chance.random() < faults / 2:
                inboxes.forget_all()
            shard.round()
        if all(shard.is_idle for shard in shards) and not any(shard.frontier.has_changes for shard in shards):
            return
    raise AssertionError("the crawl does not end")


def whole() -> list[str]:
    inboxes, fetched = Inboxes(), []
    alone = Shard(None, 1, SqliteStore(), inboxes, fetched)
    crawled([alone], inboxes, Random(1), 0.0)
    return fetched


@pytest.mark.parametrize(
    ("shards", "faults"), [(1, 0.0), (2, 0.0), (3, 0.2), pytest.param(4, 0.4, marks=pytest.mark.slow)]
)
def test_shards_fetch_together_what_one_crawl_fetches(shards, faults):
    inboxes, fetched = Inboxes(), []
    crawl = [Shard(me, shards, SqliteStore(), inboxes, fetched) for me in range(shards)]
    crawled(crawl, inboxes, Random(shards), faults)
    expected = whole()
    assert len(expected) > 100 and [url for url in expected if "of" in url]
    assert Counter(fetched) == Counter(expected)
    for shard in crawl:
        assert shard.frontier.ledger.balance.error == 0
        names = [name for columns in shard.store.host_columns() for name in columns.names]
        assert names and all(owner_of(name, shards) == shard.me for name in names), "no host has two records"
    distances = {name: distance for shard in crawl for columns in shard.store.host_columns()
                 for name, distance in zip(columns.names, columns.distances, strict=True)}  # fmt: skip
    assert len(distances) == HOSTS and max(distances.values()) <= 2


def test_what_another_shard_found_says_so() -> None:
    inboxes, fetched = Inboxes(), []
    crawl = [Shard(me, 2, SqliteStore(), inboxes, fetched) for me in range(2)]
    crawled(crawl, inboxes, Random(1), 0.0)
    for shard in crawl:
        assert shard.exchange.counts["links taken"] == crawl[1 - shard.me].exchange.counts["links sent"] > 0
