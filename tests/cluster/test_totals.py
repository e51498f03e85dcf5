"""The totals of a crawl of shards: each knows them a moment later, whatever Redis loses and whoever is killed."""

from __future__ import annotations

from collections import Counter

from example_counts import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spiderling.cluster.totals import SUMMED, TIME, ShardTotals, Totals

SHARDS = 3


def of(pages: int, time_s: int = 0) -> Counter[str]:
    return Counter({**dict.fromkeys(SUMMED, 0), "pages": pages, TIME: time_s})


def test_what_others_have_done_is_added() -> None:
    own = of(5, 10)
    totals = Totals(0, own, {})
    totals.merge({0: of(4), 1: of(7, 10), 2: of(1)}, living={0, 1, 2})
    assert totals.elsewhere()["pages"] == 8
    own["pages"] += 1
    assert totals.to_publish() == {0: of(6, 10)}, "that of others is theirs to say"


def test_a_shard_that_does_not_run_counts_as_it_was_last_known() -> None:
    totals = Totals(0, of(0), {2: of(3)})
    totals.merge({1: of(7)}, living={1})
    totals.merge({}, living=set())
    assert totals.elsewhere()["pages"] == 10
    published = totals.to_publish()
    assert (published[1], published[2]) == (of(7), of(3)), "what Redis has lost is put back"
    totals.merge({1: of(6), 2: of(3)}, living=set())
    assert totals.elsewhere()["pages"] == 10 and set(totals.to_publish()) == {0, 1}, "by somebody who knew less"


def test_the_word_of_a_shard_that_runs_holds_though_it_is_less() -> None:
    totals = Totals(0, of(0), {1: of(7)})
    totals.merge({1: of(5)}, living={1})
    assert totals.elsewhere()["pages"] == 5, "it was killed, and its state had kept less"


def test_the_crawl_runs_while_any_shard_runs() -> None:
    one = of(0, 100)
    first = Totals(0, one, {})
    late = of(0, 0)
    second = Totals(1, late, {})
    for _ in range(10):
        one[TIME] += 1
        late[TIME] += 1
        first.merge(second.to_publish(), {0, 1})
        second.merge(first.to_publish(), {0, 1})
    assert (one + first.elsewhere())[TIME] == (late + second.elsewhere())[TIME] == 110
    late[TIME] += 5  # alone
    second.merge({}, {1})
    assert (late + second.elsewhere())[TIME] == 115
    again = Totals(1, late, second.known)
    assert (late + again.elsewhere())[TIME] == 110, "what was not kept is forgotten"
    assert second.to_publish()[1][TIME] == 115
    assert (late + Totals(1, late, second.known).elsewhere())[TIME] == 115


class Crawl(RuleBasedStateMachine):
    """Shards that work, are killed and forget, and a Redis that loses all."""

    def __init__(self) -> None:
        super().__init__()
        self.redis: ShardTotals = {}
        self.own = [of(0) for _ in range(SHARDS)]
        self.known: list[ShardTotals] = [{} for _ in range(SHARDS)]
        self.running: dict[int, Totals] = {}

    @rule(shard=st.integers(0, SHARDS - 1))
    def start(self, shard: int) -> None:
        if shard not in self.running:
            self.running[shard] = Totals(shard, self.own[shard], self.known[shard])

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
