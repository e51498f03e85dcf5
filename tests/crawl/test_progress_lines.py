"""What is on the screen while a crawl runs: first what it waits for, then a few figures and the bottleneck."""

from __future__ import annotations

import re
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from conftest import crawled, page

from spiderling.extensions.progress import Bottleneck
from spiderling.frontier.hosts import HostState
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
        assert "No document yet of 0 pages; bottleneck: politeness (hosts wait for their turn)" in told
        lines = [line.removeprefix("INFO: ") for line in told if "waiting; bottleneck: " in line]
        assert lines and all(LINE.fullmatch(line) for line in lines), lines
        later = [number for number, line in enumerate(told) if "waiting; bottleneck" in line and " 0 words" not in line]
        assert max(waits) < min(later, default=len(told)), "the first document ends it"


HOSTS = Counter({HostState.READY: 3})


@pytest.fixture
def named(monkeypatch):
    """What is named after a minute in which the event loop's thread worked ``cpu_s``."""

    def named(cpu_s=5.0, states=HOSTS, *, cleaning=0, is_full=False, archives=None, held=0, is_on=False,
              trouble="", shard=None, **holds) -> str:  # fmt: skip
        scraper = SimpleNamespace(slot=SimpleNamespace(active_size=cleaning, max_active_size=5_000_000))
        engine = SimpleNamespace(scraper=scraper, downloader=SimpleNamespace(needs_backout=lambda: is_full))
        recrawl = SimpleNamespace(is_on=is_on)
        frontier = SimpleNamespace(
            throttled=lambda now: (held, 3), network_trouble=lambda: trouble, recrawl=recrawl,
            host_states=SimpleNamespace(hosts_by_state=lambda: states),
        )  # fmt: skip
        runs = {"is_paused": False, "is_disk_full": False} | holds
        crawl = SimpleNamespace(archives=archives, frontier=frontier, now=lambda: 1000.0, **runs)
        bottleneck = Bottleneck(SimpleNamespace(engine=engine), shard)
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
        # nothing may be asked for at all
        ({"is_paused": True}, "paused"), ({"is_disk_full": True}, "paused"),
        ({"trouble": "3 of 3 hosts fail: dns"}, "network"),
        ({"shard": SimpleNamespace(trouble=lambda: "Redis (it does not answer)")}, "Redis"),
        # archives are read ahead of the workers or not
        ({"archives": SimpleNamespace(is_ahead=True)}, "text workers"), ({"archives": BEHIND}, "reading the archives"),
    ],
)  # fmt: skip
def test_the_bottleneck_is_named(named, seen, name):
    assert named(**seen) == name
