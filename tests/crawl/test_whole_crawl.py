"""One crawl of a web in which a URL can end in every way, looked at from the corpus, the state and the servers."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from itertools import combinations

import pytest
from conftest import Crawl, nameserver, page, paragraphs, serving

from webs.web import FixedWeb, WebResponse, html, plain, redirect, unavailable

HOST_INTERVAL_S = 0.3
IP_INTERVAL_S = 0.1
CRAWL_DELAY_S = 0.9
JITTER_S = 0.16
"""The crawler counts from the moment at which it opens a connection, the server from the moment at which its loop
(a thread of this process) has read the request.  A request that is read late is followed too early by the next one;
over a series of requests the error does not add up, so that every pair is held to its sum of intervals."""

ENGLISH = "It was the best of times, it was the worst of times, and all of us had been there before the war was over. "
MANY = [f"/{number}" for number in range(20)]
SHARED = [f"s{number}.shared.test" for number in range(6)]
CZECH = "Toto je zpráva, kterou jsme pro vás napsali v neděli a která je velmi dlouhá."
HEAVY = "".join(f"<div><p>{number} {CZECH}</div>" for number in range(47_000))

MAIN = {
    "/": page(
        "main", "/a", "/a#part", "/same", "/english", "/hub", "/short", "/noise", "/gone", "/private/x",
        "mailto:me@main.test", "/film.avi", "/" + "long/" * 200, "http://main.example/", "http://types.test/",
        "http://many.test/0", "http://poor.test/", "http://bare.test/", "http://slow.test/", "http://broken.test/",
        "http://rr.test/", "http://delay.test/", "http://todelay.test/", "http://down.test/", "http://nowhere.test/",
        "http://intern.test/", "http://blocked.test/", "http://closed.test/", "http://turns.test/",
        *(f"http://{host}/" for host in SHARED),
    ),
    "/robots.txt": plain("User-agent: spiderling\nDisallow: /private/\nUser-agent: *\nDisallow: /"),
    "/a": page("a", "http://only-far.test/"),
    "/same": page("a", "http://only-far.test/"),
    "/english": html(f"<p>{ENGLISH * 5}</p>"),
    "/hub": html('<ul><li><a href="/from-hub">weiter</a></li></ul>'),
    "/from-hub": page("from hub"),
    "/short": html(f"<p>{paragraphs('short', 1, 2)[0]}</p>"),
    "/noise": WebResponse(200, {"Content-Type": "text/html"}, random.Random(1).randbytes(3000)),
}  # fmt: skip
TYPES = {
    "/": page("types", "/picture", "/huge", "/heavy", "/liar", "/text", "/download", "/report.docx", "/book.epub"),
    "/download": WebResponse(200, {"Content-Type": "application/vnd.oasis.opendocument.text"}, b"PK"),
    "/picture": WebResponse(200, {"Content-Type": "image/png"}, b"\x89PNG"),
    "/huge": WebResponse(200, {"Content-Type": "text/html"}, b"x", claimed_bytes=6_000_000),
    "/heavy": html(HEAVY),
    "/liar": WebResponse(200, {"Content-Type": "text/html"}, b"cut off", claimed_bytes=1000),
    "/text": plain("\n\n".join(paragraphs("plain text", 3))),
}
TURNS = {
    "/": page("turns", "/moved", "/round", "/1", "/many"),
    "/moved": redirect("/target"),
    "/target": page("target"),
    "/round": redirect("/round", 302),
    **{f"/{number}": redirect(f"/{number + 1}", 307) for number in range(1, 9)},
}
SITES = {
    "main.test": MAIN,
    "types.test": TYPES,
    "turns.test": TURNS,
    "many.test": {path: page(f"many {path}", *MANY) for path in MANY},
    "poor.test": {
        "/": html("".join(f'<a href="/{number}">{number}</a> ' for number in range(25))),
        **{f"/{number}": html(f"<b>{number}</b>" + "<br>" * 200) for number in range(25)},
    },
    "bare.test": {"/": redirect("http://www.bare.test/")},
    "www.bare.test": {"/": page("www")},
    "slow.test": {"/": WebResponse(200, {"Content-Type": "text/html"}, b"late", delay_s=5)},
    "broken.test": {"/": unavailable(0, 500)},
    "rr.test": {"/robots.txt": redirect("http://rules.test/rr.txt"), "/": page("rr", "/secret", "/open"),
                "/secret": page("secret"), "/open": page("open")},
    "rules.test": {"/rr.txt": plain("User-agent: *\nDisallow: /secret")},
    "delay.test": {"/robots.txt": plain(f"User-agent: *\nCrawl-delay: {CRAWL_DELAY_S}"),
                   "/": page("delay", "/2", "/3"), "/2": page("delay 2"), "/3": page("delay 3")},
    "todelay.test": {"/robots.txt": plain("User-agent: *\nCrawl-delay: 3600"), "/": page("never")},
    "down.test": {"/robots.txt": unavailable(0), "/": page("never")},
    "blocked.test": {"/": page("blocked")},
    "main.example": {"/": page("out of scope")},
    "only-far.test": {"/": page("far", "http://too-far.test/")},
    **{host: {"/": page(host, "/2", "/3", "/4"), **{f"/{n}": page(f"{host}{n}") for n in "234"}} for host in SHARED},
}  # fmt: skip
WEB = FixedWeb(SITES, dict.fromkeys(SHARED, "127.84.6.1") | dict.fromkeys(["bare.test", "www.bare.test"], "127.84.6.2"))

ENDS = {
    # main, a, from-hub, types, text, turns, target, many, www, rr, open, delay, shared, only-far
    "kept": 1 + 2 + 2 + 2 + len(MANY) + 1 + 2 + 3 + 4 * len(SHARED) + 1,
    "duplicate": 1,
    "wrong-language": 1,
    "boilerplate-only": 1 + 11 + 1,  # hub; poor.test until t(n) is above 0; download, which is no document
    "host-retired": 26 - 11,
    "bad-quality": 1,
    "undecodable": 1,
    "http-error": 1 + 1 + 1 + 2,  # gone, /many on turns.test; broken.test after its retry; report.docx, book.epub
    "robots-forbidden": 2,
    "not-text": 1,  # picture
    "too-big": 1,
    "worker-crash": 1,
    "connection": 1,
    "timeout": 1,
    "redirected": 1 + 6 - 1 + 1,  # moved, /1 to /5, bare
    "redirect-loop": 2,  # /round, /6 after five redirects
    "dns": 1,
    "address-forbidden": 1,
    "host-blocked": 1,
    "crawl-delay": 1,
    "robots-unreachable": 2,  # down, closed
}
NEVER_ASKED = {
    ("main.test", "/private/x"), ("main.test", "/film.avi"), ("rr.test", "/secret"), ("down.test", "/"),
    ("todelay.test", "/"), ("blocked.test", "/"), ("blocked.test", "/robots.txt"), ("main.example", "/"),
    ("too-far.test", "/"), ("too-far.test", "/robots.txt"),
}  # fmt: skip


CONSTANTS = {
    "engine.download_handler.FIRST_BYTE_TIMEOUT_S": 1.5,
    "fetch.messages.MAX_RATIO": 2000,
    "frontier.host_closing.MIN_BYTES": 1000,
    "workers.process.CPU_SHARE": 0.03,  # .6 s: random bytes take up to .2 s, most of it once for each worker; HEAVY 1.2
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """The crawl, how it ended, and the access log."""
    directory = tmp_path_factory.mktemp("whole") / "job"
    directory.mkdir()
    (directory / "control.yaml").write_text("block: [blocked.test]\n")
    with serving(WEB) as server, nameserver() as names:
        hosts = f"{server.hosts_option},intern.test=10.0.0.1:80,closed.test=127.84.9.9:9,too-far.test=127.84.5.1"
        crawl = Crawl(
            directory, server, HOSTS=hosts, NAMESERVERS=names, TLDS="test", MAX_DISTANCE=1,
            HOST_INTERVAL_S=HOST_INTERVAL_S, IP_INTERVAL_S=IP_INTERVAL_S, CONSTANTS=CONSTANTS,
            QUALITY="text_chars=400..", YIELD_PROFILE="paper",
        )  # fmt: skip
        result = crawl.run("http://main.test/")
        return crawl, result, server.log_entries


def test_it_finishes_without_an_error_and_every_url_ends_by_its_reason(crawled):
    """Discovered = ends + waiting + in transit; mentions that were refused are counted apart."""
    crawl, result, _ = crawled
    assert result.code == 0
    assert result.lines("is finished.")
    assert not result.lines("] ERROR: ") and not result.lines("] CRITICAL: ") and "Traceback" not in result.output
    state = crawl.state()
    state.check()
    assert state.ends == ENDS
    total = sum(ENDS.values())
    assert result.lines(f"balance    {total} discovered = {total} ends + 0 waiting + 0 in transit")
    assert state.counts["discovered"] == total
    mentions = state.mentions
    assert mentions.pop("seen") >= len(MANY) * (len(MANY) - 1)
    assert mentions == {"out-of-scope": 2, "trap": 1, "too-far": 1}


def test_documents_hold_the_text_and_its_attributes(crawled):
    crawl, _, _ = crawled
    documents = {doc.url: doc for doc in crawl.documents()}
    assert len(documents) == ENDS["kept"]
    main = documents["http://main.test/"]
    assert main.paragraphs == paragraphs("main")
    attributes = dict(main.attributes)
    text_bytes = sum(len(text.encode()) for text in main.paragraphs)
    assert text_bytes <= int(attributes.pop("length")) <= text_bytes + len(main.paragraphs)
    assert re.fullmatch(r"[0-9a-f]{16}", attributes.pop("id"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", attributes.pop("crawl_date"))
    assert float(attributes.pop("badness")) < 60
    assert float(attributes.pop("sentence_words")) > 5
    shares = [float(attributes.pop(f"{name}_share")) for name in ("stopword", "good", "repeated", "digit", "symbol")]
    assert 0 < shares[0] < 1 and shares[1] > 0.5 and max(shares[2:]) < 0.1
    shares = [float(attributes.pop(f"{name}_share")) for name in ("known", "packed", "top_word")]
    assert shares[0] > 0.6 and 0.2 < shares[1] < 0.8 and shares[2] < 0.1
    assert attributes.pop("outlinks") == "0.0", "its links stand in a list"
    assert 0 < float(attributes.pop("yield")) < 1
    assert int(attributes.pop("words")) == sum(len(re.findall(r"\w+", text)) for text in main.paragraphs)
    assert attributes == {
        "url": "http://main.test/", "host": "main.test", "tld": "test", "title": "Strana main", "lang": "cs",
        "langs": "cs:1.00", "ip": WEB.hosts()["main.test"], "enc_declared": "utf-8", "enc_detected": "utf-8",
        "distance": "0", "file_type": "html",
    }  # fmt: skip
    assert documents["http://only-far.test/"].attributes["distance"] == "1"
    assert len({doc.attributes["id"] for doc in documents.values()}) == len(documents)
    assert documents["http://www.bare.test/"].attributes["host"] == "bare.test"
    hosts = crawl.state().hosts
    assert "www.bare.test" not in hosts and hosts["bare.test"]["documents"] == 1, "one record with and without www"


def test_counters_of_a_host_are_those_of_its_server(crawled):
    crawl, _, entries = crawled
    many = crawl.state().hosts["many.test"]
    bodies = [SITES["many.test"][path].body for path in MANY]
    robots = next(entry.body_bytes for entry in entries if (entry.host, entry.path) == ("many.test", "/robots.txt"))
    assert (many["pages"], many["documents"]) == (len(MANY), len(MANY))
    assert many["downloaded_bytes"] == sum(map(len, bodies)) + robots
    kept = sum(int(doc.attributes["length"]) for doc in crawl.documents() if doc.attributes["host"] == "many.test")
    assert many["kept_bytes"] == kept


# -- politeness, as the servers saw it


def assert_spaced(times: list[float], interval_s: float) -> None:
    """Any two requests are as far apart as all intervals between them, but for JITTER_S."""
    for (first, start), (second, end) in combinations(enumerate(sorted(times)), 2):
        assert end - start >= (second - first) * interval_s - JITTER_S, f"{second - first} requests in {end - start} s"


def test_intervals_of_hosts_and_addresses_and_crawl_delays_are_kept(crawled):
    hosts, addresses = defaultdict(list), defaultdict(list)
    for entry in crawled[2]:
        hosts[entry.host.removeprefix("www.")].append(entry.time_s)
        addresses[entry.address].append(entry.time_s)
    assert (len(hosts) >= 20, len(addresses["127.84.6.1"]), len(hosts["delay.test"])) == (True, 5 * len(SHARED), 4)
    for times in hosts.values():
        assert_spaced(times, HOST_INTERVAL_S)
    for times in addresses.values():
        assert_spaced(times, IP_INTERVAL_S)
    assert_spaced(hosts["delay.test"], CRAWL_DELAY_S)
    many = hosts["many.test"]
    assert len(many) == len(MANY) + 1
    assert 6 - JITTER_S <= many[-1] - many[0] < 30, "ideally 6 s; by the engine's own heartbeat of 5 s it would be 95"


def test_what_is_forbidden_is_never_asked_for_and_robots_txt_before_any_page_of_its_origin(crawled):
    crawl, _, entries = crawled
    first = {}
    for entry in entries:
        first.setdefault(entry.host, entry.path)
    assert first.pop("rules.test") == "/rr.txt"  # asked for in the name of rr.test alone
    assert set(first.values()) == {"/robots.txt"}
    assert NEVER_ASKED.isdisjoint((entry.host, entry.path) for entry in entries)
    # a redirected robots.txt holds for the origin that redirects
    asked = [(entry.host, entry.path) for entry in entries if entry.host in ("rr.test", "rules.test")]
    assert asked == [("rr.test", "/robots.txt"), ("rules.test", "/rr.txt"), ("rr.test", "/"), ("rr.test", "/open")]
    assert "rules.test" in crawl.state().hosts


def test_a_retired_host_is_never_asked_again(crawled):
    crawl, result, entries = crawled
    assert len([entry for entry in entries if entry.host == "poor.test"]) == 1 + 11
    state = crawl.state()
    assert state.hosts["poor.test"]["state"] == "retired"
    parked = [url for url, is_parked in state.urls if is_parked and url.startswith("http://poor.test/")]
    assert len(parked) == ENDS["host-retired"]
    assert result.lines("Retired poor.test: yield rate 0.0000 after 11 pages")
