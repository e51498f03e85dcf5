"""Which mentions become discovered URLs: scope, traps, distance, full queues; and in which order they are fetched."""

from __future__ import annotations

import pytest
from virtual_crawl import VirtualCrawl, page

from spiderling.base.link_batch import Link
from spiderling.base.options import Options
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier.admission import Scope
from spiderling.frontier.strategy import LinkingPage


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://a.cz/", None),
        ("http://a.cz/x.html", None),
        ("http://a.cz/x.php?file=a.jpg", None),
        ("http://a.cz/x.pdf", Reason.OUT_OF_SCOPE),
        ("http://a.cz/X.JPEG?size=1", Reason.OUT_OF_SCOPE),
        ("http://a.com/", None),
        ("http://a.de/", Reason.OUT_OF_SCOPE),
        ("http://10.1.2.3/", Reason.OUT_OF_SCOPE),
        ("http://[2001:db8::1]/", Reason.OUT_OF_SCOPE),
        ("http://a.cz:8080/", None),
        ("http://a.cz/" + "x" * 500, Reason.TRAP),
        ("http://a.cz" + "/x" * 31, Reason.TRAP),
        ("http://a.cz/dir/dir/dir/", None),
        ("http://a.cz/dir/dir/dir/dir/", Reason.TRAP),
        ("http://a.cz/en/dir/x/dir/y/dir/z/dir/", Reason.TRAP),
        ("http://a.cz/1/1/1/1/2020/2020/2020/2020", None),
    ],
)
def test_scope(url: str, refusal: Reason | None) -> None:
    target = canonicalize(url)
    assert target is not None
    assert Scope(Options(tlds=".cz, COM")).refusal(target) is refusal
    assert refusal is None or refusal in MENTIONS


@pytest.mark.parametrize(
    ("documents", "admitted"), [("", []), ("pdf", ["pdf"]), ("docx,PS,epub", ["docx", "ps", "epub"])]
)
def test_only_documents_that_are_wanted_are_in_scope(documents: str, admitted: list[str]) -> None:
    scope = Scope(Options(documents=documents))
    for kind in ("pdf", "docx", "odt", "epub", "doc", "rtf", "ps"):
        target = canonicalize(f"http://a.cz/x.{kind}?a=b.html")
        assert target is not None
        assert scope.refusal(target) is (None if kind in admitted else Reason.OUT_OF_SCOPE)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://a.cz/", True), ("https://a.cz/", True), ("http://a.cz:443/", True), ("https://a.cz:8443/", True),
        ("http://a.cz:25/", False), ("http://a.cz:8442/", False), ("http://[2001:db8::1]/", True),
        ("http://[2001:db8::1]:22/", False),
    ],
)  # fmt: skip
def test_ports_outside_the_list_are_refused(url: str, allowed: bool) -> None:
    expected = None if allowed else Reason.PORT_FORBIDDEN
    assert VirtualCrawl({}).frontier.put_seed(url, 0) is expected
    anything = canonicalize(url)
    assert anything is not None and Scope(Options(ports="all")).allows_port(anything.port)


def test_requests_of_a_subclass_keep_to_the_list_of_ports() -> None:
    frontier = VirtualCrawl({}).frontier
    assert frontier.put_request("http://a.cz:25/", b"payload", b"", None, 0) is Reason.PORT_FORBIDDEN


def test_without_tlds_every_host_is_in_scope() -> None:
    for url in ("http://a.de/", "http://[::1]/", "http://localhost/"):
        target = canonicalize(url)
        assert target is not None
        assert Scope(Options()).refusal(target) is None


def test_refused_mentions_are_counted_apart() -> None:
    crawl = VirtualCrawl(
        {"http://a.cz/": page("ftp://a.cz/", "http://a.cz/x.zip", "http://a.cz/", "http://a.cz/" + "y" * 600)}
    )
    crawl.run("http://a.cz/", "nonsense")
    assert crawl.mentions == {Reason.BAD_URL: 2, Reason.OUT_OF_SCOPE: 1, Reason.SEEN: 1, Reason.TRAP: 1}
    assert crawl.frontier.ledger.discovered == 1
    assert len(crawl.frontier.hosts) == 1, "a refused mention leaves no host record"


def distances(crawl: VirtualCrawl) -> dict[str, int]:
    return {host.name: host.distance for host in crawl.frontier.hosts}


