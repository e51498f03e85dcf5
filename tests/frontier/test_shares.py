"""A link farm gets its share of the requests and no more, as long as hosts of others are due; alone it gets all."""

from __future__ import annotations

from collections import Counter

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.replay import Replay, world
from spiderling.base.link_batch import NONE
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import schedule
from spiderling.frontier.hosts import Host, HostStates
from spiderling.frontier.workbench import BURST, Backlog, Shares, Workbench

SHARE = schedule.MAX_SHARE
FARM_HOSTS, GOOD_HOSTS = 2000, 100
PER_S = 10


class Farm:
    """Hosts ``s0`` and so on of a farm, and good ones ``g0`` with an address each: text on every page, no links."""

    def __init__(self, addresses: int, domains: int) -> None:
        self._addresses, self._domains = addresses, domains

    def host(self, number: int) -> str:
        return f"s{number}.farm{number % self._domains}.cz"

    def address(self, name: str) -> str:
        number = int(name[1:].partition(".")[0])
        return f"10.1.{number % self._addresses}.1" if name.startswith("s") else f"10.2.{number}.1"

    def latency_s(self, url: str) -> float:
        return 0.1

    def site_file(self, url: str) -> tuple[int, bytes, str | None]:
        return 404, b"", None

    def outcome(self, url_id: int, url: str) -> Outcome:
        return Outcome(url_id, url, Reason.KEPT, 200, body_bytes=1000, kept_bytes=500, words=70, links=NONE)

    def seeds(self, farm_hosts: int, pages: int) -> list[str]:
        return [f"http://{self.host(host)}/{page}" for host in range(farm_hosts) for page in range(pages)]


