"""What is on the screen while a crawl runs: first what it waits for, then a few figures and the bottleneck."""

from __future__ import annotations

import re
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from conftest import crawled, page

from spiderling.base.options import Options
from spiderling.extensions.progress import Bottleneck
from spiderling.frontier import Frontier
from spiderling.frontier.hosts import HostState
from spiderling.frontier.site_files import FileAnswer
from webs.web import WebResponse

RULES = WebResponse(200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow:\n" * 20, trickle_s=1.5)
SITE = {"/robots.txt": RULES, "/": page("home", *(f"/{n}" for n in range(30))), **{f"/{n}": page(n) for n in range(30)}}
LINE = re.compile(
    r"[\d,]+ pages \([\d.]+/s\), [\d,.]+ MB downloaded, [\d,]+ words, yield rate [\d.]+; (1 URL|(?!1 )[\d,]+ URLs) "
    r"waiting; bottleneck: [a-zA-Z ]+( \(\D+\))?"
)


def test_the_first_document_is_waited_for_aloud_and_then_six_figures_tell_enough(tmp_path):
    """Nothing stood on the screen for a minute, and then a line with a dozen figures and eight private words."""
    quick = {"CONSTANTS": {"extensions.progress.WAITS_S": 0.3}, "LOGSTATS_INTERVAL": 1}
    crawl, result, _ = crawled(tmp_path / "job", {"a.test": SITE}, HOST_INTERVAL_S=0.1, **quick)
    for text in (result.output, (crawl.directory / "crawl.log").read_text()):
        told = [line.partition("progress")[2].partition(": ")[2] for line in text.splitlines() if "progress" in line]
        waits = [number for number, line in enumerate(told) if line.startswith("No document yet")]
        assert "No document yet; waiting for: robots.txt of 1 host" in told
        lines = [line.removeprefix("INFO: ") for line in told if "bottleneck: " in line]
        assert lines and all(LINE.fullmatch(line) for line in lines), lines
        later = [number for number, line in enumerate(told) if "bottleneck" in line and " 0 words" not in line]
        assert max(waits) < min(later, default=len(told)), "the first document ends it"


def test_the_frontier_knows_what_its_hosts_wait_for():
    frontier = Frontier(Options(lang="cs", optouts="tdm-file=ignore,ai-txt=ignore"))
    frontier.put_seed("http://a.test/", 1000.0)
    assert +frontier.schedule.awaited(1000.0) == {"the address": 1}
    (name,) = frontier.names_wanted()
    frontier.resolved(name, ("192.0.2.1",), 300.0, 1000.0)
    assert +frontier.schedule.awaited(1000.0) == {"the turn": 1}
    fetch = frontier.take(1000.0)
    assert fetch is not None
    assert +frontier.schedule.awaited(1000.0) == {"robots.txt": 1}
    frontier.started(fetch, 1000.0)
    frontier.robots_answered(fetch, FileAnswer(404), 1001.0)
    assert +frontier.schedule.awaited(1001.0) == {"the interval": 1}
    assert frontier.take(1004.9) is None
    assert frontier.take(1005.1) is not None
    assert +frontier.schedule.awaited(1000.0) == {"a page": 1}
    frontier.put_seed("http://b.test/", 1006.0)
    frontier.resolved(*frontier.names_wanted(), ("192.0.2.1",), 300.0, 1006.0)
    assert frontier.take(1005.5) is None
    assert +frontier.schedule.awaited(1006.0) == {"a page": 1, "the turn": 1}, "its interval is not what holds it"
    crowded = Frontier(Options(lang="cs", active_hosts=1))
    for host in "abc":
        crowded.put_seed(f"http://{host}.test/", 1000.0)
    assert +crowded.schedule.awaited(1000.0) == {"the address": 1, "a place (SPIDERLING_ACTIVE_HOSTS)": 2}


HOSTS = Counter({HostState.READY: 3})


@pytest.fixture
def named(monkeypatch):
    """What is named after a minute in which the event loop's thread worked ``cpu_s``."""

    def named(cpu_s=5.0, states=HOSTS, *, cleaning=0, is_full=False, archives=None, held=0, is_on=False) -> str:
        scraper = SimpleNamespace(slot=SimpleNamespace(active_size=cleaning, max_active_size=5_000_000))
        engine = SimpleNamespace(scraper=scraper, downloader=SimpleNamespace(needs_backout=lambda: is_full))
        recrawl = SimpleNamespace(is_on=is_on)
        frontier = SimpleNamespace(
            throttled=lambda now: (held, 3), network_trouble=lambda: "", recrawl=recrawl,
            host_states=SimpleNamespace(hosts_by_state=lambda: states),
        )  # fmt: skip
        runs = {"is_paused": False, "is_disk_full": False}
        crawl = SimpleNamespace(archives=archives, frontier=frontier, now=lambda: 1000.0, **runs)
        bottleneck = Bottleneck(SimpleNamespace(engine=engine))
        for at in (0, 1):
            monkeypatch.setattr(time, "thread_time", lambda at=at: 100 + at * cpu_s)
            monkeypatch.setattr(time, "monotonic", lambda at=at: 1000 + at * 60.0)
            name = bottleneck.of(crawl)
        assert not any(char.isdigit() for char in name), "the progress line has figures enough"
        return name.partition(" (")[0]

    return named


BEHIND = SimpleNamespace(is_ahead=False)
RETIRED = Counter({HostState.RETIRED: 9})


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        # a loop that works all the time is what holds the crawl up; one that sleeps waits for something else
        ({"cpu_s": 55.0}, "main process"), ({"cpu_s": 55.0, "archives": BEHIND}, "main process"),
        ({}, "politeness"), ({"cpu_s": 53.0}, "politeness"), ({"held": 1}, "politeness"), ({"held": 2}, "thrift"),
        ({"cleaning": 4_000_000}, "text workers"), ({"is_full": True}, "connections"),
        ({"states": Counter({HostState.RESOLVING: 4, HostState.READY: 3})}, "DNS"),
        ({"states": RETIRED}, "hosts"), ({"states": RETIRED, "is_on": True}, "recrawl"),
        # archives are read ahead of the workers or not
        ({"archives": SimpleNamespace(is_ahead=True)}, "text workers"), ({"archives": BEHIND}, "reading the archives"),
    ],
)  # fmt: skip
def test_the_bottleneck_is_named(named, seen, name):
    assert named(**seen) == name


