"""Hosts of little yield are asked more seldom than better ones, and not never."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import Answer, VirtualCrawl, page, to

from spiderling.base.reasons import Reason
from spiderling.frontier import intervals
from spiderling.frontier.hosts import Host, HostStates, YieldAccount
from spiderling.frontier.throttle import BAR, Throttle

UNREAD, READ, FOREIGN = range(3)  # what is known of a host
INTERVAL_S = 5.0
DAY_S = 86_400.0
LONG_AGO = -1e6


def host_of(number: int, known: int = READ) -> Host:
    host = Host(number, f"h{number}.cz", HostStates(), account=YieldAccount(pages=int(known != UNREAD)))
    host.documents = int(known == READ)
    return host


class Hosts:
    """Hosts with places, each of a rank and with what is known of it."""

    def __init__(self, *kinds: tuple[int, int], thrift: float = 1.0, rate: float | None = 0.1) -> None:
        """*rate*: the crawl's yield rate, from hosts that are gone; None: the crawl begins."""
        self.foreign: set[int] = set()
        self.throttle = Throttle(thrift, lambda host: host.id in self.foreign, lambda: INTERVAL_S)
        if rate is not None:
            before = self.add(-1, 0, READ)
            self.throttle.learn(before, int(rate * 10**12), 10**12, LONG_AGO)
            self.throttle.count(before, None)
        self.hosts = [self.add(number, *kind) for number, kind in enumerate(kinds)]
        self.ranks = [rank for rank, _ in kinds]

    def add(self, number: int, rank: int, known: int) -> Host:
        host = host_of(number, known)
        if known == FOREIGN:
            self.foreign.add(number)
        self.throttle.count(host, rank)
        return host

    def gave(self, number: int, kept_bytes: int, pages: int = 200, now: float = 0.0) -> None:
        """This host gave as much by each of *pages* pages of 30 kB."""
        for _ in range(pages):
            self.throttle.learn(self.hosts[number], kept_bytes, 30_000, now)

    def waits(self, number: int) -> float:
        """Seconds that this host waits beyond its interval."""
        host = self.hosts[number]
        if not self.throttle.keeps(host, "10.0.0.1", self.ranks[number], 0.0):
            return 0.0
        due = self.throttle.next_due()
        host.version += 1
        assert due is not None
        return due


def test_hosts_above_the_bar_are_asked_at_every_interval_and_those_below_it_the_more_seldom() -> None:
    hosts = Hosts((1, READ), (5, READ), (8, READ))
    hosts.gave(0, 3_000)
    hosts.gave(1, 1_200)
    below = 0.5
    hosts.gave(2, int(30_000 * 0.1 * BAR * below), 400)
    assert (hosts.waits(0), hosts.waits(1)) == (0.0, 0.0)
    assert hosts.waits(2) == pytest.approx(INTERVAL_S * (below**-3 - 1.0), rel=0.15)


def test_with_more_thrift_the_bar_is_higher_and_with_none_nobody_waits() -> None:
    for thrift, is_held in ((0.0, False), (1.0, False), (3.0, True)):
        hosts = Hosts((1, READ), (5, READ), thrift=thrift)
        hosts.gave(0, 3_000)
        hosts.gave(1, 1_200)
        assert (hosts.waits(1) > 0.0) is is_held


def test_nobody_waits_for_long_before_the_crawl_has_some_text() -> None:
    """The home pages of the seeds gave nothing, and one host a few hundred words: all others waited for minutes."""
    hosts = Hosts((1, READ), (6, UNREAD), (5, READ), rate=None)
    hosts.gave(0, 0, 80)
    hosts.gave(2, 4_000, 2)
    assert hosts.throttle.released(10.0) is None
    assert hosts.waits(1) <= INTERVAL_S
    hosts.gave(2, 4_000, 60)
    assert hosts.waits(0) > INTERVAL_S


def test_what_hosts_gave_counts_more_than_what_their_rank_promises() -> None:
    hosts = Hosts((1, READ), (7, READ))
    hosts.gave(0, 100)
    hosts.gave(1, 3_000)
    assert hosts.waits(0) > INTERVAL_S and not hosts.waits(1)


def test_the_best_class_at_work_never_waits() -> None:
    """The end of a crawl has no rich hosts any more."""
    hosts = Hosts((8, READ), (9, READ), (9, FOREIGN), rate=1e-6)
    hosts.gave(0, 10)
    assert [hosts.waits(number) > 0 for number in range(3)] == [False, True, True]
    hosts.throttle.count(hosts.hosts[0], None)
    assert hosts.waits(1) == 0.0 < hosts.waits(2)


