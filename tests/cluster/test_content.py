"""The links for other shards: each goes to its owner once, comes back from its bytes, and is known by its seal."""

from __future__ import annotations

import json
import struct
from array import array
from contextlib import suppress

import numpy as np
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spiderling.base.files import zstd
from spiderling.base.link_batch import FOREIGN, NONE, TEXT_BLOCK, WANTED, Link, LinkBatch, gathered
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, owner_of
from spiderling.cluster.content import (
    CRAWL_ID_BYTES,
    MAX_PLAIN_BYTES,
    MAX_SECTION_LINKS,
    MAX_URL_BYTES,
    TOLD,
    Gathering,
    Seal,
    Texts,
    pack,
    section,
    unpack,
)
from spiderling.cluster.exchange import ShardExchange
from spiderling.frontier import Frontier
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.storage.sqlite import SqliteStore
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
NUMBERS = st.integers(0, (1 << 63) - 1)
TEXTS = st.builds(
    lambda digests, *columns: Texts(array("q", digests), *[np.array(column, np.uint64) for column in columns]),
    st.lists(NUMBERS, max_size=3), st.lists(NUMBERS, max_size=3),
    st.lists(NUMBERS, max_size=3).map(lambda values: values * 2),
)  # fmt: skip
SECTIONS = st.tuples(
    st.lists(st.tuples(PAGES, st.lists(LINKS, max_size=6)), max_size=4), st.lists(MENTIONS, max_size=3), TEXTS
)


def made(groups: list[tuple[LinkingPage, list[Link]]], mentions: list[Mention], texts: Texts) -> bytes:
    """The section of *groups*; links that do not fit into columns are left out."""
    pages = [(page, gathered(links).size) for page, links in groups]
    return section(pages, gathered(link for _, links in groups for link in links), mentions, texts)


def plain(page: LinkingPage, links: LinkBatch) -> object:
    """What was found without what only its sender has; hosts by their names."""
    rows = [(*row, links.flags[at]) for at, row in enumerate(links.rows())]
    return page.host.distance, page[1:6], rows, links.hashes, links.sections, links.words, links.forms, links.depths


@given(st.lists(SECTIONS, max_size=3))
def test_sections_come_out_as_they_went_in(sections: list[tuple[list, list]]) -> None:
    found, singles, told = unpack(pack(made(*one) for one in sections))
    groups: dict[LinkingPage, list[Link]] = {}
    for some, _, _ in sections:
        for page, links in some:
            groups.setdefault(page, []).extend(links)
    columns = [(page, gathered(links)._replace(others=())) for page, links in groups.items()]
    expected = sorted((plain(*one) for one in columns if one[1].size), key=repr)
    assert sorted((plain(*one) for one in found), key=repr) == expected, "pages that are alike are put together"
    for _, links in found:
        assert len({*links.hosts}) == len(links.hosts) == len({*links.of_host[::2]})
    assert singles == [mention for _, mentions, _ in sections for mention in mentions]
    assert [list(column) for column in told] == [
        [value for *_, one in sections for value in one[place]] for place in range(3)
    ]


