"""A host that answers slowly, or says that it is busy, is asked less often, and in time as often as before."""

from __future__ import annotations

import pytest
from virtual_crawl import Answer, VirtualCrawl, page

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import Host
from spiderling.frontier.scheduling.intervals import Intervals
from spiderling.frontier.scheduling.workbench import Workbench

URLS = [f"http://a.cz/{number}" for number in range(12)]


@pytest.mark.parametrize(
    ("transit_s", "pause_s"),
    [(0.2, 5.0), (0.8, 5.0), (1.0, 1 + 5.0), (3.0, 3 + 15.0), (20.0, 20 + 30.0)],
)
def test_slow_host_rests_for_a_multiple_of_its_answers_time(transit_s: float, pause_s: float) -> None:
    crawl = VirtualCrawl(dict.fromkeys(URLS, page(transit_s=transit_s))).run(*URLS)
    assert crawl.pauses()[1:] == pytest.approx([pause_s] * (len(URLS) - 2), abs=0.06)


def test_slow_robots_txt_counts_too() -> None:
    crawl = VirtualCrawl({URLS[0]: page(), "http://a.cz/robots.txt": Answer(transit_s=4.0)}).run(URLS[0])
    assert crawl.pauses(pages_only=False) == pytest.approx([4 + 20.0])


def test_only_the_slow_host_rests() -> None:
    web = {URLS[0]: page(transit_s=4.0), URLS[1]: page(), "http://b.cz/": page(), "http://b.cz/2": page()}
    crawl = VirtualCrawl(web).run(*web)
    assert crawl.gaps("host")["b.cz"] == pytest.approx(5.0)


def test_fast_host_is_as_fast_as_without() -> None:
    times = [VirtualCrawl(dict.fromkeys(URLS, page()), delay_factor=factor).run(*URLS).now for factor in (0.0, 5.0)]
    assert times[0] == times[1]


@pytest.mark.parametrize("status", [429, 503])
def test_busy_host_is_asked_half_as_often_and_recovers(status: int) -> None:
    """After one refusal the interval is 10 s; every good answer takes a tenth off, down to 5 s again."""
    web: dict[str, Answer | list[Answer]] = {url: page() for url in URLS}
    web[URLS[0]] = [Answer(status=status, retry_after_s=0.0), page()]
    crawl = VirtualCrawl(web).run(*URLS)
    expected = [10.0, 10.0]  # the second request has started before its answer is good
    while len(expected) < len(URLS) - 1:
        expected.append(max(5.0, expected[-1] * 0.9))
    assert crawl.pauses()[: len(expected)] == pytest.approx(expected, abs=0.3)
    assert crawl.ends == {Reason.KEPT: len(URLS)}


def test_interval_of_a_busy_host_is_bounded() -> None:
    options = Options(max_slowdown_s=30.0, host_interval_s=5.0)
    intervals, host = Intervals(options, Workbench()), Host(1, "a.cz", 0)
    for _ in range(2000):
        intervals.note_status(host, 503)
    assert intervals.of(host) == 30.0
    host.crawl_delay_s = 90.0
    assert intervals.of(host) == 90.0, "a longer Crawl-delay is not shortened"
    host.crawl_delay_s = 0.0
    for _ in range(80):
        intervals.note_status(host, 404)
    assert intervals.of(host) == 5.0


def test_no_answer_is_no_word() -> None:
    host = Host(1, "a.cz", 0, slowdown=4.0)
    Intervals(Options(), Workbench()).note_status(host, 0)
    assert host.slowdown == 4.0
