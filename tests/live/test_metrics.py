"""``/metrics`` of a running crawl, read by the official parser, and the dashboard and rules that rely on it."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from conftest import ROOT
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed
from watched import watching, web  # noqa: F401 - for the fixture server

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
