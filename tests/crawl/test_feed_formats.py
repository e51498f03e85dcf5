"""Scrapy's FEEDS in the formats of the corpus."""

from __future__ import annotations

import io
import json

import pyarrow.parquet
import pytest
from conftest import Crawl, page, paragraphs, serving
from test_foreign_project import TEN_LINES, project

from spiderling.corpus.segments import read_documents
from spiderling.export.formats import COLUMNS, ParquetExporter, PrevertExporter
from webs.web import FixedWeb


def test_feeds_hold_what_the_corpus_holds_and_other_items_too(tmp_path):
    sites = {"/": page("first", "/b"), "/b": page("b")}
    feeds = {str(tmp_path / "f.prevert"): {"format": "prevertical"}, str(tmp_path / "f.parquet"): {"format": "parquet"}}
    with serving(FixedWeb({"f.test": sites}, {"f.test": "127.84.31.1"})) as server:
        crawl = Crawl(tmp_path / "job", server, project(tmp_path, TEN_LINES), "foreign", LANG="cs")
        result = crawl.run(lang="", FEEDS=json.dumps(feeds))
    assert result.code == 0 and not result.lines("] ERROR: ")
    corpus = {doc.url: doc for doc in crawl.documents()}
    found = list(read_documents(tmp_path / "f.prevert"))
    documents = {doc.attributes["url"]: doc for doc in found if "url" in doc.attributes}
    assert {url: (doc.attributes, doc.paragraphs) for url, doc in documents.items()} == {
        url: (doc.attributes, doc.paragraphs) for url, doc in corpus.items()
    }
    assert {doc.attributes["title"] for doc in found if "url" not in doc.attributes} == {"Strana first", "Strana b"}
    rows = pyarrow.parquet.read_table(tmp_path / "f.parquet").to_pylist()
    assert len(rows) == 4 and list(rows[0]) == list(COLUMNS)
    pages = {row["url"]: row for row in rows if row["url"]}
    first = pages["http://f.test/"]
    assert [p["text"] for p in first["paragraphs"]] == first["text"].split("\n") == paragraphs("first")
    assert 0 < first["yield"] <= 1 and first["lang"] == "cs"


@pytest.mark.slow
def test_the_command_line_takes_the_formats_by_their_endings(tmp_path, monkeypatch):
    """Scrapy judges -o before it makes a crawler, and so before it asks add-ons; -O and settings without effect too."""
    outputs = ("-o", f"{tmp_path}/f.prevert", "-o", f"{tmp_path}/f.parquet", "-o", f"{tmp_path}/g:parquet")
    template = "DOWNLOAD_DELAY = 1\nROBOTSTXT_OBEY = True\nAUTOTHROTTLE_ENABLED = True\nDEPTH_LIMIT = 3\n"
    with serving(FixedWeb({"f.test": {"/": page("first")}}, {"f.test": "127.84.31.2"})) as server:
        crawl = Crawl(tmp_path / "job", server, project(tmp_path, TEN_LINES, template), "foreign", LANG="cs")
        result = crawl.start("", outputs, lang="").wait()
        monkeypatch.setenv("https_proxy", "http://127.84.31.3:3128")
        other = Crawl(tmp_path / "other", server, tmp_path / "project", "foreign", LANG="cs")
        (tmp_path / "h.parquet").write_bytes(b"of an earlier run")
        overwritten = other.start("", ("-O", f"{tmp_path}/h.parquet"), lang="", DOWNLOAD_SLOTS="{}").wait()
    assert result.code == overwritten.code == 0 and not overwritten.lines("] ERROR: ")
    assert [doc.attributes.get("url") for doc in read_documents(tmp_path / "f.prevert")].count("http://f.test/") == 1
    for name in ("f.parquet", "g", "h.parquet"):
        assert pyarrow.parquet.read_table(tmp_path / name).num_rows == 2, name
    (ignored,) = result.lines("Without effect in a crawl of Spiderling: ")
    assert ignored.endswith(
        "DOWNLOAD_DELAY (SPIDERLING_HOST_INTERVAL_S); AUTOTHROTTLE_ENABLED (SPIDERLING_DELAY_FACTOR); "
        "DEPTH_LIMIT (SPIDERLING_MAX_DISTANCE, in hosts)"
    )
    assert overwritten.lines("Without effect", "DOWNLOAD_SLOTS (SPIDERLING_HOST_INTERVAL_S)", "http_proxy in the env")


def exported(kind: type[PrevertExporter], *items, **options) -> io.BytesIO:
    file = io.BytesIO()
    exporter = kind(file, **options)
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    return file


def test_any_item_finds_its_place():
    items = [{"url": "http://a/", "2 odd": 7, "text": "Ano.\n\nNe <b>.", "none": None, "tags": ["x"]}, {}]
    assert exported(PrevertExporter, *items).getvalue().decode() == (
        '<doc url="http://a/" _2_odd="7" tags="[\'x\']">\n<p>\nAno.\n</p>\n<p>\nNe &lt;b&gt;.\n</p>\n</doc>\n'
        "<doc>\n</doc>\n"
    )
    chosen = exported(PrevertExporter, *items, fields_to_export=["url"]).getvalue()
    assert chosen == b'<doc url="http://a/">\n</doc>\n<doc>\n</doc>\n'
    rows = pyarrow.parquet.read_table(exported(ParquetExporter, *items)).to_pylist()
    assert [row["text"] for row in rows] == ["Ano.\nNe <b>.", ""]
    assert json.loads(rows[0]["other"]) == {"_2_odd": "7", "tags": "['x']"}


def test_what_a_parquet_feed_holds_already_is_left_alone(tmp_path, caplog):
    path = tmp_path / "f.parquet"
    path.write_bytes(b"of an earlier run")
    with path.open("ab") as file:
        exporter = ParquetExporter(file)
        exporter.start_exporting()
        exporter.export_item({"url": "http://a/"})
        exporter.finish_exporting()
    assert path.read_bytes() == b"of an earlier run"
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["The Parquet feed is not written"]
    assert "%(time)s" in caplog.text