def test_foreign_hosts_go_behind_others_of_their_rank() -> None:
    hosts = Hosts((1, READ), (6, READ), (6, UNREAD), (6, FOREIGN))
    hosts.gave(0, 3_000)
    assert hosts.waits(1) == hosts.waits(2) < hosts.waits(3), "they promise little"
    hosts.foreign.add(1)
    assert hosts.waits(1) < hosts.waits(3), "it has text as well"
    hosts.gave(1, 1_200)
    hosts.gave(3, 1_200)
    assert hosts.waits(1) == hosts.waits(3) == 0.0, "what they gave counts more"


def test_foreign_hosts_wait_before_the_crawl_has_text_and_while_it_idles() -> None:
    """A web of two hosts with text: second pages of 35 others took half of the bytes of its first half."""
    hosts = Hosts((1, UNREAD), (9, UNREAD), (9, READ), (9, FOREIGN), rate=None)
    assert [hosts.waits(number) > 10 * INTERVAL_S for number in range(4)] == [False, False, False, True]
    hosts = Hosts((1, READ), (6, FOREIGN), (7, READ))
    for number in (1, 2):
        hosts.gave(number, int(30_000 * 0.1 * BAR / 2))
    for second in range(0, 87_000, 10):
        hosts.gave(0, 3_000 if second < 86_400 or second % 50 == 0 else 0, 1, now=float(second))
    assert [hosts.waits(number) > INTERVAL_S for number in range(3)] == [False, True, False]


def test_an_unread_host_is_worth_what_such_hosts_gave_over_their_whole_life() -> None:
    hosts = Hosts((1, READ), *[(6, UNREAD)] * 40)
    hosts.gave(0, 3_000)
    untried = hosts.waits(40)
    for number in range(1, 21):
        hosts.gave(number, 0, 1)
    assert hosts.waits(40) > 10 * untried > 0.0
    for number in range(1, 21):
        hosts.hosts[number].account.pages = hosts.hosts[number].documents = 1
        hosts.throttle.count(hosts.hosts[number], 2)
        hosts.gave(number, 3_000, 20)
    assert hosts.waits(40) == 0.0


def test_the_bar_falls_with_the_text_a_second_and_not_below_a_fifth() -> None:
    hosts = Hosts((1, READ), (7, READ), (9, READ))
    hosts.gave(2, 0, 1_000)
    hosts.gave(1, int(30_000 * 0.1 * BAR / 2))
    for second in range(0, 86_400, 10):
        hosts.gave(0, 3_000, 1, now=float(second))
    busy = hosts.waits(1)
    for second in range(86_400, 87_000, 10):
        hosts.gave(0, 3_000 if second % 50 == 0 else 0, 1, now=float(second))
    assert hosts.waits(1) == 0.0 < busy
    assert hosts.waits(2) > 1_000.0, "known to be worthless"


@given(
    st.lists(st.tuples(st.sampled_from([1, 5, 8, 9]), st.sampled_from(range(3))), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 10, 3_000, 30_000])), max_size=6),
    st.sampled_from([0.0, 0.001, 0.5]),
    st.sampled_from([0.0, 1.0, 100.0]),
)
def test_whatever_hosts_gave_somebody_is_at_work_and_nobody_waits_for_longer_than_a_day(kinds, gave, rate, thrift):
    hosts = Hosts(*kinds, thrift=thrift, rate=rate)
    for at, (number, kept) in enumerate(gave):
        hosts.gave(number % len(kinds), kept, 20, now=100.0 * at)
    waits = [hosts.waits(number) for number in range(len(kinds))]
    assert 0.0 in waits
    assert max(waits) <= DAY_S


def test_nobody_waits_for_hosts_that_have_lost_their_places() -> None:
    """A host that is to rest for long is no longer counted, and waited for as long as others of its class did."""
    hosts = Hosts((1, READ), (9, READ))
    hosts.gave(0, 3_000)
    assert hosts.waits(1)
    hosts.throttle.count(hosts.hosts[0], None)
    assert not hosts.waits(1)


