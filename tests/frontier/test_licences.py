"""Licence files by RSL: fetched once for all who name them, under the rules of their own host, before their pages."""

from __future__ import annotations

from collections import Counter

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_crawl import DAY_S, Answer, Resolution, VirtualCrawl, page, robots, to

from spiderling.base.reasons import Reason
from spiderling.frontier import known_files

TEXT = '<rsl xmlns="https://rslstandard.org/rsl"><content url="{url}"><license>{terms}</license></content></rsl>'
NO_TRAINING = '<prohibits type="usage">ai-train</prohibits>'
MISSING = Answer(status=404, kept_bytes=0)


def licence(terms: str = NO_TRAINING, url: str = "/", **more: object) -> Answer:
    return Answer(body=TEXT.format(url=url, terms=terms).encode(), **more)


def naming(*addresses: str, more: str = "") -> Answer:
    return robots("".join(f"License: {address}\n" for address in addresses) + more)


def site(name: str) -> dict[str, Answer]:
    return {f"http://{name}/{n}": page() for n in range(3)}


def crawled(web: dict, dns: dict | None = None, **options) -> VirtualCrawl:
    """A crawl whose seeds are the pages of *web*, those of ``site``."""
    return VirtualCrawl(web, dns, **options).run(*(url for url in web if url.rsplit("/", 1)[1].isdigit()))


def fetches(crawl: VirtualCrawl) -> Counter[str]:
    return Counter(start.url for start in crawl.starts)


@pytest.mark.parametrize(
    ("terms", "purpose", "end"),
    [
        (NO_TRAINING, "ai-train", Reason.SITE_OPTED_OUT),
        (NO_TRAINING, "search", Reason.KEPT),
        (NO_TRAINING, "research", Reason.KEPT),
        ('<payment type="crawl"/>', "search", Reason.SITE_OPTED_OUT),
        ('<payment type="attribution"/>', "ai-train", Reason.KEPT),
    ],
)
def test_terms_bind_by_purpose(terms: str, purpose: str, end: Reason) -> None:
    web = site("a.cz") | {"http://a.cz/robots.txt": naming("http://a.cz/l.xml"), "http://a.cz/l.xml": licence(terms)}
    crawl = crawled(web, purpose=purpose)
    assert crawl.ends == {end: 3}
    assert fetches(crawl)["http://a.cz/l.xml"] == 1


def test_one_licence_of_many_hosts_is_fetched_once_a_day_under_its_own_robots_txt() -> None:
    web = {"http://royal.cz/l.xml": licence(url="/1"), "http://royal.cz/robots.txt": MISSING}
    for number in range(6):
        web |= site(f"a{number}.cz") | {f"http://a{number}.cz/robots.txt": naming("http://royal.cz/l.xml")}
    crawl = crawled(web)
    assert crawl.ends == {Reason.KEPT: 12, Reason.SITE_OPTED_OUT: 6}
    assert fetches(crawl)["http://royal.cz/l.xml"] == fetches(crawl)["http://royal.cz/robots.txt"] == 1
    order = [start.url for start in crawl.starts if "royal" in start.url]
    assert order == ["http://royal.cz/robots.txt", "http://royal.cz/l.xml"]
    crawl.assert_polite(host_s=5.0, ip_s=0.1)
    assert [(row.origin, row.file, row.answer) for row in crawl.consents() if row.file == "/l.xml"] == [
        ("http://royal.cz", "/l.xml", "200")
    ]
    crawl.now += 1.1 * DAY_S
    crawl.run("http://a0.cz/new", "http://a1.cz/new")
    assert fetches(crawl)["http://royal.cz/l.xml"] == 2
    crawl.restart()
    crawl.run("http://a2.cz/new")
    assert fetches(crawl)["http://royal.cz/l.xml"] == 2, "it is known after a restart"


