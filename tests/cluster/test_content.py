"""What one shard packs another unpacks; nothing else comes out of any bytes, and nothing but ValueError."""

from __future__ import annotations

import json
import struct
from contextlib import suppress

import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spiderling.base.link_batch import FOREIGN, TEXT_BLOCK, WANTED, Link, gathered
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.base.zstd import zstd
from spiderling.cluster.content import MAX_PLAIN_BYTES, FoundLinks, packed, section, unpacked
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.strategy import FarHost, LinkingPage

HOSTS = st.sampled_from(["a.cz", "www.a.cz", "b.cz:8080", "[::1]", "1.2.3.4", "a.cz:443", "x_"])
PATHS = st.text(st.sampled_from("aZ0./?&=;%-\xe9"), max_size=9)
URLS = st.builds("{}://{}/{}".format, st.sampled_from(["http", "https"]), HOSTS, PATHS)
LINKS = st.builds(Link, URLS, st.booleans(), st.floats(0, 1), st.integers(0, 300), st.booleans(),
                  st.sampled_from([0, WANTED, FOREIGN]))  # fmt: skip
PAGES = st.builds(
    LinkingPage, st.builds(FarHost, st.integers(0, 65535)), st.sampled_from(Reason), st.integers(0, 9), st.booleans(),
    st.text(max_size=3), st.floats(0, 1e6),
)  # fmt: skip
MENTIONS = st.builds(
    Mention, URLS.map(canonicalize).filter(bool), st.integers(0, 65535), st.integers(0, 9), st.just(0),
    st.none() | st.binary(max_size=20).filter(lambda data: not data.startswith(PICKLED)), st.binary(max_size=9),
    st.integers(0, 5),
)  # fmt: skip
SECTIONS = st.tuples(
    st.lists(st.tuples(PAGES, st.lists(LINKS, max_size=6)), max_size=4), st.lists(MENTIONS, max_size=3)
)


def made(groups: list[tuple[LinkingPage, list[Link]]], mentions: list[Mention]) -> bytes:
    """The section of *groups*; links that do not fit into columns are left out."""
    pages = [(page, gathered(links).size) for page, links in groups]
    return section(pages, gathered(link for _, links in groups for link in links), mentions)


def plain(found: FoundLinks) -> object:
    """*found* without what only its sender has; hosts by their names."""
    rows = [(*row, found.links.flags[at]) for at, row in enumerate(found.links.rows())]
    derived = found.links.hashes, found.links.sections, found.links.words, found.links.forms, found.links.depths
    return found.page.host.distance, found.page[1:6], rows, derived


@given(st.lists(SECTIONS, max_size=3))
def test_sections_come_out_as_they_went_in(sections: list[tuple[list, list]]) -> None:
    found = unpacked(packed(made(*one) for one in sections))
    groups: dict[LinkingPage, list[Link]] = {}
    for some, _ in sections:
        for page, links in some:
            groups.setdefault(page, []).extend(links)
    columns = [(page, gathered(links)._replace(others=())) for page, links in groups.items()]
    expected = sorted((plain(FoundLinks(*one)) for one in columns if one[1].size), key=repr)
    assert sorted(map(plain, found.links), key=repr) == expected, "pages that are alike are put together"
    for one in found.links:
        assert len({*one.links.hosts}) == len(one.links.hosts) == len({*one.links.of_host[::2]})
    assert list(found.mentions) == [mention for _, mentions in sections for mention in mentions]


@given(st.binary(max_size=60))
def test_no_bytes_do_harm(data: bytes) -> None:
    for message in (data, packed([data]), packed([struct.pack("!II", len(data), 0), data])):
        with suppress(ValueError):
            unpacked(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=6), max_leaves=12,
)  # fmt: skip
GOOD = section(
    [(LinkingPage(FarHost(2), Reason.KEPT), 2), (LinkingPage(FarHost(3), Reason.KEPT), 1)],
    gathered([Link("http://a.cz/"), Link("http://b.cz/b"), Link("http://a.cz/c")]),
    [Mention(canonicalize("http://b.cz/"), 1, 2, 0, b"pickle", b"salt", 1)],
)
LENGTH, TAIL = struct.unpack_from("!II", GOOD)
HEAD = json.loads(GOOD[8 : 8 + LENGTH])


