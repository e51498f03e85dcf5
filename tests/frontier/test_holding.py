"""Poor hosts wait while better ones are at work, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from virtual_crawl import Answer, VirtualCrawl, page, to

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.host import Host, HostStates
from spiderling.frontier.hosts.yields import YieldAccount
from spiderling.frontier.ranking.strategy import Strategy
from spiderling.frontier.scheduling.holding import Holding


class Hasty(Strategy):
    """Time is worth the bytes of ten hosts at work."""

    haste = 10


def host_of(number: int, read: bool = True) -> Host:
    return Host(number, f"h{number}.cz", HostStates(), account=YieldAccount(pages=int(read)))


def counted(*ranks: int, read: bool = True, strategy: type[Strategy] = Hasty) -> tuple[Holding, list[Host]]:
    """Hosts of these ranks have places."""
    holding = Holding(strategy(), lambda: 5.0)
    hosts = [host_of(number, read) for number in range(len(ranks))]
    for host, rank in zip(hosts, ranks, strict=True):
        holding.count(host, rank)
    return holding, hosts


def held_for(holding: Holding, host: Host, rank: int) -> float | None:
    """Seconds for which it is held back; None for not at all."""
    kept = holding.keeps(host, "10.0.0.1", rank, 0.0)
    due = holding.next_due() if kept else None
    host.renew_version()
    return due


def seconds(*ranks: int, read: bool = True) -> list[float | None]:
    """How long a host of each of *ranks* is held back, the best rank first."""
    holding, hosts = counted(*ranks, read=read)
    return [held_for(holding, hosts[ranks.index(rank)], rank) for rank in sorted(set(ranks))]


def test_hosts_wait_that_give_less_than_the_better_ones_and_the_price_of_time() -> None:
    assert seconds(1, 1, 1, 1) == [None], "all alike"
    assert seconds(1, *[2] * 30, 3) == [None] * 3, "nearly alike"
    assert seconds(1, 3, 4) == [None] * 3, "few are at work, and time is worth more"
    best, better, poor = seconds(*[1] * 10, *[2] * 30, *[4] * 50)
    assert (best, better) == (None, None)
    border = (10 / 1.7 + 30 / 1.7**2) / 50
    assert poor == pytest.approx(5.0 * (50 / (50 * (1.7**-4 / border) ** 3) - 1.0))


def test_who_wants_less_haste_holds_back_more() -> None:
    class Patient(Strategy):
        haste = 1

    holding, hosts = counted(1, 1, 4, 4, strategy=Patient)
    assert held_for(holding, hosts[-1], 4)
    holding, hosts = counted(1, 1, 4, 4)
    assert held_for(holding, hosts[-1], 4) is None


def test_what_hosts_gave_counts_more_than_what_their_rank_promises() -> None:
    holding, hosts = counted(*[1] * 30, *[5] * 30)
    first = held_for(holding, hosts[-1], 5)
    assert first is not None
    for _ in range(200):
        holding.learn(hosts[0], 1_000, 30_000)
        holding.learn(hosts[-1], 2_000, 30_000)
    assert held_for(holding, hosts[-1], 5) is None
    assert held_for(holding, hosts[0], 1) is None, "half as much, and time has its price"
    for _ in range(2000):
        holding.learn(hosts[0], 100, 30_000)
    assert (held_for(holding, hosts[0], 1) or 0.0) > 100.0, "what came long ago is forgotten"


def test_who_is_held_back_is_tried_again_after_long() -> None:
    holding, hosts = counted(*[1] * 30, *[2] * 30)
    for _ in range(700):
        holding.learn(hosts[-1], 0, 30_000)
        holding.learn(hosts[0], 3_000, 30_000)
    first = held_for(holding, hosts[-1], 2)
    for _ in range(40_000):
        holding.learn(hosts[0], 3_000, 30_000)
    assert (held_for(holding, hosts[-1], 2) or 0.0) < (first or 0.0) / 10


def test_hosts_that_promise_little_do_not_make_up_for_a_lack_of_better_ones() -> None:
    assert seconds(1, 6) == [None, 245.0], "far from the best: one request for fifty, for five with a haste of 100"
    assert seconds(1, 9) == [None, 4995.0], "less than a twelfth of what rich hosts give: one for a thousand"
    assert (seconds(1, 9, read=False)[1] or 0.0) < 120.0, "nobody knows what it gives"
    assert seconds(9, 9, 9) == [None], "there are no better ones"
    assert seconds(6, *[1] * 2, *[6] * 3) == [None, pytest.approx(5.0 * (4 / 0.04 - 1.0))], "all of them together"


def test_who_gives_most_is_not_poor_whatever_its_rank_promises() -> None:
    """Read hosts of rank 6 gave thirty times as much as unread ones of rank 1, and were held back for a day."""
    holding, hosts = counted(*[6] * 50)
    unread = [host_of(number, read=False) for number in range(100, 400)]
    for host in unread:
        holding.count(host, 1)
    assert held_for(holding, hosts[0], 6)
    for _ in range(200):
        holding.learn(unread[0], 90, 30_000)
        holding.learn(hosts[0], 3_000, 30_000)
    assert held_for(holding, hosts[0], 6) is None
    assert held_for(holding, unread[0], 1) is not None


@given(
    st.lists(st.tuples(st.sampled_from([1, 5, 8, 9]), st.booleans()), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 100, 2_000_000]), st.just(4_000_000)), max_size=6),
)
@example([(9, True), (5, True)], [(0, 2_000_000, 4_000_000), (1, 0, 4_000_000)])
def test_whatever_hosts_gave_somebody_is_at_work_and_nobody_waits_for_longer_than_a_day(
    ranks: list[tuple[int, bool]], gave: list[tuple[int, int, int]]
) -> None:
    holding, hosts = Holding(Hasty(), lambda: 5.0), [host_of(at, read) for at, (_, read) in enumerate(ranks)]
    for host, (rank, _) in zip(hosts, ranks, strict=True):
        holding.count(host, rank)
    for at, kept, downloaded in gave:
        for _ in range(20):
            holding.learn(hosts[at % len(hosts)], min(kept, downloaded), downloaded)
    held = [held_for(holding, host, rank) for host, (rank, _) in zip(hosts, ranks, strict=True)]
    assert None in held
    assert all(0.0 < seconds <= 86_400.0 for seconds in held if seconds is not None)


def test_hosts_of_the_last_rank_are_at_work_when_they_are_known_to_give_enough() -> None:
    """4,151 of them waited for the sake of one better host, which gave seven times as much."""
    holding, hosts = counted(5, *[9] * 30)
    assert held_for(holding, hosts[-1], 9)
    for _ in range(64):
        holding.learn(hosts[0], 3_500, 30_000)
        holding.learn(hosts[-1], 500, 30_000)
    assert held_for(holding, hosts[-1], 9) is None


def test_nobody_waits_for_hosts_that_have_lost_their_places() -> None:
    """A host that is to rest for long is no longer counted, and held back for as long as others of its kind were."""
    holding, (_, poor) = counted(1, 9)
    holding.count(poor, None)
    assert not holding.keeps(poor, "10.0.0.1", 9, 0.0)


def test_the_last_of_the_hosts_is_asked_when_its_rest_is_over() -> None:
    """It stayed held for the sake of better ones that were gone, 385 s with URLs waiting."""
    web: dict[str, Any] = {
        f"http://good.cz/{n}": page(f"http://good.cz/{n + 1}", kept_bytes=9000, body_bytes=30_000) for n in range(300)
    }
    foreign: dict[str, Any] = {"kept_bytes": 0, "reason": Reason.WRONG_LANGUAGE, "body_bytes": 300_000}
    web |= {f"http://poor.cz/{n}": page(f"http://poor.cz/{n + 1}", **foreign) for n in range(60)}
    web["http://poor.cz/11"] = [Answer(status=503, kept_bytes=0, retry_after_s=900.0), page(**foreign)]
    limits: dict[str, Any] = {"retries": 9, "retry_delay_s": 600.0, "max_snooze_s": 3600.0}
    crawl = VirtualCrawl(web, strategy="spiderling:haste=100", yield_profile="off", **limits)
    crawl.run("http://poor.cz/0", until=1060.0)
    crawl.run("http://good.cz/0", until=9000.0)
    assert len(crawl.fetched("poor.cz")) > 11
    assert max(crawl.pauses()) < 30.0


def test_released_when_the_better_ones_are_gone() -> None:
    holding, (better, poor) = counted(1, 8)
    poor.due = 100.0
    assert holding.keeps(poor, "10.0.0.1", 8, 100.0)
    assert holding.released(119.0) is None
    assert (holding.number(99.0), holding.number(100.0)) == (0, 1), "it waits for its turn until then"
    holding.count(better, None)
    assert holding.released(119.0) == (poor, "10.0.0.1")
    assert holding.next_due() is None
    assert holding.number(200.0) == 0


def test_a_strategy_without_holds_nobody_back() -> None:
    holding, (_, host) = counted(1, 9, strategy=Strategy)
    assert not holding.keeps(host, "10.0.0.1", 9, 0.0)


def test_hosts_that_do_not_answer_keep_nobody_waiting() -> None:
    """Ten seeds of the best rank fail and rest for longer and longer; a poor host is asked as usual meanwhile."""
    web: dict[str, Any] = {f"http://dead{n}.cz/": Answer(status=503, kept_bytes=0) for n in range(12)}
    web |= {f"http://poor.cz/{n}": page(f"http://poor.cz/{n + 1}", kept_bytes=5) for n in range(20)}
    crawl = VirtualCrawl(web, strategy="spiderling:haste=5", yield_profile="off", retries=9, retry_delay_s=600.0)
    crawl.run(*(url for url in web if "dead" in url), "http://poor.cz/0", until=2000.0)
    assert len(crawl.fetched("poor.cz")) > 15


def test_poor_hosts_that_answer_slowly_wait_too() -> None:
    """They rest for longer than an interval, and were asked as soon as that was over, whatever they promised."""
    slow: dict[str, Any] = {"transit_s": 3.0, "body_bytes": 30_000}
    web = {f"http://rich.cz/{n}": page(f"http://rich.cz/{n + 1}", kept_bytes=9000, **slow) for n in range(200)}
    web |= {
        f"http://poor.cz/{n}": page(f"http://poor.cz/{n + 1}", kept_bytes=0, reason=Reason.WRONG_LANGUAGE, **slow)
        for n in range(200)
    }
    crawl = VirtualCrawl(web, strategy="spiderling:patience=0,haste=100", yield_profile="off")
    crawl.run("http://rich.cz/0", "http://poor.cz/0", until=2000.0)
    assert len(crawl.fetched("rich.cz")) > 9 * len(crawl.fetched("poor.cz"))


def test_who_was_let_go_is_held_again_when_better_ones_have_come() -> None:
    holding, (poor,) = counted(9)
    better, poor.due = host_of(1), 100.0
    assert not holding.keeps(poor, "10.0.0.2", 9, 90.0), "nobody is better"
    holding.count(better, 1)
    assert holding.keeps(poor, "10.0.0.2", 9, 101.0)
    assert not holding.keeps(poor, "10.0.0.2", 9, 6000.0), "it has waited long enough"


def test_a_poor_host_that_another_ones_robots_txt_is_asked_of_is_not_held_back() -> None:
    """Its being held for the sake of the host that waited for it left the whole crawl idle for hours."""
    foreign: dict[str, Any] = {"kept_bytes": 0, "reason": Reason.WRONG_LANGUAGE, "body_bytes": 30_000}
    web = {f"http://poor{h}.cz/{n}": page(f"http://poor{h}.cz/{n + 1}", **foreign) for n in range(90) for h in range(5)}
    web |= {f"http://rich.cz/{n}": page(f"http://rich.cz/{n + 1}", kept_bytes=9000) for n in range(30)}
    web |= {"http://new.cz/robots.txt": to("http://poor0.cz/rules.txt"), "http://new.cz/": page()}
    crawl = VirtualCrawl(web, strategy="spiderling:patience=0,haste=100", yield_profile="off")
    crawl.run(*(f"http://poor{h}.cz/0" for h in range(5)), until=1150.0)
    crawl.run("http://rich.cz/0", until=1290.0)
    crawl.run("http://new.cz/", until=2000.0)
    assert crawl.fetched("new.cz")
    assert max(crawl.pauses()[60:]) < 20.0
