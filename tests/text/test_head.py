"""What a page says of itself: dates, licence, versions in other languages, JSON-LD."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.link_batch import FOREIGN, WANTED
from spiderling.base.owners import owner_of
from spiderling.languages import load
from spiderling.text import Page, TextOptions, process
from spiderling.text.declared import fill_head, iso_date
from spiderling.text.html.metadata import MAX_ALTERNATES, MAX_DATA_CHARS
from spiderling.text.html.parser import parse

URL = "http://h.test/a/b"


def head(html: str) -> Page:
    page = Page()
    fill_head(page, parse(html), URL)
    return page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21", "2026-11-21"),
        ("20261121", "2026-11-21"),
        (" 2026-11-21T08:15:00.123+01:00", "2026-11-21T08:15:00+01:00"),
        ("2026-11-21 08:15", "2026-11-21T08:15"),
        ("2026-11-21T08:15:00Z and more", "2026-11-21T08:15:00Z"),
        ("Sat, 21 Nov 2026 08:15:00 GMT", "2026-11-21T08:15:00+00:00"),
        ("2026-13-01", ""),
        ("202611211", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_dates(text, expected):
    assert iso_date(text) == expected


@given(st.text(max_size=80) | st.text(alphabet="0123456789-T:Z+, JanMon", max_size=40))
def test_dates_never_raise(text):
    assert isinstance(iso_date(text), str)


@pytest.mark.parametrize(
    ("html", "published", "modified"),
    [
        ("<meta property=article:published_time content=2026-01-02><meta name=date content=2020>", "2026-01-02", ""),
        ("<meta name=date content=soon><meta name=dc.date content=2020-01-01>", "2020-01-01", ""),
        ("<meta itemprop=dateModified content=2026-01-03>", "", "2026-01-03"),
        ("<p><time itemprop=datePublished datetime=2026-01-04T10:00>now</time>", "2026-01-04T10:00", ""),
        ("<p><time pubdate datetime=2011-01-04>now</time><time datetime=2012-01-01>x</time>", "2011-01-04", ""),
        ('''<script type="application/ld+json">{"datePublished": "2026-01-05", "dateModified":"2026-01-06"}</script>''',
         "2026-01-05", "2026-01-06"),
        ('''<script>{"datePublished": "2026-01-05"}</script>''', "", ""),
    ],
)  # fmt: skip
def test_published_and_modified(html, published, modified):
    page = head(html)
    assert (page.published, page.modified) == (published, modified)


BY = "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize(
    ("html", "licence"),
    [
        (f"<a rel=license href=/terms>terms</a><a href={BY}>CC</a>", "http://h.test/terms"),
        (f"<link rel=license href={BY}>", BY),
        (f"<meta name=dcterms.license content={BY}>", BY),
        (f"<p>text <a href={BY}>CC BY</a>", BY),
        ("<a href=http://www.gnu.org/licenses/fdl-1.3.html>GFDL</a>", "http://www.gnu.org/licenses/fdl-1.3.html"),
        (f'<script type="application/ld+json">{{"license": "{BY}"}}</script>', BY),
        ("<a href=https://creativecommons.org/>about CC</a>", None),
        ("<a href=http://h.test/?u=https://creativecommons.org/licenses/by/4.0/>share</a>", None),
    ],
)
def test_licence(html, licence):
    assert head(html).licence == licence


def test_addresses_are_absolute():
    page = head(
        "<link rel=canonical href=/c><link rel=alternate hreflang=CS href=/cs/>"
        "<link rel=alternate hreflang=de-AT href=http://de.test/><link rel=alternate href=/feed>"
        "<link rel=alternate hreflang=en href=mailto:x@y><link rel=stylesheet hreflang=sk href=/s>"
    )
    assert page.canonical == "http://h.test/c"
    assert page.alternates == {"cs": "http://h.test/cs/", "de-at": "http://de.test/"}
    assert head("<link rel=canonical href='http://['>").canonical is None


def test_versions_in_accepted_languages_are_links():
    html = (
        "<link rel=alternate hreflang=cs-CZ href=/cs><link rel=alternate hreflang=de href=/de>"
        "<link rel=alternate hreflang=cs href=/known><p><a href=/known>x</a>"
    )
    page = process(html.encode(), url=URL, http_charset=None, models=load(("cs",)), options=TextOptions(("cs",)))
    assert [(link.url, link.block) for link in page.links] == [("http://h.test/known", 0), ("http://h.test/cs", -1)]
    assert list(page.batch.flags) == [WANTED, WANTED]


def test_a_page_of_a_crawl_of_shards_says_who_owns_the_linked_hosts():
    html = (
        "<p><a href=http://a.test/1>x</a><a href=http://b.test/2>y</a><link rel=alternate hreflang=cs href=//c.test/>"
    )
    options = TextOptions(("cs",), shards=7)
    page = process(html.encode(), url=URL, http_charset=None, models=load(("cs",)), options=options)
    assert set(page.batch.hosts) == {"a.test", "b.test", "c.test"}
    assert array("H", page.batch.owners).tolist() == [owner_of(name, 7) for name in page.batch.hosts]
    alone = process(html.encode(), url=URL, http_charset=None, models=load(("cs",)), options=TextOptions(("cs",)))
    assert alone.batch == page.batch._replace(owners=b"")


@pytest.mark.parametrize(("codec", "sent"), [("cp1250", "%9E"), ("iso8859-2", "%BE"), ("utf-8", "%C5%BE")])
def test_all_addresses_of_a_legacy_page_have_their_queries_in_its_encoding(codec, sent):
    html = (
        f"<meta charset={codec}><link rel=canonical href='/ž?c=ž'><link rel=alternate hreflang=cs href='/a?a=ž'>"
        "<meta http-equiv=refresh content='9; url=/r?r=ž'><base href='/b/?b=ž'>"
        "<link rel=alternate type=application/rss+xml href='/f?f=ž'>"
        "<p>Příliš žluťoučký kůň úpěl ďábelské ódy.<a href='/ž?l=ž#ž'>x</a><a href='?b=ž'>y</a><a href=''>z</a>"
    )
    page = process(
        html.encode(codec), url=URL, http_charset=codec, refresh="1; URL=/h?h=%BE", models=load(("cs",)),
        options=TextOptions(("cs",), watches=True),
    )  # fmt: skip
    assert page.canonical == f"http://h.test/%C5%BE?c={sent}"
    assert page.alternates == {"cs": f"http://h.test/a?a={sent}"}
    assert page.feeds == (f"http://h.test/f?f={sent}",)
    linked = {f"r?r={sent}", f"%C5%BE?l={sent}", f"b/?b={sent}", f"a?a={sent}", "h?h=%BE"}
    assert {link.url for link in page.links} == {f"http://h.test/{path}" for path in linked}


def test_what_hreflang_says_goes_with_the_links():
    html = (
        "<link rel=alternate hreflang=de-AT href=/de><link rel=alternate hreflang=x-default href=/any>"
        "<link rel=alternate hreflang=cs href=/both><p><a href=/de>d</a> <a href=/any>a</a> <a href=/plain>p</a> "
        "<a href=/en hreflang=EN>e</a> <a href=/cz lang=cs-CZ>c</a> <a href=/both hreflang=en>b</a> "
        "<a href=/x lang=''>x</a>"
    )
    page = process(html.encode(), url=URL, http_charset=None, models=load(("cs",)), options=TextOptions(("cs",)))
    said = {
        url.rpartition("/")[2]: flags & (WANTED | FOREIGN)
        for (url, _, _), flags in zip(page.batch.rows(), page.batch.flags, strict=True)
    }
    assert said == {"de": FOREIGN, "any": 0, "plain": 0, "en": FOREIGN, "cz": WANTED, "both": WANTED, "x": 0}


def test_limits():
    many = "".join(f"<link rel=alternate hreflang=x{number} href=/{number}>" for number in range(1000))
    assert len(parse(many).alternates) == MAX_ALTERNATES
    data = '<script type="application/ld+json">' + "x" * 10 * MAX_DATA_CHARS + "</script>"
    assert len(parse(data).data) == MAX_DATA_CHARS


def test_iframes_lead_on():
    links = parse("<p>one <iframe src=/frame></iframe> two</p>").links
    assert [(link.href, link.block) for link in links] == [("/frame", 0)]


def test_a_link_keeps_its_text_beside_a_frame_or_an_area():
    html = "<p><a href=/around>one <iframe src=/frame></iframe> two <map><area href=/area alt=spot></map></a> three</p>"
    anchors = [(link.href, link.anchor) for link in parse(html).links]
    assert anchors == [("/around", "one two"), ("/frame", ""), ("/area", "spot")]
