"""When nothing else is left, a retired host goes on by a milder threshold; the log and the state say so."""

from __future__ import annotations

import pytest
from conftest import Crawl, document, serving

from webs.web import FixedWeb, html

PAGES = {f"/{n}": html(document(f"p{n}", f"/{n + 1}", f"/{n + 2}", f"/{n + 3}") + "<br>" * 2500) for n in range(24)}


@pytest.mark.parametrize(("strategy", "floor"), [("yield", 0), ("yield", 1), ("spiderling", 0)])
def test_second_chance(tmp_path, strategy, floor):
    with serving(FixedWeb({"a.test": PAGES}, {"a.test": "127.84.9.1"})) as server:
        crawl = Crawl(
            tmp_path / "job",
            server,
            YIELD_PROFILE="0.9",
            CONSTANTS={"frontier.host_closing.MIN_BYTES": 1000},
            MIN_ACTIVE_HOSTS=floor,
            STRATEGY=strategy,
        )
        result = crawl.run("http://a.test/0")
    assert result.code == 0 and result.lines("is finished.")
    goes_on = bool(floor) or strategy == "spiderling"
    state = crawl.state()
    state.check()
    assert bool(result.lines("Reopened a.test", "too few hosts are at work")) is goes_on
    assert any(event.startswith("too few hosts: reopened a.test") for event in state.events) is goes_on
    assert (state.ends["kept"] > 16) is goes_on
