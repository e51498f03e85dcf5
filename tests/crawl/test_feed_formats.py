"""Scrapy's FEEDS hold pages and other items."""

from __future__ import annotations

import json

from conftest import Crawl, page, paragraphs, serving
from test_foreign_project import TEN_LINES, project

from webs.web import FixedWeb


def test_feeds_hold_what_the_corpus_holds_and_other_items_too(tmp_path, monkeypatch):
    """And settings of a project that have no effect are named."""
    sites = {"/": page("first", "/b"), "/b": page("b")}
    template = "DOWNLOAD_DELAY = 1\nROBOTSTXT_OBEY = True\nAUTOTHROTTLE_ENABLED = True\nDEPTH_LIMIT = 3\n"
    monkeypatch.setenv("https_proxy", "http://127.84.31.3:3128")
    with serving(FixedWeb({"f.test": sites}, {"f.test": "127.84.31.1"})) as server:
        crawl = Crawl(tmp_path / "job", server, project(tmp_path, TEN_LINES, template), "foreign", LANG="cs")
        result = crawl.start("", ("-O", f"{tmp_path}/f.jsonl"), lang="", DOWNLOAD_SLOTS="{}").wait()
    assert result.code == 0 and not result.lines("] ERROR: ")
    corpus = {doc.url: doc for doc in crawl.documents()}
    rows = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    pages = {row["url"]: row for row in rows if "url" in row}
    assert {url: row["text"].split("\n") for url, row in pages.items()} == {
        url: doc.paragraphs for url, doc in corpus.items()
    }
    assert pages["http://f.test/"]["text"].split("\n") == paragraphs("first")
    assert {row["title"] for row in rows if "url" not in row} == {"Strana first", "Strana b"}
    (ignored,) = result.lines("Without effect in a crawl of Spiderling: ")
    assert "DOWNLOAD_DELAY (SPIDERLING_HOST_INTERVAL_S)" in ignored and "http_proxy in the env" in ignored
    assert "AUTOTHROTTLE_ENABLED (SPIDERLING_DELAY_FACTOR)" in ignored and "DOWNLOAD_SLOTS (SPIDERL" in ignored
    assert "DEPTH_LIMIT (SPIDERLING_MAX_DISTANCE, in hosts)" in ignored
