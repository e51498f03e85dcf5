"""What sitemaps and feeds list, and the way of a listing from a worker."""

from __future__ import annotations

import gzip
import pickle
import time
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from spiderling.base.opt_outs import ANY, TRAINING, Signal, Statement
from spiderling.text import listing
from spiderling.text.dates import seconds_of
from spiderling.text.listing import (
    MAX_ENTRIES,
    MAX_URLS,
    FeedEntry,
    Listing,
    read_feed,
    read_listing,
    read_sitemap,
    unpack,
)
from spiderling.text.page import read_page

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
SITEMAP_URLS = ["http://a.test/1?a=1&b=<2>", "http://a.test/ž"]


def xml(urls, root="urlset", entry="url") -> str:
    entries = "".join(f"<{entry}><loc>\n {escape(url)} </loc><lastmod>2020-01-01</lastmod></{entry}>" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">{entries}</{root}>'


BOTH = ["http://a.test/1", "http://a.test/2"]


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (xml(SITEMAP_URLS).encode(), SITEMAP_URLS),
        (xml(SITEMAP_URLS).encode("utf-16"), SITEMAP_URLS),
        (b"\xef\xbb\xbf  " + xml(SITEMAP_URLS).encode(), SITEMAP_URLS),
        (gzip.compress(xml(SITEMAP_URLS).encode()), SITEMAP_URLS),
        (xml(SITEMAP_URLS, "sitemapindex", "sitemap").encode(), SITEMAP_URLS),
        (b"http://a.test/1\r\n\nhttp://a.test/2 \n# no URL\nftp://a.test/", BOTH),
        (b"Not found. See\nhttp://a.test/1 and\nhttp://a.test/2 http://a.test/3\nor http://a.test/4", []),
        (xml(SITEMAP_URLS).replace("UTF-8", "windows-1250").encode("cp1250"), SITEMAP_URLS),
        (xml(["http://a.test/жук"]).replace("UTF-8", "windows-1251").encode("cp1251"), ["http://a.test/жук"]),
        (xml(BOTH).replace("UTF-8", "no-such").encode(), BOTH),
        (b"<html><body><loc>http://a.test/1</loc></body></html>", []),
        (b"<urlset><url><loc><![CDATA[http://a.test/?a&b]]></loc></url>", ["http://a.test/?a&b"]),
        (b"<s:urlset xmlns:s=''><s:url><s:loc>http://a.test/</s:loc></s:url></s:urlset>", ["http://a.test/"]),
        (b"<urlset><!-- <loc>http://a.test/no</loc> --><url><loc >http://a.test/&#x31;&#50;</loc>"
         b"<image:image><image:loc>http://a.test/a.png</image:loc></image:image></url></urlset>", ["http://a.test/12"]),
        (b"<urlset><url><loc>http://a.test/1</url><loc></loc><loc>http://a.test/&unknown;&amp",
         ["http://a.test/1", "http://a.test/&unknown;&amp"]),
        (b"<!doctype html><title>Not found</title><a href='http://a.test/'>Home</a>", []),
        (b"", []),
        (b"\x1f\x8b broken", []),
    ],
)  # fmt: skip
def test_sitemaps(body, urls):
    found = read_sitemap(body)
    assert len(found.dates) == len(found.urls)
    assert (found.urls, found.is_index) == (urls, b"sitemapindex" in body)


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
    for behind in (b"", b"\0" * 20_000):
        assert 5_000 < len(read_sitemap(packed[: len(packed) // 2] + behind).urls) < 20_000


def test_entities_do_not_expand():
    bomb = b'<!DOCTYPE x [<!ENTITY a "http://a.test/"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'
    assert read_sitemap(bomb).urls == ["&b;"]


@pytest.mark.parametrize("made", [xml, "\n".join])
def test_more_urls_than_the_protocol_allows_are_counted_and_left_out(made):
    body = made([f"http://a.test/{n}" for n in range(MAX_URLS + 7)]).encode()
    found = read_sitemap(body)
    assert len(found.urls) == MAX_URLS and found.left_out == 7


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


FEED_ADDRESS = "http://a.test/news/feed.xml"
RSS_FEED = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>News</title><link>http://a.test/</link><atom:link href="http://a.test/feed" rel="self"/>
<item><link>http://a.test/1?a=1&amp;b=2</link><pubDate>Wed, 02 Oct 2024 15:00:00 +0200</pubDate></item>
<item><guid>http://a.test/2</guid><dc:date>2024-10-01</dc:date></item>
<item><link>/3</link><guid isPermaLink="false">tag:3</guid></item>
<item><guid isPermaLink="false">http://a.test/no</guid></item>
</channel></rss>"""
ATOM_FEED = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.test/blog/"><link href="http://a.test/"/>
<entry><link rel="edit" href="http://a.test/edit"/><link rel="alternate" href="one"/>
<link rel="enclosure" href="x.mp3"/><published>2024-10-02T15:00:00.123Z</published>
<updated>2024-10-03T10:00:00+02:00</updated></entry>
<entry><link href="http://a.test/two"/><updated>never</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="x"><link>http://a.test/</link></channel><item rdf:about="y"><link>http://a.test/1</link></item></rdf:RDF>"""


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (RSS_FEED, {"a.test/1?a=1&b=2": "2024-10-02T15:00:00+02:00", "a.test/2": "2024-10-01", "a.test/3": ""}),
        (ATOM_FEED, {"a.test/blog/one": "2024-10-03T10:00:00+02:00", "a.test/two": ""}),
        (RDF, {"a.test/1": ""}),
        ("<rss><channel><item><link>http://a.test/1</link>&nbsp;<br></item><item><link>http://a.test/2",
         {"a.test/1": "", "a.test/2": ""}),
        ("<rss><item><link>javascript:alert(1)</link></item><item><link>http://[broken</link></item></rss>", {}),
        ("<rss><item><link>http://a.test/1</link></item><item><link>http://a.test/1</link></item></rss>",
         {"a.test/1": ""}),
        ("<html><body><item><link>http://a.test/1</link></item></body></html>", {}),
        ("", {}), ("{", {}), ("<", {}),
    ],
)  # fmt: skip
def test_feeds(body: str, entries: dict[str, str]) -> None:
    expected = [FeedEntry(f"http://{address}", date) for address, date in entries.items()]
    assert read_feed(body.encode(), FEED_ADDRESS) == (expected, 0)


def test_other_encodings_are_read() -> None:
    body = '<?xml version="1.0" encoding="windows-1250"?><rss><item><link>http://a.test/ž</link></item></rss>'
    assert read_feed(body.encode("cp1250"), FEED_ADDRESS)[0][0].url == "http://a.test/%C5%BE"
    assert len(read_feed(RSS_FEED.replace("UTF-8", "UTF-16").encode("utf-16"), FEED_ADDRESS)[0]) == 3


def test_what_is_too_much_is_counted_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    items = "".join(f"<item><link>http://a.test/{n}</link></item>" for n in range(MAX_ENTRIES + 7))
    entries, left_out = read_feed(f"<rss>{items}</rss>".encode(), FEED_ADDRESS)
    assert len(entries) == MAX_ENTRIES and left_out == 7
    monkeypatch.setattr(listing, "MAX_FEED_BYTES", 1000)
    assert 0 < len(read_feed(f"<rss>{items}</rss>".encode(), FEED_ADDRESS)[0]) < 30


HOSTILE = {
    "entities": b"<!DOCTYPE r [<!ENTITY a 'http://a.test/'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10 if n else b"&a;" * 10) for n in range(9))
    + b"]><rss><item><link>&a8;</link></item></rss>",
    "a file of the machine": b"<!DOCTYPE r [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><rss><item><link>http://a.test/&a;",
    "depth": b"<rss>" + b"<item>" * 100_000,
    "attributes": b"<rss " + b"".join(b"a%d='' " % n for n in range(50_000)) + b"><item>",
    "open tags": b"<rss>" + b"<" * 4_000_000,
    "children": b"<rss><item>" + b"<link/>" * 100_000 + b"</item></rss>",
    "dates": b"<rss>" + b"<item><link>http://a.test/%d</link><pubDate>((((((((((((</pubDate></item>" * 10_000,
    "bases": b"<rss>" + b"<a xml:base='b/'>" * 250 + b"<item><link>x</link></item>" * 30_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_takes_more_than_moments(name: str) -> None:
    begun = time.process_time()
    entries, _ = read_feed(HOSTILE[name], FEED_ADDRESS)
    assert time.process_time() - begun < 60, "a bound against hanging, not a measure of speed"
    assert not any("root:" in entry.url for entry in entries)
    assert all(len(entry.url) < 20_000 for entry in entries)


DAY = datetime(2026, 3, 4, tzinfo=UTC).timestamp()
SITEMAP = (
    b"<urlset><url><loc>http://a.test/1</loc><lastmod>2026-03-04</lastmod></url><url><loc>http://a.test/2</loc></url>"
)


def listed(body: bytes) -> Listing:
    return unpack(read_page(pickle.dumps(read_listing(body, FEED_ADDRESS), 5)))


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (SITEMAP, {"a.test/1": "2026-03-04", "a.test/2": ""}),
        (b"http://a.test/1\nhttp://a.test/2\n", {"a.test/1": "", "a.test/2": ""}),
        (RSS_FEED.encode(), {"a.test/1?a=1&b=2": "2024-10-02T13:00Z", "a.test/2": "2024-10-01", "a.test/3": ""}),
        (ATOM_FEED.encode("utf-16"), {"a.test/blog/one": "2024-10-03T08:00Z", "a.test/two": ""}),
        (b"<html><a href='/1'>no feed</a></html>", {}),
        (b"<urlset><url><loc>http://a.test/a\n b</loc></url>", {"a.test/a b": ""}),
    ],
)
def test_sitemaps_and_feeds_of_each_kind(body, entries):
    expected = [(f"http://{address}", seconds_of(date) if date else None) for address, date in entries.items()]
    assert listed(body) == Listing(expected)


