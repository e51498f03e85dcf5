"""What all shards have done together, and when the crawl is over: whatever Redis loses and whoever is killed."""

from __future__ import annotations

from collections import Counter

import pytest
from example_counts import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spiderling.cluster.claims import ShardTotals
from spiderling.cluster.heartbeat import POLLS, SUMMED, TIME, WAIT_MISSING_S, CrawlTotals, ShardReport, Termination

SHARDS = 3


def of(pages: int, time_s: int = 0) -> Counter[str]:
    return Counter({**dict.fromkeys(SUMMED, 0), "pages": pages, TIME: time_s})


def test_the_count_of_a_shard_that_runs_holds_and_of_another_the_largest_that_was_known() -> None:
    own = of(5, 10)
    totals = CrawlTotals(0, own, {2: of(3)})
    totals.merge({0: of(4), 1: of(7, 10), 2: of(1)}, living={0, 1, 2})
    assert totals.elsewhere()["pages"] == 8, "one was killed, and its state had kept less"
    own["pages"] += 1
    assert totals.to_publish() == {0: of(6, 10)}, "that of others is theirs to say"
    totals.merge({}, living=set())
    published = totals.to_publish()
    assert (published[1], published[2]) == (of(7, 10), of(1)), "what Redis has lost is put back"
    totals.merge({1: of(6), 2: of(1)}, living=set())
    assert totals.elsewhere()["pages"] == 8 and totals.to_publish()[1] == of(7, 10), "by somebody who knew less"


def test_the_crawl_has_run_as_long_as_the_shard_that_ran_longest() -> None:
    own = of(0, 100)
    totals = CrawlTotals(0, own, {1: of(0, 70), 2: of(0, 110)})
    assert (own + totals.elsewhere())[TIME] == 110
    own[TIME] += 15  # while the others are away
    totals.merge({}, {0})
    assert (own + totals.elsewhere())[TIME] == 115 == totals.to_publish()[0][TIME]


class Crawl(RuleBasedStateMachine):
    """Shards that work, are killed and forget, and a Redis that loses all."""

    def __init__(self) -> None:
        super().__init__()
        self.redis: ShardTotals = {}
        self.own = [of(0) for _ in range(SHARDS)]
        self.known: list[ShardTotals] = [{} for _ in range(SHARDS)]
        self.running: dict[int, CrawlTotals] = {}

    @rule(shard=st.integers(0, SHARDS - 1))
    def start(self, shard: int) -> None:
        if shard not in self.running:
            self.running[shard] = CrawlTotals(shard, self.own[shard], self.known[shard])

    @rule(shard=st.integers(0, SHARDS - 1), pages=st.integers(1, 9))
    def work(self, shard: int, pages: int) -> None:
        if shard in self.running:
            self.own[shard].update({"pages": pages, TIME: 1})

    def beat(self, shard: int) -> None:
        self.redis.update(self.running[shard].to_publish())
        self.running[shard].merge(dict(self.redis), self.running)
        self.known[shard] = self.running[shard].known

    @rule(shard=st.integers(0, SHARDS - 1))
    def end(self, shard: int) -> None:
        if shard in self.running:
            self.redis.update(self.running[shard].to_publish())
            self.known[shard] = self.running.pop(shard).known

    @rule()
    def lose_redis(self) -> None:
        for shard in self.running:  # else nobody may know what the others know
            self.beat(shard)
        self.redis = {}

    @invariant()
    def all_know_the_same_after_two_beats(self) -> None:
        for shard in [*self.running, *self.running]:
            self.beat(shard)
        sums = {(self.own[shard] + totals.elsewhere())["pages"] for shard, totals in self.running.items()}
        known = {shard for totals in self.running.values() for shard in totals.known} | set(self.running)
        assert sums <= {sum(self.own[shard]["pages"] for shard in known)}


TestCrawl = Crawl.TestCase
TestCrawl.settings = settings(max_examples=examples(60), stateful_step_count=20, deadline=None)


# -- a crawl of shards is over when three whole polls find nothing to do, and not before


def quiet(beat: int, **changes: ShardReport) -> dict[int, ShardReport]:
    """Both shards have nothing to do; *changes*: what `s0` or `s1` says instead."""
    found = {0: ShardReport(beat, True, 3, []), 1: ShardReport(beat, True, 2, [])}
    return found | {int(name[1:]): status for name, status in changes.items()}


OLD = ShardReport(0, True, 2, [])
MORE = [{"s0": ShardReport(beat, True, 4, [])} for beat in range(9)]


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ([{}] * POLLS, True),
        ([{}] * (POLLS - 1), False),
        ([{"s1": OLD}] * 9, False),  # a status that stays the same is no new poll
        ([{"s1": ShardReport(beat, False, 2, [])} for beat in range(9)], False),  # it works
        ([{"s0": ShardReport(beat, True, 3, [1])} for beat in range(9)], False),  # something is under way
        ([{"s0": ShardReport(beat, True, 3, [2])} for beat in range(POLLS)], True),  # but to none that runs
        ([{}, {}, *MORE[2 : 1 + POLLS]], False),  # work between two polls begins them again
        ([{}, {}, *MORE[2 : 2 + POLLS]], True),
    ],
)
def test_three_polls_of_new_statuses_that_find_the_same_end_it(
    changes: list[dict[str, ShardReport]], ends: bool
) -> None:
    ending = Termination(2)
    found = [ending.is_reached(quiet(beat, **change), 0.0) for beat, change in enumerate(changes)]
    assert found == [False] * (len(changes) - 1) + [ends]


def test_a_missing_shard_is_waited_for_but_not_for_ever() -> None:
    ending = Termination(2)
    alone = [{0: ShardReport(beat, True, 9, [1])} for beat in range(12)]
    assert not any(ending.is_reached(one, 0.0) for one in alone[:9])
    assert not ending.is_reached(alone[10], WAIT_MISSING_S - 1)
    assert ending.is_reached(alone[11], WAIT_MISSING_S)
