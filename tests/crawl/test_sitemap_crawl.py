"""Pages that only a sitemap leads to are found when sitemaps are on, and not asked for when they are off."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest
from conftest import crawled, page

from webs.web import WebResponse, plain, redirect

XML = {"Content-Type": "application/xml"}
HIDDEN = ["/hidden/1", "/hidden/2?a=1&b=2", "/hidden/3", "/hidden/4"]


def xml(*paths: str, host: str = "a.test") -> bytes:
    return "".join(f"<url><loc>http://{host}{path.replace('&', '&amp;')}</loc></url>" for path in paths).encode()


SITEMAPS = {
    "/index.xml": WebResponse(200, XML, b"<sitemapindex>" + xml("/one.xml", "/two.xml.gz", "/gone.xml")),
    "/one.xml": WebResponse(200, XML, b"<urlset>" + xml("/hidden/1", "/private/x", "/") + xml("/", host="c.test")),
    "/two.xml.gz": WebResponse(
        200, {"Content-Type": "application/x-gzip"}, gzip.compress(b"<urlset>" + xml("/hidden/2?a=1&b=2"))
    ),
    "/list.txt": plain("http://a.test/hidden/3\nhttp://a.test/hidden/4\n"),
    "/bomb.xml.gz": WebResponse(200, XML, gzip.compress(b"<loc>" * 4_000_000)),
    "/junk.xml": WebResponse(200, XML, bytes(range(256)) * 100),
    "/large.xml": WebResponse(200, XML, b"<urlset>" + b"x" * 200_000),
    "/away.xml": redirect("http://b.test/list.txt"),
}  # fmt: skip
NAMED = [path for path in SITEMAPS if path not in ("/one.xml", "/two.xml.gz")]
LARGE = "# large enough to be parsed in a thread\n" * 600
ROBOTS = LARGE + "User-agent: *\nDisallow: /private/\n" + "".join(f"Sitemap: http://a.test{path}\n" for path in NAMED)
A = {
    "/": page("a", "/linked"), "/linked": page("linked"), "/private/x": page("private"),
    "/robots.txt": plain(ROBOTS + "Sitemap: http://b.test/list.txt\n"),
    **SITEMAPS, **{path: page(path) for path in HIDDEN},
}  # fmt: skip
B = {"/": page("b"), "/list.txt": plain("http://b.test/of-another-host\n"), "/of-another-host": page("other")}


@pytest.mark.parametrize("sitemaps", ["on", "off"])
def test_pages_that_only_a_sitemap_names(tmp_path, sitemaps):
    web, seeds = {"a.test": A, "b.test": B}, "http://a.test/ http://b.test/"
    crawl, _, log = crawled(tmp_path / "job", web, seeds, SITEMAPS=sitemaps, MAX_BODY_BYTES=100_000)
    asked = Counter(entry.path for entry in log if entry.host == "a.test")
    assert {entry.path for entry in log if entry.host == "b.test"} == {"/", "/robots.txt"}
    state = crawl.state()
    state.check()
    is_on = sitemaps == "on"
    kept = {"http://a.test/", "http://a.test/linked", "http://b.test/"}
    hidden = {f"http://a.test{path}" for path in HIDDEN}
    assert {doc.url for doc in crawl.documents()} == (kept | hidden if is_on else kept)
    assert asked.keys() & SITEMAPS.keys() == (SITEMAPS.keys() if is_on else set())
    assert not any("private" in path for path in asked)
    assert max(asked.values()) == 1
    assert state.hosts["a.test"]["pages"] == (6 if is_on else 2)
    if is_on:
        assert state.ends["sitemap"] == 8 and state.ends["too-big"] == 1, state.ends
        assert state.ends["robots-forbidden"] == 1
        assert state.mentions["cross-submit"] == 2
        assert state.hosts["a.test"]["downloaded_bytes"] > sum(
            len(answer.body) for path, answer in A.items() if path not in ("/private/x", "/large.xml")
        )
        assert state.hosts["a.test"]["distance"] == 0
    else:
        assert "sitemap" not in state.ends
