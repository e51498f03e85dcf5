"""A crawl of documents, and of pages whose text stands in JSON alone: what the corpus has; opt-outs bind them."""

from __future__ import annotations

import json
from collections import Counter

import made_documents as made
import pytest
from conftest import SENTENCES, Crawl, crawled, page, paragraphs

from spiderling.corpus.segments import read_documents
from spiderling.export.formats import record_of
from webs.web import HTML, WebResponse, html

ODT = "application/vnd.oasis.opendocument.text"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
REPORT = paragraphs("report", 4)
DOCUMENTS = {
    "/report.docx": (made.docx(["#Zpráva", *REPORT]), DOCX),
    "/download?id=1": (made.odt(paragraphs("download", 4)), ODT),
    "/letter.odt": (made.odt(["#Zpráva", *REPORT]), "application/octet-stream"),  # the report's text again
    "/broken.docx": (made.docx(REPORT)[:-200], DOCX),
    "/paper.pdf": (b"%PDF-1.4", "application/pdf"),
    "/book.epub": (b"PK", "application/epub+zip"),
}
LINES = [" ".join(SENTENCES[start : start + 4]) for start in range(0, 24, 4)]


def lines(number: int) -> list[str]:
    return [f"{line} {number}." for line in LINES]


def shell(texts: list[str], head: str = "", **headers: str) -> WebResponse:
    state = json.dumps({"page": {"body": [{"type": "text", "value": line} for line in texts]}})
    body = f"<head>{head}<script>window.__INITIAL_STATE__={state}</script></head><div id=app></div>"
    return WebResponse(200, {**HTML, **headers}, f"<html>{body}<script src=/app.js></script>".encode())


def article(number: int, **further: object) -> WebResponse:
    value = {"@type": "Article", "articleBody": "\n".join(lines(number)), **further}
    return html(f"<script type=application/ld+json>{json.dumps(value)}</script><div id=root></div>")


SHELLS = {
    "/state": (shell(lines(1)), "kept"),
    "/ld": (article(2), "kept"),
    "/empty": (shell([]), "needs-script"),
    "/noindex": (shell(lines(4), "<meta name=robots content=noindex>"), "noindex"),
    "/noai": (shell(lines(5), "<meta name=robots content=noai>"), "opted-out"),
    "/tdm": (shell(lines(6), **{"tdm-reservation": "1"}), "opted-out"),
    "/ld-noindex": (shell(lines(7), **{"X-Robots-Tag": "noindex"}), "noindex"),
    "/paid": (article(8, isAccessibleForFree=False), "needs-script"),
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    documents = {path: WebResponse(200, {"Content-Type": kind}, body) for path, (body, kind) in DOCUMENTS.items()}
    links = "".join(f"<a href={path}>{path}</a> " for path in SHELLS)
    sites = {
        "docs.test": {"/": page("start", *DOCUMENTS), **documents},
        "json.test": {"/": html(f"<nav>{links}</nav>"), **{path: answer for path, (answer, _) in SHELLS.items()}},
    }
    directory, seeds = tmp_path_factory.mktemp("kinds") / "job", "http://docs.test/ http://json.test/"
    crawl, ended, _ = crawled(directory, sites, seeds, DOCUMENTS="docx,odt")
    assert ended.lines("ends", "needs-script 2")
    return crawl


def of_host(crawl: Crawl, host: str) -> dict[str, object]:
    return {doc.attributes["url"].partition(host)[2]: doc for doc in crawl.documents() if host in doc.url}


def test_documents_in_the_corpus(crawl):
    documents = of_host(crawl, "docs.test")
    types = {path: doc.attributes["file_type"] for path, doc in documents.items()}
    copy = ({"/report.docx", "/letter.odt"} & set(types)).pop()
    assert types == {"/": "html", "/download?id=1": "odt", copy: copy[-4:].lstrip(".")}
    assert documents[copy].paragraphs == ["Zpráva", *REPORT]
    assert documents[copy].attributes["title"] == "Kočka & pes"
    ends = Counter(reason for url, (reason, _) in crawl.ended().items() if "docs.test" in url)
    assert ends == {"kept": 3, "duplicate": 1, "undecodable": 1}
    assert crawl.state().mentions["out-of-scope"] == 2


def test_pages_with_text_in_json(crawl):
    ends = crawl.ended()
    assert {path: ends[f"http://json.test{path}"][0] for path in SHELLS} == {p: end for p, (_, end) in SHELLS.items()}
    found = of_host(crawl, "json.test")
    assert {path: doc.attributes["text_source"] for path, doc in found.items()} == {"/state": "state", "/ld": "json-ld"}
    assert found["/state"].paragraphs == lines(1)
    (segment,) = crawl.directory.glob("corpus/*.prevert.zst")
    assert {record_of(document).get("text_source") for document in read_documents(segment)} >= {"state", "json-ld"}