def test_an_index_and_what_is_left_out():
    index = b"<sitemapindex><sitemap><loc>http://a.test/s</loc></sitemap></sitemapindex>"
    assert listed(index) == Listing([("http://a.test/s", None)], is_index=True)
    many = b"<rss>" + b"".join(b"<item><link>/%d</link></item>" % n for n in range(1003)) + b"</rss>"
    assert (len(listed(many).entries), listed(many).left_out) == (1000, 3)


@pytest.mark.parametrize("text", ["2026-03-04", "2026-03-04T01:00+0100", "20260304", "Wed, 4 Mar 2026 01:00:00 +0100"])
def test_dates(text):
    assert seconds_of(text) == DAY
    assert all(seconds_of(wrong) is None for wrong in ("", "soon", "2026-02-30", "2026-13", "9" * 40))


@pytest.mark.parametrize("value", [
    None, 1, ("a", b"", False, 0, {}), (b"a", b"12345678", 0, 0, {}), ("a", b"x", 0, 0, {}), ("",),
    ("", b"", False, 0, []),
    ("", b"", False, 0, {0: [("", ["to-sell"])]}), ("", b"", False, 0, {0: [1]}), ("", b"", False, 0, {"x": []}),
])  # fmt: skip
def test_what_is_no_listing_is_refused(value):
    with pytest.raises(ValueError, match="no listing"):
        unpack(value)


