"""No more hosts are opened, which costs the files of their sites, than will be read soon."""

from __future__ import annotations

from collections import deque

import pytest
from virtual_crawl import Answer, VirtualCrawl, page, to

from spiderling.base.reasons import Reason
from spiderling.frontier import throttle
from spiderling.frontier.hosts import RANKS, Host, HostStates, RobotsRequest, YieldAccount
from spiderling.frontier.throttle import Opened
from spiderling.frontier.workbench import BURST, LONGEST_UNOPENED_S, Workbench

FEW = throttle.FEW_OPENED


def host_of(number: int, pages: int = 0, needs_file: bool = True) -> Host:
    account = YieldAccount(pages=pages)
    return Host(number, f"h{number}.cz", HostStates(), account=account, needs_file=needs_file)


def test_hosts_count_for_their_rank_and_all_worse_ones() -> None:
    opened = Opened(lambda: 5.0)
    hosts = [host_of(number) for number in range(FEW)]
    for host in hosts:
        opened.note(host, 3)
    assert [opened.has_room(rank) for rank in range(RANKS)] == [rank < 3 for rank in range(RANKS)]
    opened.note(hosts[0], 5)
    assert [opened.has_room(rank) for rank in range(RANKS)] == [rank < 5 for rank in range(RANKS)]
    opened.note(hosts[0], None)
    opened.note(hosts[0], None)
    assert all(map(opened.has_room, range(RANKS)))


@pytest.mark.parametrize(("a_second", "enough"), [(1, FEW), (120, 200)])
def test_a_fast_crawl_may_open_more(a_second: int, enough: int) -> None:
    """As many as its requests open in an interval of five seconds, by three requests each."""
    opened = Opened(lambda: 5.0)
    for number in range(600 * a_second):
        opened.count_request(number / a_second)
    number = 0
    while opened.has_room(0):
        opened.note(host_of(number), 0)
        number += 1
    assert number == pytest.approx(enough, rel=0.05)


def test_room_follows_the_rate_of_requests_at_once() -> None:
    opened = Opened(lambda: 5.0)
    for number in range(FEW):
        opened.note(host_of(number), 0)
    assert not opened.has_room(0)
    for number in range(12_000):
        opened.count_request(number / 200)
    assert opened.has_room(0)


class Bench(Workbench):
    """A workbench on which hosts may be opened while ``room`` says so."""

    def __init__(self) -> None:
        super().__init__(most=0.1, may_open=lambda rank: self.room)
        self.room = False


@pytest.mark.parametrize("late", [host_of(1, pages=1), host_of(1, needs_file=False)])
def test_only_unopened_hosts_wait_for_room(late: Host) -> None:
    bench = Bench()
    bench.add_host(host_of(0), "10.0.0.0")
    late.due = 7.0
    bench.add_host(late, "10.0.0.1")
    assert bench.pop(6.0) is None
    assert bench.next_due() == 7.0
    assert bench.pop(7.0) == (late, "10.0.0.1")
    assert bench.pop(8.0) is None
    bench.room = True
    assert bench.next_due() == 0.0
    assert bench.pop(8.0) is not None


def test_unopened_host_is_opened_after_ten_minutes_in_any_case() -> None:
    bench = Bench()
    bench.add_host(host_of(0), "10.0.0.0")
    assert bench.pop(1.0) is None
    assert bench.next_due() == LONGEST_UNOPENED_S
    assert bench.pop(LONGEST_UNOPENED_S - 1) is None
    assert bench.pop(LONGEST_UNOPENED_S) is not None


def test_groups_over_their_share_wait_for_all_others_and_not_for_room() -> None:
    bench = Bench()
    for _ in range(2 * BURST):
        bench.shares.charge(0, "10.0.0.0")
    bench.add_host(host_of(0), "10.0.0.0")
    assert bench.pop(1.0) is not None


def test_a_file_that_another_host_waits_for_needs_no_room() -> None:
    host = host_of(0)
    assert host.is_unopened
    request = RobotsRequest("http://other.cz", "http://h0.cz/robots.txt", "h0.cz", redirects=1)
    host.robots_requests = deque([request])
    assert not host.is_unopened


@pytest.mark.parametrize("answer", [page(transit_s=3.0), Answer(status=0), to("http://n0.cz/other")])
def test_a_crawl_opens_the_next_host_when_the_first_page_is_asked_for(monkeypatch, answer) -> None:
    monkeypatch.setattr(throttle, "FEW_OPENED", 1)
    monkeypatch.setattr(throttle, "FILES", 10**9)
    seeds = [f"http://n{number}.cz/" for number in range(3)]
    crawl = VirtualCrawl({seed: page() for seed in seeds} | {seeds[0]: answer, "http://n0.cz/other": page()})
    crawl.run(seeds[0], until=crawl.now + 1.0)
    crawl.run(*seeds[1:], until=crawl.now + 3.0)
    assert crawl.robots_fetched() == ["http://n0.cz/robots.txt"]
    crawl.run()
    first = [start.url for start in crawl.starts if start.url.endswith((".cz/", "robots.txt"))][:3]
    assert first[:2] == ["http://n0.cz/robots.txt", seeds[0]]
    asked = next(start.time for start in crawl.starts if start.url == seeds[0])
    opened = next(start.time for start in crawl.starts if start.url == "http://n1.cz/robots.txt")
    assert opened < asked + 1.0, "its answer is not waited for"
    assert crawl.ends[Reason.KEPT] >= 2
    assert not crawl.frontier.ledger.balance.waiting
