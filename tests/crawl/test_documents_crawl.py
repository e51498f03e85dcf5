"""A crawl that takes documents besides pages: which are fetched, and what becomes of them in the corpus."""

from __future__ import annotations

import made_documents as made
from conftest import Crawl, page, paragraphs, serving

from webs.web import FixedWeb, WebResponse

ODT = "application/vnd.oasis.opendocument.text"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
BINARY = "application/octet-stream"


def served(body: bytes, content_type: str) -> WebResponse:
    return WebResponse(200, {"Content-Type": content_type}, body)


REPORT = paragraphs("report", 4)
SITE = {
    "/": page("start", "/report.docx", "/download?id=1", "/letter.odt", "/broken.docx", "/paper.pdf", "/book.epub"),
    "/report.docx": served(made.docx(["#Zpráva", *REPORT]), DOCX),
    "/download?id=1": served(made.odt(paragraphs("download", 4)), ODT),
    "/letter.odt": served(made.odt(["#Zpráva", *REPORT]), BINARY),  # the report's text again
    "/broken.docx": served(made.docx(REPORT)[:-200], DOCX),
    "/paper.pdf": served(b"%PDF-1.4", "application/pdf"),
    "/book.epub": served(b"PK", "application/epub+zip"),
}


def crawled(directory, **settings) -> Crawl:
    with serving(FixedWeb({"docs.test": SITE}, {"docs.test": "127.84.9.1"})) as server:
        crawl = Crawl(directory, server, **settings)
        crawl.run("http://docs.test/")
    return crawl


def test_documents_in_the_corpus(tmp_path):
    crawl = crawled(tmp_path, DOCUMENTS="docx,odt")
    documents = {doc.url.removeprefix("http://docs.test"): doc for doc in crawl.documents()}
    types = {path: doc.attributes["file_type"] for path, doc in documents.items()}
    copy = ({"/report.docx", "/letter.odt"} & set(types)).pop()
    assert types == {"/": "html", "/download?id=1": "odt", copy: copy[-4:].lstrip(".")}
    assert documents[copy].paragraphs == ["Zpráva", *REPORT]
    assert documents[copy].attributes["title"] == "Kočka & pes"
    state = crawl.state()
    assert (state.ends["kept"], state.ends["duplicate"], state.ends["undecodable"]) == (3, 1, 1)
    assert state.mentions["out-of-scope"] == 2


def test_without_the_option_no_document_is_fetched(tmp_path):
    crawl = crawled(tmp_path)
    assert [doc.url for doc in crawl.documents()] == ["http://docs.test/"]
    state = crawl.state()
    assert (state.ends["kept"], state.ends["not-text"], state.mentions["out-of-scope"]) == (1, 1, 5)