@pytest.mark.parametrize(
    "web",
    [
        {"http://b.cz/robots.txt": robots("User-agent: *\nDisallow: /l")},
        {"http://b.cz/robots.txt": Answer(status=403)},
        {"http://b.cz/robots.txt": Answer(status=503)},
        {"http://b.cz/l.xml": MISSING},
        {"http://b.cz/l.xml": Answer(status=503)},
        {"http://b.cz/l.xml": Answer(body=b"<html>no")},
        {"http://b.cz/l.xml": to("http://b.cz/l.xml")},
        {"http://b.cz/l.xml": to("http://dead.cz/l.xml")},
        {"http://b.cz/l.xml": to("http://c.cz/l.xml"), "http://c.cz/robots.txt": robots("User-agent: *\nDisallow: /")},
    ],
)
@pytest.mark.parametrize(
    ("purpose", "end"), [("ai-train", Reason.SITE_OPTED_OUT), ("search", Reason.KEPT), ("research", Reason.KEPT)]
)
def test_terms_that_cannot_be_had_refuse_training_only(web: dict, purpose: str, end: Reason) -> None:
    web = site("a.cz") | {"http://a.cz/robots.txt": naming("http://b.cz/l.xml"), "http://c.cz/l.xml": licence("")} | web
    crawl = crawled(web, {"dead.cz": Resolution(permanent=True)}, purpose=purpose, retries=1)
    assert crawl.ends == {end: 3}
    assert "http://c.cz/l.xml" not in fetches(crawl), "its robots.txt forbids it"


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_licence_that_fails_once_or_twice_is_waited_for(failures: int) -> None:
    """At its first failure all URLs of all who name it ended."""
    answers = [Answer(status=503)] * failures + [licence("")]
    web = {f"http://{name}.cz/robots.txt": naming("http://b.cz/l.xml") for name in "ac"}
    crawl = crawled(site("a.cz") | site("c.cz") | web | {"http://b.cz/l.xml": answers}, retries=2)
    assert crawl.ends == {Reason.KEPT if failures < 3 else Reason.SITE_OPTED_OUT: 6}
    assert fetches(crawl)["http://b.cz/l.xml"] == min(failures + 1, 3)


@pytest.mark.parametrize("address", ["ftp://a.cz/l.xml", "http://", "http://b.cz:22/l.xml", "http://" + "b" * 3000])
def test_addresses_that_cannot_be_fetched_are_unknown_terms(address: str) -> None:
    web = site("a.cz") | {"http://a.cz/robots.txt": naming(address)}
    assert crawled(web).ends == {Reason.SITE_OPTED_OUT: 3}
    assert crawled(web, purpose="search").ends == {Reason.KEPT: 3}


def test_licences_of_our_group_replace_those_outside_groups() -> None:
    """RSL 1.0, 4.4.2, with the erratum of 16 January 2026."""
    ours = "User-agent: spiderling\nLicense: http://a.cz/free.xml\n\nUser-agent: *\nLicense: http://a.cz/other.xml\n"
    web = site("a.cz") | {
        "http://a.cz/robots.txt": naming("http://a.cz/strict.xml", more=ours),
        "http://a.cz/strict.xml": licence(),
        "http://a.cz/free.xml": licence(""),
    }
    crawl = crawled(web)
    assert crawl.ends == {Reason.KEPT: 3}
    assert fetches(crawl).keys() & {"http://a.cz/strict.xml", "http://a.cz/other.xml"} == set()


def test_relative_addresses_and_redirects_are_followed() -> None:
    web = {"http://a.cz/l.xml": to("http://b.cz/moved.xml"), "http://b.cz/moved.xml": licence()}
    assert crawled(site("a.cz") | {"http://a.cz/robots.txt": naming("/l.xml")} | web).ends == {Reason.SITE_OPTED_OUT: 3}


def test_two_licences_bind_together_and_ignored_ones_cost_nothing() -> None:
    web = site("a.cz") | {
        "http://a.cz/robots.txt": naming("http://a.cz/1.xml", "http://a.cz/2.xml"),
        "http://a.cz/1.xml": licence(url="/1"),
        "http://a.cz/2.xml": licence(url="/2"),
    }
    assert crawled(web).ends == {Reason.SITE_OPTED_OUT: 2, Reason.KEPT: 1}
    for said, times in (("ignore", 0), ("record", 1)):
        crawl = crawled(web, optouts=f"rsl={said},tdm-file=ignore,ai-txt=ignore")
        assert crawl.ends == {Reason.KEPT: 3}
        assert [fetches(crawl)[f"http://a.cz/{number}.xml"] for number in (1, 2)] == [times] * 2


