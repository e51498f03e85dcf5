"""What comes into the corpus of a crawl: documents, text that stands in JSON, the same as ever, with a pipeline off."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import made_documents as made
import pytest
from conftest import ROOT, SENTENCES, Crawl, crawled, page, paragraphs, scrapy

from spiderling.corpus.segments import read_documents
from spiderling.export.formats import record_of
from webs.recorded import RecordedWeb
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
    "/ld": (article(2, datePublished="2999-01-01", dateModified="2019-02-03"), "kept"),
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
    dates = {name: found["/ld"].attributes.get(name, "") for name in ("published", "modified")}
    assert dates == {"published": "", "modified": "2019-02-03"}  # a day to come is that of something announced
    (segment,) = crawl.directory.glob("corpus/*.prevert.zst")
    assert {record_of(document).get("text_source") for document in read_documents(segment)} >= {"state", "json-ld"}


# -- the same documents come out of the same pages, whatever is made faster: the bundled web against a digest


GOLDEN = "95b3cd214e69d921994a0ff2b7f66a1795948eef9f746daf41b84a536e6a67ca"
"""Change it only with a change that is meant to change what documents hold, and say so in CHANGELOG.md."""
ATTRIBUTES = ("title", "lang", "langs", "enc_detected", "length", "words", "licence", "yield", "badness", "published")


def test_corpus_of_the_bundled_web_is_the_same(tmp_path):
    web = RecordedWeb(ROOT / "examples/miniweb")
    urls = sorted(f"http://{host}{path}" for host in web.hosts() for path in web.paths(host))[::9]
    (tmp_path / "seeds.txt").write_text("\n".join(urls))
    every = {"DEDUP": "off", "YIELD_PROFILE": "off", "TRAPS": "copies=0", "FOLLOW": "none"}
    crawl, _, _ = crawled(
        tmp_path / "job", web, str(tmp_path / "seeds.txt"), lang="cs,en,de", ALLOW_NETWORKS="127.0.0.0/8", **every
    )
    documents = sorted(crawl.documents(), key=lambda document: document.url)
    assert len(documents) > 60
    told = [(doc.url, [doc.attributes.get(name, "") for name in ATTRIBUTES], doc.paragraphs) for doc in documents]
    assert hashlib.sha256(repr(told).encode()).hexdigest() == GOLDEN


# -- each of our pipelines can be switched off by the user: what the others write stays whole, and so do the books


ENGLISH = "When the people of the town had seen what was going on, {} of them went to the mayor and asked for {} more. "
SITES = {
    "a.test": {
        "/": page("first", "/2", "/again", "/english", "/short"),
        "/2": page("second"),
        "/again": page("second"),
        "/english": html(f"<p>{' '.join(ENGLISH.format(n, n * 7) for n in range(12))}</p>"),
        "/short": html(
            "<title>Krátká</title><p>Tohle je jen jedna krátká věta, a to je na stránku v korpusu málo textu.</p>"
        ),
    }
}
ENDS = {"kept": 2, "duplicate": 1, "wrong-language": 1, "bad-quality": 1}  # with all pipelines
OFF = {
    "": ENDS,
    "CleanPipeline": {"no-page": 1},
    "LanguagePipeline": ENDS | {"wrong-language": 0, "bad-quality": 2},
    "QualityPipeline": ENDS | {"kept": 3, "bad-quality": 0},
    "DedupPipeline": ENDS | {"kept": 3, "duplicate": 0},
    "CorpusPipeline": ENDS | {"kept": 0, "duplicate": 0, "no-page": 3},
}
"""Pipeline that is off -> how the pages end.  The first one finds the links, the last one makes the documents."""


@pytest.mark.parametrize(
    "off", [pytest.param(name, marks=[] if "Language" in name else pytest.mark.slow) for name in OFF]
)
def test_documents_and_books_are_whole_without_a_pipeline(tmp_path, off):
    settings = {"ITEM_PIPELINES": f'{{"spiderling.pipelines.{off}": null}}'} if off else {}
    crawl, result, _ = crawled(tmp_path / "job", SITES, **settings)
    assert not result.lines("] ERROR: ")
    documents = crawl.documents()
    assert Counter(crawl.state().ends) == Counter(OFF[off])
    assert len(documents) == OFF[off].get("kept", 0)
    whole = {"id", "url", "host", "title", "lang", "langs", "crawl_date", "distance", "words", "yield", "badness"}
    assert all(whole <= doc.attributes.keys() for doc in documents)
    assert {doc.attributes["lang"] for doc in documents} <= {"cs"}
    check = scrapy("inspect", str(crawl.directory), "--check")
    assert check.code == 0, check.out
