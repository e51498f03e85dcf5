"""As many hosts at work as can be served, the rich ones longest; and second chances when the web runs dry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.host import Host, HostState, HostStates
from spiderling.frontier.hosts.yields import MAX_STEPS, RetirementRule, YieldAccount
from spiderling.frontier.scheduling.crowd import RICH_TURNS, TURNS, Crowd


def a_host(rate: float, pages: int = 20, turns: int = 1) -> Host:
    states = HostStates()
    states.add_host(HostState.READY, 0)
    account = YieldAccount(pages, 1_000_000, int(rate * 1_000_000))
    return Host(1, "a.cz", states, account=account, turns=turns)


def ask(crowd: Crowd, late_s: float, used: int, times: int = 640) -> int:
    for _ in range(times):
        crowd.asked(late_s, 5.0, used)
    return crowd.places


def test_places_follow_what_can_be_served() -> None:
    crowd = Crowd(5000, True, lambda: 0.05)
    few = ask(crowd, 20.0, 3000)
    assert few < 1500, "asked much too late: places are taken away from those that are used"
    assert ask(crowd, 2.0, few) == few, "a little late: as it is"
    assert ask(crowd, 0.0, few - 1) == few, "in time, but places are free"
    more = ask(crowd, 0.0, 10_000)
    assert few < more <= 5000
    assert ask(crowd, 0.0, 10_000, 100_000) == 5000
    assert ask(crowd, 100.0, 10_000, 100_000) == 32, "never none"
    assert ask(Crowd(7, True, lambda: 0.05), 100.0, 7, 100_000) == 7


def test_a_fixed_crowd_stays_as_it_is() -> None:
    crowd = Crowd(5000, False, lambda: 0.05)
    assert ask(crowd, 100.0, 5000) == 5000
    assert not crowd.is_rich(a_host(0.9))


def test_who_gives_much_stays_longest_and_nobody_for_ever() -> None:
    crowd = Crowd(10, True, lambda: 0.05)
    rich, poor, young = a_host(0.2), a_host(0.01), a_host(0.2, pages=3)
    assert [crowd.is_rich(host) for host in (rich, poor, young)] == [True, False, False]
    assert [crowd.makes_room(host, 11, True) for host in (rich, poor, young)] == [False, True, True]
    assert not any(crowd.makes_room(host, 10, True) for host in (rich, poor, young))
    assert crowd.makes_room(a_host(0.01, turns=TURNS), 10, True)
    assert not crowd.makes_room(a_host(0.01, turns=TURNS), 10, False), "nobody waits for the place"
    assert not crowd.makes_room(a_host(0.2, turns=RICH_TURNS - 1), 10, True)
    assert crowd.makes_room(a_host(0.2, turns=RICH_TURNS), 10, True)


def test_every_host_is_served_though_some_are_rich_and_places_are_few() -> None:
    rich = {f"http://rich{h}.cz/{n}": page(body_bytes=1000, kept_bytes=900) for h in range(3) for n in range(30)}
    poor = {f"http://poor{h}.cz/{n}": page(body_bytes=1000, kept_bytes=1) for h in range(9) for n in range(30)}
    crawl = VirtualCrawl(rich | poor, active_hosts=4, yield_profile="off").run(*rich, *poor)
    assert crawl.ends == {Reason.KEPT: 12 * 30}
    last = {host: max(start.time for start in crawl.starts if start.host == host) for host in ("rich0.cz", "poor0.cz")}
    assert last["rich0.cz"] < last["poor0.cz"]


# -- when the web runs dry

SOME = {f"http://some.cz/{n}": page(body_bytes=100_000, kept_bytes=300) for n in range(300)}
NONE = {f"http://none.cz/{n}": page(body_bytes=100_000, kept_bytes=0) for n in range(300)}


def test_steps_lead_from_a_profile_to_the_next_milder_one() -> None:
    rule = RetirementRule(0.005, 8, 512_000)
    assert rule.milder(1).factor == pytest.approx(0.002)
    account = YieldAccount(100, 10_000_000, 30_000)  # .003
    assert rule.retires(account) and rule.steps_for(account, 0) == 1 and rule.steps_for(account, 1) == 2
    assert rule.steps_for(account, MAX_STEPS) is None
    assert rule.steps_for(YieldAccount(100, 10_000_000, 0), 0) is None, "what gave nothing gets no second chance"
    off = replace(rule, factor=None)
    assert off.milder(3) == off


def test_without_the_option_a_retired_host_stays_retired() -> None:
    crawl = VirtualCrawl(SOME).run(*SOME)
    assert crawl.host("some.cz").state is HostState.RETIRED
    assert crawl.ends[Reason.HOST_RETIRED] > 200


def test_when_nothing_is_left_the_best_retired_host_goes_on_by_a_milder_threshold() -> None:
    crawl = VirtualCrawl(SOME | NONE, min_active_hosts=1).run(*SOME, *NONE)
    some, none = crawl.host("some.cz"), crawl.host("none.cz")
    assert none.state is HostState.RETIRED and none.second_chances == 0
    assert 1 <= some.second_chances <= MAX_STEPS and not some.pinned
    assert crawl.ends[Reason.KEPT] > 100
    assert crawl.ends[Reason.KEPT] + crawl.ends[Reason.BOILERPLATE_ONLY] + crawl.ends[Reason.HOST_RETIRED] == 600
    assert [host.name for host in crawl.frontier.take_reopened()] == ["some.cz"] * some.second_chances


def test_a_second_chance_survives_a_restart_and_is_written_down() -> None:
    crawl = VirtualCrawl(SOME, min_active_hosts=1)
    for url in SOME:
        crawl.frontier.put_seed(url, crawl.now)
    while not crawl.frontier.take_reopened():
        crawl.run(until=crawl.now + 60)
    events = [what for _, what in crawl.frontier.drain(crawl.now).events]
    assert len(events) == 1 and events[0].startswith("too few hosts: reopened some.cz, yield rate 0.00")
    crawl = VirtualCrawl(SOME).run(*SOME)  # retired without the option, killed, gone on with it
    crawl.commit()
    crawl.options = replace(crawl.options, min_active_hosts=1)
    crawl.kill_and_resume()
    crawl.run(until=crawl.now + 30)
    second_chances = crawl.host("some.cz").second_chances
    assert second_chances >= 1
    crawl.commit()
    crawl.kill_and_resume()
    assert crawl.host("some.cz").second_chances == second_chances and not crawl.host("some.cz").pinned


def test_slow_answers_and_waiting_in_line_are_not_lateness() -> None:
    slow = {f"http://h{h}.cz/{n}": page(transit_s=40.0) for h in range(40) for n in range(20)}
    crawl = VirtualCrawl(slow, active_hosts=35, retries=0).run(*slow)
    assert crawl.ends == {Reason.KEPT: 800}
    assert crawl.frontier.schedule.crowd.places == 35
