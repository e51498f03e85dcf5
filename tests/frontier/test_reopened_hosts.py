"""Every host is served though places are few; and second chances when the web runs dry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.base.reasons import Reason
from spiderling.frontier.host_closing import MAX_STEPS, RetirementRule
from spiderling.frontier.hosts import HostState, YieldAccount


def test_every_host_is_served_though_places_are_few() -> None:
    rich = {f"http://rich{h}.cz/{n}": page(body_bytes=1000, kept_bytes=900) for h in range(3) for n in range(30)}
    poor = {f"http://poor{h}.cz/{n}": page(body_bytes=1000, kept_bytes=1) for h in range(9) for n in range(30)}
    crawl = VirtualCrawl(rich | poor, active_hosts=4, yield_profile="off").run(*rich, *poor)
    assert crawl.ends == {Reason.KEPT: 12 * 30}


# -- when the web runs dry

SOME = {f"http://some.cz/{n}": page(body_bytes=100_000, kept_bytes=300) for n in range(300)}
NONE = {f"http://none.cz/{n}": page(body_bytes=100_000, kept_bytes=0) for n in range(300)}


def test_steps_lead_from_a_profile_to_the_next_milder_one() -> None:
    rule = RetirementRule(0.005, 8, 512_000)
    assert rule.milder(1).factor == pytest.approx(0.002)
    account = YieldAccount(100, 10_000_000, 30_000)  # .003
    assert rule.retires(account) and rule.steps_for(account, 0) == 1 and rule.steps_for(account, 1) == 2
    assert rule.milder(MAX_STEPS).factor == 0.0 and not rule.milder(MAX_STEPS).retires(account), "read to its end"
    assert rule.steps_for(account, MAX_STEPS) is None
    assert rule.steps_for(YieldAccount(100, 10_000_000, 0), 0) is None, "what gave nothing gets no second chance"
    off = replace(rule, factor=None)
    assert off.milder(3) == off


def test_with_another_strategy_a_retired_host_stays_retired() -> None:
    crawl = VirtualCrawl(SOME, strategy="yield").run(*SOME)
    assert crawl.host("some.cz").state is HostState.RETIRED
    assert crawl.ends[Reason.HOST_RETIRED] > 200


def test_when_nothing_is_left_the_best_retired_host_goes_on_by_a_milder_threshold() -> None:
    crawl = VirtualCrawl(SOME | NONE).run(*SOME, *NONE)
    some, none = crawl.host("some.cz"), crawl.host("none.cz")
    assert none.state is HostState.RETIRED and none.second_chances == 0
    assert 1 <= some.second_chances <= MAX_STEPS and not some.pinned
    assert crawl.ends[Reason.KEPT] > 100
    assert crawl.ends[Reason.KEPT] + crawl.ends[Reason.BOILERPLATE_ONLY] + crawl.ends[Reason.HOST_RETIRED] == 600
    assert [host.name for host in crawl.frontier.host_closing.take_reopened()] == ["some.cz"] * some.second_chances


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
    second_chances = crawl.host("some.cz").second_chances
    assert second_chances >= 1
    crawl.commit()
    crawl.kill_and_resume()
    assert crawl.host("some.cz").second_chances == second_chances and not crawl.host("some.cz").pinned


@pytest.mark.parametrize("unit", ["host", "registrable"])
def test_a_milder_profile_lets_retired_hosts_go_on_after_a_restart(unit: str) -> None:
    crawl = VirtualCrawl(SOME | NONE, strategy="yield", yield_unit=unit).run(*SOME, *NONE)
    crawl.commit()
    crawl.kill_and_resume()
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


def test_a_milder_profile_reopens_all_hosts_of_a_domain_that_are_retired_together() -> None:
    """The first was woken before the others were reopened, and closed again for their sake."""
    names = [f"{letter}.some.cz" for letter in "abc"]
    web = {f"http://{name}/{n}": page(body_bytes=100_000, kept_bytes=300) for n in range(150) for name in names}
    crawl = VirtualCrawl(web, strategy="yield", yield_unit="registrable").run(*web)
    assert {crawl.host(name).state for name in names} == {HostState.RETIRED}
    crawl.commit()
    crawl.options = replace(crawl.options, yield_profile="0.001")
    crawl.kill_and_resume()
    crawl.run()
    assert crawl.ends == {Reason.KEPT: 450}
