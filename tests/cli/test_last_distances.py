"""All that looks at the distance of a document or host goes by the last one of the host, not by that of a fetch."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Crawl, page, scrapy, serving

from spiderling.corpus.segments import Source, stored_documents
from spiderling.frontier.storage.protocol import Changes, HostRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.as_text import overview
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.status import hosts_of, status_of
from spiderling.reporting.advice import hosts_by_column
from webs.web import FixedWeb

SITES = {
    "seed.test": {
        "/": page("start", "http://b.test/", "/1"),
        **{f"/{n}": page(f"of the seed {n}", f"/{n + 1}") for n in range(1, 16)},
        "/16": page("of the seed, the last", "http://c.test/2"),
    },
    "b.test": {"/": page("of b", "http://c.test/1")},
    "c.test": {"/1": page("of c, the first", "http://d.test/1"), "/2": page("of c, the second")},
    "d.test": {"/1": page("of d")},
}
"""c.test/1 and d.test/1 are read by the long way over b; the last page of the seed shows a shorter one."""
ADDRESSES = {host: f"127.84.31.{number}" for number, host in enumerate(SITES, 1)}
LAST = {"seed.test": "0", "b.test": "1", "c.test": "1", "d.test": "2"}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory) -> Crawl:
    with serving(FixedWeb(SITES, ADDRESSES)) as server:
        crawl = Crawl(tmp_path_factory.mktemp("distances") / "job", server)
        assert crawl.run("http://seed.test/", HOST_INTERVAL_S=0.05).code == 0
    return crawl


def distances(path: Path) -> dict[str, set[str]]:
    """Host -> the distances of its documents in the file *path*."""
    found: dict[str, set[str]] = {}
    for document in stored_documents(Source(path)):
        found.setdefault(document.attributes["host"], set()).add(document.attributes["distance"])
    return found


def export(crawl: Crawl, source: Path, out: Path, *options: str) -> None:
    ended = scrapy("export", str(source), "-o", str(out), *options)
    assert ended.code == 0, ended.log


def test_a_cut_by_distance_takes_hosts_whole(crawl, tmp_path):
    out = tmp_path / "near.prevert"
    export(crawl, crawl.directory, out, "--max-distance", "1")
    assert distances(out) == {host: {distance} for host, distance in LAST.items() if distance != "2"}
    hosts = Counter(document.attributes["host"] for document in stored_documents(Source(out)))
    assert hosts == {"seed.test": 17, "b.test": 1, "c.test": 2}


def test_a_split_and_a_condition_and_the_attribute_go_by_it(crawl, tmp_path):
    export(crawl, crawl.directory, tmp_path / "all.prevert", "--split", "distance")
    parts = {path.name: distances(path) for path in tmp_path.glob("*.prevert")}
    assert parts == {
        f"all.distance-{n}.prevert": {host: {n} for host, distance in LAST.items() if distance == n} for n in "012"
    }
    export(crawl, crawl.directory, tmp_path / "two.jsonl", "--where", "distance=2")
    (line,) = (tmp_path / "two.jsonl").read_text("utf-8").splitlines()
    assert (json.loads(line)["url"], json.loads(line)["distance"]) == ("http://d.test/1", 2)


def test_report_and_inspect_say_it(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        assert {host.name: str(host.distance) for host in hosts_of(opened).hosts} == LAST
        assert {group.group: group.hosts for group in status_of(opened).by_distance} == {
            "all": 4, "distance 0": 1, "distance 1": 2, "distance 2": 1,
        }  # fmt: skip
    assert "distance    2" in scrapy("inspect", str(crawl.directory), "host", "d.test").out


def test_a_file_alone_has_the_distances_of_the_fetch(crawl, tmp_path):
    (segment,) = (crawl.directory / "corpus").glob("*.prevert.zst")
    export(crawl, segment, tmp_path / "alone.prevert")
    assert distances(tmp_path / "alone.prevert") == distances(segment)
    assert all(
        set(found) == {LAST[host]} for host, found in distances(segment).items() if host in ("seed.test", "b.test")
    )


def test_readers_know_distances_and_lengths_that_are_newer_than_the_rows_of_the_hosts(tmp_path):
    """As a running crawl, or one that was killed, leaves them."""
    (tmp_path / "state").mkdir()
    store = SqliteStore(tmp_path / "state/frontier.sqlite")
    rows = [HostRow(n, f"h{n}.cz", "ready", 9, documents=1, kept_bytes=n) for n in range(1, 21)]
    store.commit(Changes(hosts=rows, meta={"options": "{}"}))
    store.commit(Changes(host_updates=[(7, 5, 2, 20)]))
    with closing(Inspection(tmp_path)) as opened:
        assert opened.rows("SELECT waiting, distance FROM main.host WHERE id = 20") == [{"waiting": 0, "distance": 9}]
        assert opened.distances() == {f"h{n}.cz": 9 for n in range(1, 20)} | {"h20.cz": 2}
        assert hosts_of(opened, "h20").hosts[0].distance == 2
        assert hosts_of(opened, "h20").hosts[0].waiting == 7
        text = "\n".join(overview(status_of(opened)))
        assert "distance 2" in text and "distance 9" in text
        assert hosts_by_column(opened).parked.tolist() == [0] * 19 + [5]
    store.close()
