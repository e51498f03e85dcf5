"""Blocking, closing, reopening, and fetches that come back unmade."""

from __future__ import annotations

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch
from spiderling.frontier.hosts import HostState
from spiderling.frontier.site_files import FileAnswer

SITE = {f"http://a.cz/{number}": page() for number in range(10)}


def test_blocked_hosts_stop_at_once_and_new_ones_never_start() -> None:
    web = SITE | {"http://b.cz/": page("http://a.cz/later", "http://bad.a.cz/", "http://c.cz/"), "http://c.cz/": page()}
    crawl = VirtualCrawl(web).run(*SITE, until=1012.0)
    blocked = crawl.frontier.host_closing.block_where(lambda name: name.endswith("a.cz"))
    assert [host.name for host in blocked] == ["a.cz"]
    asked = len(crawl.fetched("a.cz"))
    crawl.run("http://b.cz/")
    assert len(crawl.fetched("a.cz")) == asked == 2
    assert crawl.fetched("bad.a.cz") == []
    assert crawl.ends == {Reason.KEPT: 4, Reason.HOST_BLOCKED: 10}
    assert crawl.frontier.host_closing.block_where(lambda name: name.endswith("a.cz")) == []


def test_request_in_transit_at_a_closed_host_still_counts() -> None:
    crawl = VirtualCrawl({"http://a.cz/1": page(transit_s=9.0)}).run("http://a.cz/1", "http://a.cz/2", until=1007.0)
    assert crawl.frontier.host_closing.close_host(crawl.host("a.cz"), HostState.BLOCKED) == 1
    assert crawl.run().ends == {Reason.KEPT: 1, Reason.HOST_BLOCKED: 1}


def test_fetch_that_waits_at_the_gate_of_a_closed_host_ends_unmade() -> None:
    crawl = VirtualCrawl(SITE, start_delay_s=lambda fetch: 2.0).run("http://a.cz/1", until=1008.0)
    assert crawl.host("a.cz").in_transit == 1
    crawl.frontier.host_closing.close_host(crawl.host("a.cz"), HostState.RETIRED)
    crawl.run()
    assert crawl.fetched() == []
    assert crawl.ends == {Reason.HOST_RETIRED: 1}
    assert (crawl.host("a.cz").queued, crawl.host("a.cz").waiting) == (1, 0), "it is parked"


@pytest.mark.parametrize("state", [HostState.RETIRED, HostState.BLOCKED, HostState.FORBIDDEN])
def test_reopened_host_goes_on_with_all_that_was_parked(state: HostState) -> None:
    crawl = VirtualCrawl(SITE | {"http://a.cz/x": page()}).run(*SITE, until=1012.0)
    crawl.frontier.host_closing.close_host(crawl.host("a.cz"), state)
    crawl.run("http://a.cz/x")
    assert crawl.host("a.cz").queued == 9
    assert crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now) == 9
    crawl.run()
    assert crawl.ends == {Reason.KEPT: 11}
    assert crawl.frontier.ledger.discovered == 11
    crawl.assert_polite(host_s=5.0, ip_s=0.1)
    assert not any(row.parked for row in crawl.frontier.drain(crawl.now).hosts)


def test_reopened_host_is_not_retired_again() -> None:
    poor = {f"http://a.cz/{n}": page(body_bytes=100_000, kept_bytes=0) for n in range(30)}
    crawl = VirtualCrawl(poor).run(*poor)
    crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now)
    assert crawl.run().ends == {Reason.BOILERPLATE_ONLY: 30}
    assert crawl.host("a.cz").pinned


def test_closing_twice_and_reopening_an_open_host_change_nothing() -> None:
    crawl = VirtualCrawl(SITE).run(*SITE, until=1012.0)
    host = crawl.host("a.cz")
    assert crawl.frontier.host_closing.close_host(host, HostState.RETIRED) == 8
    assert crawl.frontier.host_closing.close_host(host, HostState.BLOCKED) == 0
    assert host.state is HostState.RETIRED
    assert crawl.frontier.host_closing.reopen_host(host, crawl.now) == 8
    assert crawl.frontier.host_closing.reopen_host(host, crawl.now) == 0
    crawl.check()
    assert crawl.run().ends == {Reason.KEPT: 10}


def first_fetch(crawl: VirtualCrawl, now: float) -> Fetch:
    """The first page of a.cz, handed out."""
    crawl.frontier.put_seed("http://a.cz/1", now)
    crawl.frontier.put_seed("http://a.cz/2", now)
    crawl.frontier.resolved("a.cz", ("10.0.0.1",), 900.0, now)
    robots_txt = crawl.frontier.take(now)
    assert robots_txt is not None
    crawl.frontier.robots_answered(robots_txt, FileAnswer(404), now)
    fetch = crawl.frontier.take(now + 5)
    assert fetch is not None
    return fetch


def test_fetch_given_back_is_first_again_after_the_interval() -> None:
    crawl = VirtualCrawl({})
    fetch = first_fetch(crawl, 0.0)
    crawl.frontier.give_back(fetch, 6.0)
    assert crawl.frontier.ledger.in_transit == 0
    assert crawl.frontier.take(9.9) is None
    again = crawl.frontier.take(10.0)
    assert again is not None
    assert (again.id, again.url) == (fetch.id, fetch.url)


def test_robots_txt_given_back_is_fetched_first_again() -> None:
    frontier = VirtualCrawl({}).frontier
    frontier.put_seed("http://a.cz/1", 0.0)
    frontier.resolved("a.cz", ("10.0.0.1",), 900.0, 0.0)
    fetch = frontier.take(0.0)
    assert fetch is not None
    frontier.give_back(fetch, 1.0)
    again = frontier.take(5.0)
    assert again is not None
    assert (again.robots, again.url) == (fetch.robots, "http://a.cz/robots.txt")


def test_answers_that_come_twice_are_harmless() -> None:
    crawl = VirtualCrawl({})
    fetch = first_fetch(crawl, 0.0)
    outcome = Outcome(fetch.id, fetch.url, Reason.KEPT, 200)
    assert crawl.frontier.report(outcome, 6.0).end is not None
    assert not crawl.frontier.report(outcome, 6.0).end is not None
    crawl.frontier.give_back(fetch, 6.0)
    crawl.check()
    assert crawl.frontier.ledger.ends == {Reason.KEPT: 1}
    assert crawl.host("a.cz").in_transit == 0


def test_robots_answer_that_comes_twice_is_harmless() -> None:
    frontier = VirtualCrawl({}).frontier
    frontier.put_seed("http://a.cz/1", 0.0)
    frontier.resolved("a.cz", ("10.0.0.1",), 900.0, 0.0)
    fetch = frontier.take(0.0)
    assert fetch is not None
    for _ in range(2):
        frontier.robots_answered(fetch, FileAnswer(404), 1.0)
    frontier.give_back(fetch, 1.0)
    assert fetch.host.in_transit == 0
    first = frontier.take(5.0)
    assert first is not None
    assert first.robots is None
    assert frontier.take(20.0) is None, "one in transit"
