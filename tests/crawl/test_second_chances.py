"""When nothing else is left, a retired host goes on by a milder threshold; the log and the state say so."""

from __future__ import annotations

import pytest
from conftest import Crawl, document, serving

from webs.web import FixedWeb, html

PAGES = {f"/{n}": html(document(f"p{n}", f"/{n + 1}", f"/{n + 2}", f"/{n + 3}") + "<br>" * 2500) for n in range(24)}


@pytest.mark.parametrize("floor", [0, 1])
def test_second_chance(tmp_path, floor):
    with serving(FixedWeb({"a.test": PAGES}, {"a.test": "127.84.9.1"})) as server:
        crawl = Crawl(tmp_path / "job", server, YIELD_PROFILE="0.9", YIELD_MIN_BYTES=1000, MIN_ACTIVE_HOSTS=floor)
        result = crawl.run("http://a.test/0")
    assert result.code == 0 and result.lines("is finished.")
    state = crawl.state()
    state.check()
    assert bool(result.lines("Reopened a.test", "too few hosts are at work")) == bool(floor)
    assert any(event.startswith("too few hosts: reopened a.test") for event in state.events) == bool(floor)
    assert (state.ends["kept"] > 16) == bool(floor)
