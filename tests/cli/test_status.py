"""The status of a crawl as data: ``scrapy inspect JOBDIR --json``, and the list of its hosts."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import fields

import pytest
from conftest import scrapy
from finished import SITES

from spiderling.base.errors import BadInput
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.status import hosts_of, rates, status_of, warnings_of
from spiderling.jobdir.status_schema import Running, Status


@pytest.fixture
def opened(finished):
    with closing(Inspection(finished.directory)) as inspection:
        yield inspection


def test_a_program_is_told_what_the_state_holds(finished):
    ended = scrapy("inspect", str(finished.directory), "--json")
    assert (ended.code, ended.log) == (0, "")
    told = json.loads(ended.out)
    state = finished.state()
    assert told["revisits"] is None and "Revisits of" not in scrapy("inspect", str(finished.directory)).out
    assert told["version"] == 1 and told["phase"] == "finished" and told["process"] == ""
    assert set(told) == {spec.name for spec in fields(Status)}
    assert told["totals"]["words"] == state.counts["total/words"] > 1000
    assert {end["reason"]: end["urls"] for end in told["ends"]} == state.ends
    assert told["urls"] == {
        "discovered": state.counts["discovered"], "ended": sum(state.ends.values()), "waiting": 0, "in_transit": 0,
    }  # fmt: skip
    assert [end["reason"] for end in told["refusals"]] == ["robots-forbidden"]
    assert told["hosts"] == Counter(host["state"] for host in state.hosts.values())
    assert told["languages"] == [
        {"code": "cs", "documents": state.counts["language/cs"], "words": state.counts["fact/words/cs"]}
    ]
    assert told["budgets"][0]["total"] == "words" and told["left_s"] == told["budgets"][0]["left_s"] > 0
    assert told["curves"]["whole"]["words"][-1] == told["totals"]["words"]
    assert told["overall"]["yield_rate"] == round(
        state.counts["total/kept_bytes"] / state.counts["total/downloaded_bytes"], 4
    )
    kept = {doc.url: doc for doc in finished.documents()}
    for text in told["newest"]:
        assert kept[text["url"]].attributes["title"] == text["title"]
        assert " ".join(kept[text["url"]].paragraphs).startswith(text["begins"]) and text["begins"]
    assert len({text["url"] for text in told["newest"]}) == 10


def test_the_counters_of_a_running_crawl_go_before_those_of_the_state(opened):
    running = Running(
        counts={"total/pages": 900, "total/time_s": 300, "discovered": 12, "waiting": 5, "end/kept": 7},
        hosts={"ready": 2, "retired": 3},
        in_transit=2,
        bottleneck="DNS",
        trouble="",
        limits={"pages": 1000},
        is_paused=False,
        is_stopping=False,
    )
    told = status_of(opened, running, large=())
    assert told.phase == "running" and told.bottleneck == "DNS" and told.hosts_at_work == 2
    assert told.urls.discovered == told.urls.ended + told.urls.waiting + told.urls.in_transit == 12
    assert told.overall.pages_per_s == 3.0
    assert told.left_s == round(100 / told.lately.pages_per_s)
    assert told.curves is told.best_hosts is told.statements is None


def test_pauses_do_not_slow_the_rates_down():
    assert rates({"pages": 50, "time_s": 110}, {"pages": 30, "time_s": 100}).pages_per_s == 2.0
    assert rates({}, {}).words_per_hour == 0


def test_hosts_are_searched_sorted_and_turned_over(opened):
    assert [host.name for host in hosts_of(opened).hosts][:3] == ["b.test", "a.test", "licensed.test"]
    by_name = [host.name for host in hosts_of(opened, order="name", rising=True).hosts]
    assert by_name == sorted([*SITES, "nowhere.test"])
    assert [host.name for host in hosts_of(opened, " C_ ").hosts] == ["c_c.test"]
    assert hosts_of(opened, "%").found == 0
    last = hosts_of(opened, order="name", page=99, most=5)
    assert (last.page, last.pages, last.found, [host.name for host in last.hosts]) == (1, 2, 6, ["a.test"])
    with pytest.raises(BadInput, match="did you mean words"):
        hosts_of(opened, order="word")


def test_the_last_warnings_are_those_of_the_log(tmp_path):
    log = tmp_path / "crawl.log"
    assert warnings_of(log) == []
    log.write_text(
        "2026-11-23 12:00:00,123 INFO spiderling.x: quiet\n"
        + "".join(f"2026-11-23 12:00:{n:02},000 WARNING spiderling.x: loud {n}\nTraceback\n" for n in range(30))
        + "2026-11-23 12:01:00,000 ERROR scrapy.core: <b>bad</b>\n"
    )
    told = warnings_of(log)
    assert [line.what for line in told[:2]] == ["<b>bad</b>", "loud 29"]
    assert told[0].level == "ERROR" and told[0].time - told[1].time == 31
    assert len(told) == 20


def test_json_tells_of_the_whole_crawl_only(finished):
    ended = scrapy("inspect", str(finished.directory), "host", "a.test", "--json")
    assert ended.code == 2 and re.search("--json tells of the whole crawl", ended.out + ended.log)