class Counting(Replay):
    """Counts who is asked, by the first letter of the host's name."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.asked: Counter[str] = Counter()
        started = self.frontier.started

        def counted(fetch: object, now: float) -> None:
            self.asked[fetch.host.name[0]] += 1  # type: ignore[attr-defined]
            started(fetch, now)  # type: ignore[arg-type]

        self.frontier.started = counted  # type: ignore[method-assign,assignment]


GOOD = [f"http://g{host}.cz/{page}" for host in range(GOOD_HOSTS) for page in range(20)]


@pytest.mark.parametrize(
    ("addresses", "domains", "strategy", "places"),
    [
        (1, 1, "bfs", 500), (256, 1, "bfs", 500), (256, 1, "spiderling", 500),
        pytest.param(256, 1, "heidix", 500, marks=pytest.mark.slow), (1, FARM_HOSTS, "bfs", 500),
        pytest.param(256, 1, "bfs", 5000, marks=pytest.mark.slow),
        pytest.param(1, 1, "bfs", 5000, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_farm_that_came_first_gets_a_tenth_while_good_hosts_are_due(addresses, domains, strategy, places):
    """Two thousand hosts of a farm stand before a hundred good ones, which have work for all requests.

    With 5,000 places each of them has one, and only the requests are bounded.
    """
    web = Farm(addresses, domains)
    crawl = Counting(web, world(strategy=strategy, active_hosts=places), pages_per_s=PER_S)
    crawl.run(web.seeds(FARM_HOSTS, 2), pages=200)
    before = crawl.asked.total()
    farm = crawl.asked["s"]
    crawl.run(GOOD, until=crawl.now + 100)
    number = crawl.asked.total() - before
    assert number > 0.95 * 100 * PER_S, "no request is left unmade"
    # before the names of the farm's hosts are known to lead to one address, a place is needed for each
    looked_at = FARM_HOSTS / 16 if domains > 1 else 20
    assert crawl.asked["s"] - farm <= SHARE * number + BURST + looked_at


@pytest.mark.parametrize(("addresses", "domains"), [(1, 1), (256, 1), (1, FARM_HOSTS)])
def test_a_farm_that_is_alone_is_served_at_full_pace(
    addresses: int, domains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, web = [], Farm(addresses, domains)
    for share in (SHARE, 1.0):
        monkeypatch.setattr(schedule, "MAX_SHARE", share)
        crawl = Counting(web, world(strategy="bfs", active_hosts=200), pages_per_s=PER_S)
        crawl.run(web.seeds(800, 3), until=100)
        asked.append(crawl.asked["s"])
    assert asked[0] >= 0.99 * asked[1] > 500


def test_a_farm_that_held_all_places_gives_them_up_when_others_come() -> None:
    web = Farm(256, 1)
    crawl = Counting(
        web, world(strategy="bfs", active_hosts=100, optouts="tdm-file=ignore,ai-txt=ignore"), pages_per_s=PER_S
    )
    crawl.run(web.seeds(FARM_HOSTS, 3), until=60)
    crawl.run(GOOD, until=60 + 50)
    asked = Counter(crawl.asked)
    crawl.run(until=60 + 100)
    assert crawl.asked["g"] - asked["g"] > 0.85 * 50 * PER_S, "hosts without a place are not asked"
    assert crawl.asked["s"] - asked["s"] > 0


def test_every_host_of_a_farm_and_every_other_has_its_turn() -> None:
    web = Farm(1, 1)
    crawl = Counting(web, world(strategy="bfs", active_hosts=20))
    crawl.run([*web.seeds(200, 2), *GOOD[:200]])
    assert crawl.frontier.is_finished
    assert crawl.frontier.ledger.ends[Reason.KEPT] == 200 * 2 + 200
    assert crawl.frontier.ledger.balance.error == 0


# -- the parts


def test_hosts_that_are_set_apart_come_back_one_for_each_place() -> None:
    places: Counter[int | str] = Counter({1: 500})
    backlog = Backlog(is_full=lambda group, more: places[group] + more >= 500)
    for host_id in range(500, 20_000):
        backlog.set_apart(1, host_id, 0.0, 0.0)
    assert backlog.pop(0.0) is None
    assert len(backlog) == 19_500 and not backlog.has_others(0.0)
    places[1] -= 2
    for host_id in (500, 501, None):
        assert backlog.pop(0.0) == host_id, "one for each place"
        places[1] += 1
    left = [backlog.pop_apart(0.0) for _ in range(19_499)]
    assert left == [*range(502, 20_000), None]
    assert (len(backlog), backlog.next_due()) == (0, None)


@pytest.mark.parametrize(("share", "excess"), [(SHARE, 1), (1.0, 0)])
def test_what_a_group_had_while_alone_is_not_held_against_it(share: float, excess: int) -> None:
    """Without a bound no group is over its share."""
    shares = Shares(share)
    for _ in range(10_000):
        shares.charge(1, "")
    assert shares.excess(shares.groups_over(1, "")) == excess
    for number in range(12):
        shares.charge(2 + number, "")
    assert shares.excess(shares.groups_over(1, "")) == 0


def test_counters_are_bounded() -> None:
    shares = Shares(SHARE)
    most = 0
    for number in range(200_000):
        shares.charge(number % 65_536, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        most = max(most, len(shares))
    assert most <= 1002


TIMES = st.floats(0, 3, allow_nan=False).map(lambda s: round(s, 1))
HOSTS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), TIMES, TIMES), min_size=2, max_size=25)


@settings(max_examples=examples(60))
@given(HOSTS, st.sampled_from([0.1, 0.2, 0.5]))
def test_no_group_above_its_share_is_served_while_another_below_its_own_is_due(hosts, share):
    """Over random due times: whoever is served, nobody due had less too much; and somebody is, if anybody is due."""
    workbench = Workbench(most=share)
    waiting: dict[Host, tuple[str, float]] = {}
    for number, (domain, address, due, interval_s) in enumerate(hosts):
        host = Host(number, f"h{number}.cz", HostStates(), domain=domain, due=due)
        waiting[host] = f"10.0.0.{address}", interval_s
        workbench.add_host(host, waiting[host][0])

    def too_much(host: Host) -> int:
        return workbench.shares.excess((host.domain, waiting[host][0]))

    now = 0.0
    for _ in range(200):
        due = [host for host in waiting if host.due <= now]
        found = workbench.pop(now)
        assert (found is None) == (not due)
        if found is None:
            now += 0.1
            continue
        host, address = found
        assert too_much(host) == min(map(too_much, due))
        workbench.shares.charge(host.domain, address)
        host.due = now + waiting[host][1] + 0.1
        workbench.add_host(host, address)
        now += 0.05
        if host.id % 7 == 0:
            workbench.forget_idle(now)
