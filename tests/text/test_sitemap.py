"""Sitemaps as they are, as they are meant to be, and as an enemy would write them."""

from __future__ import annotations

import gzip
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from spiderling.text import listing
from spiderling.text.listing import MAX_SITEMAP_BYTES, MAX_URLS, read_sitemap

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
URLS = ["http://a.test/1?a=1&b=<2>", "http://a.test/ž"]


def xml(urls, root="urlset", entry="url") -> str:
    entries = "".join(f"<{entry}><loc>\n {escape(url)} </loc><lastmod>2020-01-01</lastmod></{entry}>" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">{entries}</{root}>'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (xml(URLS).encode(), (URLS, False)),
        (xml(URLS).encode("utf-16"), (URLS, False)),
        (b"\xef\xbb\xbf  " + xml(URLS).encode(), (URLS, False)),
        (gzip.compress(xml(URLS).encode()), (URLS, False)),
        (xml(URLS, "sitemapindex", "sitemap").encode(), (URLS, True)),
        (b"http://a.test/1\r\n\nhttps://a.test/2 \n# no URL\nftp://a.test/", (
            ["http://a.test/1", "https://a.test/2"], False)),
        (b"Not found. See\nhttp://a.test/1 and\nhttp://a.test/2 http://a.test/3\nor http://a.test/4", ([], False)),
        (xml(URLS).replace("UTF-8", "windows-1250").encode("cp1250"), (URLS, False)),
        (xml(["http://a.test/жук"]).replace("UTF-8", "windows-1251").encode("cp1251"), (["http://a.test/жук"], False)),
        (xml(["http://a.test/1"]).replace("UTF-8", "no-such").encode(), (["http://a.test/1"], False)),
        (b"<html><body><loc>http://a.test/1</loc></body></html>", ([], False)),
        (b"<urlset><url><loc><![CDATA[http://a.test/?a&b]]></loc></url>", (["http://a.test/?a&b"], False)),
        (b"<s:urlset xmlns:s=''><s:url><s:loc>http://a.test/</s:loc></s:url></s:urlset>", (["http://a.test/"], False)),
        (
            b"<urlset><!-- <loc>http://a.test/no</loc> --><url><loc >http://a.test/&#x31;&#50;</loc>"
            b"<image:image><image:loc>http://a.test/a.png</image:loc></image:image></url></urlset>",
            (["http://a.test/12"], False),
        ),
        (b"<urlset><url><loc>http://a.test/1</url><loc></loc><loc>http://a.test/&unknown;&amp", (
            ["http://a.test/1", "http://a.test/&unknown;&amp"], False)),
        (b"<!doctype html><title>Not found</title><a href='http://a.test/'>Home</a>", ([], False)),
        (b"", ([], False)),
        (b"\x1f\x8b broken", ([], False)),
    ],
)  # fmt: skip
def test_sitemaps(body, expected):
    found = read_sitemap(body)
    assert len(found.dates) == len(found.urls)
    assert (found.urls, found.is_index) == expected


@pytest.mark.parametrize(
    ("entries", "dates"),
    [
        ("<url><loc>a</loc><lastmod> 2026-01-02 </lastmod></url><url><loc>b</loc></url>", ["2026-01-02", ""]),
        ("<url><lastmod>2026-01-02</lastmod><loc>a</loc></url><url><loc>b</loc></url>", ["2026-01-02", ""]),
        ("<url><loc>a</loc></url><url><lastmod>x</lastmod></url><url><loc>b</loc></url>", ["", ""]),
        ("<loc>a</loc><lastmod>1</lastmod><loc>b</loc><lastmod>2</lastmod>", ["1", "2"]),
        ("<url><loc>a</loc><news:news><news:publication_date>2026-03-04T05:06Z</news:publication_date></news:news></url>",
         ["2026-03-04T05:06Z"]),
        ("<url><loc>a</loc><n:publication_date>2</n:publication_date><lastmod>1</lastmod></url>", ["1"]),
        ("<url><loc>a</loc><video:publication_date>2</video:publication_date></url>", [""]),
        ("<url><loc>a</loc><lastmod><![CDATA[1]]></lastmod><!-- <lastmod>2</lastmod> --></url>", ["1"]),
        (f"<url><loc>a</loc><lastmod>{'9' * 9000}</lastmod></url>", ["9" * 40]),
        ("<url><loc></loc><lastmod>1</lastmod></url><url><loc>a</loc></url>", [""]),
    ],
)  # fmt: skip
def test_a_url_has_the_date_of_its_own_entry(entries, dates):
    assert read_sitemap(f"<urlset>{entries}</urlset>".encode()).dates == dates
    for name in ("url", "loc", "lastmod"):
        entries = entries.replace(f"<{name}>", f"<s:{name}>").replace(f"</{name}>", f"</s:{name}>")
    assert read_sitemap(f"<s:urlset>{entries}</s:urlset>".encode()).dates == dates