@given(st.binary(max_size=60))
def test_no_bytes_do_harm(data: bytes) -> None:
    for message in (data, pack([data]), pack([struct.pack("!II", len(data), 0), data])):
        with suppress(ValueError):
            unpack(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=6), max_leaves=12,
)  # fmt: skip
GOOD = section(
    [(LinkingPage(FarHost(2), Reason.KEPT), 2), (LinkingPage(FarHost(3), Reason.KEPT), 1)],
    gathered([Link("http://a.cz/"), Link("http://b.cz/b"), Link("http://a.cz/c")]),
    [Mention(canonicalize("http://b.cz/"), 1, 2, 0, b"pickle", b"salt", 1)],
    Texts(array("q", [-7]), np.array([8, 9], np.uint64), np.array([5, 6], np.uint64)),
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
        found, mentions = unpack(pack([struct.pack("!II", len(head), TAIL), head, GOOD[8 + LENGTH :]]))
    except ValueError:
        return
    for page, links in found:
        assert 0 <= page.host.distance <= 65535 and 0 <= page.rank <= 9 and type(page.relevant) is bool
        assert page.badness == page.badness and isinstance(page.language, str)
        assert all(canonicalize(url) for url, _, _ in links.rows() if "//a.cz/" in url)
    for mention in mentions:
        assert canonicalize(mention.target.url) == mention.target
        assert 0 <= mention.distance <= 65535 and 0 <= mention.rank <= 9
        assert mention.payload is None or type(mention.payload) is bytes


@given(st.integers(8 + LENGTH, len(GOOD) - 1), st.integers(1, 255))
def test_a_changed_column_is_refused_or_names_other_links(at: int, change: int) -> None:
    data = bytearray(GOOD)
    data[at] ^= change
    with suppress(ValueError):
        (_, one), (_, other) = unpack(pack([bytes(data)]))[0]
        assert (one.size, other.size) == (2, 1)
        assert all(links.target(at).path[0] == "/" for links in (one, other) for at in range(links.size))


@pytest.mark.parametrize("missing", range(1, len(GOOD)))
def test_a_section_that_is_cut_off_is_refused(missing: int) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(pack([GOOD[:-missing]]))


def test_a_deep_head_and_a_message_that_would_fill_the_memory_are_refused() -> None:
    head = b"[" * 100_000
    bomb = zstd.compress(bytes(MAX_PLAIN_BYTES + 1))
    stream = zstd.ZstdCompressor()
    unsized = stream.compress(bytes(MAX_PLAIN_BYTES + 1)) + stream.flush()
    for message in (pack([struct.pack("!II", len(head), 0), head]), bomb, unsized):
        assert len(message) < 10_000
        with pytest.raises(ValueError, match="cannot be read"):
            unpack(message)


def test_equal_pages_of_all_sections_are_one_and_their_links_keep_their_order() -> None:
    one, other = LinkingPage(FarHost(2), Reason.KEPT), LinkingPage(FarHost(3), Reason.KEPT)
    urls = [f"http://{host}.cz/{number}" for number, host in enumerate("abcaba")]
    sections = [
        section([(one, 2), (other, 1)], gathered(map(Link, urls[:3])), ()),
        section([(other, 1), (one, 2)], gathered(map(Link, urls[3:])), ()),
    ]
    found = {page: [url for url, *_ in links.rows()] for page, links in unpack(pack(sections))[0]}
    assert found == {one: [*urls[:2], *urls[4:]], other: urls[2:4]}


def test_a_section_with_too_many_paths_does_not_shift_those_of_the_next() -> None:
    good = section(
        [(LinkingPage(FarHost(2), Reason.KEPT), 2)], gathered([Link("http://a.cz/1"), Link("http://a.cz/2")]), ()
    )
    more, fewer = good.replace(b"/1\n/2", b"/\n/\n/"), good.replace(b"/1\n/2", b"/1234")
    assert len(more) == len(fewer) == len(good)
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(pack([more, fewer]))


def test_a_message_of_version_1_0_is_read() -> None:
    """An outbox may hold one when a crawl is resumed by a newer version."""
    head = json.dumps(HEAD[:4]).encode()
    links, mentions, told = unpack(pack([struct.pack("!II", len(head), TAIL - 40), head, GOOD[8 + LENGTH : -40]]))
    assert (links, mentions) == unpack(pack([GOOD]))[:2] and list(map(len, told)) == [0, 0, 0]


def test_derived_columns_are_not_carried() -> None:
    links = gathered([Link("http://a.cz/one/two?x", True)])
    forged = links._replace(hashes=bytes(8), words=bytes(12), forms=b"\x7f")
    [(_, found)], *_ = unpack(pack([section([(LinkingPage(FarHost(1), Reason.KEPT), 1)], forged, ())]))
    assert found == links and links.flags == bytes([TEXT_BLOCK])


# -- what leaves a shard: each foreign link once, again only from nearer, in sections that are never too large


SHARDS = 4
PAGE = LinkingPage(FarHost(3), Reason.KEPT)


def batch(*urls: str) -> LinkBatch:
    return gathered(map(Link, urls))


def of_host(number: int, path: str = "") -> str:
    return f"http://host{number}.cz/{path}"


Found = dict[int, list[tuple[LinkingPage, LinkBatch]]]


def sent(gathering: Gathering) -> Found:
    found: Found = {}
    for shard, data, number in gathering.sections():
        links, mentions, _ = unpack(pack([data]))
        assert number == sum(one.number for _, one in links) + len(mentions)
        found.setdefault(shard, []).extend(links)
    return found


def kept(gathering: Gathering, page: LinkingPage, links: LinkBatch) -> list[str]:
    """The own links, as URLs."""
    own = gathering.keep_own(page, links)
    return [links.target(at).url for at in (range(links.size) if own is None else own.tolist())]


def urls_in(found: Found) -> dict[int, list[str]]:
    return {shard: [url for _, links in some for url, _, _ in links.rows()] for shard, some in found.items()}


def test_links_go_to_the_owners_of_their_hosts_and_own_ones_stay() -> None:
    urls = [of_host(number, f"{number}") for number in range(40)]
    gathering = Gathering(1, SHARDS)
    own = kept(gathering, PAGE, batch(*urls, "mailto:x"))
    found = urls_in(sent(gathering)) | {1: own}
    expected: dict[int, list[str]] = {shard: [] for shard in range(SHARDS)}
    for url in urls:
        expected[owner_of(canonicalize(url).host, SHARDS)].append(url)
    assert {shard: sorted(some) for shard, some in found.items()} == {s: sorted(some) for s, some in expected.items()}
    assert not gathering and sent(gathering) == {}
    assert gathering.keep_own(PAGE, batch(*own)) is gathering.keep_own(PAGE, NONE) is None, "all are its own"


def test_a_link_is_sent_again_only_from_nearer() -> None:
    me = 1 - owner_of("host3.cz", 2)
    gathering = Gathering(me, 2)

    def at(distance: int, *urls: str) -> list[str]:
        gathering.keep_own(PAGE._replace(host=FarHost(distance)), batch(*urls))
        return [url for some in urls_in(sent(gathering)).values() for url in some]

    one, other = of_host(3, "1"), of_host(3, "2")
    assert at(3, one, one) == [one]
    assert at(3, one) == at(5, one) == []
    assert at(5, one, other) == [other]
    assert at(2, one) == [one], "its host is nearer than was known"
    assert at(2, one) == []


def test_pages_that_no_strategy_tells_apart_share_a_batch() -> None:
    me = 1 - owner_of("host3.cz", 2)
    gathering = Gathering(me, 2)
    for number, page in enumerate([PAGE, PAGE._replace(badness=0.01), PAGE._replace(rank=5), PAGE]):
        gathering.keep_own(page, batch(of_host(3, f"{number}")))
    (found,) = sent(gathering).values()
    assert sorted((page.rank, links.number) for page, links in found) == [(0, 3), (5, 1)]


def test_sections_are_never_too_large_and_lose_nothing() -> None:
    me = 1 - owner_of("host3.cz", 2)
    gathering = Gathering(me, 2)
    urls = [of_host(3, f"{number}{'x' * (MAX_URL_BYTES - 20)}") for number in range(2 * MAX_SECTION_LINKS + 5)]
    for start in range(0, len(urls), 300):
        gathering.keep_own(PAGE, batch(*urls[start : start + 300], of_host(3, "y" * MAX_URL_BYTES)))
    sections = list(gathering.sections())
    assert max(number for _, _, number in sections) <= MAX_SECTION_LINKS
    found = [url for _, section, _ in sections for _, links in unpack(pack([section]))[0]
             for url, _, _ in links.rows()]  # fmt: skip
    assert found == urls
    gathering.keep_own(PAGE, batch(of_host(3, "z" * MAX_URL_BYTES)))
    assert sent(gathering) == {}, "a single one that is too long is left out as well"


def test_single_urls_go_with_what_belongs_to_them() -> None:
    me = 1 - owner_of("host3.cz", 2)
    gathering = Gathering(me, 2)
    mention = Mention(canonicalize(of_host(3)), 2, 4, 99, b"payload", b"salt", 2)
    gathering.give(mention)
    ((shard, section, number),) = gathering.sections()
    assert (shard, number) == (1 - me, 1)
    assert unpack(pack([section]))[1] == [Mention(mention.target, 2, 4, 0, b"payload", b"salt", 2)]


def test_owners_that_a_text_worker_looked_up_are_taken_and_false_ones_are_not_believed() -> None:
    links = gathered([Link(of_host(number)) for number in range(40)], SHARDS)
    assert array("H", links.owners).tolist() == [owner_of(name, SHARDS) for name in links.hosts]
    bare = links._replace(owners=b"")
    for owners in (links.owners, b"", array("H", [SHARDS] * 40).tobytes(), b"\xff" * 80):
        gathering, plain = Gathering(1, SHARDS), Gathering(1, SHARDS)
        assert kept(gathering, PAGE, links._replace(owners=owners)) == kept(plain, PAGE, bare)
        assert urls_in(sent(gathering)) == urls_in(sent(plain))


def test_a_worker_that_lies_about_owners_cannot_make_a_shard_crawl_the_hosts_of_another() -> None:
    exchange = ShardExchange(0, 2, Seal(bytes(16), b""), SqliteStore())
    frontier = Frontier(Options(), elsewhere=exchange)
    names = [f"host{number}.cz" for number in range(20)]
    links = gathered([Link(f"http://{name}/") for name in names], 2)
    frontier.put_links(PAGE, links._replace(owners=bytes(len(links.owners))), 1.0)
    assert [name for name in names if frontier.host(name)] == [name for name in names if owner_of(name, 2) == 0]
    assert frontier.ledger.refused_links[Reason.BAD_URL] == sum(owner_of(name, 2) for name in names)


# -- only what a shard of this crawl has sent, for this place, is opened


CRAWL = bytes(range(CRAWL_ID_BYTES))
SEAL = Seal(CRAWL, b"a key of a user")
PLACE = "3:5 77"
CONTENTS = st.binary(max_size=40)


@given(CONTENTS, st.binary(max_size=100), st.integers(0, 10_000), st.integers(1, 255), st.integers(1, 60))
def test_what_was_sealed_is_opened_unless_a_byte_is_changed_or_missing(content, key, at, change, missing) -> None:
    seal = Seal(CRAWL, key)
    sealed = seal.seal(PLACE, content)
    assert seal.open(PLACE, sealed) == content
    data = bytearray(sealed)
    data[at % len(data)] ^= change
    assert seal.open(PLACE, bytes(data)) is seal.open(PLACE, sealed[:-missing]) is SEAL.open(PLACE, content) is None


@pytest.mark.parametrize("place", ["3", "4:5 77", "3:3 77", "3:5 78", "3:5 7", "3:5 77c", ""])
def test_a_message_is_good_at_its_own_place_alone(place: str) -> None:
    assert SEAL.open(place, SEAL.seal(PLACE, b"content")) is None


@pytest.mark.parametrize(
    "other", [Seal(CRAWL, b"another key"), Seal(CRAWL, b""), Seal(CRAWL[::-1], b"a key of a user")]
)
def test_another_key_and_another_crawl_are_told_apart(other: Seal) -> None:
    assert other.open(PLACE, SEAL.seal(PLACE, b"content")) is SEAL.open(PLACE, other.seal(PLACE, b"content")) is None


@pytest.mark.parametrize("shards", [1, 2, TOLD + 1, TOLD + 2, 1000])
def test_what_a_shard_has_kept_is_told_to_a_bounded_number_of_others(shards: int) -> None:
    told = Texts(array("q", [1, 2]), np.array([3], np.uint64))
    found: list[int] = []
    for me in range(shards):
        gathering = Gathering(me, shards)
        gathering.tell_kept(told.digests, told.paragraphs)
        assert gathering
        receivers = [
            shard for shard, data, links in gathering.sections() if unpack(pack([data])).texts.digests == told.digests
        ]
        assert me not in receivers and len(receivers) == len({*receivers}) == min(shards - 1, TOLD)
        assert not gathering and not list(gathering.sections())
        found += receivers
    assert {found.count(shard) for shard in range(shards)} == {min(shards - 1, TOLD)}, "and each is told by as many"
