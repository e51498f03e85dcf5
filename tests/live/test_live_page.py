"""The page of a running crawl: what it tells, what its controls do, and what happens where it cannot be served."""

from __future__ import annotations

import json
import re
import socket
import time

import pytest
import yaml
from conftest import ROOT, Crawl, page, serving
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed
from watched import asked, watching, web  # noqa: F401 - for the fixture server

from spiderling.jobdir.control_file import with_entry


@pytest.mark.slow
def test_controls_are_entries_of_the_control_file(server, tmp_path):
    with watching(tmp_path / "job", server) as watched:
        running = watched.running
        running.until(lambda: asked(server, "loud.test", 0) > 2)
        watched.control.write_text("# mine\nhost_interval_s: 0.05   # fast\nblock:\n  - ads.test\n")
        assert watched.command(action="block", host="LOUD.test").status == 200
        running.until(lambda: "blocked loud.test" in running.output())
        blocked = time.monotonic() + 0.5
        running.until(lambda: asked(server, "calm.test", blocked) > 5)
        assert not asked(server, "loud.test", blocked)
        text = watched.control.read_text()
        assert text.startswith("# mine\nhost_interval_s: 0.05   # fast\n") and '"ads.test", "loud.test"' in text

        assert watched.command(action="reopen", host="loud.test").status == 200
        running.until(lambda: asked(server, "loud.test", blocked) > 2)

        assert watched.command(action="pause").status == 200
        running.until(lambda: watched.ask("/status.json").json["phase"] == "paused")
        paused = time.monotonic() + 0.5
        running.until(lambda: time.monotonic() > paused + 1)
        assert not asked(server, "calm.test", paused)
        assert watched.ask("/status.json").json["bottleneck"] == "paused (by control.yaml)"
        assert watched.command(action="resume").status == 200
        running.until(lambda: asked(server, "calm.test", paused) > 2)

        reached = watched.ask("/status.json").json["totals"]["pages"]
        assert watched.command(action="budget", max_pages=reached + 20).status == 200
        running.until(lambda: watched.ask("/status.json").json["budgets"])
        assert running.wait().code == 0
    assert any(
        "control.yaml: block: " in event and event.endswith("-> ['ads.test', 'loud.test']")
        for event in watched.crawl.state().events
    )


def test_the_page_tells_of_now(server, tmp_path):
    with watching(tmp_path / "job", server) as watched:
        first = watched.ask("/status.json?large=").json
        assert first["curves"] is None and first["phase"] == "running"
        watched.running.until(lambda: any(host["words"] for host in watched.ask("/hosts.json").json["hosts"]))
        told = watched.ask("/status.json").json
        assert told["totals"]["pages"] > first["totals"]["pages"]
        assert told["curves"]["hours"]["time"] and told["best_hosts"][0]["words"] > 0
        assert told["urls"]["discovered"] == sum(told["urls"][part] for part in ("ended", "waiting", "in_transit"))
        watched.running.process.send_signal(2)
        assert watched.running.wait().code == 0


@pytest.fixture(scope="module")
def small():
    with serving({"a.test": {"/": page("a")}}) as running:
        yield running


