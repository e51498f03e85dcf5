"""Ranks drawn: as often as promised, and the same under one seed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import VirtualCrawl, page

from spiderling.base.link_batch import Link
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import Host, HostState, HostStates
from spiderling.frontier.ranking.strategy import Draw
from spiderling.frontier.scheduling.backlog import Backlog
from spiderling.frontier.scheduling.workbench import Workbench

RANKS_WAITED_IN = st.lists(st.integers(0, 9), min_size=1, unique=True).map(sorted)


@pytest.mark.parametrize(("power", "shares"), [(1.0, (6 / 11, 3 / 11, 2 / 11)), (0.0, (1 / 3,) * 3), (math.inf, (1,))])
def test_probability_is_inversely_proportional_to_the_rank(power: float, shares: tuple[float, ...]) -> None:
    draw = Draw(power, seed=7)
    counts = Counter(draw([0, 1, 2]) for _ in range(20_000))
    assert [counts[rank] / 20_000 for rank in range(len(shares))] == pytest.approx(shares, abs=0.015)


def test_same_seed_same_draws() -> None:
    first, second, other = ([draw([0, 3, 9]) for _ in range(50)] for draw in (Draw(1, 1), Draw(1, 1), Draw(1, 2)))
    assert first == second != other


@given(st.sampled_from([0.0, 1.0, 3.0, math.inf]), st.lists(RANKS_WAITED_IN, max_size=300))
def test_only_what_is_waited_in_is_drawn(power: float, calls: list[list[int]]) -> None:
    draw = Draw(power, 1)
    assert all(draw(ranks) in ranks for ranks in calls)


def hosts(*ranks: int) -> tuple[list[Host], HostStates]:
    states = HostStates()
    for rank in ranks:
        states.add_host(HostState.EXHAUSTED, 0, rank=rank)
    return [Host(number + 1, f"h{number}.cz", states) for number in range(len(ranks))], states


def test_workbench_gives_the_best_of_those_that_are_due() -> None:
    (poor, rich, later), states = hosts(9, 2, 0)
    bench = Workbench(min, lambda host: states.ranks[host.id])
    for host, due in ((poor, 1.0), (rich, 2.0), (later, 50.0)):
        host.due, host.place = due, host.name
        bench.add_host(host, host.name)
    assert bench.pop(10.0) == (rich, rich.name)
    assert bench.next_due() == 1.0
    assert bench.pop(10.0) == (poor, poor.name)
    assert bench.pop(10.0) is None
    assert bench.pop(50.0) == (later, later.name)


def test_backlog_gives_the_best_and_those_that_became_better_once() -> None:
    ranks = {1: 9, 2: 5, 3: 5}
    backlog = Backlog(rank_of=ranks.__getitem__)
    for host_id in ranks:
        backlog.push(host_id, 0.0, 0.0)
    ranks[1] = 1
    backlog.push(1, 0.0, 0.0)
    assert backlog.best_rank() == 1
    assert [backlog.pop(0.0) for _ in range(4)] == [1, 2, 3, None]
    assert backlog.best_rank() == 10


def test_better_hosts_come_first_and_all_others_after_them() -> None:
    """Room for one request at a time, and few places."""
    good, bad = [f"http://g{n}.cz/" for n in range(6)], [f"http://b{n}.cz/" for n in range(6)]
    links = [f"{base}{n}" for base in (*bad, *good) for n in range(20)]
    web = {link: page() for link in links}
    web["http://s.cz/bad"] = page(*links[:120], reason=Reason.WRONG_LANGUAGE, kept_bytes=0)
    web["http://s.cz/good"] = page(*(Link(link, True) for link in links[120:]))
    crawl = VirtualCrawl(web, strategy="soft", active_hosts=3).run("http://s.cz/bad", "http://s.cz/good")
    fetched = [url for url in crawl.fetched() if "/s.cz" not in url]
    assert len(fetched) == 240
    assert sum("/g" in url for url in fetched[:120]) > 80
