"""What one ``scrapy crawl`` starts when it is to start all shards of its crawl."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from spiderling.base.errors import BadInput, JobdirError
from spiderling.cli import command
from spiderling.cli.command import plan_of, wanted_shards
from spiderling.cluster.claims import ShardMap
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.spiders.spiderling import SpiderlingSpider


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch):
    monkeypatch.setattr(command, "usable_cores", lambda: 16)


def plan(directory: Path, wanted: int, arguments: dict[str, str] | None = None, **settings):
    given = {"JOBDIR": str(directory), **{f"SPIDERLING_{name}": value for name, value in settings.items()}}
    return plan_of(get_crawler(SpiderlingSpider, given), {"lang": "cs"} if arguments is None else arguments, wanted)


def begin(directory: Path, shards: int) -> None:
    """The state of a shard, as far as it says how many there are."""
    state = directory / "shard-02/state"
    state.mkdir(parents=True)
    database = state / "frontier.sqlite"
    SqliteStore(database).close()
    with closing(sqlite3.connect(database)) as connection, connection:
        said = ShardMap(shards, "cs", "near").to_json()
        connection.execute("INSERT INTO meta (key, checksum, value) VALUES ('shard_map', 0, ?)", (said,))


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, None),
        ({"SPIDERLING_SHARDS": 1}, None),
        ({"SPIDERLING_SHARDS": " auto "}, 0),
        ({"SPIDERLING_SHARDS": "4"}, 4),
        ({"SPIDERLING_SHARDS": "4", "SPIDERLING_CLUSTER": "unix:///s"}, None),
    ],
)
def test_who_starts_all_shards(settings, wanted):
    assert wanted_shards(Settings(settings)) == wanted


def test_auto_starts_what_the_cores_call_for(tmp_path):
    made = plan(tmp_path / "cs", 0, PAGE="127.0.0.1:8580")
    assert len(made.settings) == 5
    for one in made.settings:
        assert (one["SPIDERLING_SHARDS"], one["JOBDIR"]) == ("5", str(tmp_path / "cs"))
    assert ["SPIDERLING_PAGE" in one for one in made.settings] == [False, True, True, True, True]
    assert made.words.startswith(f"Starting the crawl in {tmp_path / 'cs'}: 5 shards on 16 cores. Each logs")
    assert made.command[-2:] == ["--pidfile=", "--profile="]
    assert {one["LOG_LEVEL"] for one in made.settings} == {"WARNING"}


def test_a_crawl_that_has_begun_keeps_its_number(tmp_path):
    begin(tmp_path / "cs", 7)
    made = plan(tmp_path / "cs", 0)
    assert len(made.settings) == 7 and made.words.startswith("Resuming the crawl in")
    assert len(plan(tmp_path / "cs", 7).settings) == 7
    with pytest.raises(BadInput, match="has SPIDERLING_SHARDS=7, not 4; scrapy reshard changes that"):
        plan(tmp_path / "cs", 4)


def test_a_crawl_without_shards_stays_one(tmp_path):
    (tmp_path / "cs/state").mkdir(parents=True)
    assert plan(tmp_path / "cs", 0) is None
    with pytest.raises(JobdirError, match="holds a crawl without shards"):
        plan(tmp_path / "cs", 2)


def test_few_cores_call_for_no_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "usable_cores", lambda: 5)
    assert plan(tmp_path / "cs", 0) is None
    begin(tmp_path / "cs", 1)
    assert len(plan(tmp_path / "cs", 0).settings) == 1, "a crawl of one shard has its state in that"


def test_what_each_shard_would_write_is_refused(tmp_path):
    with pytest.raises(BadInput, match="-o and -O are for a crawl without shards"):
        plan_of(get_crawler(SpiderlingSpider, {"FEEDS": {"a.jsonl": {"format": "jsonlines"}}}), {"lang": "cs"}, 2)