def test_distance_is_lowered_when_a_shorter_way_appears() -> None:
    """Also by a URL that was seen before; the row in the store follows."""
    web = {"http://a.cz/": page("http://b.cz/"), "http://b.cz/": page("http://c.cz/"), "http://c.cz/": page()}
    crawl = VirtualCrawl(web).run("http://a.cz/")
    crawl.frontier.drain(crawl.now)
    crawl.run("http://c.cz/")
    assert crawl.mentions == {Reason.SEEN: 1}
    assert distances(crawl)["c.cz"] == 0
    assert [mark[2:] for mark in crawl.frontier.drain(crawl.now).host_updates] == [(0, crawl.host("c.cz").id)]


def test_hosts_too_far_away_are_not_entered() -> None:
    web = {f"http://h{n}.cz/": page(f"http://h{n + 1}.cz/") for n in range(6)}
    crawl = VirtualCrawl(web, max_distance=2).run("http://h0.cz/")
    assert distances(crawl) == {"h0.cz": 0, "h1.cz": 1, "h2.cz": 2}
    assert crawl.mentions == {Reason.TOO_FAR: 1}
    crawl.run("http://h5.cz/")
    assert distances(crawl)["h5.cz"] == 0, "named as a seed it is near"


def test_near_host_may_be_linked_from_far_away() -> None:
    web = {
        "http://h0.cz/": page("http://h1.cz/"),
        "http://h1.cz/": page("http://h0.cz/more"),
        "http://h0.cz/more": page(),
    }
    crawl = VirtualCrawl(web, max_distance=1).run("http://h0.cz/")
    assert crawl.ends == {Reason.KEPT: 3}


def test_full_queue_ends_the_rest() -> None:
    urls = [f"http://a.cz/{number}" for number in range(10)]
    crawl = VirtualCrawl(dict.fromkeys(urls, page()), max_host_queue=4).run(*urls)
    assert crawl.ends == {Reason.KEPT: 4, Reason.HOST_FULL: 6}


def test_requests_of_a_subclass_keep_to_top_level_domains_and_hosts_but_are_no_links() -> None:
    frontier = VirtualCrawl({}, tlds="cz", follow="none").frontier
    frontier.crawl_only(lambda name: name != "c.cz")
    assert frontier.put_request("http://a.cz/x.zip", b"one", b"", None, 0.0) is None
    assert frontier.put_request("http://b.cz/", b"one", b"", "http://a.cz/page", 0.0) is None
    assert frontier.put_request("http://b.de/", b"one", b"", None, 0.0) is Reason.OUT_OF_SCOPE
    assert frontier.put_request("http://c.cz/", b"one", b"", "http://a.cz/page", 0.0) is Reason.OUT_OF_SCOPE


def test_requests_of_a_subclass_pass_full_queues_and_differ_by_salt() -> None:
    frontier = VirtualCrawl({}, max_host_queue=1).frontier
    assert frontier.put_seed("http://a.cz/", 0.0) is None
    assert frontier.put_request("http://a.cz/x.zip", b"one", b"", None, 0.0) is None
    assert frontier.put_request("http://a.cz/x.zip", b"two", b"POST", None, 0.0) is None
    assert frontier.put_request("http://a.cz/x.zip", b"one", b"", None, 0.0) is Reason.SEEN
    assert frontier.put_request("http://b.de/", b"one", b"", "http://www.a.cz/page", 0.0) is None
    assert frontier.put_request("nowhere", b"one", b"", None, 0.0) is Reason.BAD_URL
    assert {host.name: host.distance for host in frontier.hosts} == {"a.cz": 0, "b.de": 1}
    assert (frontier.ledger.discovered, frontier.ledger.balance.error) == (4, 0)


def test_better_links_of_a_host_are_fetched_first() -> None:
    names = ("poor", "block", "kept", "seed")
    crawl = VirtualCrawl({f"http://a.cz/{name}": page() for name in names}, strategy="spiderling:power=100")
    crawl.frontier.put_seed("http://z.cz/", crawl.now)
    source = crawl.host("z.cz")
    for name, verdict, block in (
        ("poor", Reason.WRONG_LANGUAGE, False), ("kept", Reason.KEPT, False), ("block", Reason.KEPT, True),
    ):  # fmt: skip
        crawl.frontier.put_links(LinkingPage(source, verdict), [Link(f"http://a.cz/{name}", block)], crawl.now)
    crawl.run("http://a.cz/seed")
    assert [url.rpartition("/")[2] for url in crawl.fetched("a.cz")] == ["seed", "block", "kept", "poor"]