def awaited(hosts, *, in_text=0, trouble="", may_ask=True, **held) -> str:
    slot = SimpleNamespace(queue=[0] * in_text, active=set())
    engine = SimpleNamespace(scraper=SimpleNamespace(slot=slot))
    frontier = SimpleNamespace(
        schedule=SimpleNamespace(awaited=lambda now: hosts), network_trouble=lambda: trouble,
        intervals=SimpleNamespace(host_s=5.0, ip_s=0.5),
    )  # fmt: skip
    clock = SimpleNamespace(now=lambda: 1000.0)
    held = {"is_paused": False, "is_disk_full": False} | held
    crawl = SimpleNamespace(frontier=frontier, archives=None, now=clock.now, **held)
    shard = SimpleNamespace(trouble=lambda: "" if may_ask else "Redis (it does not answer)")
    return Bottleneck(SimpleNamespace(engine=engine), shard).awaited(crawl)


def test_what_the_first_document_waits_for():
    assert awaited({"robots.txt": 3, "the address": 1}) == "robots.txt of 3 hosts, the address of 1 host"
    interval = "(5 s between two requests to a host, more after slow answers)"
    assert awaited({"the interval": 2}) == f"the interval of 2 hosts {interval}"
    assert awaited({"the turn": 4990}) == "the turn of 4,990 hosts (0.5 s between two requests to an address)"
    assert awaited({"a page": 0}, in_text=2) == "text workers (2 pages)"
    assert awaited({}) == "the seeds"
    assert awaited({"robots.txt": 3}, is_paused=True) == "paused (by control.yaml)"
    assert awaited({"robots.txt": 3}, trouble="3 of 3 hosts fail: dns") == "network (hosts fail: dns)"
    assert awaited({"robots.txt": 3}, may_ask=False) == "Redis (it does not answer)"
