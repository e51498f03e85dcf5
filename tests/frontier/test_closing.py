"""Hosts are closed for low yield, spent budgets and refusals, by the user, and reopened."""

from __future__ import annotations

from dataclasses import replace

import pytest
from virtual_crawl import DAY_S, Answer, VirtualCrawl, page, robots, to

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import Fetch
from spiderling.frontier.host_closing import IN_A_ROW
from spiderling.frontier.hosts import HostState
from spiderling.frontier.site_files import FileAnswer

SITE = {f"http://a.cz/{number}": page() for number in range(10)}
ROBOTS = "http://a.cz/robots.txt"


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


def begun() -> tuple[VirtualCrawl, Fetch]:
    """A crawl with two seeds, and its first request, that for robots.txt, which was handed out at 0."""
    crawl = VirtualCrawl({})
    for number in (1, 2):
        crawl.frontier.put_seed(f"http://a.cz/{number}", 0.0)
    crawl.frontier.resolved("a.cz", ("10.0.0.1",), 900.0, 0.0)
    robots_txt = crawl.frontier.take(0.0)
    assert robots_txt is not None
    return crawl, robots_txt


def test_what_is_given_back_is_first_again_after_the_interval() -> None:
    crawl, robots_txt = begun()
    frontier = crawl.frontier
    frontier.give_back(robots_txt, 1.0)
    again = frontier.take(5.0)
    assert (again.robots, again.url) == (robots_txt.robots, ROBOTS)
    frontier.robots_answered(again, FileAnswer(404), 5.0)
    fetch = frontier.take(10.0)
    frontier.give_back(fetch, 11.0)
    assert frontier.ledger.in_transit == 0
    assert frontier.take(14.9) is None
    again = frontier.take(15.0)
    assert (again.id, again.url) == (fetch.id, fetch.url)


def test_answers_that_come_twice_are_harmless() -> None:
    crawl, robots_txt = begun()
    frontier = crawl.frontier
    for _ in range(2):
        frontier.robots_answered(robots_txt, FileAnswer(404), 1.0)
    frontier.give_back(robots_txt, 1.0)
    assert robots_txt.host.in_transit == 0
    fetch = frontier.take(5.0)
    assert fetch.robots is None and frontier.take(20.0) is None, "one in transit"
    outcome = Outcome(fetch.id, fetch.url, Reason.KEPT, 200)
    assert [frontier.report(outcome, 20.0).end is not None for _ in range(2)] == [True, False]
    frontier.give_back(fetch, 20.0)
    crawl.check()
    assert frontier.ledger.ends == {Reason.KEPT: 1}
    assert fetch.host.in_transit == 0


@pytest.mark.parametrize("budget", [{"max_host_documents": 5}, {"max_host_bytes": 5000}])
def test_a_host_that_has_given_enough_is_left_alone_and_goes_on_with_a_larger_budget(budget: dict[str, int]) -> None:
    web = {f"http://{host}.cz/{n}": page() for host in "ab" for n in range(8 if host == "a" else 3)}
    crawl = VirtualCrawl(web, **budget).run(*web)
    assert crawl.ends == {Reason.KEPT: 5 + 3, Reason.HOST_SPENT: 3}
    assert crawl.host("a.cz").state is HostState.SPENT
    crawl.run("http://a.cz/late")
    assert len(crawl.fetched("a.cz")) == 5, "also what is found later waits for a larger budget"
    crawl.restart()
    assert crawl.run().ends[Reason.HOST_SPENT] == 4, "the same budget is still spent"
    crawl.commit()
    crawl.options = replace(crawl.options, **{name: 10 * value for name, value in budget.items()})
    crawl.kill_and_resume()
    assert crawl.run().ends == {Reason.KEPT: 8 + 3, Reason.HTTP_ERROR: 1}
    assert not crawl.host("a.cz").pinned


# -- when the web runs dry

SOME = {f"http://some.cz/{n}": page(body_bytes=100_000, kept_bytes=300) for n in range(300)}
NONE = {f"http://none.cz/{n}": page(body_bytes=100_000, kept_bytes=0) for n in range(300)}


def test_with_another_strategy_a_retired_host_stays_retired() -> None:
    crawl = VirtualCrawl(SOME, strategy="yield").run(*SOME)
    assert crawl.host("some.cz").state is HostState.RETIRED
    assert crawl.ends[Reason.HOST_RETIRED] > 200


def test_when_nothing_is_left_the_best_retired_host_is_read_to_its_end() -> None:
    crawl = VirtualCrawl(SOME | NONE).run(*SOME, *NONE)
    some, none = crawl.host("some.cz"), crawl.host("none.cz")
    assert none.state is HostState.RETIRED and not none.has_second_chance, "it gave nothing"
    assert some.has_second_chance and not some.pinned
    assert crawl.ends[Reason.KEPT] == 300
    assert crawl.ends[Reason.BOILERPLATE_ONLY] + crawl.ends[Reason.HOST_RETIRED] == 300
    assert [host.name for host in crawl.frontier.host_closing.take_reopened()] == ["some.cz"]


