"""Plain links need no parser, and come out as if they had gone through it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.html.blocks import RawLink
from spiderling.text.html.links import join, resolve

PARTS = [
    *("http://", "https://", "HTTP://", "ftp:", "//", "/", "\\", "?", "#", ":", "@", ".", "..", "%2e", "%2E", "%"),
    *("a", "B", "é", "0", "127.1", "0x7f", "h.test", "www.h-i.test", "xn--a", ".xn--p1ai", "h.test.", "[::1]"),
    *("_", "-", ":80", ":8080", "'", '"', "|", "^", "~", "&", "=", ";", "+", "!", "$", "(", "*", ",", "<", "`", "{"),
    *(" ", "\t", "\n", "%20"),
]  # fmt: skip
HREFS = st.lists(st.sampled_from(PARTS), max_size=9).map("".join)
ROOTS = [
    "http://h.test/",
    "http://h.test",
    "https://user:word@h.test:8443/a/./b/c.html?q=/x/#f",
    "http://H.TEST:80/a/../b",
    "http://h.test/?a/b",
    "http://příklad.test/ř/",
    "data:text/html,a",
    "no url",
]


def by_parser(href: str, root: str) -> list[str]:
    href = href.partition("#")[0].strip()
    url = join(root, href) if href else None
    return [url] if url and url.startswith(("http://", "https://")) else []


def resolved(href: str, root: str) -> list[str]:
    return [url for _, url in resolve([RawLink(href, "", "", -1)], root, None)]


@given(HREFS, st.sampled_from(ROOTS))
def test_both_ways_agree(href, root):
    assert resolved(href, root) == by_parser(href, root)


HELD = [
    *("http://h.test/a/b.html?c=d&e=%C3%A9", "https://a-b.h.test/", "http://h.test/a//b/", "http://h.test/a/.b"),
    *("http://h.test/a/%2e%2e/b", "http://h.test/a/../b", "http://h.test/a/..", "http://1.2.3.4/", "http://a.0x1/"),
    *("/a/b", "/a/./b", "/./a", "/%2e/a", "//h.test/a", "/a?b='c'", "/?x", "/", "a", "a/b?c", "a:b", "a.b:80/c"),
    *("./a", "..", ".a", "?a", "%2e%2e/a", "javascript:void(0)", "a/b:c", "a/../b", "http://a.xn--p1ai/"),
]  # fmt: skip


def test_both_ways_agree_on_what_pages_hold():
    pairs = [(href, root) for href in HELD for root in ROOTS]
    assert [pair for pair in pairs if resolved(*pair) != by_parser(*pair)] == []


def test_the_first_of_equal_links_counts():
    links = [RawLink(href, "", anchor, 0) for href, anchor in (("/a", "1"), ("/a#b", "2"), ("http://h.test/a", "3"))]
    assert [(link.anchor, url) for link, url in resolve(links, "http://h.test/", None)] == [("1", "http://h.test/a")]
