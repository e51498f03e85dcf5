"""What was learnt of pages is after a restart what it was at the last commit; where that is damaged, it begins anew."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.base.link_batch import Link, gathered
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier import Frontier
from spiderling.frontier.ranking.strategies import STRATEGIES, Heidix, LinkingPage, parse
from spiderling.frontier.ranking.strategy import NewLinks
from spiderling.frontier.ranking.worth import KEY, LINES, Note, Notes, Worth
from spiderling.frontier.storage.sqlite import SqliteStore

REASONS = (Reason.KEPT, Reason.WRONG_LANGUAGE, Reason.BOILERPLATE_ONLY, Reason.DUPLICATE)
SECTIONS = ("forum", "goods", "cs/news", "en/news", "")


def begun(strategy: str, hosts: int = 9) -> Frontier:
    frontier = Frontier(Options(lang="cs", strategy=strategy), store=SqliteStore())
    for number in range(hosts):
        frontier.put_seed(f"http://h{number}.cz/", 0.0)
    return frontier


def worth_of(frontier: Frontier) -> Worth:
    assert isinstance(frontier.strategy, Heidix)
    return frontier.strategy.worth


def teach(frontier: Frontier, rng: random.Random, pages: int, first: int = 1) -> None:
    for _ in range(pages):
        host, reason = frontier.hosts.by_id(rng.randint(first, 9)), rng.choice(REASONS)
        target = canonicalize(f"http://{host.name}/{rng.choice(SECTIONS)}/{rng.randrange(10**9)}")
        kept = rng.randrange(9000) if reason is Reason.KEPT else 0
        frontier.hosts.count_bytes(host, 1, 30_000, kept)
        assert target is not None
        page = LinkingPage(host, reason, relevant=reason is Reason.KEPT)
        frontier.strategy.learn(page, target, Outcome(1, target.url, reason, 200, body_bytes=30_000, kept_bytes=kept))


def ranks(frontier: Frontier) -> list[int]:
    links = [
        Link(f"http://h{host}.{tld}/{section}/1", score=0.4)
        for host in range(12)
        for section in SECTIONS
        for tld in ("cz", "com")
    ]
    batch = gathered(links)
    for host_id in range(1, 10):
        frontier.hosts.by_id(host_id)  # what is known of a host out of memory is less
    ids = [frontier.hosts.find(name) for name in batch.hosts]
    new = NewLinks(batch, np.arange(batch.size), ids)
    return worth_of(frontier).ranks(LinkingPage(frontier.hosts.by_id(1), Reason.KEPT), new)


@pytest.mark.parametrize("strategy", ["spiderling", "heidix"])
@pytest.mark.parametrize("batches", [1, LINES - 1, LINES, LINES + 1, 3 * LINES + 7])
def test_ranks_are_the_same_after_a_kill(strategy: str, batches: int) -> None:
    frontier, store, rng = begun(strategy), SqliteStore(), random.Random(batches)
    for _ in range(batches):
        teach(frontier, rng, 7)
        store.commit(frontier.drain(0.0))
    former = ranks(frontier)
    teach(frontier, rng, 30)  # of which nothing was committed
    resumed = Frontier(Options(lang="cs", strategy=strategy), store=store)
    resumed.restore(store.load(), 0.0)
    assert ranks(resumed) == former
    assert len(set(former)) > 2
    teach(resumed, random.Random(1), 7)
    store.commit(resumed.drain(0.0))
    again = Frontier(Options(lang="cs", strategy=strategy), store=store)
    again.restore(store.load(), 0.0)
    assert worth_of(again).columns() == worth_of(resumed).columns()


def decided(frontier: Frontier) -> list[object]:
    """What the strategy says of each host, and of the links of a page of each."""
    strategy, found = frontier.strategy, []
    for host_id in range(1, 10):
        host = frontier.hosts.by_id(host_id)
        found.append(
            [strategy.gives_up(host), *(strategy.host_rank(host_id, host.account, head) for head in range(10))]
        )
    for host_id, reason in itertools.product(range(1, 10), REASONS):
        page = LinkingPage(frontier.hosts.by_id(host_id), reason, 3, badness=5.0, pages=frontier.ledger.totals["pages"])
        target = canonicalize(f"http://h{host_id}.cz/{reason.value}")
        batch = gathered([Link(f"http://h{n}.cz/{section}/1", score=0.4) for n in range(12) for section in SECTIONS])
        assert target is not None
        strategy.learn(page, target, Outcome(1, target.url, reason, 200, body_bytes=1, links=batch))
        links = NewLinks(batch, np.arange(batch.size), [frontier.hosts.find(name) for name in batch.hosts])
        found.append(strategy.batch_ranker(page)(links))
    found.append([strategy.is_stale(rank, 10**6) for rank in range(10)])
    return found


@pytest.mark.parametrize("name", [*STRATEGIES, "lswc:s=3,t=5", "cyclic:burn_in=10,phase=10"])
def test_every_strategy_decides_after_a_kill_as_if_there_had_been_none(name: str) -> None:
    """Relevant servers that gave no text (h0 to h2) among them, which the accounts do not tell from others."""
    frontier, store, rng = begun(name), SqliteStore(), random.Random(4)
    for number in range(5):
        teach(frontier, rng, 7, first=4)
        for host_id, reason in itertools.product(range(1, 4), (Reason.DUPLICATE, Reason.WRONG_LANGUAGE)):
            host, target = frontier.hosts.by_id(host_id), canonicalize(f"http://h{host_id - 1}.cz/{number}")
            assert target is not None
            frontier.hosts.count_bytes(host, 1, 30_000, 0)
            frontier.strategy.learn(LinkingPage(host, reason), target, Outcome(1, target.url, reason, 200))
        store.commit(frontier.drain(0.0))
    resumed = Frontier(Options(lang="cs", strategy=name), store=store)
    resumed.restore(store.load(), 0.0)
    assert decided(resumed) == decided(frontier)


@pytest.mark.parametrize("value", ["", "null", '"x"', "{}", "1.5", "[" * 9999, "9" * 9999])
def test_damaged_notes_of_relevant_servers_do_not_stop_a_crawl(value: str) -> None:
    strategy, frontier = parse("lswc"), begun("bfs")
    strategy.begin(frontier.url_states, Options())
    strategy.restore({"relevant servers:0": value, "relevant servers:x": "1", "relevant servers:1": "5"})
    assert [strategy.host_rank(n, frontier.hosts.by_id(1).account, 7) for n in (1, 1024, 1025, 1026)] == [7, 0, 7, 0]


def test_a_batch_holds_its_own_notes_alone_and_the_tables_come_seldom() -> None:
    frontier, rng = begun("spiderling"), random.Random(1)
    sizes = []
    for _ in range(2 * LINES):
        teach(frontier, rng, 64)
        sizes.append({key: len(value) for key, value in frontier.drain(0.0).meta.items() if key.startswith(KEY)})
    assert [KEY in size for size in sizes] == [number % LINES == LINES - 1 for number in range(2 * LINES)]
    assert {len(size) for size in sizes} == {1, 2}
    assert max(size for one in sizes for key, size in one.items() if key != KEY) < 100 * 64
    assert {key for size in sizes for key in size} <= {KEY, *(f"{KEY}:{place}" for place in range(LINES))}
    assert not frontier.drain(0.0).meta


def saved(batches: int) -> dict[str, str]:
    frontier, rng, meta = begun("heidix"), random.Random(1), dict[str, str]()
    for _ in range(batches):
        teach(frontier, rng, 3)
        meta |= frontier.drain(0.0).meta
    return meta


META, SHARED = saved(LINES + 9), begun("heidix")
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=12,
)


@settings(deadline=None, max_examples=examples(30))
@given(st.sampled_from([KEY, f"{KEY}:3", f"{KEY}:8", f"{KEY}:40"]), JSON, st.integers(0, 300))
def test_damage_is_learnt_anew(key: str, value: object, cut: int) -> None:
    line = json.loads(META[key])
    damaged = [json.dumps(value), META[key][:cut], META[key][cut:], "[" * 10_000]
    if isinstance(line, list):
        damaged += [json.dumps([value, line[1]]), json.dumps([line[0], value]), json.dumps([line[0], [value]])]
        damaged += [json.dumps([line[0], [[*line[1][0][: cut % 7], value, *line[1][0][cut % 7 + 1 :]]]])]
    for text in damaged:
        worth_of(SHARED).forget()
        Notes(worth_of(SHARED)).restore(META | {key: text})
        assert all(1 <= rank <= 9 for rank in ranks(SHARED))


def test_after_damage_nothing_old_comes_back() -> None:
    frontier, meta = begun("heidix"), META | {KEY: '"nonsense"'}
    worth_of(frontier).notes.restore(meta)
    assert worth_of(frontier).columns() == worth_of(begun("heidix")).columns()
    for batch in range(3):
        teach(frontier, random.Random(batch), 5)
        meta |= frontier.drain(0.0).meta
        again = begun("heidix")
        worth_of(again).notes.restore(meta)
        assert worth_of(again).columns() == worth_of(frontier).columns()


class OtherTables:
    """Tables of which nothing is true but their columns."""

    def __init__(self, columns: Sequence[bytes]) -> None:
        self._columns = columns

    def take(self, note: Note) -> None:
        """Nothing."""

    def columns(self) -> Sequence[bytes]:
        return self._columns

    def fill(self, columns: Sequence[bytes]) -> None:
        raise AssertionError

    def forget(self) -> None:
        raise AssertionError


def snapshot_of(columns: Sequence[bytes]) -> dict[str, str]:
    """What the store has of tables with these columns."""
    notes, entries = Notes(OtherTables(columns)), dict[str, str]()
    while KEY not in entries:
        notes.add(Note(1, 1, 0.5, 1, 1, None, []))
        entries = notes.entries()
    return {KEY: entries[KEY]}


def test_tables_that_do_not_fit_are_refused() -> None:
    mended = begun("heidix")
    worth = worth_of(mended)
    teach(frontier := begun("heidix"), random.Random(1), 50)
    columns = worth_of(frontier).columns()
    for at, column in enumerate(columns):
        for other in (column[:-1], column[:-8], b"", b"\xff" * len(column), b"\x00" * len(column)):
            bad = [*columns[:at], other, *columns[at + 1 :]]
            Notes(worth).restore(snapshot_of(bad))
            assert len(worth.columns()[1]) <= 36 * 8 and all(1 <= rank <= 9 for rank in ranks(mended))