def test_a_second_chance_survives_a_restart_and_is_written_down() -> None:
    crawl = VirtualCrawl(SOME, min_active_hosts=1)
    for url in SOME:
        crawl.frontier.put_seed(url, crawl.now)
    while not crawl.frontier.host_closing.take_reopened():
        crawl.run(until=crawl.now + 60)
    events = [what for _, what in crawl.frontier.drain(crawl.now).events]
    assert len(events) == 1 and events[0].startswith("too few hosts: reopened some.cz, yield rate 0.00")
    crawl = VirtualCrawl(SOME, strategy="yield").run(*SOME)  # retired without the option, killed, gone on with it
    crawl.commit()
    crawl.options = replace(crawl.options, min_active_hosts=1)
    crawl.kill_and_resume()
    crawl.run(until=crawl.now + 30)
    assert crawl.host("some.cz").has_second_chance
    crawl.restart()
    assert crawl.host("some.cz").has_second_chance and not crawl.host("some.cz").pinned


def test_a_milder_profile_lets_retired_hosts_go_on_after_a_restart() -> None:
    crawl = VirtualCrawl(SOME | NONE, strategy="yield").run(*SOME, *NONE)
    crawl.restart()
    assert [crawl.host(name).state for name in ("some.cz", "none.cz")] == [HostState.RETIRED] * 2, "as before"
    crawl.options = replace(crawl.options, yield_profile="0.001")  # t(100) is .001; some.cz gives .003
    crawl.kill_and_resume()
    assert any("reopened some.cz, with" in what for _, what in crawl.frontier.drain(crawl.now).events)
    crawl.run()
    assert crawl.host("some.cz").state is HostState.EXHAUSTED
    assert crawl.host("none.cz").state is HostState.RETIRED
    crawl.options = replace(crawl.options, yield_profile="off")
    crawl.kill_and_resume()
    crawl.run()
    assert Reason.HOST_RETIRED not in crawl.ends


REFUSED = Answer(status=403, kept_bytes=0)
REFUSING_SITE = {f"http://a.cz/{number}": page() for number in range(12)}
OTHERS = {f"http://b.cz/{number}": page() for number in range(3)}


def resumed(crawl: VirtualCrawl, days: float, *seeds: str) -> VirtualCrawl:
    """The same crawl after a kill and *days*."""
    crawl.restart(days * DAY_S)
    return crawl.run(*seeds)


@pytest.mark.parametrize("status", [401, 402, 403, 451])
def test_robots_txt_that_refuses_closes_the_host(status: int) -> None:
    crawl = VirtualCrawl(REFUSING_SITE | OTHERS | {ROBOTS: Answer(status=status)}).run(*REFUSING_SITE, *OTHERS)
    assert crawl.fetched("a.cz") == []
    assert crawl.ends == {Reason.HOST_REFUSED: 12, Reason.KEPT: 3}
    assert crawl.host("a.cz").state is HostState.REFUSED
    assert crawl.run("http://a.cz/new").ends[Reason.HOST_REFUSED] == 13
    assert crawl.robots_fetched().count(ROBOTS) == 1
    [said] = [row for row in crawl.consents() if row.origin == "http://a.cz"]
    assert (said.file, said.answer, said.says) == ("/robots.txt", str(status), "refuses")


