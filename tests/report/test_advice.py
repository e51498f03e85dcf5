"""What the report advises, for crawls that are so or so."""

from __future__ import annotations

import pytest
from made import MB, hosts_of, status_of

from spiderling.base.options import Options
from spiderling.jobdir.status_schema import ShardStatus, Urls
from spiderling.reporting.advice import advice, recent

STEADY = tuple((t, 10 * t, 100 * t, t * MB, t * MB // 20) for t in range(100, 10_100, 100))
FADING = (*STEADY[:-10], *((t, 10 * t, 100 * t, t * MB, 450 * MB) for t in range(9_100, 10_100, 100)))
NONE = hosts_of()


def said(history: tuple = (), hosts=NONE, options: dict | None = None, **more) -> str:
    return " ".join(advice(status_of(hosts, history, **more), hosts, Options(lang="cs", **options or {})))


def test_an_empty_crawl():
    assert said().startswith("No page has been fetched yet")


def test_a_finished_crawl():
    assert "is finished: no URL waits" in said(STEADY)


def test_a_steady_one_goes_on_and_its_rest_is_reckoned():
    text = said(STEADY, waiting=36_000)
    assert text.startswith("Let it go on: the last 1.0 GB gave 0.0500 of their bytes as text (in all: 0.0500), 360,000")
    assert "the 36,000 URLs that wait take 1 h." in text


def test_one_that_gives_nothing_new_should_stop():
    assert said(FADING, waiting=36_000).startswith("Consider to stop: the last 1.0 GB gave 0.0000")


def test_one_that_has_just_begun():
    assert "too early to say" in said(STEADY[:1], waiting=36_000)


def test_archives_are_read_on():
    assert said(STEADY, archives_unread=3).startswith("Archives that are not read to their end: 3.")


def test_one_and_several_are_told_in_their_numbers():
    one = hosts_of(("retired", 1000, 50 * MB, 0, 1), ("exhausted", 1000, 50 * MB, 20 * MB, 0))
    assert "1 host was retired; 1 URL is parked with hosts left alone." in said(hosts=one)
    two = hosts_of(("retired", 1000, 50 * MB, 0, 1), ("retired", 1000, 50 * MB, 0, 1), ("mirror", 9, MB, 0, 50))
    assert "2 hosts were retired; 2 URLs are parked" in said(hosts=two), "what a mirror has left is not wanted"
    assert "At this pace the URL that waits takes" in said(STEADY, waiting=1)
    assert said(STEADY[:1], waiting=1).startswith("1 URL waits; it is too early")
    assert "1 URL came to a host whose queue was full" in said(STEADY, ends={"host-full": 1})
    assert "In 1 of 1 progress line the bottleneck was DNS: " in said(STEADY, bottlenecks={"DNS": 1})


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("politeness", "a faster machine does not"),
        ("main process", "A faster core helps"),
        ("text workers", "More cores help"),
        ("hosts", "Give more seeds"),
        ("paused", "bottleneck was paused."),
    ],
)
def test_what_it_is_bound_by(bound, words):
    text = said(STEADY, bottlenecks={bound: 7, "DNS": 2})
    assert words in text and f"In 7 of 9 progress lines the bottleneck was {bound}" in text


def test_a_stricter_profile_that_costs_no_text_is_named():
    hosts = hosts_of(("ready", 100, 50 * MB, 20 * MB, 0), ("ready", 1000, 50 * MB, MB // 2 + 1, 0))
    text = said(hosts=hosts)
    assert "A stricter yield profile (paper, f=0.01) would have spared about 49% of the download" in text


def test_a_milder_profile_that_would_give_much_is_named():
    hosts = hosts_of(("ready", 10, MB, MB // 2, 0), ("retired", 1000, 50 * MB, MB // 3, 9000))
    text = said(hosts=hosts)
    assert "Go on with -s SPIDERLING_YIELD_PROFILE=permissive, a milder one: the crawl then reopens by itself" in text


def test_what_most_urls_came_to():
    text = said(STEADY, ends={"wrong-language": 60, "kept": 40, "host-retired": 900, "host-full": 3})
    assert "58% of the URLs that were tried were pages in other languages" in text
    assert "3 URLs came to a host whose queue was full" in text


def test_messages_and_what_shards_have_in_common_are_told():
    shards = [
        ShardStatus(n, f"x/shard-0{n}", "", "stopped", {}, Urls(0, 0, 0, 0), {str(1 - n): 2}, None) for n in range(2)
    ]
    text = said(STEADY, shards=shards, directory="x", note="shard 2 of 3 is not here")
    assert "This is not all: shard 2 of 3 is not here." in text
    assert "4 messages with links still wait for shard 0, 1: start it." in text
    assert "`scrapy dedup x -o corpus.prevert.zst`" in text


def test_the_last_tenth_of_the_bytes():
    now = recent(status_of(NONE, STEADY).curves)
    assert (now.seconds, now.pages_per_s, now.downloaded_bytes_per_s * now.seconds) == (1000, 10, 1000 * MB)
    assert recent(status_of(NONE, STEADY[:1]).curves) is None
    assert recent(status_of(NONE, (STEADY[0],) * 3).curves) is None, "nothing came meanwhile"
    assert recent(status_of(NONE).curves) is None
