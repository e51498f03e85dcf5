"""A real crawl of a web in which every opt-out stands somewhere: each page, its Reason, and what its document says.

The same crawl shows that nothing is written outside of its directory, whatever URLs look like.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from random import random

import pytest
from conftest import Crawl, document, page, serving

from spiderling.jobdir.inspection import Inspection
from webs.web import FixedWeb, WebResponse, html, plain, redirect

SITE_FILES = ("/robots.txt", "/.well-known/tdmrep.json", "/ai.txt")
LICENCES = ("/l.xml", "/secret/l.xml", "/none.xml", "/free.xml", "/duty.xml")
PAST, FUTURE = "Wed, 03 Aug 2022 15:00:00 GMT", "2099-01-01"


def headed(seed: str, *links: str, **headers: str) -> WebResponse:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return WebResponse(200, {"Content-Type": "text/html; charset=utf-8", **fields}, document(seed, *links).encode())


def tagged(seed: str, *links: str, **metas: str) -> WebResponse:
    tags = "".join(f'<meta name="{name.replace("_", "-")}" content="{value}">' for name, value in metas.items())
    return WebResponse(
        200, {"Content-Type": "text/html"}, document(seed, *links).replace("<head>", "<head>" + tags).encode()
    )


def tdmrep(rules: list[dict]) -> WebResponse:
    return WebResponse(200, {"Content-Type": "application/json"}, json.dumps(rules).encode())


def rsl(terms: str, url: str = "/") -> str:
    content = f'<content url="{url}"><license>{terms}</license></content>'
    return f'<rsl xmlns="https://rslstandard.org/rsl">{content}</rsl>'


def licence(terms: str, url: str = "/") -> WebResponse:
    return WebResponse(200, {"Content-Type": "application/rsl+xml"}, rsl(terms, url).encode())


def in_head(seed: str, head: str) -> WebResponse:
    return WebResponse(200, {"Content-Type": "text/html"}, document(seed).replace("<head>", "<head>" + head).encode())


NO_TRAINING = '<prohibits type="usage">ai-train</prohibits>'
ATTRIBUTION = '<payment type="attribution"/>'
LINK = 'rel="license"; type="application/rsl+xml"'
RSL_LINK = '<link rel="license" type="application/rsl+xml" href="{}">'
MARKED = document("marked", "/from-marked").replace("<a ", '<a rel="ugc nofollow" ')
KEPT = ("kept", "")
WEB: dict[str, dict[str, tuple[WebResponse, tuple[str, str] | None]]] = {
    "plain.test": {
        "/": (page("plain", "/..%2f..%2fetc/passwd", "/a%00b", "/C:\\x", "/../../up", "/%2e%2e/%2e%2e/up2"), KEPT),
        "/..%2f..%2fetc/passwd": (page("passwd"), KEPT),
        "/up": (page("up"), KEPT),
        "/up2": (page("up2"), KEPT),
        "/marked": (WebResponse(200, {"Content-Type": "text/html"}, MARKED.encode()), KEPT),
        "/from-marked": (page("from marked"), None),
    },
    "head.test": {
        "/noindex": (tagged("1", "/from-noindex", robots="NoIndex"), ("noindex", "noindex")),
        "/from-noindex": (page("2"), KEPT),
        "/none": (tagged("3", "/from-none", robots="none"), ("noindex", "noindex")),
        "/from-none": (page("4"), None),
        "/nofollow": (tagged("5", "/from-nofollow", robots="nofollow"), ("kept", "nofollow")),
        "/from-nofollow": (page("6"), None),
        "/noarchive": (tagged("7", robots="noarchive"), ("kept", "noarchive")),
        "/noai": (tagged("8", robots="noai, noimageai"), ("opted-out", "noai")),
        "/noimageai": (tagged("9", robots="noimageai"), ("kept", "noai:images")),
        "/ours": (tagged("10", spiderling="noindex"), ("noindex", "noindex")),
        "/others": (tagged("11", googlebot="noindex", GPTBot="noindex"), ("kept", "ai-agents:GPTBot")),
        "/tdm": (tagged("12", tdm_reservation="1", tdm_policy="https://a.test/p"),
                 ("opted-out", "tdm:1=https://a.test/p")),
        "/tdm0": (tagged("13", tdm_reservation="0"), ("kept", "tdm:0")),
        "/hub": (
            html('<meta name=robots content=nofollow><a href="/from-hub">x</a>'),
            ("boilerplate-only", ""),
        ),
        "/from-hub": (page("14"), None),
    },
    "header.test": {
        "/noindex": (headed("h1", X_Robots_Tag="noarchive, noindex"), ("noindex", "noindex")),
        "/others": (headed("h2", X_Robots_Tag="googlebot: noindex, nofollow"), KEPT),
        "/past": (headed("h3", X_Robots_Tag=f"unavailable_after: {PAST}"),
                  ("noindex", "unavailable-after:2022-08-03T15:00:00Z")),
        "/future": (headed("h4", X_Robots_Tag=f"unavailable_after: {FUTURE}"),
                    ("kept", "unavailable-after:2099-01-01T00:00:00Z")),
        "/tdm": (headed("h5", tdm_reservation="1"), ("opted-out", "tdm:1")),
        "/usage": (headed("h6", Content_Usage="train-ai=n"), ("opted-out", "content-usage:train-ai=n")),
        "/signal": (headed("h7", Content_Signal="search=yes, ai-train=no"),
                    ("opted-out", "content-signal:ai-train=no")),
        "/yes": (headed("h8", Content_Usage="train-ai=y"), ("kept", "content-usage:train-ai=y")),
        "/nofollow": (headed("h9", "/from-nofollow", X_Robots_Tag="nofollow"), ("kept", "nofollow")),
        "/from-nofollow": (page("h10"), None),
    },
    "tdm.test": {
        "/.well-known/tdmrep.json": (tdmrep([
            {"location": "/free/", "tdm-reservation": 0}, {"location": "/*.html$", "tdm-reservation": 1},
        ]), None),
        "/free/a.html": (page("t1"), ("kept", "tdm-file:0")),
        "/free/header.html": (headed("t2", tdm_reservation="1"), ("opted-out", "tdm:1")),
        "/a.html": (page("t3"), ("site-opted-out", "")),
        "/a": (page("t4"), KEPT),
    },
    "ai.test": {
        "/ai.txt": (plain("User-Agent: *\nDisallow: *.txt\nDisallow: *.jpg\nAllow: /free/"), None),
        "/a": (page("ai1"), ("site-opted-out", "")),
    },
    "moved.test": {
        "/ai.txt": (redirect("http://ai.test/ai.txt"), None),
        "/a": (page("ai2"), ("site-opted-out", "")),
    },
    "signal.test": {
        "/robots.txt": (plain(
            "User-agent: *\nContent-Signal: search=yes\nContent-Usage: train-ai=n\nContent-Usage: /ok/ train-ai=y\n"
            "Disallow: /private/"), None),
        "/a": (page("s1"), ("site-opted-out", "")),
        "/ok/a": (page("s2"), ("kept", "content-signal:search=yes content-usage:train-ai=y")),
        "/private/a": (page("s3"), ("robots-forbidden", "")),
    },
    "agents.test": {
        "/robots.txt": (plain("User-agent: GPTBot\nDisallow: /\n\nUser-agent: spider\nDisallow: /"), None),
        "/a": (page("g1"), ("kept", "ai-agents:GPTBot")),
    },
    "rsl.test": {
        "/robots.txt": (plain("License: /l.xml\nLicense: http://royal.test/l.xml\nLicense: /duty.xml"), None),
        "/duty.xml": (licence(ATTRIBUTION, "/duty/"), None),
        "/duty/a": (page("r4"), ("kept", "rsl:attribution")),
        "/l.xml": (licence(NO_TRAINING, "/no/"), None),
        "/a": (page("r1"), KEPT),
        "/no/a": (page("r2"), ("site-opted-out", "")),
        "/paid/a": (page("r3"), ("site-opted-out", "")),
    },
    "royal.test": {
        "/l.xml": (licence('<payment type="crawl"/>', "/paid/"), None),
        "/robots.txt": (plain("User-agent: *\nDisallow: /secret"), None),
        "/secret/l.xml": (licence(""), None),
    },
    "linked.test": {
        "/header": (headed("l1", Link=f"</style.css>; rel=preload, <http://royal.test/none.xml>; {LINK}"),
                    ("opted-out", "rsl:unknown=http://royal.test/none.xml")),
        "/secret": (headed("l2", Link=f"<http://royal.test/secret/l.xml>; {LINK}"),
                    ("opted-out", "rsl:unknown=http://royal.test/secret/l.xml")),
        "/paid/x": (headed("l3", Link=f"<http://royal.test/l.xml>; {LINK}"), ("opted-out", "rsl:payment:crawl")),
        "/free": (in_head("l4", RSL_LINK.format("/free.xml")), ("kept", "rsl:attribution")),
        "/free.xml": (licence(ATTRIBUTION), None),
        "/inline": (in_head("l5", f'<script type="application/rsl+xml">{rsl(NO_TRAINING, "")}</script>'),
                    ("opted-out", "rsl:prohibited")),
        "/inline-free": (in_head("l6", f'<script type="application/rsl+xml">{rsl("")}</script>'), ("kept", "rsl:free")),
        "/inline-odd": (in_head("l7", '<script type="application/rsl+xml"><rsl><!-- </script>'),
                        ("opted-out", "rsl:unknown")),
    },
    "down.test": {
        "/.well-known/tdmrep.json": (WebResponse(503), None),
        "/ai.txt": (WebResponse(200, {"Content-Type": "text/html"}, b"<html>Not found</html>"), None),
        "/a": (page("d1"), KEPT),
    },
}  # fmt: skip
SEEDS = [
    f"http://{host}{path}"
    for host, paths in WEB.items()
    for path, (_, expected) in paths.items()
    if expected is not None and path not in SITE_FILES and not path.startswith("/from-")
]
EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.link", "os.symlink", "os.truncate", "sqlite3.connect")
RECORDER = """
import os, sys
_log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def _note(event, arguments):
    if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return
    if event in {events!r}:
        name = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        os.write(_log, f"{{event}} {{name}}\\n".encode("utf-8", "replace"))
