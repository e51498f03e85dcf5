"""Which mentions become discovered URLs: scope, traps, distance, full queues; and in which order they are fetched."""

from __future__ import annotations

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.frontier import Frontier
from spiderling.frontier.admission import Scope
from spiderling.frontier.strategy import LinkingPage

DOCUMENT_URLS = {kind: f"http://a.cz/x.{kind}?a=b.html" for kind in ("pdf", "docx", "odt", "epub")}
OTHERS = "http://a.cz/X.JPEG?size=1 http://a.cz/x.doc http://a.cz/x.rtf http://a.cz/x.ps?a=b.html"


@pytest.mark.parametrize(
    ("options", "refusal", "urls"),
    [
        ({"tlds": ".cz, COM"}, None, "http://a.cz/ http://a.cz/x.php?file=a.jpg http://a.com/ http://a.cz:8080/x.html"),
        ({"tlds": ".cz, COM"}, Reason.OUT_OF_SCOPE, "http://a.de/ http://10.1.2.3/ http://[2001:db8::1]/"),
        ({}, None, "http://a.de/ http://[::1]/ http://localhost/"),
        ({}, Reason.OUT_OF_SCOPE, OTHERS),
        ({}, None, " ".join(DOCUMENT_URLS.values())),
        ({"documents": ""}, Reason.OUT_OF_SCOPE, " ".join(DOCUMENT_URLS.values())),
        ({"documents": "docx,ODT,epub"}, None, " ".join(DOCUMENT_URLS[kind] for kind in ("docx", "odt", "epub"))),
        ({"documents": "pdf"}, None, DOCUMENT_URLS["pdf"]),
        ({"documents": "pdf"}, Reason.OUT_OF_SCOPE, " ".join(DOCUMENT_URLS[kind] for kind in ("docx", "odt"))),
        ({}, None, "http://a.cz/dir/dir/dir/ http://a.cz/1/1/1/1/2020/2020/2020/2020"),
        ({}, Reason.TRAP, "http://a.cz/dir/dir/dir/dir/ http://a.cz/en/dir/x/dir/y/dir/z/dir/"),
        ({}, Reason.TRAP, f"http://a.cz/{'x' * 500} http://a.cz{'/x' * 31}"),
    ],
)
def test_scope(options: dict[str, str], refusal: Reason | None, urls: str) -> None:
    scope = Scope(Options(**options))
    assert {url: scope.refusal(target(url)) for url in urls.split()} == dict.fromkeys(urls.split(), refusal)
    assert refusal is None or refusal in MENTIONS


def target(url: str) -> CanonicalUrl:
    canonical = canonicalize(url)
    assert canonical is not None
    return canonical


def test_ports_outside_the_list_are_refused() -> None:
    frontier = VirtualCrawl({}).frontier
    allowed = ["http://a.cz/", "https://a.cz/", "http://a.cz:443/", "https://a.cz:8443/", "http://[2001:db8::1]/"]
    forbidden = ["http://a.cz:25/", "http://a.cz:8442/", "http://[2001:db8::1]:22/"]
    assert [frontier.put_seed(url, 0) for url in allowed] == [None] * 5
    assert [frontier.put_seed(url, 0) for url in forbidden] == [Reason.PORT_FORBIDDEN] * 3
    assert frontier.put_request(forbidden[0], b"payload", b"", None, 0) is Reason.PORT_FORBIDDEN
    anything = Scope(Options(ports="all"))
    assert all(anything.allows_port(target(url).port) for url in (*allowed, *forbidden))


def test_refused_mentions_are_counted_apart_and_each_time() -> None:
    home = page(*["ftp://a.cz/", "http://a.cz/x.zip", "http://a.cz/", f"http://a.cz/{'y' * 600}"] * 2)
    crawl = VirtualCrawl({"http://a.cz/": home}).run("http://a.cz/", "nonsense")
    assert crawl.mentions == {Reason.BAD_URL: 3, Reason.OUT_OF_SCOPE: 2, Reason.SEEN: 2, Reason.TRAP: 2}
    assert crawl.frontier.ledger.discovered == 1
    assert len(crawl.frontier.hosts) == 1, "a refused mention leaves no host record"


def test_distance_is_lowered_when_a_shorter_way_appears() -> None:
    """Also by a URL that was seen before; the row in the store follows."""
    web = {"http://a.cz/": page("http://b.cz/"), "http://b.cz/": page("http://c.cz/"), "http://c.cz/": page()}
    crawl = VirtualCrawl(web).run("http://a.cz/")
    crawl.frontier.drain(crawl.now)
    crawl.run("http://c.cz/")
    assert crawl.mentions == {Reason.SEEN: 1}
    assert crawl.distances["c.cz"] == 0
    assert [mark[2:] for mark in crawl.frontier.drain(crawl.now).host_updates] == [(0, crawl.host("c.cz").id)]


def test_hosts_too_far_away_are_not_entered() -> None:
    web = {f"http://h{n}.cz/": page(f"http://h{n + 1}.cz/") for n in range(6)}
    crawl = VirtualCrawl(web, max_distance=2).run("http://h0.cz/")
    assert crawl.distances == {"h0.cz": 0, "h1.cz": 1, "h2.cz": 2}
    assert crawl.mentions == {Reason.TOO_FAR: 1}
    crawl.run("http://h5.cz/")
    assert crawl.distances["h5.cz"] == 0, "named as a seed it is near"


