"""Intervals of hosts and addresses over hours of virtual time, and that everybody is served."""

from __future__ import annotations

import pytest
from virtual_crawl import DAY_S, Answer, Resolution, VirtualCrawl, fold, page, robots

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.frontier.schedule import Names, NameStatus
from spiderling.frontier.site_files import FileAnswer

HOUR_S = 3600.0


def site(name: str, pages: int, **kwargs: object) -> dict[str, Answer]:
    """A site whose home page links to all of its pages."""
    urls = [f"http://{name}/{number}" for number in range(pages)]
    return {f"http://{name}/": page(*urls), **{url: page(**kwargs) for url in urls}}


def test_host_interval_holds_for_hours_and_costs_nothing_more() -> None:
    crawl = VirtualCrawl(site("a.cz", 1500)).run("http://a.cz/")
    crawl.assert_polite(host_s=5.0, ip_s=0.1)
    assert crawl.ends == {Reason.KEPT: 1501}
    assert crawl.now - 1000 == pytest.approx(1501 * 5.0, abs=5), "robots.txt and 1501 pages, each at its due time"


def test_every_start_late_by_the_same_time_waits_at_no_gate() -> None:
    crawl = VirtualCrawl(site("a.cz", 20), start_delay_s=lambda fetch: 3.0).run("http://a.cz/")
    crawl.assert_polite(host_s=5.0, ip_s=0.1)
    assert crawl.waits_at_gate == 0, "the host is due again when its interval after the start is over"


def test_hosts_on_one_address_share_its_interval() -> None:
    names = [f"n{number}.cz" for number in range(60)]
    web = {url: answer for name in names for url, answer in site(name, 10).items()}
    dns = {name: Resolution(("10.9.9.9",)) for name in names}
    crawl = VirtualCrawl(web, dns, ip_interval_s=0.5, strategy="yield").run(*(f"http://{name}/" for name in names))
    crawl.assert_polite(host_s=5.0, ip_s=0.5)
    assert crawl.ends == {Reason.KEPT: 660}
    assert crawl.now - 1000 == pytest.approx(12 * 60 * 0.5, rel=0.02), "the address is the bottleneck and never idle"


def test_two_names_and_two_schemes_share_one_record() -> None:
    urls = [f"{scheme}://{www}a.cz/{n}" for scheme in ("http", "https") for www in ("", "www.") for n in range(20)]
    dns = {"a.cz": Resolution(("10.0.0.1",)), "www.a.cz": Resolution(("10.0.0.2",))}
    crawl = VirtualCrawl({url: page() for url in urls}, dns).run(*urls)
    crawl.assert_polite(host_s=5.0, ip_s=0.1)
    assert crawl.ends == {Reason.KEPT: 80}
    assert len(crawl.robots_fetched()) == 4
    assert {start.address for start in crawl.starts} == {"10.0.0.1", "10.0.0.2"}
    assert [host.name for host in crawl.frontier.hosts] == ["a.cz"]


@pytest.mark.parametrize(
    ("asked", "expected_s"), [("Crawl-delay: 20", 20), ("Request-rate: 1/30s", 30), ("Crawl-delay: 1", 5)]
)
def test_longer_of_crawl_delay_and_interval_wins(asked: str, expected_s: float) -> None:
    web = {**site("a.cz", 20), "http://a.cz/robots.txt": robots(f"User-agent: *\n{asked}\n")}
    crawl = VirtualCrawl(web).run("http://a.cz/")
    assert crawl.gaps("host")["a.cz"] == pytest.approx(expected_s), "the request after robots.txt included"


@pytest.mark.parametrize(("asked_s", "pause_s"), [(7200.0, HOUR_S), (900.0, 900.0), (0.0, 10.0), (float("nan"), 10.0)])
def test_retry_after_pauses_the_host_up_to_the_cap(asked_s: float, pause_s: float) -> None:
    web = {"http://a.cz/": [Answer(status=429, retry_after_s=asked_s), page()], "http://a.cz/b": page()}
    crawl = VirtualCrawl(web).run("http://a.cz/", "http://a.cz/b")
    assert crawl.pauses()[0] == pytest.approx(pause_s, abs=0.5), "the other page waits as well"
    assert crawl.ends == {Reason.KEPT: 2}


@pytest.mark.parametrize(("asked_s", "pause_s"), [(700.0, 700.0), (1e9, HOUR_S)])
def test_retry_after_of_a_robots_txt_is_obeyed_up_to_the_cap(asked_s: float, pause_s: float) -> None:
    rules = [Answer(status=503, retry_after_s=asked_s), robots("User-agent: *\n")]
    crawl = VirtualCrawl({"http://a.cz/robots.txt": rules, "http://a.cz/": page()}).run("http://a.cz/")
    assert crawl.ends == {Reason.KEPT: 1}
    assert crawl.pauses(pages_only=False)[0] == pytest.approx(pause_s, abs=1)