def licensed(entries: str) -> bytes:
    return f'<rss version="2.0" xmlns:rsl="https://rslstandard.org/rsl"><channel>{entries}</channel></rss>'.encode()


def item(name: str, terms: str, url: str | None = None) -> str:
    licence = f"<rsl:license>{terms}</rsl:license>"
    content = f'<rsl:content url="{f"/{name}" if url is None else url}">{licence}</rsl:content>'
    return f"<item><title>x</title>{content}<link>http://a.test/{name}</link></item>"


def test_an_entry_may_hold_its_licence():
    """RSL 1.0, 4.7; a content with another path or host says nothing of the entry (3.1.1)."""
    no = '<rsl:prohibits type="usage">all</rsl:prohibits>'
    germans = '<rsl:permits type="geo">DE</rsl:permits>'
    body = licensed(
        item("no", no) + item("here", no, "") + item("full", no, "https://www.a.test/full") + item("free", "")
        + item("other", no, "/premium/*") + item("foreign", no, "http://b.test/") + item("germans", germans)
        + "<item><link>http://a.test/silent</link></item>"
        + "<item><link>/broken</link><rsl:content><rsl:licence/></rsl:content></item>"
    )  # fmt: skip
    prohibited = [Statement(Signal.RSL, "prohibited", ANY)]
    found = listed(body)
    said = {url.rpartition("/")[2]: found.said.get(number) for number, (url, _) in enumerate(found.entries)}
    free = [Statement(Signal.RSL, "free")]
    assert said == {
        **dict.fromkeys(("no", "here", "full"), prohibited), "free": free, "other": [], "foreign": [], "silent": None,
        "germans": [Statement(Signal.RSL, "geo", ANY)], "broken": [Statement(Signal.RSL, "unknown", TRAINING)],
    }  # fmt: skip


