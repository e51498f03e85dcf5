"""What sitemaps and feeds list, and the way of a listing from a worker."""

from __future__ import annotations

import gzip
import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.opt_outs import ANY, TRAINING, Signal, Statement
from spiderling.base.rsl import Licensee
from spiderling.text import listing
from spiderling.text.declared import seconds_of
from spiderling.text.listing import Listing, read_listing, unpacked
from spiderling.text.page import read_page

NOBODY = Licensee()
ADDRESS = "http://a.test/news/feed"
DAY = datetime(2026, 3, 4, tzinfo=UTC).timestamp()
SITEMAP = (
    b"<urlset><url><loc>http://a.test/1</loc><lastmod>2026-03-04</lastmod></url><url><loc>http://a.test/2</loc></url>"
)
RSS = (
    b"<rss><channel><link>http://a.test/</link><item><link>/1</link><pubDate>Wed, 04 Mar 2026 00:00:00 GMT</pubDate>"
    b"</item><item><link>2</link></item></channel></rss>"
)
ATOM = (
    b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="http://a.test/1"/><published>2020-01-01</published>'
    b"<updated>2026-03-04T00:00:00Z</updated></entry></feed>"
)
JSON = b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "/1", "date_published": "2026-03-04"}]}'


def listed(body: bytes, who: Licensee = NOBODY) -> Listing:
    return unpacked(read_page(pickle.dumps(read_listing(body, ADDRESS, who), 5)))


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (SITEMAP, [("http://a.test/1", DAY), ("http://a.test/2", None)]),
        (gzip.compress(SITEMAP, mtime=0), [("http://a.test/1", DAY), ("http://a.test/2", None)]),
        (b"http://a.test/1\nhttp://a.test/2\n", [("http://a.test/1", None), ("http://a.test/2", None)]),
        (RSS, [("http://a.test/1", DAY), ("http://a.test/news/2", None)]),
        (ATOM.decode().encode("utf-16"), [("http://a.test/1", DAY)]),
        (ATOM, [("http://a.test/1", DAY)]),
        (JSON, [("http://a.test/1", DAY)]),
        (b"<html><a href='/1'>no feed</a></html>", []),
        (b"<urlset><url><loc>http://a.test/a\n b</loc></url>", [("http://a.test/a b", None)]),
        (b"", []),
    ],
)  # fmt: skip
def test_sitemaps_and_feeds_of_each_kind(body, entries):
    assert listed(body) == Listing(entries)


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
        unpacked(value)


def licensed(entries: str) -> bytes:
    return f'<rss version="2.0" xmlns:rsl="https://rslstandard.org/rsl"><channel>{entries}</channel></rss>'.encode()


def item(name: str, terms: str, url: str | None = None) -> str:
    content = (
        f'<rsl:content url="{f"/{name}" if url is None else url}"><rsl:license>{terms}</rsl:license></rsl:content>'
    )
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
    assert listed(body, Licensee("", "DE")).said[6] == free


def test_licences_beyond_the_limit_are_unknown_terms(monkeypatch):
    monkeypatch.setattr(listing, "MAX_LICENCE_BYTES", 1000)
    found = listed(licensed("".join(item(f"{number}", "") for number in range(9))))
    details = [said[0].detail for _, said in sorted(found.said.items())]
    assert len(details) == 9 and details == ["free"] * details.count("free") + ["unknown"] * details.count("unknown")
    assert 1 < details.count("free") < 8


URLS = st.text(st.characters(codec="utf-8", exclude_characters="<&]>", exclude_categories=["Cc", "Z"]), min_size=1)


@given(st.lists(st.tuples(URLS, st.none() | st.integers(0, 4_000_000_000)), max_size=20))
def test_a_listing_arrives_as_it_was_read(entries):
    dates = ["" if time is None else datetime.fromtimestamp(time, UTC).isoformat() for _, time in entries]
    rows = (
        f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>" for (url, _), date in zip(entries, dates, strict=True)
    )
    assert listed(f"<urlset>{''.join(rows)}".encode()).entries == entries


@given(st.binary(max_size=200) | st.sampled_from([SITEMAP, RSS, ATOM, JSON]).map(lambda body: body[: len(body) // 2]))
def test_nothing_raises(body):
    assert all(url and "\n" not in url for url, _ in listed(body).entries)
