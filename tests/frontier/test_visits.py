"""A visit: robots.txt, tdmrep.json and ai.txt of an origin are asked for one after another, over one connection.

It counts as one request of its host, and the intervals begin anew with its last file.
"""

from __future__ import annotations

import pytest
from virtual_crawl import Answer, Resolution, VirtualCrawl, page, robots

from spiderling.base.reasons import Reason

ROBOTS, TDM, AI = (f"http://a.cz/{path}" for path in ("robots.txt", ".well-known/tdmrep.json", "ai.txt"))
PAGES = {"http://a.cz/x": page(), "http://a.cz/y": page()}


def visited(web: dict, *seeds: str, until: float | None = None, **options) -> VirtualCrawl:
    """A crawl of PAGES and *web*, from these pages on; *until*: seconds, or to its end."""
    crawl = VirtualCrawl({**PAGES, **web}, **{"optouts": "", "keeps_open": True, "delay_factor": 0.0, **options})
    return crawl.run(*(seeds or PAGES), until=until and crawl.now + until)


def block(crawl: VirtualCrawl) -> VirtualCrawl:
    """The user does not want a.cz any more."""
    crawl.frontier.host_closing.block_where(lambda name: name == "a.cz")
    return crawl.run()


def starts(crawl: VirtualCrawl) -> list[tuple[str, float]]:
    """(URL, seconds since the first start) of each request."""
    return [(start.url, round(start.time - crawl.starts[0].time, 3)) for start in crawl.starts]


def test_files_are_one_visit_and_the_interval_counts_from_the_last() -> None:
    crawl = visited({})
    assert starts(crawl) == [(ROBOTS, 0.0), (TDM, 0.2), (AI, 0.4), ("http://a.cz/x", 5.4), ("http://a.cz/y", 10.4)]
    assert crawl.host("a.cz").turns == 3, "a visit is one turn"
    assert crawl.frontier.ledger.totals["requests"] == 5


@pytest.mark.parametrize(
    ("robots_txt", "asked"),
    [
        (robots("User-agent: *\nDisallow: /.well-known/"), [ROBOTS, AI]),
        (robots("User-agent: *\nDisallow: /ai.txt"), [ROBOTS, TDM]),
        (robots("User-agent: *\nDisallow: /"), [ROBOTS]),
        (robots("User-agent: *\nDisallow: /x\nDisallow: /y"), [ROBOTS]),
        (Answer(status=401), [ROBOTS]),
    ],
)
def test_no_file_is_asked_for_that_robots_txt_forbids_or_no_page_needs(robots_txt, asked) -> None:
    files = [(start.url, start.goes_on) for start in visited({ROBOTS: robots_txt}).starts if start.url not in PAGES]
    assert files == [(url, url != ROBOTS) for url in asked]


def test_server_that_closes_is_asked_again_at_its_next_turn() -> None:
    crawl = visited({}, keeps_open=False)
    assert [at for _, at in starts(crawl)] == [0.0, 5.0, 10.0, 15.0, 20.0]


@pytest.mark.parametrize(("status", "pause_s"), [(429, 10.0), (503, 10.0), (500, 0.2)])
def test_busy_server_is_left_alone_within_a_visit(status, pause_s) -> None:
    crawl = visited({TDM: Answer(status=status)})
    times = dict(starts(crawl))
    assert times[AI] - times[TDM] == pytest.approx(pause_s)


def test_crawl_delay_and_slow_answers_count_after_the_visit() -> None:
    """The rests that the slow answers of a visit ask for add up."""
    crawl = visited({ROBOTS: robots("User-agent: *\nCrawl-delay: 9", transit_s=1.0)})
    assert starts(crawl)[2:4] == [(AI, 1.2), ("http://a.cz/x", 10.2)]
    slow = {ROBOTS: Answer(404, transit_s=3.0), TDM: Answer(404, transit_s=2.0), AI: Answer(404, transit_s=1.0)}
    assert starts(visited(slow, delay_factor=2.0))[3] == ("http://a.cz/x", 6.0 + 2.0 * 6.0)


def test_visit_waits_for_its_address_when_another_host_has_come_between() -> None:
    """Answers are slower than the address's interval: all of its starts keep it, but those of one visit in a row."""
    dns = {f"n{number}.cz": Resolution(("10.9.9.9",)) for number in range(4)}
    seeds = {f"http://{name}/": page() for name in dns}
    crawl = visited(seeds, *seeds, dns=dns, ip_interval_s=0.15, start_delay_s=lambda fetch: 0.0)
    assert crawl.ends == {Reason.KEPT: 4}
    assert sum(start.goes_on for start in crawl.starts) == 8
    for first, second in zip(crawl.starts, crawl.starts[1:], strict=False):
        if not (second.goes_on and second.host == first.host):
            assert second.time - first.time >= 0.15 - 1e-6


def test_host_closed_amid_a_visit_is_not_asked_further() -> None:
    assert [url for url, _ in starts(block(visited({}, until=0.1)))] == [ROBOTS]


def test_kill_amid_a_visit_asks_again() -> None:
    crawl = visited({}, until=0.3)
    assert [url for url, _ in starts(crawl)] == [ROBOTS, TDM]
    crawl.restart()
    crawl.run()
    assert [url for url, _ in starts(crawl)] == [ROBOTS, TDM, TDM, AI, *PAGES]
    assert crawl.ends == {Reason.KEPT: 2}


def at_one_address(pages: int, hosts: int) -> tuple[VirtualCrawl, list[str]]:
    """A crawl of *hosts* with *pages* each, at an address that takes one request in two seconds; and its seeds."""
    dns = {f"n{number}.cz": Resolution(("10.9.9.9",)) for number in range(hosts)}
    seeds = [f"http://{name}/{number}" for name in dns for number in range(pages)]
    return VirtualCrawl({url: page() for url in seeds}, dns, ip_interval_s=2.0, delay_factor=0.0), seeds


def test_no_host_is_asked_for_files_ahead_of_one_whose_page_is_due() -> None:
    """In the first interval no page is due; then there is one for each turn of the address."""
    crawl, seeds = at_one_address(pages=4, hosts=12)
    crawl.run(*seeds, until=crawl.now + 31.0)
    kinds = ["file" if start.url.endswith("robots.txt") else "page" for start in crawl.starts]
    assert kinds == ["file"] * 3 + ["page"] * 12 + ["file"], "the first three hosts have given all that they have"
    assert {start.host for start in crawl.starts[3:15]} == {"n0.cz", "n1.cz", "n2.cz"}


def test_host_that_needs_files_waits_for_no_longer_than_a_minute() -> None:
    crawl, seeds = at_one_address(pages=100, hosts=6)
    crawl.run(*seeds, until=crawl.now + 90.0)
    first = {start.host: start.time - 1000.0 for start in reversed(crawl.starts)}
    assert max(first[f"n{number}.cz"] for number in range(3)) < 10.0
    assert all(55.0 < first[f"n{number}.cz"] < 80.0 for number in range(3, 6))


def test_host_whose_rules_are_in_the_store_needs_no_files_after_a_restart() -> None:
    crawl, seeds = at_one_address(pages=2, hosts=3)
    crawl.run(*seeds[:2], until=crawl.now + 3.0)
    crawl.restart()
    began = len(crawl.starts)
    assert crawl.run(*seeds[2:]).starts[began].url == seeds[0]
