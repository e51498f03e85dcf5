"""What servers say of versions of their pages, also wrongly, and what a recrawl makes of it."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Mapping
from contextlib import closing

import pytest
from conftest import Crawl, document, paragraphs, serving
from scrapy.http import Response

from spiderling.engine.outcomes import etag, last_modified
from spiderling.jobdir.as_text import of_url
from spiderling.jobdir.inspection import opened
from webs.web import HTML, WebResponse, not_found, plain, redirect

HOST = "server.test"
SETTINGS = {
    "RECRAWL": "on",
    "CONSTANTS": {
        "frontier.recrawl.policy.DAY_S": 0.2,
        "frontier.recrawl.policy.MIN_WORD_DAYS": 0,
    },
    "RECRAWL_REQUESTS": 40,
    "HOST_INTERVAL_S": 0.02,
    "SITEMAPS": "on",
    "DELAY_FACTOR": 0,
}
FEED_TYPE = {"Content-Type": "application/rss+xml"}
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


class Site:
    """Its feed and its sitemap stand behind redirects; each page links to the feed; later they move on, and more."""

    def __init__(self) -> None:
        self.has_changed = threading.Event()
        self.asked: list[str] = []
        self.asked_later: list[str] = []
        """What was answered after the change."""

    def hosts(self) -> Mapping[str, str]:
        return {HOST: "127.84.93.1"}

    globs = hosts

    def respond(self, host: str, path: str) -> WebResponse:
        later = self.has_changed.is_set()
        (self.asked_later if later else self.asked).append(path)
        redirects = {"/feed": "/feed/", "/sitemap.xml": "/site-map.xml", "/feed/": "/newer-feed"}
        if path in redirects and (later or path != "/feed/"):
            return redirect(f"http://{HOST}{redirects[path]}")
        if path == "/robots.txt":
            return plain(f"Sitemap: http://{HOST}/sitemap.xml\n")
        if path in ("/feed/", "/newer-feed"):
            return _feed("/by-newer-feed" if path == "/newer-feed" else "/by-feed")
        if path == "/site-map.xml":
            name = "by-sitemap-later" if later else "by-sitemap"
            urls = f"<urlset><url><loc>http://{HOST}/{name}</loc></url></urlset>"
            return WebResponse(200, {"Content-Type": "text/xml"}, urls.encode())
        if path == "/opted-out" and later:
            return WebResponse(304, {"X-Robots-Tag": "noindex"})
        if path in ("/", "/opted-out", "/by-feed", "/by-newer-feed", "/by-sitemap", "/by-sitemap-later"):
            links = ["/opted-out", "/feed"] if path == "/" else []
            head = '<head><link rel=alternate type="application/rss+xml" href=/feed>'
            return WebResponse(200, {**HTML, "ETag": '"1"'}, document(path, *links).replace("<head>", head).encode())
        return not_found()


def _feed(link: str) -> WebResponse:
    return WebResponse(200, FEED_TYPE, f"<rss><channel><item><link>{link}</link></item></channel></rss>".encode())


def test_feeds_behind_redirects_are_recrawled_and_an_unchanged_page_can_opt_out(tmp_path) -> None:
    site = Site()
    with serving(site) as server:
        crawl = Crawl(tmp_path / "job", server, **SETTINGS)
        running = crawl.start(f"http://{HOST}/")
        running.until(lambda: {"/by-feed", "/by-sitemap"} <= {*site.asked} and site.asked.count("/opted-out") > 1)
        site.has_changed.set()
        running.until(lambda: {"/by-newer-feed", "/by-sitemap-later", "/opted-out"} <= {*site.asked_later})
        revisits_before = site.asked_later.count("/")
        running.until(lambda: site.asked_later.count("/") > revisits_before + 3)
        result = running.stop(signal.SIGINT)
        assert "ERROR" not in result.output, result.output
    assert crawl.state().counts["total/revisits_opted_out"] == 1
    assert site.asked_later.count("/opted-out") == 1
    assert len(crawl.digests()) == 6
    with closing(opened(crawl.directory)) as whole:
        told = ["\n".join(of_url(whole, f"http://{HOST}/{name}")) for name in ("opted-out", "", "nowhere")]
    assert re.search(r"^revisits +the last at .* UTC, opted out since .* UTC$", told[0], re.MULTILINE)
    assert re.search(r"^revisits +the last at .* UTC$", told[1], re.MULTILINE) and "revisits" not in told[2]
    assert all(paragraphs(doc.url.removeprefix(f"http://{HOST}")) == doc.paragraphs for doc in crawl.documents())


@pytest.mark.parametrize(
    ("sent", "noted"),
    [
        (b'"abc"', b'"abc"'),
        (b'W/"abc"', b'W/"abc"'),
        (b'"%s"' % (b"a" * 10_000), b""),
        (b'"a\x01b"', b""),
        (b'"a"\r\nCookie: x', b""),
        (b"without marks", b""),
        (b'"\xc3\xa1"', b""),
    ],
)
def test_an_etag_is_noted_only_if_it_can_be_sent_again(sent: bytes, noted: bytes) -> None:
    assert etag(Response(f"http://{HOST}/", headers={"ETag": sent})) == noted


@pytest.mark.parametrize(
    ("modified", "date", "noted"),
    [
        (DATE, "", 784_111_777),
        (DATE, DATE, 784_111_777),
        (DATE, "yesterday", 784_111_777),
        ("Thu, 01 Jan 2099 00:00:00 GMT", DATE, 0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", DATE, 0),
        ("yesterday", DATE, 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", DATE, 0),
        ("", DATE, 0),
    ],
)
def test_last_modified_is_noted_only_if_it_can_be_sent_again_and_is_over(modified: str, date: str, noted: int) -> None:
    assert last_modified(Response(f"http://{HOST}/", headers={"Last-Modified": modified, "Date": date})) == noted
