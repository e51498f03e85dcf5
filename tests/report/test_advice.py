"""What the report advises, for crawls that are so or so."""

from __future__ import annotations

from contextlib import closing

import pytest
from made import MB, status_of

from spiderling.frontier.storage.protocol import Changes, StoredHost
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.status_schema import ShardStatus, Urls
from spiderling.reporting.advice import advice, recent, threshold_table

STEADY = tuple((t, 10 * t, 100 * t, t * MB, t * MB // 20) for t in range(100, 10_100, 100))
FADING = (*STEADY[:-10], *((t, 10 * t, 100 * t, t * MB, 450 * MB) for t in range(9_100, 10_100, 100)))


def said(history: tuple = (), **more) -> str:
    return " ".join(advice(status_of(history, **more)))


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
    one = said(STEADY, hosts={"retired": 1, "exhausted": 1}, ends={"host-retired": 1})
    assert "1 host was retired; 1 URL is parked with hosts left alone." in one
    two = said(STEADY, hosts={"retired": 2, "mirror": 1}, ends={"host-retired": 2, "mirror": 50})
    assert "2 hosts were retired; 2 URLs are parked" in two, "what a mirror has left is not wanted"
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
    now = recent(status_of(STEADY).curves)
    assert (now.seconds, now.pages_per_s, now.downloaded_bytes_per_s * now.seconds) == (1000, 10, 1000 * MB)
    assert recent(status_of(STEADY[:1]).curves) is None
    assert recent(status_of((STEADY[0],) * 3).curves) is None, "nothing came meanwhile"
    assert recent(status_of().curves) is None


@pytest.mark.parametrize("rows", [((10, 5), (100, 2), (80, 0.5), (10, 0), (1, 0)), ()])
def test_the_table_of_yield_rates_is_that_of_the_paper(tmp_path, rows):
    """*rows*: megabytes that a host cost and gave."""
    (tmp_path / "state").mkdir()
    with closing(SqliteStore(tmp_path / "state/frontier.sqlite")) as store:
        hosts = [
            StoredHost(n, f"h{n}.cz", "ready", 0, downloaded_bytes=int(down * MB), kept_bytes=int(kept * MB))
            for n, (down, kept) in enumerate(rows, 1)
        ]
        store.commit(Changes(hosts=hosts, meta={"options": "{}"}))
    with closing(Inspection(tmp_path)) as crawl:
        found = {row.pop("yield_rate_above"): [*row.values()] for row in threshold_table(crawl).rows}
    numbers = [row[0] for row in found.values()]
    assert numbers == sorted(numbers, reverse=True)
    if not rows:
        assert {*numbers} == {0}
        return
    assert found["any"] == [5, 201.0, 7.5, round(7.5 / 201, 4), 100.0, 100.0]
    assert found["0"][:3] == [3, 190.0, 7.5]
    assert found["0.0064"][:3] == [2, 110.0, 7.0], "the third has .00625"
    assert found["0.0256"] == [1, 10.0, 5.0, 0.5, round(1000 / 201, 1), round(500 / 7.5, 1)]
