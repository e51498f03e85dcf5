"""What the report advises, for crawls that are so or so, and its table of yield rates."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from spiderling.jobdir.as_text import rows_of
from spiderling.jobdir.status import CURVES, rates
from spiderling.jobdir.status_schema import Curves, Ends, Revisits, ShardStatus, Status, Urls
from spiderling.reporting.page import advice, recent

MB = 1_000_000
STEADY = tuple((t, 10 * t, 100 * t, t * MB, t * MB // 20) for t in range(100, 10_100, 100))
"""(running seconds, pages, words, downloaded, kept) at times."""
FADING = (*STEADY[:-10], *((t, 10 * t, 100 * t, t * MB, 450 * MB) for t in range(9_100, 10_100, 100)))
REVISITS = Revisits(0.0, None, 9, 9, 9, 0, 0, 0, 0, 0)
SHARDS = [ShardStatus(n, f"x/shard-0{n}", "", "stopped", {}, Urls(0, 0, 0, 0), {str(1 - n): 2}) for n in range(2)]


def status_of(history: tuple = (), waiting: int = 0, ends: dict | None = None, **more) -> Status:
    """The status of a crawl that never was; *more*: other fields."""
    names = ("time_s", "pages", "words", "downloaded_bytes", "kept_bytes")
    rows = [dict(zip(names, row, strict=True)) for row in history]
    columns = {name: [row.get(name, row["time_s"]) for row in rows] for name in CURVES}
    totals = Counter(rows[-1] if rows else {})
    empty = {"str": "", "int": 0, "float": 0.0, "bool": False, "dict": {}, "list": []}
    fields = {field.name: empty.get(field.type.partition("[")[0]) for field in dataclasses.fields(Status)}
    fields |= {
        "lang": "cs", "phase": "finished", "totals": totals, "overall": rates(totals, {}), "lately": rates({}, {}),
        "urls": Urls(waiting, 0, waiting, 0), "curves": Curves(columns, columns),
        "ends": [Ends(key, urls, "") for key, urls in (ends or {}).items()],
    }  # fmt: skip
    return Status(**fields | more)


@pytest.mark.parametrize(
    ("history", "more", "said"),
    [
        ((), {}, ["^No page has been fetched yet"]),
        (STEADY, {}, ["is finished: no URL waits"]),
        (STEADY, {"waiting": 36_000}, [
            "^Let it go on: the last 1.0 GB gave 0.0500 of their bytes as text (in all: 0.0500), 360,000",
            "the 36,000 URLs that wait take 1 h.",
        ]),
        (FADING, {"waiting": 36_000}, ["^Consider to stop: the last 1.0 GB gave 0.0000"]),
        (STEADY[:1], {"waiting": 36_000}, ["too early to say"]),
        (STEADY, {"archives_unread": 3}, ["^Archives that are not read to their end: 3."]),
        (STEADY, {"phase": "stopped", "revisits": REVISITS}, ["^No new URL waits: the recrawl asks again"]),
        (STEADY, {"phase": "finished", "revisits": REVISITS}, ["is finished: no URL waits"]),
        # one and several
        (STEADY, {"waiting": 1}, ["At this pace the URL that waits takes"]),
        (STEADY[:1], {"waiting": 1}, ["^1 URL waits; it is too early"]),
        (STEADY, {"ends": {"host-full": 1}}, ["1 URL came to a host whose queue was full"]),
        (STEADY, {"bottlenecks": {"DNS": 1}}, ["In 1 of 1 progress line the bottleneck was DNS: docs/"]),
        (STEADY, {"bottlenecks": {"paused": 7, "DNS": 2}}, ["In 7 of 9 progress lines the bottleneck was paused: "]),
        # what most URLs came to
        (STEADY, {"ends": {"wrong-language": 60, "kept": 40, "host-retired": 900, "host-full": 3}}, [
            "58% of the URLs that were tried ended as wrong-language: ",
            "3 URLs came to a host whose queue was full",
        ]),
        # shards
        (STEADY, {"shards": SHARDS, "directory": "x", "note": "shard 2 of 3 is not here"}, [
            "This is not all: shard 2 of 3 is not here.",
            "4 messages with links still wait for shard 0, 1: start it.",
            "`scrapy dedup x -o corpus.prevert.zst`",
        ]),
    ],
)  # fmt: skip
def test_advice(history, more, said):
    text = " ".join(advice(status_of(history, **more)))
    assert "ended as kept" not in text
    for wanted in said:
        assert text.startswith(wanted[1:]) if wanted.startswith("^") else wanted in text


def test_the_last_tenth_of_the_bytes():
    now = recent(status_of(STEADY).curves)
    assert (now.seconds, now.pages_per_s, now.downloaded_bytes_per_s * now.seconds) == (1000, 10, 1000 * MB)
    for history in (STEADY[:1], (STEADY[0],) * 3, ()):
        assert recent(status_of(history).curves) is None, "nothing came meanwhile"


def test_fields_are_shown_in_megabytes_and_as_dates():
    record = {"host": "a.test", "kept_bytes": 1_500_000, "since": 0.0, "until": None}
    shown = {"host": "a.test", "kept_mb": 1.5, "since": "1970-01-01 00:00:00 UTC", "until": "none"}
    assert rows_of([record]) == [shown]