def test_an_address_in_use_is_a_warning(small, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = Crawl(tmp_path / "job", small, PAGE=f"127.0.0.1:{taken.getsockname()[1]}").run("http://a.test/")
    assert result.code == 0 and len(result.lines("WARNING", "There is no live page: SPIDERLING_PAGE=")) == 1
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_without_the_option_nothing_of_it_is_imported(small, tmp_path):
    for place in ("", "127.0.0.1:0"):
        crawl = Crawl(tmp_path / f"job{len(place)}", small, PAGE=place, EXTENSIONS='{"tests.live.seen.Seen": 900}')
        result = crawl.start("http://a.test/", fresh=True).wait()
        (line,) = result.lines("Imported:")
        assert bool(line.removeprefix("Imported:").strip()) is bool(place)
        assert (crawl.directory / "page.token").exists() is bool(place)


@pytest.mark.parametrize(
    ("text", "key", "value", "changed"),
    [
        ("", "pause", True, "pause: true\n"),
        ("# only words\n", "pause", True, "# only words\npause: true\n"),
        ("pause: true # mine\nblock: []\n", "pause", False, "block: []\npause: false\n"),
        ("block:\n- a.test\n# why\n\npause: true\n", "block", [], "# why\n\npause: true\nblock: []\n"),
        ("block: [a.test,\n  b.test]\npause: true", "block", ["č.test"], 'pause: true\nblock: ["\\u010d.test"]\n'),
        ("block_networks: []\n# block: []\n", "block", [], "block_networks: []\n# block: []\nblock: []\n"),
        ("max_pages: 5\npause: true", "max_pages", None, "pause: true"),
    ],
)
def test_what_is_not_changed_stays_as_it_is_written(text, key, value, changed):
    assert with_entry(text, key, value) == changed


# -- ``/metrics`` of a running crawl, read by the official parser, and the dashboard and rules that rely on it


HERE = ROOT / "examples/operations"
NAME = re.compile(r"\b(?:spiderling|process|scrapy)_[a-z_]+")
FAMILIES = {
    "spiderling_pages", "spiderling_downloaded_bytes", "spiderling_kept_bytes", "spiderling_words", "spiderling_ends",
    "spiderling_yield_rate", "spiderling_hosts", "spiderling_urls", "spiderling_loop_lag_seconds",
    "spiderling_text_pages",
    "spiderling_text_seconds", "spiderling_download_seconds", "spiderling_checkpoint_seconds", "spiderling_dns_seconds",
    "spiderling_connections", "process_resident_memory_bytes", "spiderling_scrapy_stat",
}  # fmt: skip


@pytest.fixture(scope="module")
def told(server, tmp_path_factory):
    """(What the page tells, the same as OpenMetrics, the status afterwards)"""
    with watching(tmp_path_factory.mktemp("measured") / "job", server) as watched:
        watched.running.until(lambda: watched.ask("/status.json").json["totals"].get("documents", 0) > 10)
        plain = watched.ask("/metrics")
        assert plain.headers["Content-Type"].startswith("text/plain; version=")
        other = watched.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        yield plain.text, other.text, watched.ask("/status.json").json


def samples(text: str) -> dict[str, list]:
    found: dict[str, list] = {}
    for family in parsed(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def test_the_official_parsers_read_them(told):
    plain, other, status = told
    assert {family.name for family in parsed(plain)} >= FAMILIES
    assert {family.name for family in openmetrics(other)} >= FAMILIES
    by_name = samples(plain)
    assert 10 < by_name["spiderling_documents_total"][0].value <= status["totals"]["documents"]
    assert {one.labels["language"] for one in by_name["spiderling_words_total"]} == {"cs"}
    assert {one.labels["reason"] for one in by_name["spiderling_ends_total"]} <= {
        one["reason"] for one in status["ends"]
    }
    assert sum(one.value for one in by_name["spiderling_hosts"]) == 2
    pages = by_name["spiderling_text_seconds_count"][0].value
    assert pages >= 10 and by_name["spiderling_text_seconds_bucket"][-1].value == pages
    for stage in ("download", "checkpoint", "dns", "loop_lag"):
        assert by_name[f"spiderling_{stage}_seconds_count"][0].value > 0, stage
    assert len(by_name["spiderling_bottleneck"]) == 1
    assert by_name["process_resident_memory_bytes"][0].value > 1e7
    assert not [one for one in by_name["spiderling_scrapy_stat"] if one.labels["name"].startswith("spiderling/")]


@pytest.mark.parametrize("name", ["grafana-dashboard.json", "prometheus-rules.yaml"])
def test_each_metric_that_an_example_names_exists(told, name):
    text = (HERE / name).read_text("utf-8")
    if name.endswith(".json"):
        asked = [target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]]
    else:
        asked = [rule["expr"] for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    named = {metric for expression in asked for metric in NAME.findall(expression)}
    assert len(named) > 8
    assert named <= samples(told[0]).keys()
