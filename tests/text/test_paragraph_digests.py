"""What is new on a page that is looked at again; and the feeds that it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text import fingerprints
from spiderling.text.fingerprints import MAX_PARAGRAPHS, digests_of, known_again, packed
from spiderling.text.html.links import feeds_of

TEXTS = st.lists(st.text(max_size=6), max_size=30)


def known(texts: list[str], before: list[str]) -> list[bool]:
    return [bool(one) for one in known_again(digests_of(texts), packed(digests_of(before)), len(texts))]


@given(texts=TEXTS, before=TEXTS)
def test_a_paragraph_is_known_if_the_last_version_has_it(texts, before):
    assert known(texts, before) == [text in before for text in texts]
    assert all(known(texts, texts))


def test_a_million_paragraphs_are_bounded():
    texts = [str(n) for n in range(1_000_000)]
    digests = digests_of(texts)
    assert len(digests) == len(packed(digests)) == 8 * MAX_PARAGRAPHS
    found = known_again(digests, packed(digests_of(texts[1:])), len(texts))
    assert not found[0] and found[1 : MAX_PARAGRAPHS - 1].all() and found[MAX_PARAGRAPHS:].all()


def test_each_is_stored_once(monkeypatch):
    assert len(packed(digests_of(["a", "b", "a"]))) == 16
    assert packed(b"") == b"" and known([], ["a"]) == []
    monkeypatch.setattr(fingerprints, "MAX_PARAGRAPHS", 1)
    assert len(digests_of("abc")) == 8


RSS = '<link rel=alternate type="application/rss+xml" href="%s">'


@pytest.mark.parametrize(
    ("head", "feeds"),
    [
        (RSS % "/feed?a=1&amp;b=2", ("http://a.test/feed?a=1&b=2",)),
        (RSS % "x" + RSS % "x" + RSS % "http://b.test/y", ("http://a.test/n/x", "http://b.test/y")),
        ("<LINK HREF='f.atom' TYPE='Application/Atom+XML; charset=utf-8' REL='Alternate home'/>", ("http://a.test/n/f.atom",)),
        ("<link type=application/feed+json\nrel=alternate\nhref=/j>", ("http://a.test/j",)),
        ("<link rel=stylesheet type=application/rss+xml href=/x><link rel=alternate href=/y hreflang=en>", ()),
        (RSS % "javascript:x" + RSS % "" + RSS % "http://[" + "<link rel=alternate type=application/rss+xml>", ()),
        ("<link rel=alternate rel=x type=application/rss+xml href=1 href=2>", ("http://a.test/n/1",)),
        ("".join(RSS % n for n in range(20)), tuple(f"http://a.test/n/{n}" for n in range(8))),
        ("x" * (1 << 18) + RSS % "late", ()),
    ],
)  # fmt: skip
def test_feeds_that_a_page_names(head, feeds):
    assert feeds_of(head.encode(), "http://a.test/n/p") == feeds


@given(
    st.lists(
        st.sampled_from(
            ["<link", " rel=alternate", " type=", "application/rss+xml", " href", "=", '"', "'", ">", "<", "/a"]
        )
    )
)
def test_any_beginning_of_a_page_can_be_scanned(pieces):
    body = "".join(pieces).encode()
    assert all(feed.startswith("http") for feed in feeds_of(body, "http://a.test/"))


@pytest.mark.parametrize(("others", "feeds"), [(999, ("http://a.test/feed",)), (1000, ())])
def test_a_hostile_page_is_scanned_no_further_than_the_limits(others, feeds):
    feed = b'<link rel=alternate type="application/rss+xml" href="/feed">'
    assert feeds_of(b"<link application/rss+xml>" * others + feed, "http://a.test/") == feeds
