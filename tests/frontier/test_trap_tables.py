"""What is kept of traps that were found has a bound, however many there are."""

from __future__ import annotations

from weakref import WeakSet

import pytest
from virtual_crawl import VirtualCrawl

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.discovery import traps as module
from spiderling.frontier.discovery.traps import Mirror, Traps
from spiderling.frontier.hosts import Host

BARE_PAGES = 25
"""More than close a section."""


@pytest.fixture
def crawl() -> VirtualCrawl:
    return VirtualCrawl({}, yield_profile="off")


def traps_of(crawl: VirtualCrawl) -> Traps:
    return Traps(crawl.options, crawl.frontier.hosts)


def host_of(crawl: VirtualCrawl, name: str) -> Host:
    crawl.frontier.put_seed(f"http://{name}/", crawl.now)
    return crawl.host(name)


def read(traps: Traps, host: Host, path: str, reason: Reason, sketch: int = 0, text_key: int = 0) -> Host | None:
    """A page of *host* has ended; gives the host that turned out to be a mirror."""
    outcome = Outcome(1, f"http://{host.name}{path}", reason, sketch=sketch, text_key=text_key)
    visit = traps.visit(host, path, outcome)
    assert visit is not None
    return traps.leave(visit)


def read_calendar(traps: Traps, host: Host) -> None:
    for day in range(BARE_PAGES):
        read(traps, host, f"/kalendar/2026/11/{day}", Reason.BOILERPLATE_ONLY)


def test_closed_sections_of_the_first_hosts_are_forgotten(crawl: VirtualCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty hosts have a calendar each, one of them several: the table keeps the last ones, and goes on to learn."""
    monkeypatch.setattr(module, "MOST_CLOSED", 8)
    traps, hosts = traps_of(crawl), [host_of(crawl, f"h{number}.cz") for number in range(40)]
    for host in hosts:
        read_calendar(traps, host)
        assert traps.refusal(host.id, host.name, "/kalendar/2026/12/1") is Reason.TRAP_SECTION
        assert sum(map(len, traps.closed.values())) <= 8
    assert traps.refusal(hosts[0].id, hosts[0].name, "/kalendar/2026/12/1") is None
    read_calendar(traps, hosts[0])
    assert traps.refusal(hosts[0].id, hosts[0].name, "/kalendar/2026/12/1") is Reason.TRAP_SECTION, "closed anew"


def test_one_host_with_any_number_of_traps(crawl: VirtualCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CLOSED", 8)
    traps, host = traps_of(crawl), host_of(crawl, "a.cz")
    for number in range(40):
        for day in range(BARE_PAGES):
            read(traps, host, f"/{chr(97 + number % 26)}{'x' * number}/2026/11/{day}", Reason.BOILERPLATE_ONLY)
        assert sum(map(len, traps.closed.values())) <= 8


def test_domains_of_made_up_names_are_forgotten(crawl: VirtualCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of twenty domains answers with one page; five of the domains are remembered."""
    monkeypatch.setattr(module, "MOST_DOMAINS", 5)
    traps = traps_of(crawl)
    for domain in range(20):
        for number in range(30):
            host = host_of(crawl, f"n{number}.wild{domain}.cz")
            host.account.count_bytes(1, 1000, 0)
            read(traps, host, "/", Reason.DUPLICATE, sketch=77)
        assert traps.refusal(0, f"new.wild{domain}.cz", "/") is Reason.TRAP_SUBDOMAINS
    assert sum(traps.refusal(0, f"new.wild{n}.cz", "/") is Reason.TRAP_SUBDOMAINS for n in range(20)) == 5


def test_mirrors_are_found_beside_any_number_of_hosts(crawl: VirtualCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of forty hosts shares pages with all before it; then two are mirrors, and found all the same."""
    monkeypatch.setattr(module, "MOST_MIRRORS", 8)
    monkeypatch.setattr(module, "MOST_HOSTS", 4)
    mirrors = WeakSet[Mirror]()

    class Noted(Mirror):
        __slots__ = ("__weakref__",)

        def __init__(self) -> None:
            super().__init__()
            mirrors.add(self)

    monkeypatch.setattr(module, "Mirror", Noted)
    traps, hosts = traps_of(crawl), [host_of(crawl, f"h{number}.cz") for number in range(40)]
    for number, host in enumerate(hosts):
        for other in hosts[:number]:
            path = f"/spolecne-{other.id}-{host.id}"
            read(traps, other, path, Reason.KEPT, text_key=5)
            read(traps, host, path, Reason.KEPT, text_key=6)
            read(traps, other, path, Reason.KEPT, text_key=6)
            read(traps, host, path, Reason.KEPT, text_key=6)
    assert 0 < len(mirrors) <= 8
    assert max(len(mirror.hosts) for mirror in mirrors) <= 4
    first, second = host_of(crawl, "first.cz"), host_of(crawl, "second.cz")
    found = []
    for number in range(20):
        read(traps, first, f"/strana-{number}", Reason.KEPT, text_key=100 + number)
        found.append(read(traps, second, f"/strana-{number}", Reason.KEPT, text_key=100 + number))
    assert second in found