def test_every_host_is_served_while_new_ones_keep_coming() -> None:
    """Ten chains of new names, each invented by the one before, must not starve who waits on the same address."""
    chains = {f"http://s{n}.spam{k}.cz/": page(f"http://s{n + 1}.spam{k}.cz/") for n in range(40) for k in range(10)}
    web = {**site("good.cz", 30), **chains}
    dns = {fold(url): Resolution(("10.9.9.9",)) for url in web}
    crawl = VirtualCrawl(web, dns, ip_interval_s=0.5)
    crawl.run(*(f"http://s0.spam{k}.cz/" for k in range(10)), "http://good.cz/", until=1000 + 330)
    assert len(crawl.fetched("good.cz")) >= 30, "one of eleven that are due"
    assert len(crawl.frontier.hosts) > 250
    crawl.assert_polite(host_s=5.0, ip_s=0.5)


def test_who_has_waited_longest_goes_first() -> None:
    """A new host is due from now on: a site that invents names for ever must not push back the others."""
    frontier = VirtualCrawl({}).frontier
    for name, now in (("old.cz", 0.0), ("new.cz", 100.0)):
        frontier.put_seed(f"http://{name}/", now)
        frontier.names_wanted()
        frontier.resolved(name, ("10.9.9.9",), 900.0, now)
        if name == "old.cz":
            robots_txt = frontier.take(now)
            assert robots_txt is not None
            frontier.robots_answered(robots_txt, FileAnswer(404), now)
    fetch = frontier.take(100.0)
    assert fetch.host.name == "old.cz"


def test_no_address_is_used_after_its_time() -> None:
    """Asserted at each take; here names expire all the time, also to another address."""
    changing = [Resolution(("10.0.0.1",), ttl_s=7.0), Resolution(("10.0.0.2",), ttl_s=7.0)] * 40
    crawl = VirtualCrawl(site("a.cz", 30), {"a.cz": changing}).run("http://a.cz/")
    assert crawl.ends == {Reason.KEPT: 31}
    assert crawl.questions["a.cz"] > 10
    assert {start.address for start in crawl.starts} == {"10.0.0.1", "10.0.0.2"}
    crawl.assert_polite(host_s=5.0, ip_s=0.1)


def test_hosts_of_one_name_ask_once() -> None:
    crawl = VirtualCrawl({"http://a.cz/": page(), "http://a.cz:8080/": page()}).run("http://a.cz/", "http://a.cz:8080/")
    assert crawl.questions == {"a.cz": 1}
    assert crawl.ends == {Reason.KEPT: 2}


def test_forbidden_address_is_never_handed_out_and_the_first_allowed_one_is() -> None:
    dns = {"in.cz": Resolution(("192.168.0.1", "127.0.0.1")), "mixed.cz": Resolution(("127.0.0.1", "10.0.0.7"))}
    crawl = VirtualCrawl({"http://mixed.cz/": page()}, dns, allows=lambda address: address.startswith("10."))
    crawl.run("http://in.cz/", "http://in.cz/b", "http://mixed.cz/")
    assert crawl.ends == {Reason.ADDRESS_FORBIDDEN: 2, Reason.KEPT: 1}
    assert {(start.host, start.address) for start in crawl.starts} == {("mixed.cz", "10.0.0.7")}


def test_idle_addresses_are_forgotten_and_politeness_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spiderling.frontier.workbench.PRUNE_ABOVE", 0)  # else only when there are very many
    crawl = VirtualCrawl(site("a.cz", 50))
    crawl.frontier.put_seed("http://a.cz/", crawl.now)
    while not crawl.frontier.is_finished:
        crawl.run(until=crawl.now + 3.0)
        crawl.frontier.drain(crawl.now)
    crawl.assert_polite(host_s=5.0, ip_s=0.1)
    assert crawl.ends == {Reason.KEPT: 51}
    assert crawl.now < 1000 + DAY_S


FOUR, SIX = "192.0.2.1", "2001:db8::1"


@pytest.mark.parametrize(
    ("addresses", "forbidden", "address"),
    [((FOUR, SIX), (), FOUR), ((SIX, FOUR), (), SIX), ((FOUR, SIX), (FOUR,), SIX), ((FOUR, SIX), (FOUR, SIX), "")],
)
def test_the_first_allowed_address_of_a_name_is_used(addresses, forbidden, address):
    names = Names(Options(), lambda candidate: candidate not in forbidden)
    names.resolved("a.cz", addresses, 60, 0)
    known = names.lookup("a.cz", 1)
    assert (known.status, known.address) == (NameStatus.FRESH if address else NameStatus.FORBIDDEN, address)


def test_a_probe_after_a_restart_leaves_a_host_without_urls_in_peace_for_its_interval() -> None:
    """Such a host has no place, so nothing has noted when the process began."""
    crawl = VirtualCrawl({"http://a.cz/": page()}).run("http://a.cz/")
    last, address = crawl.starts[-1].time, crawl.starts[-1].address
    crawl.now = last + 0.5
    crawl.restart()
    host = crawl.frontier.host("a.cz")
    wait_s = crawl.frontier.probes.due_in(host, address, crawl.now)
    assert crawl.now + wait_s >= last + 5.0
