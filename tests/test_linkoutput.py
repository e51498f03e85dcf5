"""links/: what came of each page and where it leads, written by a crawl and read back."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import pytest
from conftest import NETWORK, Crawl, paragraphs, serving

from spiderling.base.errors import BadInput, StorageError
from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.links import LinkKind, read_links
from spiderling.crawl.crawl import Crawl as OpenCrawl
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection, links_of_crawl
from webs.web import FixedWeb, WebResponse, html, redirect


def linking(seed: str) -> WebResponse:
    """A page with a menu of two links, one of them an image, and one link inside of its text."""
    menu = '<li><a href="/menu" hreflang="cs">menu</a></li><li><a href="/picture"><img src="/p.png"></a></li>'
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs(seed, 4))
    inside = f'<p>{paragraphs(seed + "x", 1)[0]} <a href="/inside">Odkaz v textu</a> a dále.</p>'
    return html(f'<title>t</title><ul>{menu}<li><a rel="nofollow" href="/no">no</a></ul>{text}{inside}')


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    pages = {"/": linking("a"), "/inside": redirect("/end"), "/end": html("<p>short</p>")}
    pages["/menu"] = WebResponse(503, {"Content-Type": "text/html"}, b"busy")
    with serving(FixedWeb({"a.test": pages}, {"a.test": "127.84.9.1"})) as server:
        crawl = Crawl(tmp_path_factory.mktemp("links") / "job", server, LINKS="on")
        assert crawl.run("http://a.test/").code == 0
        assert [entry.path for entry in server.log_entries].count("/menu") == 2, "it was tried again, and has one line"
        yield crawl


def test_every_url_that_was_asked_for_has_a_line_with_what_came_of_it_and_where_it_leads(crawl):
    lines = {line.url: line for line in links_of_crawl(crawl.directory)}
    assert len(lines) == len(list(links_of_crawl(crawl.directory)))
    assert {url.removeprefix("http://a.test"): (line.reason, line.status) for url, line in lines.items()} == {
        "/": ("kept", 200), "/menu": ("http-error", 503), "/picture": ("http-error", 404),
        "/inside": ("redirected", 301), "/end": ("boilerplate-only", 200),
    }  # fmt: skip
    page, host = lines["http://a.test/"], crawl.state().hosts["a.test"]
    assert page.links == [f"http://a.test/{name}" for name in ("menu", "picture", "inside")]
    assert page.anchors == [4, 0, 13]
    assert page.scores[2] > max(page.scores[:2])
    assert page.language == page.page_language == "cs" and page.words > 100
    assert page.sketch and page.text_key and page.said == [4, 0, 0]
    assert lines["http://a.test/end"].text_key == 0
    assert lines["http://a.test/inside"].redirect_to == "http://a.test/end"
    assert sum(line.kept_bytes for line in lines.values()) == host["kept_bytes"]
    robots = host["downloaded_bytes"] - sum(line.downloaded_bytes for line in lines.values())
    assert 0 <= robots < 100


def test_the_check_reads_the_links_too(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        assert list(problems(opened)) == []
        path = opened.segments("links")[0].path
        whole = path.read_bytes()
        path.write_bytes(LinkKind().pack([]) + whole[:-9])
        assert [path.name in problem for problem in problems(opened)] == [True]
        path.write_bytes(whole)


async def test_links_are_cut_back_with_the_corpus_also_when_they_are_not_wanted_any_more(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        path, length, _ = opened.segments("links")[0]
    with path.open("ab") as file:
        file.write(b"never acknowledged")
    path.with_name("cs-00002.links.zst").write_bytes(b"never recorded")
    options = Options(lang="cs", allow_networks=NETWORK, dedup="exact", surplus="aside")
    await OpenCrawl(options, crawl.directory, pytest.fail).close()
    files = [file for file in path.parent.iterdir() if file.is_file()]
    assert [(file.name, file.stat().st_size) for file in files] == [(path.name, length)]


def test_it_is_read_without_scrapy(crawl):
    code = (
        "import sys, pathlib; from spiderling.jobdir.inspection import links_of_crawl; "
        f"print(len(list(links_of_crawl(pathlib.Path({str(crawl.directory)!r})))), 'scrapy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "5 False\n"


async def test_a_crawl_without_links_says_how_to_have_them(tmp_path):
    await OpenCrawl(Options(lang="cs", allow_networks=NETWORK), tmp_path / "job", pytest.fail).close()
    assert not (tmp_path / "job/links").exists()
    with pytest.raises(BadInput, match="SPIDERLING_LINKS=on"):
        list(links_of_crawl(tmp_path / "job"))


def test_what_a_server_says_cannot_break_a_line(tmp_path):
    odd = 'http://a.test/"\n\ud800{}\\'
    outcome = Outcome(
        1, odd, Reason.REDIRECTED, redirect_to=odd, links=(Link("http://a.test/b", score=1.0, anchor=9**9), Link(odd))
    )
    path = tmp_path / "x.links.zst"
    path.write_bytes(LinkKind().pack([(outcome, Reason.REDIRECTED, 1.0), (outcome, Reason.KEPT, 2.0)]))
    first, second = read_links(path)
    assert (first.url, first.redirect_to, first.links) == (odd, odd, ["http://a.test/b"])
    assert first.scores == first.anchors == [255]
    assert (second.reason, second.time) == ("kept", 2.0)


def test_a_damaged_segment_is_named(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        path, length, entries = opened.segments("links")[0]
    assert entries == 5
    with pytest.raises(StorageError, match=path.name):
        list(read_links(path, length - 1))
    path.with_name("other.links.zst").write_bytes(LinkKind().pack([]) + b"not a frame")
    with pytest.raises(StorageError, match="other"):
        list(read_links(path.with_name("other.links.zst")))
