"""What a page that is revisited gives to the corpus: its new paragraphs, or all; and the feeds that it names."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace

from conftest import Crawl, paragraphs, serving

from spiderling import pipelines
from spiderling.base.options import Options
from spiderling.corpus.segments import read_documents
from spiderling.items import PageItem
from spiderling.text import Page, Paragraph, fingerprints
from webs.web import HTML, WebResponse, not_found

HOST = "paper.test"
SETTINGS = {
    "RECRAWL": "on",
    "CONSTANTS": {
        "frontier.recrawl.policy.DAY_S": 0.2,
        "frontier.recrawl.policy.MIN_WORD_DAYS": 0,
    },
    "RECRAWL_REQUESTS": 20,
    "HOST_INTERVAL_S": 0.02,
    "YIELD_PROFILE": "off",
}
OLD = paragraphs("old", 4)
NEW = paragraphs("new", 2)
FEED_TYPE = "application/rss+xml"


class Paper:
    """A page that gets new paragraphs, and a feed that names a page to which no link leads."""

    def __init__(self) -> None:
        self.has_news = threading.Event()
        self.asked: list[str] = []

    def hosts(self) -> Mapping[str, str]:
        return {HOST: "127.84.92.1"}

    globs = hosts

    def respond(self, host: str, path: str) -> WebResponse:
        self.asked.append(path)
        if path == "/feed":
            item = "<item><link>/by-feed</link><pubDate>Wed, 04 Mar 2026 00:00:00 GMT</pubDate></item>"
            return WebResponse(200, {"Content-Type": FEED_TYPE}, f"<rss><channel>{item}</channel></rss>".encode())
        if path == "/by-feed":
            return _html("", paragraphs("by feed", 4))
        if path != "/":
            return not_found()
        # the text around the new paragraphs is the same, but for a counter; one paragraph is gone
        later = [OLD[0], NEW[0], *OLD[2:], NEW[1], "Komentáře (3)"]
        return _html(f'<link rel=alternate type="{FEED_TYPE}" href=/feed>', later if self.has_news.is_set() else OLD)


def _html(head: str, text: list[str]) -> WebResponse:
    body = "".join(f"<p>{part}</p>" for part in text)
    return WebResponse(200, HTML, f"<html><head><title>x</title>{head}</head><body>{body}</body></html>".encode())


def test_a_later_version(tmp_path):
    web = Paper()
    with serving(web) as server:
        crawl = Crawl(tmp_path / "job", server, **SETTINGS)
        running = crawl.start(f"http://{HOST}/")
        running.until(lambda: "/by-feed" in web.asked)
        web.has_news.set()
        since = len(web.asked)
        running.until(lambda: web.asked[since:].count("/") > 2)  # the revisit after the one that found it
        result = running.stop(signal.SIGINT)
        assert "Traceback" not in result.output, result.output[-2000:]
    (segment,) = crawl.directory.glob("corpus/*.prevert.zst")
    found = [document for document in read_documents(segment) if document.attributes["url"] == f"http://{HOST}/"]
    first, later = sorted(found, key=lambda document: document.attributes.get("version", ""))
    assert first.paragraphs == OLD and not {"version", "first_seen"} & first.attributes.keys()
    assert later.paragraphs == NEW
    assert later.attributes["version"] == "2"
    assert first.attributes["crawl_date"] <= later.attributes["first_seen"] <= later.attributes["crawl_date"]
    by_feed = [document for document in crawl.documents() if document.url.endswith("/by-feed")]
    assert len(by_feed) == 1, "only the feed names it"


def test_paragraphs_that_are_not_compared_are_counted_and_said_once(monkeypatch, caplog):
    monkeypatch.setattr(pipelines, "MAX_PARAGRAPHS", 2)
    monkeypatch.setattr(fingerprints, "MAX_PARAGRAPHS", 2)
    revisit = SimpleNamespace(page=SimpleNamespace(validators=SimpleNamespace(text_key=1)), paragraphs=b"")
    monkeypatch.setattr(pipelines, "fetch_of", lambda request: SimpleNamespace(revisit=revisit, before_files=False))
    totals = Counter()
    pipeline = pipelines.DedupPipeline(None)
    pipeline.crawl = SimpleNamespace(
        options=Options(dedup="off"), near=None, known_digests=set(),
        frontier=SimpleNamespace(ledger=SimpleNamespace(totals=totals)),
    )  # fmt: skip
    for _ in range(2):
        page = Page("html", paragraphs=[Paragraph(text, "good", "text", False, "cs", True) for text in OLD[:3]])
        page.paragraph_digests = fingerprints.digests_of(OLD[:3])
        item = PageItem(SimpleNamespace(url=f"http://{HOST}/", request=None), page)
        pipeline.process_page(item, page)
        assert [paragraph.kept for paragraph in page.paragraphs] == [True, True, False]
    assert totals["revisit_paragraphs_beyond"] == 2 and caplog.text.count("what is new behind them is not kept") == 1
