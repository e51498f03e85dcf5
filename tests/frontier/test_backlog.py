"""More hosts than places: each is served, what is in memory stays bounded, and politeness is forgotten by nobody."""

from __future__ import annotations

import tracemalloc

import pytest
from virtual_crawl import Answer, VirtualCrawl, page

from spiderling.base.link_batch import Link
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import HostState
from spiderling.frontier.strategy import LinkingPage
from spiderling.frontier.workbench import Backlog

PLACES = 4


def sites(number: int, pages: int) -> dict[str, Answer]:
    return {f"http://h{host}.cz/{n}": page() for host in range(number) for n in range(pages)}


def crawl_with_checkpoints(crawl: VirtualCrawl, *seeds: str, every_s: float = 20.0, restarts: bool = False) -> int:
    """Run to the end with a checkpoint now and then; returns the most hosts that were in memory after one."""
    most = 0
    for url in seeds:
        crawl.frontier.put_seed(url, crawl.now)
    for number in range(5000):
        crawl.commit()
        most = max(most, len(crawl.frontier.hosts.in_memory()))
        if restarts and number % 7 == 3:
            crawl.kill_and_resume()
        if crawl.frontier.is_finished:
            return most
        crawl.run(until=crawl.now + every_s)
    raise AssertionError(f"{crawl.frontier.ledger.waiting} URLs wait for ever")


@pytest.mark.parametrize("restarts", [False, True])
def test_every_host_is_served_and_few_are_in_memory(restarts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spiderling.frontier.storage.queues.FLUSH_URLS", 40)
    web = sites(60, 5)
    crawl = VirtualCrawl(web, active_hosts=PLACES)
    most = crawl_with_checkpoints(crawl, *web, restarts=restarts)
    assert crawl.ends == {Reason.KEPT: len(web)}
    assert most <= (60 if restarts else 2 * PLACES), "places, and those that rest until the store knows them"
    if not restarts:  # else pages are fetched again, and intervals counted anew
        assert sorted(crawl.fetched()) == sorted(web)
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_endless_hosts_hold_no_place_for_ever() -> None:
    """Four hosts with hundreds of URLs each have all places; the small ones get theirs all the same."""
    large, small = sites(4, 400), {f"http://small{n}.cz/": page() for n in range(20)}
    crawl = VirtualCrawl(large | small, active_hosts=PLACES)
    crawl.run(*large, until=crawl.now + 30)
    crawl.run(*small, until=crawl.now + 1000)
    assert set(small) <= set(crawl.fetched())
    assert len(crawl.fetched()) < 900, "while the large ones still wait"


def test_new_urls_of_a_host_on_disk_wake_it_and_find_its_record() -> None:
    crawl = VirtualCrawl({**sites(6, 2), "http://h0.cz/later": page()}, active_hosts=2)
    crawl_with_checkpoints(crawl, *sites(6, 2))
    crawl.commit()
    assert crawl.frontier.hosts.in_memory() == []
    crawl.run("http://h0.cz/later", "http://h0.cz/1")
    assert crawl.ends == {Reason.KEPT: 13}
    assert crawl.mentions == {Reason.SEEN: 1}
    assert crawl.host("h0.cz").account.pages == 3
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_host_on_disk_is_blocked_when_its_turn_comes() -> None:
    web = sites(8, 3)
    crawl = VirtualCrawl(web, active_hosts=1)
    for url in web:
        crawl.frontier.put_seed(url, crawl.now)
    crawl.commit()
    crawl.frontier.host_closing.block_where(lambda name: name in ("h0.cz", "h7.cz"))
    crawl.run()
    assert crawl.ends == {Reason.KEPT: 18, Reason.HOST_BLOCKED: 6}
    assert crawl.fetched("h0.cz") == crawl.fetched("h7.cz") == []
    assert crawl.frontier.hosts.states.hosts_by_state() == {HostState.EXHAUSTED: 6, HostState.BLOCKED: 2}


def test_full_queue_gives_up_the_lowest_rank_first() -> None:
    web = {f"http://a.cz/{name}{n}": page() for name in ("poor", "kept") for n in range(4)}
    crawl = VirtualCrawl(web, max_host_queue=4)
    crawl.frontier.put_seed("http://z.cz/", crawl.now)
    for verdict, name, number in (
        (Reason.WRONG_LANGUAGE, "poor", 4), (Reason.KEPT, "kept", 3), (Reason.WRONG_LANGUAGE, "poorer", 4),
    ):  # fmt: skip
        links = [Link(f"http://a.cz/{name}{n}") for n in range(number)]
        crawl.frontier.put_links(LinkingPage(crawl.host("z.cz"), verdict), links, crawl.now)
    assert crawl.ends == {Reason.HOST_FULL: 7}
    crawl.run()
    assert [url.rpartition("/")[2] for url in crawl.fetched("a.cz")] == ["kept0", "kept1", "kept2", "poor3"]


def test_order_of_the_backlog() -> None:
    backlog = Backlog()
    for host_id, due in ((1, 0.0), (2, 500.0), (3, 0.0)):
        backlog.push(host_id, due, now=100.0)
    assert len(backlog) == 3
    assert [backlog.pop(100.0), backlog.next_due(), backlog.pop(100.0)] == [1, 0.0, 3]
    assert (backlog.pop(100.0), backlog.next_due()) == (None, 500.0)
    assert backlog.pop(500.0) == 2
    assert (len(backlog), backlog.next_due()) == (0, None)


def test_the_backlog_forgets_who_has_left_it() -> None:
    backlog = Backlog()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for host_id in range(50_000):
        backlog.push(host_id, 0.0, 0.0)
        assert backlog.pop(0.0) == host_id
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000, "the ids alone have 200,000 bytes"


def test_preferred_hosts_get_three_of_four_turns_and_nobody_starves() -> None:
    backlog = Backlog(lambda host_id: host_id >= 100)
    for host_id in (1, 2, 3, *range(100, 106)):
        backlog.push(host_id, 0.0, 0.0)
    order = [backlog.pop(0.0) for _ in range(9)]
    assert order == [100, 101, 102, 1, 103, 104, 105, 2, 3]
    assert backlog.pop(0.0) is None


@pytest.mark.parametrize("restarts", [False, True])
def test_hosts_under_preferred_domains_come_first(restarts: bool) -> None:
    foreign = {f"http://f{number}.com/": page() for number in range(40)}
    national = {f"http://n{number}.cz/": page() for number in range(20)}
    crawl = VirtualCrawl({**foreign, **national}, active_hosts=PLACES, prefer_tlds="cz")
    for url in (*foreign, *national):
        crawl.frontier.put_seed(url, crawl.now)
    if restarts:
        crawl.restart()
    crawl_with_checkpoints(crawl)
    fetched = crawl.fetched()
    assert len(fetched) == 60
    last = max(fetched.index(url) for url in national)
    assert 20 < last < 40, "most foreign ones wait, but not all"


def test_many_at_once_stand_as_if_they_had_come_one_by_one():
    many, single = (Backlog(lambda host_id: host_id % 5 == 0, lambda host_id: host_id % 4) for _ in range(2))
    for backlog in (many, single):
        backlog.push(41, 0.0, 0.0)
    many.extend(range(1, 40))
    for host_id in range(1, 40):
        single.push(host_id, 0.0, 0.0)
    order, same = ([backlog.pop(0.0) for _ in range(len(backlog) + 1)] for backlog in (many, single))
    assert order == same and order.pop() is None
    assert sorted(order) == [*range(1, 40), 41]
