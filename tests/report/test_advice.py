"""What the report advises, for crawls that stand so or so."""

from __future__ import annotations

import re

import pytest
from made import hosts_of, material

from spiderling.reporting.advice import advice, marginal

MB = 1_000_000
STEADY = tuple((t, 10 * t, 100 * t, t * MB, t * MB // 20) for t in range(100, 10_100, 100))
FADING = (*STEADY[:-10], *((t, 10 * t, 100 * t, t * MB, 450 * MB) for t in range(9_100, 10_100, 100)))
WAITING = {"waiting": 36_000}


def said(*arguments, **options) -> str:
    return " ".join(advice(material(*arguments, **options)))


def test_an_empty_crawl():
    assert said().startswith("No page has been fetched yet")


def test_a_finished_crawl():
    assert "is finished: no URL waits" in said(None, STEADY)


def test_a_steady_one_goes_on_and_its_rest_is_reckoned():
    text = said(None, STEADY, WAITING)
    assert text.startswith("Let it go on: the last 1.0 GB gave 0.0500 of their bytes as text (in all: 0.0500), 360,000")
    assert "the 36,000 URLs that wait take 1 h." in text


def test_one_that_gives_nothing_new_should_stop():
    assert said(None, FADING, WAITING).startswith("Consider to stop: the last 1.0 GB gave 0.0000")


def test_one_that_has_just_begun():
    assert "too early to say" in said(None, STEADY[:1], WAITING)


def test_one_and_several_are_told_in_their_numbers():
    hosts = hosts_of(("a.cz", "retired", 1000, 50 * MB, 0, 1), ("b.cz", "exhausted", 1000, 50 * MB, 20 * MB, 0))
    assert "1 host was retired; 1 URL is parked with hosts left alone." in said(hosts)
    hosts = hosts_of(("a.cz", "retired", 1000, 50 * MB, 0, 1), ("b.cz", "retired", 1000, 50 * MB, 0, 1))
    assert "2 hosts were retired; 2 URLs are parked" in said(hosts)
    assert "At this pace the URL that waits takes" in said(None, STEADY, {"waiting": 1})
    assert said(None, STEADY[:1], {"waiting": 1}).startswith("1 URL waits; it is too early")
    assert "1 URL came to a host whose queue was full" in said(None, STEADY, {"end/host-full": 1})
    assert "(So in 1 of 1 progress line.)" in said(None, STEADY, {"total/bound/DNS": 1})


@pytest.mark.parametrize(
    "bound",
    ["politeness", "thrift", "main process", "text workers", "connections", "DNS", "hosts", "network",
     "reading the archives"],
)  # fmt: skip
def test_a_finished_crawl_is_told_of_in_the_past(bound):
    counts = {f"total/bound/{bound}": 7}
    now, past = (" ".join(advice(material(None, STEADY, counts | more))) for more in (WAITING, {}))
    assert re.search(r"(It|The network) is ", now) and "{" not in now
    assert re.search(r"(It|The network) was ", past) and not re.search(r"(It|The network) is ", past)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("politeness", "a faster machine does not"),
        ("main process", "A faster core helps"),
        ("text workers", "More cores help"),
        ("hosts", "Give more seeds"),
    ],
)
def test_what_it_is_bound_by(bound, words):
    counts = {f"total/bound/{bound}": 7, "total/bound/DNS": 2}
    assert words in said(None, STEADY, counts)
    assert "(So in 7 of 9 progress lines.)" in said(None, STEADY, counts)


def test_a_stricter_profile_that_costs_no_text_is_named():
    hosts = hosts_of(
        ("rich.cz", "ready", 100, 50 * MB, 20 * MB, 0), ("poor.cz", "ready", 1000, 50 * MB, MB // 2 + 1, 0)
    )
    assert "A stricter yield profile (paper, f=0.01) would have spared about 49% of the download" in said(hosts)


def test_a_milder_profile_that_would_give_much_is_named():
    hosts = hosts_of(("rich.cz", "ready", 10, MB, MB // 2, 0), ("r.cz", "retired", 1000, 50 * MB, MB // 3, 9000))
    text = said(hosts)
    assert "Go on with -s SPIDERLING_YIELD_PROFILE=permissive, a milder one: the crawl then reopens by itself" in text


def test_what_most_urls_came_to():
    counts = {"end/wrong-language": 60, "end/kept": 40, "end/host-retired": 900, "end/host-full": 3}
    text = said(None, STEADY, counts)
    assert "58% of the URLs that were tried were pages in other languages" in text
    assert "3 URLs came to a host whose queue was full" in text


def test_the_last_tenth_of_the_bytes():
    first, last = marginal(material(None, STEADY).history)
    assert (first.downloaded_bytes, last.downloaded_bytes) == (9000 * MB, 10_000 * MB)
    assert marginal(material(None, STEADY[:1]).history) is None
    assert marginal(material(None, [STEADY[0]] * 3).history) is None, "nothing came meanwhile"
