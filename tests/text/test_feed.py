"""Feeds as sites make them, as they are broken, and as an enemy would write them."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text import listing
from spiderling.text.listing import MAX_ENTRIES, Feed, FeedEntry, read_feed

ADDRESS = "http://a.test/news/feed.xml"
RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>News</title><link>http://a.test/</link><atom:link href="http://a.test/feed" rel="self"/>
<item><link>http://a.test/1?a=1&amp;b=2</link><pubDate>Wed, 02 Oct 2024 15:00:00 +0200</pubDate></item>
<item><guid>http://a.test/2</guid><dc:date>2024-10-01</dc:date></item>
<item><link>/3</link><guid isPermaLink="false">tag:3</guid></item>
<item><guid isPermaLink="false">http://a.test/no</guid></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.test/blog/"><link href="http://a.test/"/>
<entry><link rel="edit" href="http://a.test/edit"/><link rel="alternate" href="one"/>
<link rel="enclosure" href="x.mp3"/><published>2024-10-02T15:00:00.123Z</published>
<updated>2024-10-03T10:00:00+02:00</updated></entry>
<entry><link href="http://a.test/two"/><updated>never</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="x"><link>http://a.test/</link></channel><item rdf:about="y"><link>http://a.test/1</link></item></rdf:RDF>"""
JSON = {
    "version": "https://jsonfeed.org/version/1.1",
    "items": [
        {"id": "1", "url": "/1", "date_published": "2024-10-02T15:00:00Z", "date_modified": "2024-10-03T15:00:00Z"},
        {"id": "2", "content_text": "no address"},
        {"url": 7, "date_published": []},
        "no item",
        {"url": "http://b.test/2"},
    ],
}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (RSS, [
            FeedEntry("http://a.test/1?a=1&b=2", "2024-10-02T15:00:00+02:00", ""),
            FeedEntry("http://a.test/2", "2024-10-01", ""),
            FeedEntry("http://a.test/3", "", ""),
        ]),
        (ATOM, [
            FeedEntry("http://a.test/blog/one", "2024-10-02T15:00:00Z", "2024-10-03T10:00:00+02:00"),
            FeedEntry("http://a.test/two", "", ""),
        ]),
        (RDF, [FeedEntry("http://a.test/1", "", "")]),
        (json.dumps(JSON), [
            FeedEntry("http://a.test/1", "2024-10-02T15:00:00Z", "2024-10-03T15:00:00Z"),
            FeedEntry("http://b.test/2", "", ""),
        ]),
        ("\ufeff \n" + json.dumps(JSON | {"items": JSON["items"][4:]}), [FeedEntry("http://b.test/2", "", "")]),
        ("<rss><channel><item><link>http://a.test/1</link>&nbsp;<br></item><item><link>http://a.test/2", [
            FeedEntry("http://a.test/1", "", ""), FeedEntry("http://a.test/2", "", "")
        ]),
        ("<rss><item><link>javascript:alert(1)</link></item><item><link>http://[broken</link></item></rss>", []),
        ("<rss><item><link>http://a.test/1</link></item><item><link>http://a.test/1</link></item></rss>", [
            FeedEntry("http://a.test/1", "", "")
        ]),
        ("<html><body><item><link>http://a.test/1</link></item></body></html>", []),
        ('{"items": [{"url": "http://a.test/1"}]}', []),
        ('{"version": "https://jsonfeed.org/version/1", "items": {"url": "http://a.test/1"}}', []),
        ("", []),
        ("{", []),
        ("<", []),
    ],
)  # fmt: skip
def test_feeds(body: str, expected: list[FeedEntry]) -> None:
    assert read_feed(body.encode(), ADDRESS) == Feed(expected)


def test_other_encodings_are_read() -> None:
    body = '<?xml version="1.0" encoding="windows-1250"?><rss><item><link>http://a.test/ž</link></item></rss>'
    assert read_feed(body.encode("cp1250"), ADDRESS).entries[0].url == "http://a.test/%C5%BE"
    assert len(read_feed(RSS.replace("UTF-8", "UTF-16").encode("utf-16"), ADDRESS).entries) == 3


def test_what_is_too_much_is_counted_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    items = "".join(f"<item><link>http://a.test/{n}</link></item>" for n in range(MAX_ENTRIES + 7))
    found = read_feed(f"<rss>{items}</rss>".encode(), ADDRESS)
    assert len(found.entries) == MAX_ENTRIES and found.left_out == 7
    monkeypatch.setattr(listing, "MAX_FEED_BYTES", 1000)
    assert 0 < len(read_feed(f"<rss>{items}</rss>".encode(), ADDRESS).entries) < 30


HOSTILE = {
    "entities": b"<!DOCTYPE r [<!ENTITY a 'http://a.test/'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10 if n else b"&a;" * 10) for n in range(9))
    + b"]><rss><item><link>&a8;</link></item></rss>",
    "a file of the machine": b"<!DOCTYPE r [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><rss><item><link>http://a.test/&a;",
    "depth": b"<rss>" + b"<item>" * 100_000,
    "attributes": b"<rss " + b"".join(b"a%d='' " % n for n in range(50_000)) + b"><item>",
    "open tags": b"<rss>" + b"<" * 4_000_000,
    "children": b"<rss><item>" + b"<link/>" * 100_000 + b"</item></rss>",
    "lists": b'{"version":"https://jsonfeed.org/version/1","items":' + b"[" * 1_000_000,
    "digits": b'{"version":"https://jsonfeed.org/version/1","items":[{"url":' + b"9" * 1_000_000 + b"}]}",
    "dates": b"<rss>" + b"<item><link>http://a.test/%d</link><pubDate>((((((((((((</pubDate></item>" * 10_000,
    "bases": b"<rss>" + b"<a xml:base='b/'>" * 250 + b"<item><link>x</link></item>" * 30_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_takes_more_than_moments(name: str) -> None:
    begun = time.process_time()
    found = read_feed(HOSTILE[name], ADDRESS)
    assert time.process_time() - begun < 60, "a bound against hanging, not a measure of speed"
    assert not any("root:" in entry.url for entry in found.entries)
    assert all(len(entry.url) < 20_000 for entry in found.entries)


_PIECES = st.sampled_from(
    [b"<rss>", b"<feed>", b"<item>", b"</item>", b"<entry>", b"<link>", b"<link href='", b"'/>", b"</link>", b"<guid>",
     b"http://a.test/", b"<pubDate>", b"2024-13-45", b"<!DOCTYPE", b"<![CDATA[", b"]]>", b"&#0;", b"&x;", b"<?xml",
     b"\xff\xfe", b'{"version":"jsonfeed.org","items":[', b'{"url":"', b'"}', b"]}", b"\0"]
)  # fmt: skip


@given(st.lists(_PIECES | st.binary(max_size=8), max_size=40))
def test_nothing_raises(pieces: list[bytes]) -> None:
    for entry in read_feed(b"".join(pieces), ADDRESS).entries:
        assert entry.url.startswith(("http://", "https://"))
