"""When nothing else is left, a retired host goes on by a milder threshold; the log and the state say so."""

from __future__ import annotations

import pytest
from conftest import crawled, document

from webs.web import html

PAGES = {f"/{n}": html(document(f"p{n}", f"/{n + 1}", f"/{n + 2}", f"/{n + 3}") + "<br>" * 2500) for n in range(24)}


@pytest.mark.parametrize(("strategy", "floor"), [("yield", 0), ("yield", 1), ("spiderling", 0)])
def test_second_chance(tmp_path, strategy, floor):
    crawl, result, _ = crawled(
        tmp_path / "job", {"a.test": PAGES}, "http://a.test/0", YIELD_PROFILE="0.9", MIN_ACTIVE_HOSTS=floor,
        STRATEGY=strategy, CONSTANTS={"frontier.host_closing.MIN_BYTES": 1000},
    )  # fmt: skip
    assert result.lines("is finished.")
    goes_on = bool(floor) or strategy == "spiderling"
    state = crawl.state()
    state.check()
    assert bool(result.lines("Reopened a.test", "too few hosts are at work")) is goes_on
    assert any(event.startswith("too few hosts: reopened a.test") for event in state.events) is goes_on
    assert (state.ends["kept"] > 16) is goes_on