def test_near_host_may_be_linked_from_far_away() -> None:
    web = {"http://h0.cz/": page("http://h1.cz/"), "http://h1.cz/": page("http://h0.cz/more")}
    crawl = VirtualCrawl(web | {"http://h0.cz/more": page()}, max_distance=1).run("http://h0.cz/")
    assert crawl.ends == {Reason.KEPT: 3}


def test_full_queue_ends_the_rest() -> None:
    urls = [f"http://a.cz/{number}" for number in range(10)]
    crawl = VirtualCrawl(dict.fromkeys(urls, page()), max_host_queue=4).run(*urls)
    assert crawl.ends == {Reason.KEPT: 4, Reason.HOST_FULL: 6}


def put(frontier: Frontier, url: str, payload: bytes = b"one", salt: bytes = b"", source: str | None = None):
    return frontier.put_request(url, payload, salt, source, 0.0)


def test_requests_of_a_subclass_keep_to_top_level_domains_and_hosts_but_are_no_links() -> None:
    frontier = VirtualCrawl({}, tlds="cz", follow="none").frontier
    frontier.crawl_only(lambda name: name != "c.cz")
    assert put(frontier, "http://a.cz/x.zip") is None
    assert put(frontier, "http://b.cz/", source="http://a.cz/page") is None
    assert put(frontier, "http://b.de/") is Reason.OUT_OF_SCOPE
    assert put(frontier, "http://c.cz/", source="http://a.cz/page") is Reason.OUT_OF_SCOPE


def test_requests_of_a_subclass_pass_full_queues_and_differ_by_salt() -> None:
    crawl = VirtualCrawl({}, max_host_queue=1)
    frontier = crawl.frontier
    assert frontier.put_seed("http://a.cz/", 0.0) is None
    assert put(frontier, "http://a.cz/x.zip") is None
    assert put(frontier, "http://a.cz/x.zip", b"two", b"POST") is None
    assert put(frontier, "http://a.cz/x.zip") is Reason.SEEN
    assert put(frontier, "http://b.de/", source="http://www.a.cz/page") is None
    assert put(frontier, "nowhere") is Reason.BAD_URL
    assert crawl.distances == {"a.cz": 0, "b.de": 1}
    assert (frontier.ledger.discovered, frontier.ledger.balance.error) == (4, 0)


def test_better_links_of_a_host_are_fetched_first() -> None:
    names = ("poor", "block", "kept", "seed")
    crawl = VirtualCrawl({f"http://a.cz/{name}": page() for name in names}, strategy="spiderling:power=100")
    crawl.frontier.put_seed("http://z.cz/", crawl.now)
    source = crawl.host("z.cz")
    for name, verdict in (("poor", Reason.WRONG_LANGUAGE), ("kept", Reason.KEPT), ("block", Reason.KEPT)):
        links = [Link(f"http://a.cz/{name}", text_block=name == "block")]
        crawl.frontier.put_links(LinkingPage(source, verdict), links, crawl.now)
    crawl.run("http://a.cz/seed")
    assert [url.rpartition("/")[2] for url in crawl.fetched("a.cz")] == ["seed", "block", "kept", "poor"]


# -- a host's distance is that of the nearest page that named it, at the time when that was read

FAR_FIRST = {
    "http://seed.cz/": page("http://b.cz/", *(f"http://seed.cz/{n}" for n in range(1, 17))),
    "http://b.cz/": page("http://c.cz/1"),
    "http://c.cz/1": page("http://d.cz/1"),
    "http://d.cz/1": page("http://e.cz/"),
    "http://seed.cz/16": page("http://c.cz/2"),
}
"""The long way to c is found first: c/1 is read at distance 2, d/1 at 3; the last page of the seed links to c."""


def test_a_host_that_comes_near_enough_is_admitted_again():
    """Mentions of it were refused as too far, and these do not come back; those from now on are accepted."""
    web = FAR_FIRST | {
        "http://x.cz/": page("http://e.cz/a"),
        "http://d.cz/1": page("http://e.cz/"),
        "http://c.cz/2": page("http://d.cz/2"),
        "http://d.cz/2": page("http://e.cz/b"),
    }
    crawl = VirtualCrawl(web, max_distance=3).run("http://seed.cz/")
    assert crawl.mentions[Reason.TOO_FAR] == 1
    assert crawl.fetched("e.cz") == ["http://e.cz/b"]
    assert crawl.distances["e.cz"] == 3


def test_a_host_comes_nearer_when_a_nearer_page_or_a_seed_names_it_and_stays_so_after_a_kill():
    crawl = VirtualCrawl(FAR_FIRST).run("http://seed.cz/", until=1030)
    assert crawl.distances == {"seed.cz": 0, "b.cz": 1, "c.cz": 2, "d.cz": 3, "e.cz": 4}
    nearer = crawl.run().distances
    assert nearer == {"seed.cz": 0, "b.cz": 1, "c.cz": 1, "d.cz": 3, "e.cz": 4}
    crawl.restart()
    assert crawl.distances == nearer
    assert crawl.run("http://d.cz/new").distances == nearer | {"d.cz": 0}