def test_licences_beyond_the_limit_are_unknown_terms(monkeypatch):
    monkeypatch.setattr(listing, "MAX_LICENCE_BYTES", 1000)
    found = listed(licensed("".join(item(f"{number}", "") for number in range(9))))
    details = [said[0].detail for _, said in sorted(found.said.items())]
    assert len(details) == 9 and details == ["free"] * details.count("free") + ["unknown"] * details.count("unknown")
    assert 1 < details.count("free") < 8


URLS = st.text(st.characters(codec="utf-8", exclude_characters="<&]>", exclude_categories=["Cc", "Z"]), min_size=1)


@given(st.lists(st.tuples(URLS, st.none() | st.integers(0, 4_000_000_000)), max_size=20))
def test_a_listing_arrives_as_it_was_read(entries):
    rows = ""
    for url, time_s in entries:
        date = "" if time_s is None else datetime.fromtimestamp(time_s, UTC).isoformat()
        rows += f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>"
    assert listed(f"<urlset>{rows}".encode()).entries == entries


PIECES = st.sampled_from(
    [b"<loc>", b"</loc>", b"<loc", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<urlset>", b"<sitemapindex ", b"http://a/",
     b"&#x110000;", b"&#0;", b"&x;", b"\x1f\x8b\x08\x00", b"\xff\xfe", b"\n", b" ", b">", b"\0", b"<rss>", b"<feed>",
     b"<item>", b"</item>", b"<entry>", b"<link>", b"<link href='", b"'/>", b"</link>", b"<guid>", b"<pubDate>",
     b"2024-13-45", b"<!DOCTYPE", b"<?xml",]
)  # fmt: skip
STARTS = st.sampled_from([b"", b"<urlset>", b"<rss>", b"<feed>", b"\x1f\x8b"])


@given(STARTS, st.lists(PIECES | st.binary(max_size=8), max_size=40))
def test_nothing_raises(start, pieces):
    body = start + b"".join(pieces)
    assert all(url and "\n" not in url for url, _ in listed(body).entries)
    assert all(entry.url.startswith(("http://", "https://")) for entry in read_feed(body, FEED_ADDRESS)[0])
    assert all(isinstance(url, str) and url for url in read_sitemap(body).urls)