def test_the_last_of_the_hosts_is_asked_when_its_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stayed held for the sake of better ones that were gone, 385 s with URLs waiting."""
    web: dict[str, Any] = {
        f"http://good.cz/{n}": page(f"http://good.cz/{n + 1}", kept_bytes=9000, body_bytes=30_000) for n in range(300)
    }
    foreign: dict[str, Any] = {"kept_bytes": 0, "reason": Reason.WRONG_LANGUAGE, "body_bytes": 300_000}
    web |= {f"http://poor.cz/{n}": page(f"http://poor.cz/{n + 1}", **foreign) for n in range(60)}
    web["http://poor.cz/10"] = [Answer(status=503, kept_bytes=0, retry_after_s=900.0), page(**foreign)]
    monkeypatch.setattr(intervals, "RETRY_DELAY_S", 600.0)
    crawl = VirtualCrawl(web, yield_profile="off", retries=9)
    crawl.run("http://poor.cz/0", until=1060.0)
    crawl.run("http://good.cz/0", until=9000.0)
    assert len(crawl.fetched("poor.cz")) > 11
    assert max(crawl.pauses()) < 30.0


def test_released_when_the_better_ones_are_gone() -> None:
    hosts = Hosts((1, READ), (9, READ))
    hosts.gave(0, 3_000)
    better, poor = hosts.hosts
    throttle = hosts.throttle
    poor.due = 100.0
    assert throttle.keeps(poor, "10.0.0.1", 9, 100.0)
    assert throttle.released(119.0) is None
    assert (throttle.number(99.0), throttle.number(100.0)) == (0, 1), "it waits for its turn until then"
    throttle.count(better, None)
    assert throttle.released(119.0) == (poor, "10.0.0.1")
    assert throttle.next_due() is None
    assert throttle.number(200.0) == 0


def test_hosts_that_do_not_answer_keep_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seeds of the best rank fail and rest for longer and longer; a poor host is asked as usual meanwhile."""
    web: dict[str, Any] = {f"http://dead{n}.cz/": Answer(status=503, kept_bytes=0) for n in range(12)}
    web |= {f"http://poor.cz/{n}": page(f"http://poor.cz/{n + 1}", kept_bytes=5) for n in range(20)}
    monkeypatch.setattr(intervals, "RETRY_DELAY_S", 600.0)
    crawl = VirtualCrawl(web, yield_profile="off", retries=9)
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
    crawl = VirtualCrawl(web, yield_profile="off")
    crawl.run("http://rich.cz/0", "http://poor.cz/0", until=2000.0)
    assert len(crawl.fetched("rich.cz")) > 9 * len(crawl.fetched("poor.cz"))


def test_who_was_let_go_waits_again_when_better_ones_have_come() -> None:
    hosts = Hosts((9, READ))
    hosts.gave(0, 300)
    throttle = hosts.throttle
    (poor,) = hosts.hosts
    poor.due = 100.0
    assert not throttle.keeps(poor, "10.0.0.2", 9, 90.0), "nobody is better"
    hosts.add(1, 1, READ)
    assert throttle.keeps(poor, "10.0.0.2", 9, 101.0)
    assert not throttle.keeps(poor, "10.0.0.2", 9, 50_000.0), "it has waited long enough"


def test_only_who_waits_for_long_makes_room_for_better_hosts() -> None:
    hosts = Hosts((1, READ), (8, READ), (9, READ))
    for number, kept_bytes in enumerate((9000, 300, 30)):
        hosts.gave(number, kept_bytes)
    throttle = hosts.throttle
    waits_s = [hosts.waits(number) for number in range(3)]
    assert waits_s[0] < waits_s[1] < waits_s[2]
    for host, rank in zip(hosts.hosts, hosts.ranks, strict=True):
        throttle.keeps(host, "10.0.0.1", rank, 0.0)
    assert throttle.pop_worse(9, 1.0) is None, "no rank is worse than 9"
    assert throttle.pop_worse(7, waits_s[2] + 1) is None
    assert throttle.pop_worse(7, waits_s[2]) is hosts.hosts[2]
    assert throttle.pop_worse(7, waits_s[2]) is None
    assert throttle.pop_worse(7, waits_s[1]) is hosts.hosts[1]


def test_a_poor_host_that_another_ones_robots_txt_is_asked_of_does_not_wait() -> None:
    """Its being held for the sake of the host that waited for it left the whole crawl idle for hours."""
    foreign: dict[str, Any] = {"kept_bytes": 0, "reason": Reason.WRONG_LANGUAGE, "body_bytes": 30_000}
    web = {f"http://poor{h}.cz/{n}": page(f"http://poor{h}.cz/{n + 1}", **foreign) for n in range(90) for h in range(5)}
    web |= {f"http://rich.cz/{n}": page(f"http://rich.cz/{n + 1}", kept_bytes=9000) for n in range(30)}
    web |= {"http://new.cz/robots.txt": to("http://poor0.cz/rules.txt"), "http://new.cz/": page()}
    crawl = VirtualCrawl(web, yield_profile="off")
    crawl.run(*(f"http://poor{h}.cz/0" for h in range(5)), until=1150.0)
    crawl.run("http://rich.cz/0", until=1290.0)
    crawl.run("http://new.cz/", until=2000.0)
    assert crawl.fetched("new.cz")
    assert max(crawl.pauses()[60:]) < 20.0