CLOSED = "http://b.cz/closed"
WEBS = {
    "the rule of the RFC can be had back": (REFUSING_SITE | {ROBOTS: REFUSED}, {Reason.KEPT: 12}, "allow"),
    "a redirect of robots.txt to one that refuses closes the host that redirects": (
        REFUSING_SITE | OTHERS | {ROBOTS: to(CLOSED), CLOSED: REFUSED}, {Reason.HOST_REFUSED: 12, Reason.KEPT: 3}
    ),
    "queries of one path count once": (
        {f"http://a.cz/edit?page={n}": REFUSED for n in range(9)}, {Reason.HTTP_ERROR: 9}
    ),
    "redirects close nothing": (
        {f"http://a.cz/{n}": to("http://b.cz/") for n in range(9)}, {Reason.REDIRECTED: 9, Reason.HTTP_ERROR: 1}
    ),
    "challenges count and are named": (
        {f"http://a.cz/{n}": page(reason=Reason.CHALLENGED, kept_bytes=0) for n in range(9)},
        {Reason.CHALLENGED: 5, Reason.HOST_REFUSED: 4},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WEBS)
def test_what_closes_a_host_for_refusing_and_what_does_not(name: str) -> None:
    web, ends, *rule = WEBS[name]
    options = {"refused_robots": rule[0]} if rule else {}
    assert VirtualCrawl(web, **options).run(*(url for url in web if url not in (ROBOTS, CLOSED))).ends == ends


def test_robots_txt_is_tried_after_1_7_and_30_days_over_kills() -> None:
    """Each time it alone is asked for; when it is given, all that was parked is fetched."""
    rules = [REFUSED] * 5 + [robots("User-agent: *\nDisallow: /3")]
    crawl = VirtualCrawl(REFUSING_SITE | {ROBOTS: rules}).run(*REFUSING_SITE)
    for asked, days in enumerate((1, 7, 30, 30), 1):
        resumed(crawl, days - 0.1)
        assert len(crawl.starts) == asked, f"not before {days} days"
        resumed(crawl, 0.2)
        assert [start.url for start in crawl.starts] == [ROBOTS] * (asked + 1)
        assert crawl.host("a.cz").state is HostState.REFUSED
    resumed(crawl, 30.1)
    assert crawl.ends == {Reason.KEPT: 11, Reason.ROBOTS_FORBIDDEN: 1}


def test_a_crawl_that_goes_on_tries_again_without_a_restart() -> None:
    web = REFUSING_SITE | OTHERS | {ROBOTS: [REFUSED, Answer(status=404, kept_bytes=0)]}
    crawl = VirtualCrawl(web).run(*REFUSING_SITE)
    crawl.now += 1.5 * DAY_S
    assert crawl.run(*OTHERS).ends == {Reason.KEPT: 15}


def test_a_refusal_is_no_copy_that_counts_while_robots_txt_is_out_of_reach() -> None:
    """It counted as a file without rules, and all of the host was fetched."""
    crawl = VirtualCrawl(REFUSING_SITE | {ROBOTS: [REFUSED, Answer(status=503)]}).run(*REFUSING_SITE)
    assert resumed(crawl, 1.1).ends == {Reason.ROBOTS_UNREACHABLE: 12}
    assert crawl.fetched() == []


def test_hosts_that_refuse_are_tried_at_once_when_a_refusal_counts_no_longer() -> None:
    crawl = VirtualCrawl(REFUSING_SITE | {ROBOTS: REFUSED}).run(*REFUSING_SITE)
    crawl.options = replace(crawl.options, refused_robots="allow")
    assert resumed(crawl, 0.01).ends == {Reason.KEPT: 12}


def test_five_answers_in_a_row_on_different_paths_close_the_host() -> None:
    web = OTHERS | {f"http://a.cz/x{n}": Answer(status=(401, 403)[n % 2]) for n in range(20)}
    crawl = VirtualCrawl(web).run(*web)
    assert len(crawl.fetched("a.cz")) == IN_A_ROW
    assert crawl.ends == {Reason.HTTP_ERROR: 5, Reason.HOST_REFUSED: 15, Reason.KEPT: 3}
    said = [row for row in crawl.consents() if row.says.startswith("refuses")]
    assert [(row.origin, row.file, row.answer) for row in said] == [("http://a.cz", "/", "401")]
    resumed(crawl, 1.1)
    assert crawl.robots_fetched().count(ROBOTS) == 2
    assert len(crawl.fetched("a.cz")) == 2 * IN_A_ROW, "robots.txt allows it, the pages refuse again"
    resumed(crawl, 6)
    assert crawl.robots_fetched().count(ROBOTS) == 2, "the second pause is a week"


def test_a_page_that_is_given_ends_the_row() -> None:
    crawl = VirtualCrawl(REFUSING_SITE | {f"http://a.cz/x{n}": REFUSED for n in range(16)})
    for number in range(4):
        crawl.run(*(f"http://a.cz/x{number * 4 + n}" for n in range(4)), f"http://a.cz/{number}")
    assert crawl.ends == {Reason.HTTP_ERROR: 16, Reason.KEPT: 4}


def test_after_a_page_was_given_the_pauses_begin_anew() -> None:
    refused = {f"http://a.cz/y{n}": REFUSED for n in range(20)}
    crawl = VirtualCrawl(REFUSING_SITE | refused | {ROBOTS: [REFUSED, Answer(status=404)]}).run("http://a.cz/1")
    assert resumed(crawl, 1.1).ends == {Reason.KEPT: 1}
    assert crawl.run(*refused).host("a.cz").state is HostState.REFUSED
    before = len(crawl.starts)
    assert len(resumed(crawl, 1.1).starts) > before, "after a day, since a page had been given"


def test_host_that_the_user_reopens_is_asked_for_robots_txt_first() -> None:
    crawl = VirtualCrawl(REFUSING_SITE | {ROBOTS: [REFUSED, REFUSED, Answer(status=404)]}).run(*REFUSING_SITE)
    assert crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now) == 12
    crawl.run()
    assert [start.url for start in crawl.starts] == [ROBOTS] * 2
    crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now)
    assert crawl.run().ends == {Reason.KEPT: 12}
