"""``scrapy export --summary eu``: the figures are those of the crawl, and nothing is guessed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import scrapy
from finished import LICENCE

from spiderling.frontier.storage.protocol import Changes, ConsentRow, StoredHost
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.inspection import reading


def summary_of(directory: Path, out: Path, *options: str) -> dict[str, list]:
    """Field -> rows, of those that a query fills."""
    ended = scrapy("export", str(directory), "--summary", "eu", "-o", str(out), *options)
    assert ended.code == 0, ended.log
    told = json.loads((out / "summary.json").read_text("utf-8"))
    fields = [field for section in told["sections"] for field in section["fields"]]
    assert all(("query" in field) + ("text" in field) + field.get("person", False) == 1 for field in fields)
    return {field["name"]: field["rows"] for field in fields if "query" in field}


def test_its_figures_are_those_of_the_corpus_and_the_state(finished, tmp_path):
    rows = summary_of(finished.directory, tmp_path / "out")
    documents = finished.documents()
    words = sum(int(doc.attributes["words"]) for doc in documents)
    size = sum(int(doc.attributes["length"]) for doc in documents)
    assert rows["Size of the text"] == [[len(documents), words, size]]
    assert rows["Languages"] == [["cs", len(documents), words]]
    by_domain: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for doc in documents:
        found = {"documents": 1, "words": int(doc.attributes["words"]), "bytes": int(doc.attributes["length"])}
        by_domain[doc.attributes["host"]].update(found)
    most = max(by_domain, key=lambda name: by_domain[name]["bytes"])
    counts = by_domain[most]
    first = rows["The first domains by bytes of text in the corpus"]
    assert first == [[most, counts["documents"], counts["words"], counts["bytes"]]], "10 % of 3 domains"
    assert ["disallow", "obey", 0] in rows[next(name for name in rows if name.startswith("Signals"))]
    with reading(finished.directory) as crawl:
        ends = dict(rows["URLs that were not fetched, or not used, because of it"])
        assert ends == {"robots-forbidden": crawl.counts["end/robots-forbidden"]} and ends["robots-forbidden"] == 1


def test_it_is_written_once_in_three_formats(finished, tmp_path):
    summary_of(finished.directory, tmp_path / "out")
    texts = {path.suffix: path.read_text("utf-8") for path in (tmp_path / "out").iterdir()}
    assert texts.keys() == {".md", ".json", ".html"}
    for text in (texts[".md"], texts[".html"]):
        assert text.count("(to be filled in by a person)") == texts[".json"].count('"person": true') > 5
    assert "SELECT substr(key, 11) AS kind" in texts[".md"]
    HTMLParser().feed(texts[".html"])
    again = scrapy("export", str(finished.directory), "--summary", "eu", "-o", str(tmp_path / "out"))
    assert again.code == 1 and "summary.md exists" in again.log
    two = scrapy("export", str(finished.directory), LICENCE, "--summary", "eu", "-o", str(tmp_path / "two"))
    assert two.code == 2 and "a summary is of one crawl" in two.log
    asked = ["--summary", "eu", "-o", str(tmp_path / "part"), "--drop-host", "x", "--pii", "mask"]
    part = scrapy("export", str(finished.directory), *asked)
    assert part.code == 2 and "a summary is of a whole crawl; leave --drop-host out" in part.log
    small = scrapy("export", str(finished.directory), "-o", str(tmp_path / "s.jsonl"), "--small-provider")
    assert small.code == 2 and "--small-provider goes with --summary eu" in small.log
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_shard_that_is_not_there_is_said_wherever_the_figures_stand(tmp_path):
    (tmp_path / "job/shard-00/state").mkdir(parents=True)
    with closing(SqliteStore(tmp_path / "job/shard-00/state/frontier.sqlite")) as store:
        counts = {"total/kept_bytes": 30, "total/revisit_kept_bytes": 12}
        store.commit(Changes(counts=counts, meta={"shard_map": json.dumps({"shards": 2, "crawl_id": "c"})}))
    rows = summary_of(tmp_path / "job", tmp_path / "out")
    assert rows["Size of the text"][0][-1] == 42, "with the later versions of pages"
    for path in (tmp_path / "out").iterdir():
        assert "Not all of it: shard 1 of 2 is not here." in path.read_text("utf-8"), path


@pytest.mark.parametrize(("options", "listed"), [((), 210), (("--small-provider",), 105)])
def test_the_list_of_domains_is_a_tenth_or_for_small_providers_a_twentieth(tmp_path, options, listed):
    """Hosts of one registrable domain count together; what a host or a file says becomes no markup."""
    (tmp_path / "job/state").mkdir(parents=True)
    store = SqliteStore(tmp_path / "job/state/frontier.sqlite")
    names = [f"{n % 2}.d{n // 2}.cz" for n in range(4200)]
    hosts = [
        StoredHost(n, name, "ready", 0, documents=1, words=2, kept_bytes=3 + n)
        for n, name in enumerate(names, 1)
    ]  # fmt: skip
    said = [ConsentRow(f"http://{n}.test", "/robots.txt", "200", "", 1.0, 1.0, "disallow noai:<b>") for n in range(7)]
    store.commit(Changes(hosts=hosts, consent=said, meta={"options": json.dumps({"contact": "<i>|me"})}))
    store.close()
    rows = summary_of(tmp_path / "job", tmp_path / "out", *options)
    domains = rows["The first domains by bytes of text in the corpus"]
    assert len(domains) == listed and domains[0] == ["d2099.cz", 2, 4, 2 * 3 + 4199 + 4200]
    (signals,) = (rows[name] for name in rows if name.startswith("Signals"))
    assert ["disallow", "obey", 7] in signals and ["noai", "obey", 7] in signals
    assert "<i>" not in (tmp_path / "out/summary.html").read_text("utf-8")
    assert "&lt;i>\\|me" in (tmp_path / "out/summary.md").read_text("utf-8")
