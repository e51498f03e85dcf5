"""Poor hosts wait while better ones are at work, and not for ever."""

from __future__ import annotations

from typing import Any

from virtual_crawl import Answer, VirtualCrawl, page, to

from spiderling.frontier.holding import Holding
from spiderling.frontier.hosts import Host, Marks
from spiderling.frontier.strategies import Strategy
from spiderling.reasons import Reason


class Two(Strategy):
    """Two hosts at least are at work."""

    fewest = 2


def held_for(*ranks: int) -> list[float | None]:
    """Seconds for which a host of each rank is held back when those of *ranks* have places; None for not at all."""
    holding = Holding(Two(), lambda: 5.0)
    hosts = [Host(number, f"h{number}.cz", Marks()) for number in range(len(ranks))]
    for host, rank in zip(hosts, ranks, strict=True):
        holding.count(host, rank)
    found: list[float | None] = []
    for host, rank in zip(hosts, ranks, strict=True):
        kept = holding.keeps(host, "10.0.0.1", rank, 0.0)
        found.append(holding.next_due() if kept else None)
        host.ticket += 1
    return found


def test_the_best_are_at_work_and_so_many_others_as_make_up_the_number() -> None:
    assert held_for(1, 1, 1, 1) == [None] * 4, "all alike"
    assert held_for(1, 2, 1, 2) == [None] * 4, "nearly alike"
    assert held_for(1, 5, 9) == [None, None, 86_400.0]
    assert held_for(1, 5, 5, 5, 5) == [None, *(15.0,) * 4], "one of four in each interval"


def test_hosts_that_promise_little_do_not_make_up_for_a_lack_of_better_ones() -> None:
    assert held_for(1, 6) == [None, 20.0], "far from the best: one request for five"
    assert held_for(1, 9) == held_for(7, 9) == [None, 495.0], (
        "less than a twelfth of what rich hosts give: one for a hundred"
    )
    assert held_for(9, 9, 9) == [None] * 3, "there are no better ones"


def test_released_when_the_better_ones_are_gone() -> None:
    holding = Holding(Two(), lambda: 5.0)
    better, poor = [Host(n, f"h{n}.cz", Marks()) for n in (1, 2)], Host(3, "poor.cz", Marks(), due=100.0)
    for host, rank in ((better[0], 1), (better[1], 2), (poor, 8)):
        holding.count(host, rank)
    assert holding.keeps(poor, "10.0.0.1", 8, 100.0)
    assert holding.released(200.0) is None
    holding.count(better[0], None)
    assert holding.released(200.0) == (poor, "10.0.0.1")
    assert holding.next_due() is None


def test_a_strategy_without_holds_nobody_back() -> None:
    holding = Holding(Strategy(), lambda: 5.0)
    host = Host(1, "a.cz", Marks())
    holding.count(host, 9)
    assert not holding.keeps(host, "10.0.0.1", 9, 0.0)


def test_hosts_that_do_not_answer_keep_nobody_waiting() -> None:
    """Ten seeds of the best rank fail and rest for longer and longer; a poor host is asked as usual meanwhile."""
    web: dict[str, Any] = {f"http://dead{n}.cz/": Answer(status=503, kept_bytes=0) for n in range(12)}
    web |= {f"http://poor.cz/{n}": page(f"http://poor.cz/{n + 1}", kept_bytes=5) for n in range(20)}
    crawl = VirtualCrawl(web, strategy="spiderling:fewest=5", yield_profile="off", retries=9, retry_delay_s=600.0)
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
    crawl = VirtualCrawl(web, strategy="spiderling:patience=0", yield_profile="off")
    crawl.run("http://rich.cz/0", "http://poor.cz/0", until=2000.0)
    assert len(crawl.fetched("rich.cz")) > 9 * len(crawl.fetched("poor.cz"))


def test_who_was_let_go_is_held_again_when_better_ones_have_come() -> None:
    holding = Holding(Two(), lambda: 5.0)
    better, poor = Host(1, "better.cz", Marks()), Host(2, "poor.cz", Marks(), due=100.0)
    holding.count(poor, 9)
    assert not holding.keeps(poor, "10.0.0.2", 9, 90.0), "nobody is better"
    holding.count(better, 1)
    assert holding.keeps(poor, "10.0.0.2", 9, 101.0)
    assert not holding.keeps(poor, "10.0.0.2", 9, 900.0), "it has waited long enough"


def test_a_poor_host_that_another_ones_robots_txt_is_asked_of_is_not_held_back() -> None:
    """Its being held for the sake of the host that waited for it left the whole crawl idle for hours."""
    foreign: dict[str, Any] = {"kept_bytes": 0, "reason": Reason.WRONG_LANGUAGE, "body_bytes": 30_000}
    web = {f"http://poor{h}.cz/{n}": page(f"http://poor{h}.cz/{n + 1}", **foreign) for n in range(90) for h in range(5)}
    web |= {f"http://rich.cz/{n}": page(f"http://rich.cz/{n + 1}", kept_bytes=9000) for n in range(30)}
    web |= {"http://new.cz/robots.txt": to("http://poor0.cz/rules.txt"), "http://new.cz/": page()}
    crawl = VirtualCrawl(web, strategy="spiderling:patience=0", yield_profile="off")
    crawl.run(*(f"http://poor{h}.cz/0" for h in range(5)), until=1150.0)
    crawl.run("http://rich.cz/0", until=1290.0)
    crawl.run("http://new.cz/", until=2000.0)
    assert crawl.fetched("new.cz")
    assert max(crawl.pauses()[60:]) < 20.0
