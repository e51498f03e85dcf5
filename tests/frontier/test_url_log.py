"""The trail: how each URL ended and where it was found, packed into the batch and found again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from virtual_crawl import Answer, VirtualCrawl, page

from spiderling.base.reasons import Reason
from spiderling.base.urls import url_key
from spiderling.frontier.storage.url_log import (
    UrlEnd,
    UrlLogBatch,
    pack_ends,
    pack_keys,
    page_of,
    place_of,
    unpack_ends,
    unpack_keys,
)

KEYS = st.integers(-(2**63), 2**63 - 1)
ENDS = st.builds(
    UrlEnd, KEYS, st.text(st.characters()), st.sampled_from([reason.value for reason in Reason]), st.integers(0, 9),
    st.integers(0, 99), st.integers(0, 9), st.integers(0, 999), st.integers(0), st.integers(0), st.integers(0),
    st.text(), st.text(), st.none() | st.integers(0),
)  # fmt: skip


@given(st.lists(ENDS, min_size=1))
def test_ends_come_back(ends: list[UrlEnd]) -> None:
    keys = pack_keys(tuple(end.key for end in ends))
    assert unpack_ends(keys, pack_ends(tuple(ends))) == ends


@given(st.lists(KEYS, unique=True), KEYS)
def test_a_key_is_found_at_its_place_and_nowhere_else(keys: list[int], other: int) -> None:
    blob = pack_keys(tuple(keys))
    assert unpack_keys(blob) == keys
    assert [place_of(key, blob) for key in keys] == list(range(len(keys)))
    assert (place_of(other, blob) is None) == (other not in keys)


def drained(crawl: VirtualCrawl) -> UrlLogBatch:
    return crawl.frontier.drain(crawl.now).url_log


def test_each_url_has_its_end_and_the_page_that_it_was_found_on() -> None:
    web = {
        "http://a.cz/": page("http://a.cz/1", "http://b.cz/", "http://a.cz/1"),
        "http://a.cz/1": page("http://a.cz/", "http://a.cz/2"),
        "http://b.cz/": page(kept_bytes=0),
    }
    crawl = VirtualCrawl(web).run("http://a.cz/")
    url_log = drained(crawl)
    ends = {end.url: (end.reason, end.distance) for end in url_log.ends}
    assert ends == {
        "http://a.cz/": ("kept", 0), "http://a.cz/1": ("kept", 0), "http://b.cz/": ("boilerplate-only", 1),
        "http://a.cz/2": ("http-error", 0),
    }  # fmt: skip
    runs = pack_keys(tuple(part for run in url_log.pages for part in run))
    found = {key: page_of(place, runs) for place, key in enumerate(url_log.found)}
    root, one, two = (url_key(crawl.host("a.cz").id, f"http://a.cz/{path}") for path in ("", "1", "2"))
    assert found == {root: 0, one: root, url_key(crawl.host("b.cz").id, "http://b.cz/"): root, two: one}
    assert drained(crawl) == UrlLogBatch(crawl.now), "and everything once"


def test_a_queue_given_up_is_one_row_whatever_its_length() -> None:
    poor = {f"http://a.cz/{n}": page(body_bytes=100_000, kept_bytes=0) for n in range(40)}
    url_log = drained(VirtualCrawl(poor, strategy="yield").run(*poor))
    assert [purge[1:] for purge in url_log.purges] == [("host-retired", 29)]
    assert len(url_log.ends) == 11


def test_tries_are_counted() -> None:
    crawl = VirtualCrawl({"http://a.cz/": Answer(status=503, kept_bytes=0)}, retries=2).run("http://a.cz/")
    assert [(end.reason, end.tries) for end in drained(crawl).ends] == [("http-error", 2)]


def test_less_is_kept_by_option() -> None:
    urls = {"http://a.cz/": page("http://a.cz/1"), "http://a.cz/1": page()}
    only_ends = drained(VirtualCrawl(urls, trail="ends").run("http://a.cz/"))
    assert len(only_ends.ends) == 2 and not only_ends.found
    crawl = VirtualCrawl(urls, trail="off").run("http://a.cz/")
    assert drained(crawl) == UrlLogBatch(crawl.now)
