"""A host that refuses is left alone; its robots.txt is tried again after 1, 7 and 30 days."""

from __future__ import annotations

import pytest
from virtual_crawl import DAY_S, Answer, VirtualCrawl, page, robots, to

from spiderling.base.reasons import Reason
from spiderling.frontier.host_closing import IN_A_ROW
from spiderling.frontier.hosts import HostState

REFUSED = Answer(status=403, kept_bytes=0)
SITE = {f"http://a.cz/{number}": page() for number in range(12)}
OTHERS = {f"http://b.cz/{number}": page() for number in range(3)}
ROBOTS = "http://a.cz/robots.txt"


def resumed(crawl: VirtualCrawl, days: float, *seeds: str) -> VirtualCrawl:
    """The same crawl after a kill and *days*."""
    crawl.commit()
    crawl.now += days * DAY_S
    crawl.kill_and_resume()
    return crawl.run(*seeds)


@pytest.mark.parametrize("status", [401, 402, 403, 451])
def test_robots_txt_that_refuses_closes_the_host(status: int) -> None:
    crawl = VirtualCrawl(SITE | OTHERS | {ROBOTS: Answer(status=status)}).run(*SITE, *OTHERS)
    assert crawl.fetched("a.cz") == []
    assert crawl.ends == {Reason.HOST_REFUSED: 12, Reason.KEPT: 3}
    assert crawl.host("a.cz").state is HostState.REFUSED
    assert crawl.run("http://a.cz/new").ends[Reason.HOST_REFUSED] == 13
    assert crawl.robots_fetched().count(ROBOTS) == 1
    [said] = [row for row in crawl.consents() if row.origin == "http://a.cz"]
    assert (said.file, said.answer, said.says) == ("/robots.txt", str(status), "refuses")


def test_the_rule_of_the_rfc_can_be_had_back() -> None:
    crawl = VirtualCrawl(SITE | {ROBOTS: REFUSED}, refused_robots="allow").run(*SITE)
    assert crawl.ends == {Reason.KEPT: 12}


def test_redirect_of_robots_txt_to_one_that_refuses_closes_the_host_that_redirects() -> None:
    web = SITE | OTHERS | {ROBOTS: to("http://b.cz/closed"), "http://b.cz/closed": REFUSED}
    crawl = VirtualCrawl(web).run(*SITE, *OTHERS)
    assert crawl.ends == {Reason.HOST_REFUSED: 12, Reason.KEPT: 3}


def test_robots_txt_is_tried_after_1_7_and_30_days_over_kills() -> None:
    """Each time it alone is asked for; when it is given, all that was parked is fetched."""
    crawl = VirtualCrawl(SITE | {ROBOTS: [REFUSED] * 5 + [robots("User-agent: *\nDisallow: /3")]}).run(*SITE)
    asked = 1
    for days in (1, 7, 30, 30):
        resumed(crawl, days - 0.1)
        assert len(crawl.starts) == asked, f"not before {days} days"
        resumed(crawl, 0.2)
        asked += 1
        assert [start.url for start in crawl.starts] == [ROBOTS] * asked
        assert crawl.host("a.cz").state is HostState.REFUSED
    resumed(crawl, 30.1)
    assert crawl.ends == {Reason.KEPT: 11, Reason.ROBOTS_FORBIDDEN: 1}


def test_a_crawl_that_goes_on_tries_again_without_a_restart() -> None:
    web = SITE | OTHERS | {ROBOTS: [REFUSED, Answer(status=404, kept_bytes=0)]}
    crawl = VirtualCrawl(web).run(*SITE)
    crawl.now += 1.5 * DAY_S
    assert crawl.run(*OTHERS).ends == {Reason.KEPT: 15}


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


def test_a_page_that_is_given_ends_the_row_and_the_longer_pauses() -> None:
    refused = {f"http://a.cz/x{n}": REFUSED for n in range(20)}
    crawl = VirtualCrawl(SITE | refused)
    for number in range(4):
        crawl.run(*[f"http://a.cz/x{n}" for n in range(number * 4, number * 4 + 4)], f"http://a.cz/{number}")
    assert crawl.ends == {Reason.HTTP_ERROR: 16, Reason.KEPT: 4}


def test_after_a_page_was_given_the_pauses_begin_anew() -> None:
    crawl = VirtualCrawl(
        SITE | {f"http://a.cz/y{n}": REFUSED for n in range(20)} | {ROBOTS: [REFUSED, Answer(status=404)]}
    )
    crawl.run("http://a.cz/1")
    resumed(crawl, 1.1)
    assert crawl.ends == {Reason.KEPT: 1}
    crawl.run(*(f"http://a.cz/y{n}" for n in range(20)))
    assert crawl.host("a.cz").state is HostState.REFUSED
    before = len(crawl.starts)
    resumed(crawl, 1.1)
    assert len(crawl.starts) > before, "after a day, since a page had been given"


def test_one_path_with_many_queries_and_redirects_close_nothing() -> None:
    web = {f"http://a.cz/edit?page={n}": REFUSED for n in range(9)}
    assert VirtualCrawl(web).run(*web).ends == {Reason.HTTP_ERROR: 9}
    web = {f"http://a.cz/{n}": to(f"http://b.cz/{n}") for n in range(9)}
    assert VirtualCrawl(web).run(*web).host("a.cz").state is not HostState.REFUSED


def test_challenges_count_and_are_named() -> None:
    web = {f"http://a.cz/{n}": page(reason=Reason.CHALLENGED, kept_bytes=0) for n in range(9)}
    crawl = VirtualCrawl(web).run(*web)
    assert crawl.ends == {Reason.CHALLENGED: 5, Reason.HOST_REFUSED: 4}


def test_host_that_the_user_reopens_is_asked_for_robots_txt_first() -> None:
    crawl = VirtualCrawl(SITE | {ROBOTS: [REFUSED, REFUSED, Answer(status=404)]}).run(*SITE)
    assert crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now) == 12
    crawl.run()
    assert [start.url for start in crawl.starts] == [ROBOTS] * 2
    crawl.frontier.host_closing.reopen_host(crawl.host("a.cz"), crawl.now)
    assert crawl.run().ends == {Reason.KEPT: 12}
