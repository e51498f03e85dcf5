"""How often a host is asked: seldom if it is slow or busy, and sooner when the user makes the intervals shorter."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_politeness_properties import ROUNDING_S, URLS, allowed_s, crawls, pairs
from virtual_crawl import Answer, Resolution, VirtualCrawl, page, robots

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import Host
from spiderling.frontier.intervals import Intervals
from spiderling.frontier.workbench import Workbench

PAGES = [f"http://a.cz/{number}" for number in range(12)]


@pytest.mark.parametrize(
    ("transit_s", "pause_s"), [(0.2, 5.0), (0.8, 5.0), (1.0, 1 + 5.0), (3.0, 3 + 15.0), (20.0, 20 + 30.0)]
)
def test_slow_host_rests_for_a_multiple_of_its_answers_time(transit_s: float, pause_s: float) -> None:
    crawl = VirtualCrawl(dict.fromkeys(PAGES, page(transit_s=transit_s))).run(*PAGES)
    assert crawl.pauses()[1:] == pytest.approx([pause_s] * (len(PAGES) - 2), abs=0.06)


def test_slow_robots_txt_counts_too() -> None:
    crawl = VirtualCrawl({PAGES[0]: page(), "http://a.cz/robots.txt": Answer(transit_s=4.0)}).run(PAGES[0])
    assert crawl.pauses(pages_only=False) == pytest.approx([4 + 20.0])


def test_fast_hosts_are_as_fast_as_without_also_beside_a_slow_one() -> None:
    times = [VirtualCrawl(dict.fromkeys(PAGES, page()), delay_factor=factor).run(*PAGES).now for factor in (0.0, 5.0)]
    assert times[0] == times[1]
    web = {PAGES[0]: page(transit_s=4.0), PAGES[1]: page(), "http://b.cz/": page(), "http://b.cz/2": page()}
    assert VirtualCrawl(web).run(*web).gaps("host")["b.cz"] == pytest.approx(5.0)


@pytest.mark.parametrize("status", [429, 503])
def test_busy_host_is_asked_half_as_often_and_recovers(status: int) -> None:
    """After one refusal the interval is 10 s; every good answer takes a tenth off, down to 5 s again."""
    web: dict[str, Answer | list[Answer]] = {url: page() for url in PAGES}
    web[PAGES[0]] = [Answer(status=status, retry_after_s=0.0), page()]
    crawl = VirtualCrawl(web).run(*PAGES)
    expected = [10.0, 10.0]  # the second request has started before its answer is good
    while len(expected) < len(PAGES) - 1:
        expected.append(max(5.0, expected[-1] * 0.9))
    assert crawl.pauses()[: len(expected)] == pytest.approx(expected, abs=0.3)
    assert crawl.ends == {Reason.KEPT: len(PAGES)}


def test_interval_of_a_busy_host_is_bounded() -> None:
    intervals, host = Intervals(Options(), Workbench()), Host(1, "a.cz", 0)

    def after(status: int, times: int) -> float:
        for _ in range(times):
            intervals.note_status(host, status)
        return intervals.of(host)

    assert after(503, 2000) == 30.0
    slowdown = host.slowdown
    assert after(0, 1) == 30.0 and host.slowdown == slowdown, "no answer is no word"
    host.crawl_delay_s = 90.0
    assert intervals.of(host) == 90.0, "a longer Crawl-delay is not shortened"
    host.crawl_delay_s = 0.0
    assert after(404, 80) == 5.0


HOUR_S = 3600.0
HOST_S, IP_S = 5.0, 0.1


def change(crawl: VirtualCrawl, host_s: float = HOST_S, ip_s: float = IP_S) -> None:
    crawl.frontier.schedule.change_intervals(host_s, ip_s, crawl.now)


@pytest.mark.parametrize("places", [1, 5000], ids=["the backlog", "the workbench"])
@pytest.mark.parametrize("where", ["in memory", "in the store", "in a new process"])
def test_hosts_do_not_wait_out_an_hour_that_was_taken_back(places: int, where: str) -> None:
    """With one place most hosts are in the backlog; after a commit their records leave memory."""
    web = {f"http://{name}.cz/{number}": page() for name in "abcdef" for number in range(3)}
    crawl = VirtualCrawl(web, active_hosts=places)
    change(crawl, HOUR_S)
    crawl.run(*web, until=crawl.now + 20.0)
    before = len(crawl.starts)
    if where == "in the store":
        crawl.commit()
        crawl.commit()
    if where == "in a new process":
        crawl.restart(1.0)
    else:
        change(crawl)
    back = crawl.now
    crawl.run()
    assert before and crawl.frontier.is_finished
    assert crawl.now < back + 60.0 * (6 if places == 1 else 1)
    assert min(crawl.gaps("host").values()) >= HOST_S - ROUNDING_S


def test_addresses_do_not_wait_out_an_hour_that_was_taken_back() -> None:
    web = {f"http://{name}.cz/": page() for name in "abcdef"}
    crawl = VirtualCrawl(web, {f"{name}.cz": Resolution(("10.0.0.1",)) for name in "abcdef"})
    change(crawl, HOUR_S, HOUR_S)
    crawl.run(*web, until=crawl.now + 8.0)
    change(crawl)
    back = crawl.now
    assert 0 < len(crawl.starts) < 6
    crawl.run()
    assert crawl.frontier.is_finished and crawl.now < back + 60.0
    assert crawl.gaps("address")["10.0.0.1"] >= IP_S - ROUNDING_S


@pytest.mark.parametrize(
    ("answers", "min_s"),
    [
        ({"/robots.txt": robots("User-agent: *\nCrawl-delay: 40"), "/": page("http://a.cz/2")}, 40.0),
        ({"/": [Answer(status=503, retry_after_s=600.0, kept_bytes=0), page()]}, 600.0),
        ({"/": [Answer(status=429, retry_after_s=4000.0, kept_bytes=0), page()]}, HOUR_S),
        ({"/": [Answer(status=0, kept_bytes=0), page()]}, 60.0),
        ({"/": page("http://a.cz/2", transit_s=4.0)}, 24.0),
    ],
    ids=["Crawl-delay", "Retry-After", "a longer Retry-After", "a failure", "a slow answer"],
)
@pytest.mark.parametrize("others", [0, 3], ids=["alone", "in the backlog"])
def test_what_a_host_asked_for_is_kept(answers: dict[str, Answer], min_s: float, others: int) -> None:
    """All of these were shorter than the hour, or as long, and so were only in it."""
    web = {f"http://a.cz{path}": answer for path, answer in answers.items()}
    web["http://a.cz/2"] = page()
    far = [f"http://b{number}.cz/{n}" for number in range(others) for n in range(3)]
    crawl = VirtualCrawl({**web, **{url: page() for url in far}}, active_hosts=1 if others else 5000)
    crawl.run("http://a.cz/", until=crawl.now + 0.05)
    while not crawl.fetched("a.cz"):
        crawl.run(until=crawl.now + 0.05)
    change(crawl, HOUR_S)  # before the answer comes
    crawl.run(*far, until=crawl.now + 8.0)
    crawl.commit()
    crawl.commit()
    change(crawl)
    back = crawl.now
    crawl.run()
    first, second = [start.time for start in crawl.starts if start.host == "a.cz"][-2:]
    assert min_s - ROUNDING_S <= second - first <= max(min_s, back - first) + 60.0 * (1 + others)


@settings(
    max_examples=15, suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)  # fmt: skip
@given(
    crawls(),
    st.lists(st.sampled_from(URLS), min_size=1, max_size=12),
    st.lists(st.tuples(st.sampled_from([0.5, 5.0, HOUR_S]), st.sampled_from([0.0, 3.0, HOUR_S])), max_size=4),
)
def test_no_change_brings_two_starts_closer_than_the_intervals_then_in_force(crawl, seeds, changes):
    """A request that starts late, or is just being opened, may go by the interval of some seconds before."""
    crawl.start_delay_s = crawl.start_delay_s or (lambda fetch: 0.0)  # a longer interval is kept at the gate
    in_force = [(0.0, crawl.options.host_interval_s, crawl.options.ip_interval_s)]
    crawl.run(*seeds, until=crawl.now + 20.0)
    for host_s, ip_s in [*changes, (HOST_S, IP_S)]:
        change(crawl, host_s, ip_s)
        in_force.append((crawl.now, host_s, ip_s))
        crawl.run(until=crawl.now + 30.0)
        crawl.commit()
    crawl.options = replace(crawl.options, host_interval_s=0.0, ip_interval_s=0.0)
    ends = [*(since for since, *_ in in_force[1:]), math.inf]
    for column, key in ((1, "host"), (2, "address")):
        for pair in pairs(crawl, key):
            at = pair[1].time
            in_those = [
                entry[column] for entry, end in zip(in_force, ends, strict=True) if entry[0] <= at <= end + 20.0
            ]
            asked_for = allowed_s(crawl, key, *pair, [0.0])
            assert at - pair[0].time >= max(min(in_those), asked_for) - ROUNDING_S, pair