def test_of_a_broken_file_what_is_readable_counts():
    packed = gzip.compress(xml([f"http://a.test/{n * n}" for n in range(20_000)]).encode())
    assert 5_000 < len(read_sitemap(packed[: len(packed) // 2]).urls) < 20_000
    assert 5_000 < len(read_sitemap(packed[: len(packed) // 2] + b"\0" * 20_000).urls) < 20_000


def test_entities_do_not_expand():
    bomb = b'<!DOCTYPE x [<!ENTITY a "http://a.test/"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'
    assert read_sitemap(bomb).urls == ["&b;"]


@pytest.mark.parametrize("made", [xml, "\n".join])
def test_more_urls_than_the_protocol_allows_are_counted_and_left_out(made):
    found = read_sitemap(made([f"http://a.test/{n}" for n in range(MAX_URLS + 7)]).encode())
    assert len(found.urls) == MAX_URLS and found.left_out == 7
    assert (
        len(read_sitemap(made([f"http://a.test/{n}" for n in range(MAX_URLS + 7)]).encode(), MAX_SITEMAP_BYTES).urls)
        > MAX_URLS
    )


def test_bomb_is_unpacked_no_further_than_the_limit(monkeypatch):
    monkeypatch.setattr(listing, "MAX_SITEMAP_BYTES", 1_000_000)
    tail = xml(["http://a.test/behind"]).encode()
    for packed in (gzip.compress, bytes):
        assert read_sitemap(packed(b" " * (1_000_000 - len(tail)) + tail)).urls == ["http://a.test/behind"]
        assert read_sitemap(packed(b" " * 1_000_000 + tail)).urls == []


@pytest.mark.parametrize("mass", [b"<", b"&", b"<loc", b"&#1234567"])
def test_a_file_with_masses_of_marks_is_read_as_far_as_they_are_few(monkeypatch, mass):
    monkeypatch.setattr(listing, "MAX_MARKED", 1000)
    body = b"<urlset><url><loc>http://a.test/1</loc></url><loc>" + mass * 100_000 + b"<loc>http://a.test/2</loc>"
    urls = read_sitemap(body).urls
    assert urls[0] == "http://a.test/1" and "http://a.test/2" not in urls
    assert sum(map(len, urls)) < len(mass) * 1100
    lines = read_sitemap(b"http://a.test/1\n" + b"http" * 100_000 + b"\nhttp://a.test/2")
    assert lines.urls == ["http://a.test/1"]


_PATHS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xD7FF, categories=["L", "N", "P", "S"]), max_size=30)


@given(st.lists(_PATHS, max_size=5))
def test_reads_what_an_xml_parser_reads(paths):
    urls = [f"http://a.test/{path}" for path in paths]
    body = xml(urls).encode()
    texts = [(loc.text or "").strip() for loc in etree.fromstring(body).iter(f"{{{NAMESPACE}}}loc")]
    found = read_sitemap(body)
    assert found.urls == texts == urls and found.dates == ["2020-01-01"] * len(urls)


_PIECES = st.sampled_from(
    [b"<loc>", b"</loc>", b"<loc", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<urlset>", b"<sitemapindex ", b"http://a",
     b"&#x110000;", b"&#0;", b"\x1f\x8b\x08\x00", b"\xff\xfe", b"\n", b" ", b">"]
)  # fmt: skip


@given(st.lists(_PIECES | st.binary(max_size=8), max_size=40))
def test_nothing_raises(pieces):
    found = read_sitemap(b"".join(pieces))
    assert all(isinstance(url, str) and url for url in found.urls)
