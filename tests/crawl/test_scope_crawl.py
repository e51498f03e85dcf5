"""Which part of the web a crawl stays in: ``-a tlds=``, ``-a follow=``, ``SPIDERLING_BLOCK``, sitemaps and the like."""

from __future__ import annotations

import gzip
import re
from collections import Counter

import pytest
from conftest import Crawl, crawled, document, page

from webs.web import WebResponse, html, plain, redirect

NAMES = ("a.cz", "b.cz", "c.com", "d.example", "sub.b.cz")
WEB = {
    "a.cz": {"/": page("a", "/2", *(f"http://{name}/" for name in NAMES[1:])), "/2": page("a2")},
    "old.cz": {"/": redirect("http://d.example/")},
    **{name: {"/": page(name, "/2"), "/2": page(f"{name} 2")} for name in NAMES[1:]},
}


@pytest.fixture
def scoped(server, tmp_path):
    """Runs a crawl with arguments; gives what its corpus holds."""

    def run(*arguments, seeds="http://a.cz/", **settings):
        crawl = Crawl(tmp_path / "job", server)
        result = crawl.start(seeds, tuple(part for text in arguments for part in ("-a", text)), **settings).wait()
        assert result.code == 0, result.output
        state = crawl.state()
        state.check()
        return sorted(doc.url.removeprefix("http://") for doc in crawl.documents()), state, crawl

    return run


BOTH = {name: [f"{name}/", f"{name}/2"] for name in NAMES}


def pages(*names: str) -> list[str]:
    return sorted(url for name in names for url in BOTH[name])


HOME = ("a.cz",)


@pytest.mark.parametrize(
    ("argument", "seeds", "kept", "out_of_scope"),
    [
        ("tlds=all", HOME, pages(*NAMES), 0),
        ("tlds=national", HOME, pages("a.cz", "b.cz", "sub.b.cz"), 2),
        ("tlds=national+generic", HOME, pages("a.cz", "b.cz", "sub.b.cz", "c.com"), 1),
        ("tlds=cz,.EXAMPLE", HOME, pages("a.cz", "b.cz", "sub.b.cz", "d.example"), 1),
        ("follow=none", ("a.cz", "old.cz"), ["a.cz/", "d.example/"], 5),  # but redirects
        ("follow=host", ("a.cz", "c.com"), pages("a.cz", "c.com"), 3),  # within the hosts of the seeds
        ("hosts={}", ("a.cz", "c.com"), pages("a.cz", "b.cz", "sub.b.cz"), 3),  # the seed too
    ],
)
def test_what_a_crawl_stays_in(scoped, tmp_path, argument, seeds, kept, out_of_scope):
    (tmp_path / "hosts.txt").write_text("a.cz\n.b.cz\n")
    seeds = ",".join(f"http://{name}/" for name in seeds)
    found, state, crawl = scoped(argument.format(tmp_path / "hosts.txt"), seeds=seeds)
    assert found == kept
    assert {doc.attributes["tld"] for doc in crawl.documents()} == {re.search(r"\w+(?=/)", url)[0] for url in kept}
    is_twice = argument == "follow=none"  # d.example is named by a link and by a redirect
    assert out_of_scope <= state.mentions.get("out-of-scope", 0) <= out_of_scope + is_twice


def test_a_random_walk_weighs_its_documents(scoped):
    kept, _, crawl = scoped("strategy=random-walk", "follow=host")
    assert kept == pages("a.cz")
    weights = {doc.url: doc.attributes.get("walk_weight") for doc in crawl.documents()}
    assert weights == {"http://a.cz/": "0.2", "http://a.cz/2": "1"}


def test_seeds_of_no_trusted_kind_are_one_step_away(scoped, tmp_path):
    file = tmp_path / "kinds.txt"
    file.write_text("# news (trusted)\nhttp://sub.b.cz/\n# blogs\nd.example\n")
    kept, state, crawl = scoped("follow=host", seeds=str(file), MAX_DISTANCE=0)
    assert kept == ["d.example/", "sub.b.cz/", "sub.b.cz/2"]
    assert {doc.url: doc.attributes["distance"] for doc in crawl.documents()} == {
        "http://d.example/": "1", "http://sub.b.cz/": "0", "http://sub.b.cz/2": "0",
    }  # fmt: skip
    assert state.mentions["too-far"] >= 1


def test_blocked_hosts_are_never_asked_also_beside_those_of_control_yaml(scoped, server, tmp_path):
    path = tmp_path / "block.txt"
    path.write_text("*.b.cz\nc.com\n")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "control.yaml").write_text('block: ["d.*"]\n')
    before = len(server.log_entries)
    kept, state, _ = scoped(BLOCK=path)
    assert kept == pages("a.cz", "b.cz")
    assert state.ends["host-blocked"] == 3
    assert not {entry.host for entry in server.log_entries[before:]} & {"sub.b.cz", "c.com", "d.example"}


@pytest.mark.slow
def test_a_host_blocked_later_is_asked_no_more(scoped, server, tmp_path):
    kept, state, _ = scoped(MAX_PAGES=1, HOST_INTERVAL_S=3)
    assert "a.cz/2" not in kept
    path = tmp_path / "block.txt"
    path.write_text(".cz\n")
    kept, state, _ = scoped(BLOCK=path)
    assert {"a.cz/2", "b.cz/2"}.isdisjoint(kept) and {*pages("c.com", "d.example")} <= {*kept}
    assert state.hosts["a.cz"]["state"] == state.hosts["b.cz"]["state"] == "blocked"


