"""A crawl of shards is one crawl to who reads it: inspect, report, export, dedup and the live page."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import pytest
from conftest import Crawl, page, scrapy, serving
from needs import needs
from redis_server import RedisServer
from test_crawl_of_shards import SOON

from spiderling.base.errors import BadInput
from spiderling.base.urls import owner_of
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.jobdir.as_text import of_host, of_url, overview
from spiderling.jobdir.inspection import AnyCrawl, Inspection, history_of, opened, parts_in
from spiderling.jobdir.status import hosts_of, newest_of, status_of
from spiderling.jobdir.status_schema import Status
from spiderling.reporting.page import page_file
from webs.web import FixedWeb

pytestmark = needs("redis")

SHARDS = 3
HOSTS = [f"host{number}.test" for number in range(9)]
# one host names all others, so the distance of a host does not depend on who is faster
SITES = {
    host: {
        "/": page(host, "/1", "/same", *(f"http://{other}/" for other in (HOSTS[:1] if index else HOSTS[1:]))),
        "/1": page(f"{host} 1", "/missing"),
        "/same": page("the same everywhere"),
    }
    for index, host in enumerate(HOSTS)
}
ADDRESSES = {host: f"127.84.37.{number}" for number, host in enumerate(HOSTS, 1)}
SEED = f"http://{HOSTS[0]}/"
OWNERS = {host: owner_of(host, SHARDS) for host in HOSTS}
WAITS = SOON | {"cluster.heartbeat.WAIT_MISSING_S": 1000.0, "cluster.content.TOLD": 0}
"""Shards wait for each other, and do not tell what they keep: so all find the same text."""
FREE = next(f"free{number}.test" for number in range(99) if owner_of(f"free{number}.test", SHARDS) == 1)
"""A host that no page names."""


class Made(NamedTuple):
    """One web, crawled by three shards and by one process."""

    shards: Path
    alone: Path
    while_it_ran: Status
    shown: dict[str, Any]  # what the live page of one shard showed then, by path


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    directory = tmp_path_factory.mktemp("shards")
    whole = directory / "cs"
    with RedisServer() as store, serving(FixedWeb(SITES, ADDRESSES)) as server:
        assert Crawl(directory / "alone", server).run(SEED).code == 0
        settings = {"CLUSTER": store.url, "SHARDS": SHARDS, "CONSTANTS": WAITS}
        crawl = Crawl(whole, server, HOST_INTERVAL_S=0.3, PAGE="127.0.0.1:0", **settings)
        before = len(server.log_entries)
        running = [crawl.start(SEED) for _ in range(SHARDS - 1)]  # they wait for the last
        running[0].until(lambda: len(server.log_entries) > before + 25)
        with closing(opened(whole)) as reading:
            told = status_of(reading)
        (url,) = re.findall(r"The live page: (\S+) ", running[0].output())
        shown = {name: json.loads(urlopen(url + name).read()) for name in ("status.json", "hosts.json")}
        (token,) = re.findall(r"the token in (\S+?)\)", running[0].output())
        for control in ({"action": "budget", "max_pages": 3000}, {"action": "block", "host": FREE}):
            headers = {"Content-Type": "application/json", "X-Spiderling": "1"}
            headers["Authorization"] = f"Bearer {Path(token).read_text().strip()}"
            urlopen(Request(f"{url}control", json.dumps(control).encode(), headers)).read()
        running.append(crawl.start(SEED))
        ended = [one.wait() for one in running]
        assert [one.code for one in ended] == [0] * SHARDS, ended
        advice = f"To remove text that more than one shard found, run scrapy dedup {whole} -o"
        assert all(one.lines("all shards", advice) for one in ended)
    return Made(whole, directory / "alone", told, shown)


@contextmanager
def reading(directory: Path) -> Iterator[AnyCrawl]:
    with closing(opened(directory)) as crawl:
        yield crawl


@pytest.fixture
def copied(made, tmp_path) -> Path:
    """The shards, to be changed."""
    shutil.copytree(made.shards, tmp_path / "cs")
    return tmp_path / "cs"


def change(directory: Path, *commands: str) -> None:
    with closing(sqlite3.connect(directory / "state/frontier.sqlite")) as state, state:
        for command in commands:
            state.execute(command)


def told_of_url(directory: Path, url: str) -> dict[str, str]:
    with reading(directory) as crawl:
        lines = list(of_url(crawl, url))
    return {line[:12].strip(): line[12:] for line in lines if line[:12].strip()}


def refused(*arguments: object) -> str:
    """What a command says that ends with an error, on one line."""
    ended = scrapy(*map(str, arguments))
    assert ended.code == 1 and len(ended.log.splitlines()) == 1, ended
    return ended.log


# -- the whole


@pytest.mark.slow
def test_totals_are_the_sums_of_the_parts_and_those_of_one_process(made):
    with reading(made.shards) as crawl, reading(made.alone) as alone:
        counts, expected = crawl.counts, alone.counts
        parts = [part.counts for part in crawl.parts]
    assert len(parts) == SHARDS and all(part["total/pages"] for part in parts)
    times = [part["total/time_s"] for part in parts]
    assert max(times) <= counts["total/time_s"] <= sum(times)
    for name in counts.keys() - {"total/time_s"}:
        assert counts[name] == sum(part[name] for part in parts), name
    for name in ("discovered", "waiting", "total/pages", "total/downloaded_bytes", "end/http-error"):
        assert counts[name] == expected[name], name
    assert counts["end/kept"] + counts["end/duplicate"] == expected["end/kept"] + expected["end/duplicate"]
    assert counts["end/kept"] == expected["end/kept"] + SHARDS - 1, "each shard keeps the page that all hosts have"


def test_json_tells_of_all_and_of_each(made):
    ended = scrapy("inspect", str(made.shards), "--json")
    assert (ended.code, ended.log) == (0, "")
    told = json.loads(ended.out)
    assert (told["phase"], told["process"], told["note"]) == ("finished", "", "")
    assert [(shard["number"], shard["phase"], shard["messages"]) for shard in told["shards"]] == [
        (number, "finished", {}) for number in range(SHARDS)
    ]
    for name in ("pages", "documents", "words", "downloaded_bytes", "links_taken"):
        assert told["totals"][name] == sum(shard["totals"][name] for shard in told["shards"]) > 0
    assert told["curves"]["whole"]["words"][-1] == told["totals"]["words"]
    assert told["curves"]["whole"]["time_s"][-1] == told["totals"]["time_s"] == told["overall"]["seconds"]
    assert told["hosts"] == {"exhausted": len(HOSTS)}
    with reading(made.shards) as crawl:
        texts = newest_of(crawl, most=100)
    assert len({text.url for text in texts}) == len(texts) == told["totals"]["documents"]
    assert [text.time for text in texts] == sorted((text.time for text in texts), reverse=True)
    assert [text["url"] for text in told["newest"]] == [text.url for text in texts[:10]]
    with reading(made.alone) as alone:
        assert json.loads(status_of(alone).to_json())["shards"] == []


def test_hosts_of_all_shards_are_sorted_and_turned_over(made):
    with reading(made.shards) as crawl, reading(made.alone) as alone:
        for order, rising in (("name", True), ("words", False), ("distance", True)):
            pages = [hosts_of(crawl, order=order, rising=rising, page=number, most=4) for number in range(3)]
            assert [(page.found, page.page, page.pages, len(page.hosts)) for page in pages] == [
                (9, 0, 3, 4), (9, 1, 3, 4), (9, 2, 3, 1),
            ]  # fmt: skip
            hosts = [host for page in pages for host in page.hosts]
            assert {host.name for host in hosts} == set(HOSTS)
            values = [getattr(host, order) for host in hosts]
            assert values == sorted(values, reverse=not rising)
        distances = {host.name: (host.distance, host.pages) for host in hosts_of(alone).hosts}
        assert {host.name: (host.distance, host.pages) for host in hosts_of(crawl).hosts} == distances


def test_overview(made):
    with reading(made.shards) as crawl, reading(made.alone) as alone:
        told, expected = [[line.split() for line in overview(status_of(each))] for each in (crawl, alone)]
    assert [line[0] for line in told if line and line[0].startswith("shard-0") and len(line) > 5] == [
        f"shard-0{number}" for number in range(SHARDS)
    ]
    assert ["corpus", "3"] in [line[:2] for line in told]
    same = [line[:3] for line in expected if line[:1] == ["http-error"] or line[:1] in (["distance"], ["all"])]
    assert len(same) == 4 and all(line in [each[:3] for each in told] for line in same)
    assert not any(word.startswith(("shard", "Shard")) for line in expected for word in line)


@pytest.mark.slow
def test_report_is_of_the_whole_crawl(made, tmp_path):
    with reading(made.alone) as alone:
        without_shards = page_file(alone)
    ended = scrapy("report", str(made.shards), "-o", str(tmp_path / "report.html"))
    assert (ended.code, ended.log) == (0, "")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert ">Shards<" in text and "shard-02" in text and ">finished<" in text
    assert f"scrapy dedup {made.shards} -o corpus.prevert.zst" in text
    assert ">Shards<" not in without_shards and "scrapy dedup" not in without_shards


def test_export_and_dedup_take_all_shards(made, tmp_path):
    exported = scrapy("export", str(made.shards), "-o", str(tmp_path / "cs.jsonl"))
    assert (exported.code, exported.log) == (0, ""), exported
    rows = [json.loads(line) for line in (tmp_path / "cs.jsonl").read_text("utf-8").splitlines()]
    same = [row for row in rows if row["url"].endswith("/same")]
    assert len(rows) == 2 * len(HOSTS) + SHARDS and len(same) == SHARDS == len({OWNERS[row["host"]] for row in same})
    manifest = json.loads((tmp_path / "cs.jsonl.json").read_text("utf-8"))
    (provenance,) = manifest["crawls"]
    assert (provenance["pages"], provenance["hosts_asked"]) == (4 * len(HOSTS), len(HOSTS))
    deduped = scrapy("dedup", str(made.shards), "--unit", "document", "-o", str(tmp_path / "d.jsonl"))
    assert (deduped.code, deduped.log) == (0, ""), deduped
    urls = [json.loads(line)["url"] for line in (tmp_path / "d.jsonl").read_text("utf-8").splitlines()]
    # all texts are drawn from the same few sentences, so even the first copy may repeat what stands before it
    assert urls and sum(url.endswith("/same") for url in urls) <= 1


def test_check_looks_at_each_shard(made, copied):
    ended = scrapy("inspect", str(copied), "--check")
    assert (ended.code, ended.out) == (0, "The crawl is whole.\n"), ended
    change(copied / "shard-02", "UPDATE count SET value = value + 1 WHERE key = 'discovered'")
    ended = scrapy("inspect", str(copied), "--check")
    assert ended.code == 1 and ended.out.startswith("shard-02: ") and "shard-00: " not in ended.out


# -- one host, one URL


def test_a_url_says_in_which_shard_it_is_and_which_sent_the_link(made):
    seed = told_of_url(made.shards, SEED)
    assert seed["shard"] == f"{OWNERS[HOSTS[0]]} of 3, {made.shards}/shard-0{OWNERS[HOSTS[0]]}"
    assert seed["found on"] == "no page: a seed, or put in by hand"
    mine = told_of_url(made.shards, f"{SEED}1")
    assert mine["found on"] == SEED, "a link within a shard has its page"
    # the first host is the only one that links to the second
    other = told_of_url(made.shards, f"http://{HOSTS[1]}/")
    assert OWNERS[HOSTS[1]] != OWNERS[HOSTS[0]]
    assert other["shard"].startswith(f"{OWNERS[HOSTS[1]]} of 3, ")
    assert other["found on"] == f"a page of shard {OWNERS[HOSTS[0]]}, which sent the link"
    assert other["title"] == f"Strana {HOSTS[1]}", "its text is read from its shard"
    assert "never found" in told_of_url(made.shards, "http://nowhere.test/")["verdict"]
    with reading(made.shards) as crawl:
        lines = list(of_host(crawl, HOSTS[1], urls=True))
    assert lines[1].split()[:2] == ["shard", str(OWNERS[HOSTS[1]])]
    assert "shard" not in told_of_url(made.alone, SEED)


# -- what is not the whole


def test_a_shard_alone_says_which_it_is(made):
    number = OWNERS[HOSTS[1]]
    part = made.shards / f"shard-0{number}"
    with reading(part) as crawl:
        assert isinstance(crawl, Inspection)
        assert crawl.note == f"this is shard {number} of the 3 shards of a crawl; the others are not told of"
        assert crawl.note in "\n".join(overview(status_of(crawl)))
        told = status_of(crawl)
    assert told.note and [shard.number for shard in told.shards] == [number]
    with (
        reading(part) as crawl,
        pytest.raises(BadInput, match=rf"knows no host {HOSTS[0]} \(this is shard {number} of"),
    ):
        list(of_host(crawl, HOSTS[0], urls=False))
    found = told_of_url(part, f"http://{HOSTS[1]}/")
    assert found["found on"] == f"a page of shard {OWNERS[HOSTS[0]]}, which sent the link"


def test_a_missing_shard_is_named(copied, tmp_path):
    with reading(copied) as crawl:
        whole = status_of(crawl)
    (copied / "shard-01").rename(tmp_path / "shard-01")
    assert [place.name for place in parts_in(copied)] == ["shard-00", "shard-02"]
    with reading(copied) as crawl:
        assert crawl.note == "shard 1 of 3 is not here"
        assert crawl.note in "\n".join(overview(status_of(crawl)))
        found, page = status_of(crawl), page_file(crawl)
    assert 0 < found.totals["pages"] < whole.totals["pages"]
    assert "This is not all: shard 1 of 3 is not here." in page
    gone = next(host for host in HOSTS if OWNERS[host] == 1)
    assert f"{gone} belongs to shard 1 of 3, which is not in" in refused("inspect", copied, "url", f"http://{gone}/")
    exported = scrapy("export", str(copied), "-o", str(tmp_path / "cs.jsonl"))
    assert exported.code == 0 and "shard 1 of 3 is not here" in exported.log
    assert "But shard 1 of 3 is not here." in scrapy("inspect", str(copied), "--check").out
    shutil.rmtree(copied / "shard-02")
    with reading(copied) as crawl:
        assert crawl.note == "shards 1 and 2 of 3 are not here"


def test_what_does_not_belong_together_is_refused(made, copied):
    with reading(copied) as crawl:
        (name,) = {part.shard.crawl for part in crawl.parts if part.shard}
    other = "UPDATE meta SET value = replace(value, '{}', '{}') WHERE key = 'shard_map'".format
    change(copied / "shard-01", other(name, name[::-1]))
    assert "shards of different crawls (shard-00, shard-01)" in refused("inspect", copied)
    assert "shards of different crawls (shard-00, shard-01)" in refused("export", copied, "-o", copied / "x.jsonl")
    shutil.rmtree(copied / "shard-01")
    shutil.copytree(copied / "shard-00", copied / "shard-01")
    assert "shard-01 holds another of the 3 shards than its name says" in refused("report", copied)
    (copied / "shard-01").rename(copied / "shard-07")
    assert "shard-07 holds another of the 3 shards than its name says" in refused("inspect", copied)
    shutil.rmtree(copied / "shard-07")
    shutil.copytree(made.alone, copied / "shard-01")
    assert "shard-01 is named as a shard of a crawl, and holds a crawl without shards" in refused("inspect", copied)


def test_a_shard_without_its_state_is_missed_and_salvaged(copied, tmp_path):
    shutil.rmtree(copied / "shard-02" / "state")
    assert "shard-02 holds no crawl" in refused("inspect", copied)
    ended = scrapy("export", str(copied), "-o", str(tmp_path / "cs.jsonl"), "--salvage")
    assert "shard-02 holds no crawl" in ended.log and f"{2 * len(HOSTS) + SHARDS} documents in" in ended.out
    assert "holds no crawl" in refused("inspect", tmp_path / "nothing")


# -- while it runs


def test_shards_are_read_while_they_run(made):
    told = made.while_it_ran
    assert told.phase == "running" and told.process.count("process") == 2
    assert [(shard.number, shard.phase) for shard in told.shards] == [(0, "running"), (1, "running")]
    assert told.note == "shard 2 of 3 is not here"
    assert sum(shard.messages.get("2", 0) for shard in told.shards) > 0, "links wait for it"
    assert told.totals["pages"] == sum(shard.totals["pages"] for shard in told.shards) > 0


def test_the_live_page_of_a_shard_shows_all(made):
    status = made.shown["status.json"]
    assert status["directory"] == str(made.shards) and status["phase"] == "running" and len(status["shards"]) == 2
    assert status["note"] == "shard 2 of 3 is not here"
    hosts = made.shown["hosts.json"]["hosts"]
    assert {OWNERS[host["name"]] for host in hosts} == {0, 1}
    assert status["totals"]["pages"] > max(shard["totals"]["pages"] for shard in status["shards"])


def test_the_live_page_controls_all_shards(made):
    text = (made.shards / "control.yaml").read_text()
    assert "\nmax_pages: 3000" in text and f'\nblock: ["{FREE}"]' in text
    assert not [place for place in parts_in(made.shards) if (place / "control.yaml").exists()], "one file for all"
    with reading(made.shards) as crawl:
        assert any("control.yaml: max_pages: None -> 3000" in event.what for event in status_of(crawl).events)


# -- the time for which it ran


def with_history(directory: Path, *rows: tuple[int, int, int]) -> None:
    """Give a state the history of *rows*: (tick, running time, pages)."""
    zeros = ", ".join("0" * (len(HistoryRow._fields) - 4 + 1))
    change(
        directory,
        "DELETE FROM history",
        *(
            f"INSERT INTO history VALUES({tick}, {10 * tick}, {time_s}, {pages}, {zeros})"
            for tick, time_s, pages in rows
        ),
        f"UPDATE count SET value = {rows[-1][1] if rows else 0} WHERE key = 'total/time_s'",
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # beside each other, their rows taking turns; the second begins later
        ([(1, 10, 5), (3, 30, 15), (5, 50, 25)], [(2, 10, 1), (4, 30, 3)],
         [(10, 5), (10, 6), (30, 16), (30, 18), (50, 28)]),
        # one after the other, with a pause between them
        ([(1, 10, 5), (2, 20, 9)], [(101, 10, 1), (102, 30, 2)], [(10, 5), (20, 9), (20, 10), (30, 11)]),
        # the second has written nothing yet
        ([(1, 10, 5), (9, 20, 9)], [], [(10, 5), (20, 9)]),
    ],
)  # fmt: skip
def test_the_crawl_ran_as_long_as_the_shard_that_ran_longest(copied, one, other, expected):
    shutil.rmtree(copied / "shard-02")
    with_history(copied / "shard-00", *one)
    with_history(copied / "shard-01", *other)
    with reading(copied) as crawl:
        assert [(row.time_s, row.pages) for row in history_of(crawl.parts)] == expected
        assert crawl.counts["total/time_s"] == expected[-1][0]


def test_the_last_minutes_are_those_of_all_shards_that_ran_in_them(copied):
    """The third has ended long before; ``lately`` looks five minutes back."""
    with_history(copied / "shard-00", *((tick, 10 * tick, 20 * tick) for tick in range(1, 101)))
    with_history(copied / "shard-01", *((tick, 10 * tick, 10 * tick) for tick in range(1, 101)))
    with_history(copied / "shard-02", (1, 10, 700))
    for number, pages in enumerate((2000, 1000, 700)):
        change(copied / f"shard-0{number}", f"UPDATE count SET value = {pages} WHERE key = 'total/pages'")
    with reading(copied) as crawl:
        told = status_of(crawl)
    assert (told.lately.seconds, told.lately.pages_per_s) == (300, 3.0)
    assert (told.overall.seconds, told.overall.pages_per_s) == (1000, 3.7)


def test_a_budget_is_that_of_all_shards(copied):
    for place in parts_in(copied):
        change(place, """UPDATE meta SET value = json_set(value, '$.max_pages', 100) WHERE key = 'options'""")
    with reading(copied) as crawl:
        (budget,) = status_of(crawl).budgets
    assert (budget.total, budget.limit, budget.reached) == ("pages", 100, 4 * len(HOSTS))
