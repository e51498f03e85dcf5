"""A redirect ends its source; its target is a URL of its own, whatever record it belongs to."""

from __future__ import annotations

from itertools import pairwise

import pytest
from virtual_crawl import VirtualCrawl, page, to

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import HostState
from spiderling.frontier.next_fetch import MAX_REDIRECTS
from spiderling.frontier.site_files import FileAnswer

CHAIN = [f"http://a.cz/{number}" for number in range(8)]


def test_scheme_and_www_of_one_host_are_not_seen() -> None:
    web = {"http://a.cz/": to("https://a.cz/"), "https://a.cz/": to("https://www.a.cz/"), "https://www.a.cz/": page()}
    crawl = VirtualCrawl(web).run("http://a.cz/")
    assert crawl.fetched() == list(web)
    assert crawl.ends == {Reason.REDIRECTED: 2, Reason.KEPT: 1}
    assert crawl.mentions == {}
    assert len(crawl.frontier.hosts) == 1
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_own_canonical_url_is_fetched_once_more_as_spelled() -> None:
    """A server that insists on what the canonical form leaves out gets it once."""
    spelled = "http://a.cz/?utm_source=x&sid=1"
    crawl = VirtualCrawl({"http://a.cz/?sid=1": to(spelled), spelled: page()}).run("http://a.cz/?sid=1")
    assert crawl.fetched() == ["http://a.cz/?sid=1", spelled]
    assert crawl.ends == {Reason.KEPT: 1}


@pytest.mark.parametrize("again", ["http://a.cz/?utm_source=x", "http://a.cz/?utm_source=y", "http://a.cz/"])
def test_own_url_twice_is_a_loop(again: str) -> None:
    spelled = "http://a.cz/?utm_source=x"
    crawl = VirtualCrawl({"http://a.cz/": to(spelled), spelled: to(again)}).run("http://a.cz/")
    assert crawl.fetched() == ["http://a.cz/", spelled]
    assert crawl.ends == {Reason.REDIRECT_LOOP: 1}


@pytest.mark.parametrize("same", ["http://a.cz/", "http://a.cz", "http://A.cz:80/#top", "http://a.cz/./"])
def test_redirect_to_itself_is_a_loop_at_once(same: str) -> None:
    crawl = VirtualCrawl({"http://a.cz/": to(same)}).run("http://a.cz/")
    assert crawl.fetched() == ["http://a.cz/"]
    assert crawl.ends == {Reason.REDIRECT_LOOP: 1}


def test_long_chains_are_loops() -> None:
    web = {url: to(following) for url, following in pairwise(CHAIN)}
    crawl = VirtualCrawl(web).run(CHAIN[0])
    assert crawl.fetched() == CHAIN[: MAX_REDIRECTS + 1]
    assert crawl.ends == {Reason.REDIRECT_LOOP: 1, Reason.REDIRECTED: MAX_REDIRECTS}


def test_chain_of_the_longest_length_arrives() -> None:
    web = {url: to(following) for url, following in pairwise(CHAIN[:6])} | {CHAIN[5]: page()}
    assert VirtualCrawl(web).run(CHAIN[0]).ends == {Reason.REDIRECTED: 5, Reason.KEPT: 1}


def test_circle_of_two_ends_as_seen() -> None:
    crawl = VirtualCrawl({"http://a.cz/1": to("http://a.cz/2"), "http://a.cz/2": to("http://a.cz/1")}).run(CHAIN[1])
    assert crawl.ends == {Reason.REDIRECTED: 2}
    assert crawl.mentions == {Reason.SEEN: 1}


@pytest.mark.parametrize(
    ("location", "mention"),
    [
        ("javascript:void(0)", Reason.BAD_URL),
        ("http://a.cz/film.avi", Reason.OUT_OF_SCOPE),
        ("http://[::", Reason.BAD_URL),
    ],
)
def test_target_that_is_refused(location: str, mention: Reason) -> None:
    crawl = VirtualCrawl({"http://a.cz/": to(location)}).run("http://a.cz/")
    assert crawl.ends == {Reason.REDIRECTED: 1}
    assert crawl.mentions == {mention: 1}


def test_target_on_another_host_keeps_the_distance() -> None:
    crawl = VirtualCrawl({"http://a.cz/": to("http://b.cz/"), "http://b.cz/": page("http://c.cz/")}).run("http://a.cz/")
    assert {host.name: host.distance for host in crawl.frontier.hosts} == {"a.cz": 0, "b.cz": 0, "c.cz": 1}


def test_body_of_a_redirect_counts_but_it_is_no_page() -> None:
    web = {"http://a.cz/": to("http://b.cz/", body_bytes=300), "http://b.cz/": page(body_bytes=40, kept_bytes=7)}
    accounts = {host.name: host.account for host in VirtualCrawl(web).run("http://a.cz/").frontier.hosts}
    assert (accounts["a.cz"].pages, accounts["a.cz"].downloaded_bytes, accounts["a.cz"].kept_bytes) == (0, 300, 0)
    assert (accounts["b.cz"].pages, accounts["b.cz"].downloaded_bytes, accounts["b.cz"].kept_bytes) == (1, 40, 7)


def test_redirect_of_a_subclass_request_takes_its_payload_along() -> None:
    crawl = VirtualCrawl({})
    frontier = crawl.frontier
    frontier.put_request("http://a.cz/login", b"payload", b"POST", None, 0.0)
    frontier.put_seed("http://a.cz/in", 0.0)
    frontier.resolved("a.cz", ("10.0.0.1",), 900.0, 0.0)
    robots_txt = frontier.take(0.0)
    assert robots_txt is not None
    frontier.robots_answered(robots_txt, FileAnswer(404), 0.0)
    first = frontier.take(5.0)
    assert first is not None
    assert first.url == "http://a.cz/in", "seeds come first"
    frontier.report(Outcome(first.id, first.url, Reason.KEPT, 200), 5.0)
    login = frontier.take(10.0)
    assert login is not None
    frontier.report(Outcome(login.id, login.url, Reason.REDIRECTED, 302, redirect_to="http://a.cz/in"), 10.0)
    target = frontier.take(15.0)
    assert target is not None
    assert (target.url, target.payload) == ("http://a.cz/in", b"payload"), "the plain page of this URL was another one"


def test_own_url_of_a_host_that_was_closed_meanwhile_ends() -> None:
    web = {"http://a.cz/": to("http://a.cz/?utm_id=1", transit_s=9.0)}
    crawl = VirtualCrawl(web).run("http://a.cz/", until=1006.0)
    host = crawl.host("a.cz")
    assert host.in_transit == 1
    crawl.frontier.host_closing.close_host(host, HostState.BLOCKED)
    assert crawl.run().ends == {Reason.HOST_BLOCKED: 1}