def places(value: object, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    inner = value if isinstance(value, list) else []
    return [path, *(place for at, one in enumerate(inner) for place in places(one, (*path, at)))]


def changed(value: object, path: tuple[int, ...], new: object) -> object:
    if not path:
        return new
    assert isinstance(value, list)
    return [changed(one, path[1:], new) if at == path[0] else one for at, one in enumerate(value)]


@settings(max_examples=examples(400))
@given(st.sampled_from(places(HEAD)), JSON)
@example((0, 0, 5), float("nan"))
@example((0, 0, 0), -1)
@example((0, 0, 0), 1 << 80)
@example((0, 0, 1), "NO_REASON")
@example((0, 0, 6), -1)
@example((0, 0, 6), 1 << 40)
@example((0, 0, 6), 1.0)
@example((1,), ["a.cz", 7])
@example((1,), ["\ud800.cz", "b.cz"])
@example((1,), [])
@example((2,), -1)
@example((3, 0, 0), "http://B.cz/")
@example((3, 0, 0), "file:///etc/passwd")
@example((3, 0, 2), 10)
@example((3, 0, 4), -1)
@example((3, 0, 4), None)
def test_any_change_of_a_head_is_refused_or_gives_what_a_shard_might_have_sent(
    path: tuple[int, ...], new: object
) -> None:
    """A shard whose main process went astray cannot make another one do so."""
    head = json.dumps(changed(HEAD, path, new)).encode()
    try:
        found = unpacked(packed([struct.pack("!II", len(head), TAIL), head, GOOD[8 + LENGTH :]]))
    except ValueError:
        return
    for page, links in found.links:
        assert 0 <= page.host.distance <= 65535 and 0 <= page.rank <= 9 and type(page.relevant) is bool
        assert page.badness == page.badness and isinstance(page.language, str)
        assert all(canonicalize(url) for url, _, _ in links.rows() if "//a.cz/" in url)
    for mention in found.mentions:
        assert canonicalize(mention.target.url) == mention.target
        assert 0 <= mention.distance <= 65535 and 0 <= mention.rank <= 9
        assert mention.payload is None or type(mention.payload) is bytes


@given(st.integers(8 + LENGTH, len(GOOD) - 1), st.integers(1, 255))
def test_a_changed_column_is_refused_or_names_other_links(at: int, change: int) -> None:
    data = bytearray(GOOD)
    data[at] ^= change
    with suppress(ValueError):
        one, other = unpacked(packed([bytes(data)])).links
        assert (one.links.size, other.links.size) == (2, 1)
        assert all(found.links.target(at).path[0] == "/" for found in (one, other) for at in range(found.links.size))


@pytest.mark.parametrize("missing", range(1, len(GOOD)))
def test_a_section_that_is_cut_off_is_refused(missing: int) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        unpacked(packed([GOOD[:-missing]]))


def test_a_deep_head_is_refused() -> None:
    head = b"[" * 100_000
    with pytest.raises(ValueError, match="cannot be read"):
        unpacked(packed([struct.pack("!II", len(head), 0), head]))


def test_a_message_that_would_fill_the_memory_is_refused() -> None:
    bomb = zstd.compress(bytes(MAX_PLAIN_BYTES + 1))
    stream = zstd.ZstdCompressor()
    unsized = stream.compress(bytes(MAX_PLAIN_BYTES + 1)) + stream.flush()
    for message in (bomb, unsized):
        assert len(message) < 10_000
        with pytest.raises(ValueError, match="cannot be read"):
            unpacked(message)


def test_equal_pages_of_all_sections_are_one_and_their_links_keep_their_order() -> None:
    one, other = LinkingPage(FarHost(2), Reason.KEPT), LinkingPage(FarHost(3), Reason.KEPT)
    urls = [f"http://{host}.cz/{number}" for number, host in enumerate("abcaba")]
    sections = [
        section([(one, 2), (other, 1)], gathered(map(Link, urls[:3])), ()),
        section([(other, 1), (one, 2)], gathered(map(Link, urls[3:])), ()),
    ]
    found = {links.page: [url for url, *_ in links.links.rows()] for links in unpacked(packed(sections)).links}
    assert found == {one: [*urls[:2], *urls[4:]], other: urls[2:4]}


def test_a_section_with_too_many_paths_does_not_shift_those_of_the_next() -> None:
    good = section(
        [(LinkingPage(FarHost(2), Reason.KEPT), 2)], gathered([Link("http://a.cz/1"), Link("http://a.cz/2")]), ()
    )
    more, fewer = good.replace(b"/1\n/2", b"/\n/\n/"), good.replace(b"/1\n/2", b"/1234")
    assert len(more) == len(fewer) == len(good)
    with pytest.raises(ValueError, match="cannot be read"):
        unpacked(packed([more, fewer]))


def test_derived_columns_are_not_carried() -> None:
    links = gathered([Link("http://a.cz/one/two?x", True)])
    forged = links._replace(hashes=bytes(8), words=bytes(12), forms=b"\x7f")
    found = unpacked(packed([section([(LinkingPage(FarHost(1), Reason.KEPT), 1)], forged, ())]))
    assert found.links[0].links == links and links.flags == bytes([TEXT_BLOCK])