def test_two_hosts_that_name_each_others_licences_wait_for_nothing_for_ever() -> None:
    web = site("a.cz") | site("b.cz")
    for host, other in ("ab", "ba"):
        web[f"http://{host}.cz/robots.txt"] = naming(f"http://{other}.cz/l.xml")
        web[f"http://{host}.cz/l.xml"] = licence(url="/1")
    assert crawled(web).ends == {Reason.SITE_OPTED_OUT: 2, Reason.KEPT: 4}


def test_host_of_a_licence_that_is_closed_meanwhile_keeps_nobody_waiting() -> None:
    web = {"http://a.cz/robots.txt": naming("http://b.cz/l.xml"), "http://b.cz/l.xml": licence("")}
    crawl = VirtualCrawl(site("a.cz") | web, dns_s=3.0).run(*site("a.cz"), until=1008.5)
    crawl.frontier.host_closing.block_where(lambda name: name == "b.cz")
    assert crawl.run().ends == {Reason.SITE_OPTED_OUT: 3}


def said_of(crawl: VirtualCrawl, url: str, licence: str, later_s: float = 0.0) -> list[str] | None:
    """What a licence says that a page names; None while it is not known."""
    said = crawl.frontier.robots.licences.of_page(url, [licence], crawl.now + later_s)
    return None if said is None else [str(statement) for statement in said]


def test_licence_that_a_page_names_comes_before_further_pages() -> None:
    crawl = VirtualCrawl(site("a.cz") | {"http://b.cz/l.xml": licence(url="/1")}).run("http://a.cz/0")
    assert said_of(crawl, "http://a.cz/0", "http://b.cz/l.xml") is None
    crawl.run("http://a.cz/2")
    order = [start.url for start in crawl.starts]
    assert order.index("http://b.cz/l.xml") < order.index("http://a.cz/2")
    assert said_of(crawl, "http://a.cz/1", "http://b.cz/l.xml") == ["rsl:prohibited", "rsl:free"]
    assert said_of(crawl, "http://a.cz/1", ""), "no address: unknown terms"


def test_licence_that_a_page_names_and_that_fails_once_is_waited_for() -> None:
    web = {"http://b.cz/l.xml": [Answer(status=503), licence("")]}
    crawl = VirtualCrawl(site("a.cz") | web).run("http://a.cz/0")
    asked = crawl, "http://a.cz/0", "http://b.cz/l.xml"
    assert said_of(*asked) is None
    crawl.run("http://a.cz/1", until=crawl.now + 30.0)
    assert "http://a.cz/1" not in crawl.fetched("a.cz")
    crawl.run()
    assert "http://a.cz/1" in crawl.fetched("a.cz") and said_of(*asked) == ["rsl:free"]


def test_page_that_names_another_licence_each_time_is_fetched_twice_at_most() -> None:
    crawl = VirtualCrawl(site("a.cz")).run("http://a.cz/0")
    said = [said_of(crawl, "http://a.cz/0", f"http://b.cz/{n}.xml") for n in range(2)]
    assert said == [None, ["rsl:unknown=http://b.cz/1.xml"]]


def test_licence_that_grows_stale_while_its_page_is_fetched_sends_nobody_round_in_circles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_files, "MAX_AGE_S", 60.0)
    crawl = VirtualCrawl(site("a.cz") | {"http://b.cz/l.xml": licence("")}).run("http://a.cz/0")
    asked = crawl, "http://a.cz/0", "http://b.cz/l.xml"
    assert said_of(*asked) is None
    crawl.run("http://a.cz/1")
    assert [said_of(*asked, later_s) is None for later_s in (600, 2 * 3600)] == [False, True]


@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from(["http://b.cz/l.xml", "/l.xml", "http://[", "x", "//", "\x00", "é", "http://b.cz/l.xml#a"])),
       st.binary(max_size=60))  # fmt: skip
def test_no_license_line_and_no_file_holds_a_crawl_up(addresses: list[str], body: bytes) -> None:
    web = site("a.cz") | {"http://a.cz/robots.txt": naming(*addresses), "http://b.cz/l.xml": Answer(body=body)}
    crawl = crawled(web)
    assert sum(crawl.ends.values()) == 3
