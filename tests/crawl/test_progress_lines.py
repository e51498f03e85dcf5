"""What is on the screen while a crawl runs: first what it waits for, then a few figures that need no explanation."""

from __future__ import annotations

import re

from conftest import Crawl, page, serving

from spiderling.base.options import Options
from spiderling.frontier import Frontier
from spiderling.frontier.site_files import FileAnswer
from webs.web import FixedWeb, WebResponse

RULES = WebResponse(200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow:\n" * 20, trickle_s=1.5)
SITE = {"/robots.txt": RULES, "/": page("home", *(f"/{n}" for n in range(30))), **{f"/{n}": page(n) for n in range(30)}}
LINE = re.compile(
    r"[\d,]+ pages \([\d.]+/s\), [\d,.]+ MB downloaded, [\d,]+ words, yield rate [\d.]+; (1 URL|(?!1 )[\d,]+ URLs) "
    r"waiting; bottleneck: [a-zA-Z ]+( \(\D+\))?"
)


def test_the_first_document_is_waited_for_aloud_and_then_six_figures_tell_enough(tmp_path):
    """Nothing stood on the screen for a minute, and then a line with a dozen figures and eight private words."""
    with serving(FixedWeb({"a.test": SITE}, {"a.test": "127.84.41.1"})) as server:
        crawl = Crawl(tmp_path / "job", server, HOST_INTERVAL_S=0.1)
        result = crawl.run("http://a.test/", CONSTANTS={"extensions.progress.WAITS_S": 0.3}, LOGSTATS_INTERVAL=1)
    assert result.code == 0
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
    assert +frontier.awaited(1000.0) == {"the address": 1}
    (name,) = frontier.names_wanted()
    frontier.resolved(name, ("192.0.2.1",), 300.0, 1000.0)
    assert +frontier.awaited(1000.0) == {"the turn": 1}
    fetch = frontier.take(1000.0)
    assert fetch is not None
    assert +frontier.awaited(1000.0) == {"robots.txt": 1}
    frontier.started(fetch, 1000.0)
    frontier.robots_answered(fetch, FileAnswer(404), 1001.0)
    assert +frontier.awaited(1001.0) == {"the interval": 1}
    assert frontier.take(1004.9) is None
    assert frontier.take(1005.1) is not None
    assert +frontier.awaited(1000.0) == {"a page": 1}
    frontier.put_seed("http://b.test/", 1006.0)
    frontier.resolved(*frontier.names_wanted(), ("192.0.2.1",), 300.0, 1006.0)
    assert frontier.take(1005.5) is None
    assert +frontier.awaited(1006.0) == {"a page": 1, "the turn": 1}, "its interval is not what holds it"
    crowded = Frontier(Options(lang="cs", active_hosts=1))
    for host in "abc":
        crowded.put_seed(f"http://{host}.test/", 1000.0)
    assert +crowded.awaited(1000.0) == {"the address": 1, "a place (SPIDERLING_ACTIVE_HOSTS)": 2}
