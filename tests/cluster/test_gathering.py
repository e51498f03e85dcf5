"""What leaves a shard: each foreign link once, again only from nearer, in sections that are never too large."""

from __future__ import annotations

from array import array

from model_store import ModelStore

from spiderling.base.link_batch import NONE, Link, LinkBatch, gathered
from spiderling.base.options import Options
from spiderling.base.owners import owner_of
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.cluster.content import MAX_SECTION_LINKS, MAX_URL_BYTES, FoundLinks, Gathering, Seal, packed, unpacked
from spiderling.cluster.exchange import Exchange
from spiderling.frontier import Frontier
from spiderling.frontier.admission import Mention
from spiderling.frontier.strategy import FarHost, LinkingPage

SHARDS = 4
PAGE = LinkingPage(FarHost(3), Reason.KEPT)


def batch(*urls: str) -> LinkBatch:
    return gathered(map(Link, urls))


def of_host(number: int, path: str = "") -> str:
    return f"http://host{number}.cz/{path}"


def sent(gathering: Gathering) -> dict[int, list[FoundLinks]]:
    found: dict[int, list[FoundLinks]] = {}
    for shard, section, number in gathering.sections():
        content = unpacked(packed([section]))
        assert number == sum(one.links.number for one in content.links) + len(content.mentions)
        found.setdefault(shard, []).extend(content.links)
    return found


def kept(gathering: Gathering, page: LinkingPage, links: LinkBatch) -> list[str]:
    """The own links, as URLs."""
    own = gathering.keep_own(page, links)
    return [links.target(at).url for at in (range(links.size) if own is None else own.tolist())]


def urls_in(found: dict[int, list[FoundLinks]]) -> dict[int, list[str]]:
    return {shard: [url for one in some for url, _, _ in one.links.rows()] for shard, some in found.items()}


def test_links_go_to_the_owners_of_their_hosts_and_own_ones_stay() -> None:
    urls = [of_host(number, f"{number}") for number in range(40)]
    gathering = Gathering(1, SHARDS)
    own = kept(gathering, PAGE, batch(*urls, "mailto:x"))
    found = urls_in(sent(gathering)) | {1: own}
    expected: dict[int, list[str]] = {shard: [] for shard in range(SHARDS)}
    for url in urls:
        expected[owner_of(canonicalize(url).host, SHARDS)].append(url)
    assert {shard: sorted(some) for shard, some in found.items()} == {s: sorted(some) for s, some in expected.items()}
    assert not gathering
    assert sent(gathering) == {}


def test_a_page_whose_links_are_all_own_is_left_as_it_is() -> None:
    links = batch(*[of_host(number) for number in range(40) if owner_of(f"host{number}.cz", SHARDS) == 2])
    gathering = Gathering(2, SHARDS)
    assert gathering.keep_own(PAGE, links) is gathering.keep_own(PAGE, NONE) is None


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
    for number, page in enumerate([PAGE, PAGE._replace(badness=0.01), PAGE._replace(rank=5), PAGE._replace(pages=7)]):
        gathering.keep_own(page, batch(of_host(3, f"{number}")))
    (found,) = sent(gathering).values()
    assert sorted((one.page.rank, one.links.number) for one in found) == [(0, 3), (5, 1)]


def test_sections_are_never_too_large_and_lose_nothing() -> None:
    me = 1 - owner_of("host3.cz", 2)
    gathering = Gathering(me, 2)
    urls = [of_host(3, f"{number}{'x' * (MAX_URL_BYTES - 20)}") for number in range(2 * MAX_SECTION_LINKS + 5)]
    for start in range(0, len(urls), 300):
        gathering.keep_own(PAGE, batch(*urls[start : start + 300], of_host(3, "y" * MAX_URL_BYTES)))
    sections = list(gathering.sections())
    assert max(number for _, _, number in sections) <= MAX_SECTION_LINKS
    found = [url for _, section, _ in sections for one in unpacked(packed([section])).links
             for url, _, _ in one.links.rows()]  # fmt: skip
    assert found == urls


def test_a_page_whose_only_foreign_link_is_too_long_sends_nothing() -> None:
    gathering = Gathering(1 - owner_of("host3.cz", 2), 2)
    gathering.keep_own(PAGE, batch(of_host(3, "y" * MAX_URL_BYTES)))
    assert sent(gathering) == {}


def test_single_urls_go_with_what_belongs_to_them() -> None:
    me = 1 - owner_of("host3.cz", 2)
    gathering = Gathering(me, 2)
    mention = Mention(canonicalize(of_host(3)), 2, 4, 99, b"payload", b"salt", 2)
    gathering.give(mention)
    ((shard, section, number),) = gathering.sections()
    assert (shard, number) == (1 - me, 1)
    assert unpacked(packed([section])).mentions == (Mention(mention.target, 2, 4, 0, b"payload", b"salt", 2),)


def test_owners_that_a_text_worker_looked_up_are_taken_and_false_ones_are_not_believed() -> None:
    links = gathered([Link(of_host(number)) for number in range(40)], SHARDS)
    assert array("H", links.owners).tolist() == [owner_of(name, SHARDS) for name in links.hosts]
    bare = links._replace(owners=b"")
    for owners in (links.owners, b"", array("H", [SHARDS] * 40).tobytes(), b"\xff" * 80):
        gathering, plain = Gathering(1, SHARDS), Gathering(1, SHARDS)
        assert kept(gathering, PAGE, links._replace(owners=owners)) == kept(plain, PAGE, bare)
        assert urls_in(sent(gathering)) == urls_in(sent(plain))


def test_a_worker_that_lies_about_owners_cannot_make_a_shard_crawl_the_hosts_of_another() -> None:
    exchange = Exchange(0, 2, Seal(bytes(16), b""), ModelStore())
    frontier = Frontier(Options(), elsewhere=exchange)
    names = [f"host{number}.cz" for number in range(20)]
    links = gathered([Link(f"http://{name}/") for name in names], 2)
    frontier.put_links(PAGE, links._replace(owners=bytes(len(links.owners))), 1.0)
    assert [name for name in names if frontier.host(name)] == [name for name in names if owner_of(name, 2) == 0]
    assert frontier.ledger.refused_links[Reason.BAD_URL] == sum(owner_of(name, 2) for name in names)
