"""A crawl of pages whose text stands in JSON alone: what their documents say, and that opt-outs bind them."""

from __future__ import annotations

import json

from conftest import SENTENCES, Crawl, serving

from spiderling.corpus.segments import read_documents
from spiderling.export.formats import record_of
from webs.web import FixedWeb, WebResponse, html

HOST = "json.test"
LINES = [" ".join(SENTENCES[start : start + 4]) for start in range(0, 24, 4)]


def shell(number: int, head: str = "", headers: dict[str, str] | None = None, texts: list[str] | None = None):
    lines = [f"{line} {number}." for line in LINES] if texts is None else texts
    state = {"page": {"id": number, "body": [{"type": "text", "value": line} for line in lines]}}
    return WebResponse(
        200,
        {"Content-Type": "text/html; charset=utf-8", **(headers or {})},
        f"<html><head>{head}<script>window.__INITIAL_STATE__={json.dumps(state)}</script></head>"
        "<body><div id=app></div><script src=/app.js></script></body></html>".encode(),
    )


def article(number: int, **further):
    value = {"@type": "Article", "articleBody": "\n".join(f"{line} {number}." for line in LINES), **further}
    return html(f"<script type=application/ld+json>{json.dumps(value)}</script><div id=root></div>")


PAGES = {
    "/state": (shell(1), "kept"),
    "/ld": (article(2), "kept"),
    "/empty": (shell(3, texts=[]), "needs-script"),
    "/noindex": (shell(4, "<meta name=robots content=noindex>"), "noindex"),
    "/noai": (shell(5, "<meta name=robots content=noai>"), "opted-out"),
    "/tdm": (shell(6, headers={"tdm-reservation": "1"}), "opted-out"),
    "/ld-noindex": (shell(7, headers={"X-Robots-Tag": "noindex"}), "noindex"),
    "/paid": (article(8, isAccessibleForFree=False), "needs-script"),
}


def test_pages_with_text_in_json(tmp_path):
    links = "".join(f"<a href={path}>{path}</a> " for path in PAGES)
    web = {"/": html(f"<nav>{links}</nav>"), **{path: answer for path, (answer, _) in PAGES.items()}}
    with serving(FixedWeb({HOST: web}, {HOST: "127.84.9.21"})) as server:
        crawl = Crawl(tmp_path / "job", server, DEDUP="off", YIELD_PROFILE="off")
        ended = crawl.run(f"http://{HOST}/")
    assert ended.code == 0
    assert ended.lines("ends", "needs-script 2")
    ends = crawl.ended()
    assert {path: ends[f"http://{HOST}{path}"][0] for path in PAGES} == {path: end for path, (_, end) in PAGES.items()}
    found = {doc.url.removeprefix(f"http://{HOST}"): doc for doc in crawl.documents()}
    assert {path: doc.attributes["text_source"] for path, doc in found.items()} == {"/state": "state", "/ld": "json-ld"}
    assert found["/state"].paragraphs == [f"{line} 1." for line in LINES]
    segment = next(crawl.directory.glob("corpus/*.prevert.zst"))
    assert {record_of(document)["text_source"] for document in read_documents(segment)} == {"state", "json-ld"}