# -- pages that only a sitemap leads to are found when sitemaps are on, and not asked for when they are off


XML = {"Content-Type": "application/xml"}
HIDDEN = ["/hidden/1", "/hidden/2?a=1&b=2", "/hidden/3", "/hidden/4"]


def xml(*paths: str, host: str = "a.test") -> bytes:
    return "".join(f"<url><loc>http://{host}{path.replace('&', '&amp;')}</loc></url>" for path in paths).encode()


SITEMAPS = {
    "/index.xml": WebResponse(200, XML, b"<sitemapindex>" + xml("/one.xml", "/two.xml.gz", "/gone.xml")),
    "/one.xml": WebResponse(200, XML, b"<urlset>" + xml("/hidden/1", "/private/x", "/") + xml("/", host="c.test")),
    "/two.xml.gz": WebResponse(
        200, {"Content-Type": "application/x-gzip"}, gzip.compress(b"<urlset>" + xml("/hidden/2?a=1&b=2"))
    ),
    "/list.txt": plain("http://a.test/hidden/3\nhttp://a.test/hidden/4\n"),
    "/bomb.xml.gz": WebResponse(200, XML, gzip.compress(b"<loc>" * 4_000_000)),
    "/junk.xml": WebResponse(200, XML, bytes(range(256)) * 100),
    "/large.xml": WebResponse(200, XML, b"<urlset>" + b"x" * 200_000),
    "/away.xml": redirect("http://b.test/list.txt"),
}  # fmt: skip
NAMED = [path for path in SITEMAPS if path not in ("/one.xml", "/two.xml.gz")]
LARGE = "# large enough to be parsed in a thread\n" * 600
ROBOTS = LARGE + "User-agent: *\nDisallow: /private/\n" + "".join(f"Sitemap: http://a.test{path}\n" for path in NAMED)
A = {
    "/": page("a", "/linked"), "/linked": page("linked"), "/private/x": page("private"),
    "/robots.txt": plain(ROBOTS + "Sitemap: http://b.test/list.txt\n"),
    **SITEMAPS, **{path: page(path) for path in HIDDEN},
}  # fmt: skip
B = {"/": page("b"), "/list.txt": plain("http://b.test/of-another-host\n"), "/of-another-host": page("other")}


@pytest.mark.parametrize("sitemaps", ["on", "off"])
def test_pages_that_only_a_sitemap_names(tmp_path, sitemaps):
    web, seeds = {"a.test": A, "b.test": B}, "http://a.test/ http://b.test/"
    crawl, _, log = crawled(tmp_path / "job", web, seeds, SITEMAPS=sitemaps, MAX_BODY_BYTES=100_000)
    asked = Counter(entry.path for entry in log if entry.host == "a.test")
    assert {entry.path for entry in log if entry.host == "b.test"} == {"/", "/robots.txt"}
    state = crawl.state()
    state.check()
    is_on = sitemaps == "on"
    kept = {"http://a.test/", "http://a.test/linked", "http://b.test/"}
    hidden = {f"http://a.test{path}" for path in HIDDEN}
    assert {doc.url for doc in crawl.documents()} == (kept | hidden if is_on else kept)
    assert asked.keys() & SITEMAPS.keys() == (SITEMAPS.keys() if is_on else set())
    assert not any("private" in path for path in asked)
    assert max(asked.values()) == 1
    assert state.hosts["a.test"]["pages"] == (6 if is_on else 2)
    if is_on:
        assert state.ends["sitemap"] == 8 and state.ends["too-big"] == 1, state.ends
        assert state.ends["robots-forbidden"] == 1
        assert state.mentions["cross-submit"] == 2
        assert state.hosts["a.test"]["downloaded_bytes"] > sum(
            len(answer.body) for path, answer in A.items() if path not in ("/private/x", "/large.xml")
        )
        assert state.hosts["a.test"]["distance"] == 0
    else:
        assert "sitemap" not in state.ends


# -- when nothing else is left, a retired host goes on by a milder threshold; the log and the state say so


CHAIN = {f"/{n}": html(document(f"p{n}", f"/{n + 1}", f"/{n + 2}", f"/{n + 3}") + "<br>" * 2500) for n in range(24)}


@pytest.mark.parametrize(("strategy", "floor"), [("yield", 0), ("yield", 1), ("spiderling", 0)])
def test_second_chance(tmp_path, strategy, floor):
    crawl, result, _ = crawled(
        tmp_path / "job", {"a.test": CHAIN}, "http://a.test/0", YIELD_PROFILE="0.9", MIN_ACTIVE_HOSTS=floor,
        STRATEGY=strategy, CONSTANTS={"frontier.host_closing.MIN_BYTES": 1000},
    )  # fmt: skip
    assert result.lines("is finished.")
    goes_on = bool(floor) or strategy == "spiderling"
    state = crawl.state()
    state.check()
    assert bool(result.lines("Reopened a.test", "too few hosts are at work")) is goes_on
    assert any(event.startswith("too few hosts: reopened a.test") for event in state.events) is goes_on
    assert (state.ends["kept"] > 16) is goes_on