sys.addaudithook(_note)
"""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """The crawl, the access log, and all paths that its processes opened for writing."""
    base = tmp_path_factory.mktemp("optout")
    project, written = base / "project", base / "written.txt"
    project.mkdir()
    (project / "scrapy.cfg").write_text("[settings]\ndefault = spiderling.settings\n")
    (project / "sitecustomize.py").write_text(RECORDER.format(log=str(written), events=EVENTS))
    seeds = base / "seeds.txt"
    seeds.write_text("\n".join(SEEDS))
    web = FixedWeb(
        {host: {path: answer for path, (answer, _) in paths.items()} for host, paths in WEB.items()},
        {host: f"127.84.7.{number}" for number, host in enumerate(WEB, 1)},
    )
    with serving(web) as server:
        crawl = Crawl(base / "job", server, project=project, OPTOUTS="")
        result = crawl.start(str(seeds), fresh=True).wait()  # which reads sitecustomize.py
        assert result.code == 0 and "Traceback" not in result.output, result.output[-3000:]
        return crawl, server.log_entries, written.read_text().splitlines()


def test_every_page_ends_as_its_signals_say(crawled):
    found = crawled[0].ended()
    optouts = {doc.url: doc.attributes.get("optout", "") for doc in crawled[0].documents()}
    got = {url: (reason, optouts[url] if reason == "kept" else detail) for url, (reason, detail) in found.items()}
    expected = {
        f"http://{host}{path}": end
        for host, paths in WEB.items()
        for path, (_, end) in paths.items()
        if end is not None
    }
    assert {url: got.get(url) for url in expected} == expected
    nofollow = {f"http://{host}{path}" for host, paths in WEB.items() for path in paths if path.startswith("/from-")}
    assert {url for url in nofollow & got.keys()} == {"http://head.test/from-noindex"}
    licences = {doc.url: doc.attributes.get("licence") for doc in crawled[0].documents()}
    assert licences["http://linked.test/free"] == licences["http://rsl.test/duty/a"] == "attribution (RSL)"
    assert licences["http://plain.test/"] is None
    assert {reason for reason, _ in (got[url] for url in got.keys() - expected.keys())} <= {"http-error"}


def test_no_page_is_asked_for_before_the_files_of_its_site_nor_one_that_they_reserve(crawled):
    asked: dict[str, list[str]] = {}
    for entry in crawled[1]:
        asked.setdefault(entry.host, []).append(entry.path)
    assert {path: asked["royal.test"].count(path) for path in asked["royal.test"]} == {
        "/robots.txt": 1, "/l.xml": 1, "/none.xml": 1,
    }, "once for all pages and sites, as its robots.txt allows"  # fmt: skip
    for host, paths in WEB.items():
        if host == "royal.test":
            continue
        asked[host] = [path for path in asked[host] if path not in LICENCES]
        first_page = next((at for at, path in enumerate(asked[host]) if path not in SITE_FILES), len(SITE_FILES))
        assert tuple(asked[host][:first_page]) == SITE_FILES or host == "ai.test", "moved.test asks that one, too"
        assert set(asked[host][:first_page]) == {*SITE_FILES}
        reserved = {
            path for path, (_, end) in paths.items() if end and end[0] in ("site-opted-out", "robots-forbidden")
        }
        assert not reserved & set(asked[host])


def test_ledger_holds_what_every_site_was_asked_and_answered(crawled):
    with closing(Inspection(crawled[0].directory)) as inspection:
        rows = inspection.rows("SELECT * FROM consents")
        purposes = json.loads(inspection.meta["purposes"])
    licences = {(row["origin"], row["file"]): row["answer"] for row in rows if row["file"] in LICENCES}
    assert licences == {
        ("http://rsl.test", "/l.xml"): "200",
        ("http://royal.test", "/l.xml"): "200",
        ("http://royal.test", "/none.xml"): "404",
        ("http://royal.test", "/secret/l.xml"): "no answer",
        ("http://linked.test", "/free.xml"): "200",
        ("http://rsl.test", "/duty.xml"): "200",
    }
    assert {(row["origin"], row["file"]) for row in rows} - licences.keys() == {
        (f"http://{host}", file) for host in WEB for file in SITE_FILES if host != "royal.test" or file == "/robots.txt"
    }
    said = {(row["origin"], row["file"]): (row["answer"], row["says"]) for row in rows}
    assert said[("http://signal.test", "/robots.txt")] == ("200", "content-signal:search=yes content-usage:train-ai=n")
    assert said[("http://ai.test", "/ai.txt")] == said[("http://moved.test", "/ai.txt")] == ("200", "ai-txt")
    assert said[("http://plain.test", "/robots.txt")] == ("404", "")
    assert said[("http://down.test", "/.well-known/tdmrep.json")] == ("503", "")
    assert purposes == ["ai-train"]


def test_nothing_is_left_outside_of_the_directory_of_the_crawl(crawled):
    """Libraries make temporary files when they are imported, which are gone."""
    crawl, _, written = crawled
    places = {os.path.realpath(line.partition(" ")[2].removeprefix("file:").partition("?")[0]) for line in written}
    mine = [place for place in places if Path(place).is_relative_to(crawl.directory)]
    assert len(mine) >= 5, "state, lock, corpus, log"
    others = {place for place in places if os.path.exists(place) and place not in mine and "__pycache__" not in place}
    assert {place for place in others if not place.startswith(("/dev/", "/proc/")) and not place.isdecimal()} <= {
        os.path.realpath(crawl.directory)
    }
    names = {str(path.relative_to(crawl.directory)) for path in crawl.directory.rglob("*")}
    assert all("passwd" not in name and "test" not in name for name in names), names


class RestlessWeb(FixedWeb):
    """Each answer names another licence."""

    def respond(self, host: str, path: str) -> WebResponse:
        return headed("r", Link=f"</{random()}.xml>; {LINK}") if path == "/" else super().respond(host, path)


def test_a_page_that_names_another_licence_each_time_is_fetched_once(tmp_path):
    """It was fetched for ever, and so were licences, from whatever host it named; its answer waits for the first."""
    with serving(RestlessWeb({"r.test": {}}, {"r.test": "127.84.7.250"})) as server:
        crawl = Crawl(tmp_path / "job", server, OPTOUTS="")
        assert crawl.run("http://r.test/").code == 0
        asked = [entry.path for entry in server.log_entries if entry.path not in SITE_FILES]
    assert crawl.ended()["http://r.test/"][0] == "opted-out"
    assert [path == "/" for path in asked] == [True, False]
