"""A robots.txt or a licence at another shard's host is fetched by that shard, under its own intervals."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise

import pytest

from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import owner_of
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import MAX_ASKED, PATIENCE_S, ShardExchange, SiteFiles
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import RobotsRequest
from spiderling.frontier.site_files import FileAnswer, SiteFile
from spiderling.frontier.storage.sqlite import SqliteStore

SEAL = Seal(bytes(16), b"the key")
OPTIONS = Options(strategy="bfs", host_interval_s=5.0, optouts="", traps="off")
MINE, THEIRS = (next(f"host{n}.cz" for n in range(99) if owner_of(f"host{n}.cz", 2) == shard) for shard in range(2))
FORBIDS = FileAnswer(200, b"User-agent: *\nDisallow: /")
TARGET = f"http://{THEIRS}/r.txt"


def request(url: str = TARGET, **values) -> RobotsRequest:
    return RobotsRequest(f"http://{MINE}", url, THEIRS, 1, **values)


def two() -> list[SiteFiles]:
    return [SiteFiles(me, lambda host: owner_of(host, 2), SEAL, 7) for me in range(2)]


def test_what_is_asked_for_is_asked_once_and_answered_once():
    mine, theirs = two()
    mine.ask(request(), 3)
    [(asked, distance)] = theirs.take_wanted({0: mine.wanted()})
    assert (asked.url, asked.name, asked.redirects, asked.asker, distance) == (TARGET, THEIRS, 1, (0, 7), 3)
    assert theirs.take_wanted({0: mine.wanted()}) == [] and theirs.answers() == {}
    answer = FileAnswer(200, b"User-agent: *\n\xff", None, 2.5)
    theirs.answer(asked, answer)
    assert [row[:2] for row in mine.wanted()] == [(7, 1)]
    assert mine.take_answer(7, theirs.answers()["file:0:7"]) == (request(), answer) and mine.wanted() == []
    assert theirs.take_wanted({0: mine.wanted()}) == [] and theirs.answers() == {}, "it is forgotten when it is taken"


def test_what_redis_loses_is_said_again_and_a_new_process_asks_anew():
    mine, theirs = two()
    mine.ask(request(), 0)
    [(asked, _)] = theirs.take_wanted({0: mine.wanted()})
    theirs.answer(asked, FileAnswer(404))
    assert theirs.answers() == theirs.answers() != {}
    again = SiteFiles(1, lambda host: owner_of(host, 2), SEAL, 1000)
    [(asked, _)] = again.take_wanted({0: mine.wanted()})
    again.answer(asked, FileAnswer(404))
    [data] = again.answers().values()
    assert mine.take_answer(7, data) is not None


def test_only_some_are_asked_for_at_a_time():
    mine, theirs = two()
    for number in range(MAX_ASKED + 5):
        mine.ask(request(f"{TARGET}?{number}"), 0)
    assert len(theirs.take_wanted({0: mine.wanted()})) == len(mine.wanted()) == MAX_ASKED


def test_an_owner_that_does_not_run_is_not_waited_for_for_ever():
    mine, _ = two()
    mine.ask(request(), 0)
    assert mine.give_up({1}, 0.0) == mine.give_up({0}, PATIENCE_S - 1) == mine.give_up({1}, PATIENCE_S + 1) == []
    assert mine.give_up({0}, 2 * PATIENCE_S) == []
    assert mine.give_up({0}, 2 * PATIENCE_S + 1) == [request()] and mine.wanted() == []


@pytest.mark.parametrize(
    "rows",
    [
        '{"a": 1}',
        "[[1, 1]]",
        "[7]",
        "nonsense",
        '[[1, 1, "x", "ROBOTS", 0, 0]]',
        f'[[1, 1, "http://{MINE}/", "ROBOTS", 0, 0]]',
        f'[["1", 1, "{TARGET}", "ROBOTS", 0, 0]]',
        f'[[1, 1, "{TARGET}", "OTHER", 0, 0]]',
        f'[[1, 1, "{TARGET}", "ROBOTS", 0, []]]',
    ],
)
def test_lists_and_files_that_are_none_are_counted_and_left_alone(rows: str):
    mine, theirs = two()
    with suppress(ValueError):
        assert theirs.take_wanted({0: json.loads(rows)}) == []
        assert theirs.counts["files refused"] == 1
    mine.ask(request(), 0)
    stranger = Seal(bytes(16), b"another key")
    answer = json.dumps({**FORBIDS._asdict(), "body": ""}).encode()
    for data in (SEAL.seal("file:0:7", rows.encode()), answer, stranger.seal("file:0:7", answer)):
        assert mine.take_answer(7, data) is None
    assert mine.counts["files refused"] == 3
    assert mine.take_answer(7, SEAL.seal("file:0:7", answer)) is not None


class Shard:
    """A real frontier, in whose part of the web each page links to the front pages of both hosts."""

    def __init__(self, me: int, web: dict[str, FileAnswer], starts: dict[str, list[tuple[float, int]]]) -> None:
        self.me, self.web, self.starts = me, web, starts
        self.exchange = ShardExchange(me, 2, SEAL, store := SqliteStore())
        self.frontier = Frontier(OPTIONS, store=store, elsewhere=self.exchange)
        self.ends: dict[str, Reason] = {}

    def step(self, now: float) -> None:
        while True:
            fetch = self.frontier.take(now)
            for name in self.frontier.names_wanted():
                self.frontier.resolved(name, (f"192.0.2.{self.me}",), 1e9, now)
            if fetch is None:
                return
            self.starts[fetch.host.name].append((now, self.me))
            self.frontier.started(fetch, now)
            if fetch.robots is not None:
                self.frontier.robots_answered(fetch, self.web.get(fetch.url, FileAnswer(404)), now)
            else:
                links = tuple(Link(f"{fetch.url}{n}") for n in range(3) if fetch.url.endswith("/"))
                outcome = Outcome(fetch.id, fetch.url, Reason.KEPT, 200, body_bytes=9, kept_bytes=5, links=links)
                self.frontier.report(outcome, now)

    def beat(self, other: Shard, now: float) -> None:
        files = self.exchange.files
        for asked, distance in files.take_wanted({other.me: other.exchange.files.wanted()}):
            self.frontier.put_file_request(asked, distance, now)
        for number, *_ in files.wanted():
            if data := other.exchange.files.answers().get(f"file:{self.me}:{number}"):
                self.frontier.file_answered(*files.take_answer(number, data), now)


def crawled(web: dict[str, FileAnswer]) -> tuple[list[Shard], dict[str, list[tuple[float, int]]]]:
    starts: dict[str, list[tuple[float, int]]] = defaultdict(list)
    both = [Shard(me, web, starts) for me in range(2)]
    for shard in both:
        for name in (MINE, THEIRS):
            shard.frontier.put_seed(f"http://{name}/", 1000.0)
    for tenth in range(2000):
        now = 1000.0 + tenth / 10
        for shard in both:
            shard.step(now)
        if tenth % 10 == 0:
            both[0].beat(both[1], now)
            both[1].beat(both[0], now)
    return both, starts


def to(url: str) -> FileAnswer:
    return FileAnswer(301, location=url)


@pytest.mark.parametrize(
    ("web", "reason"),
    [
        ({f"http://{MINE}/robots.txt": to(TARGET), TARGET: FORBIDS}, "forbidden"),
        ({f"http://{MINE}/robots.txt": to(TARGET), TARGET: FileAnswer(404)}, "allowed"),
        ({f"http://{MINE}/robots.txt": to(TARGET), TARGET: to(f"http://{MINE}/2.txt"),
          f"http://{MINE}/2.txt": FORBIDS}, "forbidden"),
        ({f"http://{MINE}/robots.txt": to(TARGET), TARGET: to(TARGET)}, "allowed"),
    ],
)  # fmt: skip
def test_a_robots_txt_that_is_redirected_to_another_shards_host_holds_and_is_asked_by_its_owner(web, reason):
    (mine, theirs), starts = crawled(web)
    assert {shard for _, shard in starts[MINE]} == {0} and {shard for _, shard in starts[THEIRS]} == {1}
    for times in starts.values():
        assert min(later - sooner for (sooner, _), (later, _) in pairwise([*times, (9e9, 0)])) >= 5.0 - 1e-6
    ends = mine.frontier.ledger.ends
    assert bool(ends[Reason.ROBOTS_FORBIDDEN]) == (reason == "forbidden")
    assert bool(ends[Reason.KEPT]) == (reason == "allowed")
    assert theirs.frontier.ledger.ends[Reason.KEPT] == 4, "its own rules have nothing to do with that"
    assert mine.frontier.host(THEIRS) is None and theirs.frontier.host(MINE) is None, "no host has two records"
    assert mine.frontier.is_finished and theirs.frontier.is_finished


def test_a_host_that_is_closed_answers_nothing_and_the_other_is_told_so():
    starts: dict[str, list[tuple[float, int]]] = defaultdict(list)
    shard = Shard(1, {}, starts)
    shard.frontier.host_closing.block_where(lambda name: name == THEIRS)
    shard.frontier.put_seed(f"http://{THEIRS}/", 1000.0)
    mine, _ = two()
    mine.ask(request(), 0)
    mine.ask(request(file=SiteFile.LICENCE), 0)
    for asked, distance in shard.exchange.files.take_wanted({0: mine.wanted()}):
        shard.frontier.put_file_request(asked, distance, 1000.0)
    answers = shard.exchange.files.answers()
    assert [mine.take_answer(int(place[7:]), data)[1] for place, data in answers.items()] == [FileAnswer()] * 2
    assert not starts
