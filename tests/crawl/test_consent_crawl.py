"""A real crawl of a web whose owners say yes and no in every way: each page ends as docs/opt-outs.md says.

The same crawl shows what documents and the ledger say of it, and that nothing is written outside of its directory,
whatever URLs look like.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from random import random
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from conftest import ROOT, Crawl, document, page, serving

from spiderling.jobdir.inspection import Inspection
from webs.consent import (
    PRECEDENCE_HOST,
    PURPOSES,
    SPEAKERS,
    consent_web,
    pairs,
    seeds_of,
    violations,
)
from webs.web import HTML, FixedWeb, WebResponse, html, plain, redirect

LETTERS = {"F": {"site-opted-out", "robots-forbidden"}, "D": {"opted-out"}, "K": {"kept"}}
SITE_FILES = ("/robots.txt", "/.well-known/tdmrep.json", "/ai.txt")


# -- what documents say, and which links are followed


def meta(**contents: str) -> str:
    return "".join(f'<meta name="{name.replace("_", "-")}" content="{value}">' for name, value in contents.items())


def rsl(terms: str, url: str = "/") -> str:
    content = f'<content url="{url}"><license>{terms}</license></content>'
    return f'<rsl xmlns="https://rslstandard.org/rsl">{content}</rsl>'


def licence(terms: str, url: str = "/") -> WebResponse:
    return WebResponse(200, {"Content-Type": "application/rsl+xml"}, rsl(terms, url).encode())


def inline(text: str) -> str:
    return f'<script type="application/rsl+xml">{text}</script>'


def link(path: str) -> dict[str, str]:
    return {"Link": f'</style.css>; rel=preload, <http://fees.test{path}>; rel="license"; type="application/rsl+xml"'}


def saying(seed: object, head: str = "", headers: dict[str, str] | None = None, *links: str) -> WebResponse:
    body = document(seed, *links).replace("<head>", f"<head>{head}")
    return WebResponse(200, {**HTML, **(headers or {})}, body.encode())


ATTRIBUTION = '<payment type="attribution"/>'
NO_TRAINING = '<prohibits type="usage">ai-train</prohibits>'
SAID: list[tuple[str, dict[str, str], str, str]] = [
    ("", {}, "kept", ""),
    (meta(robots="NoIndex"), {}, "noindex", "noindex"),
    (meta(robots="noarchive"), {}, "kept", "noarchive"),
    (meta(robots="noai, noimageai"), {}, "opted-out", "noai"),
    (meta(robots="noimageai"), {}, "kept", "noai:images"),
    (meta(googlebot="noindex", GPTBot="noindex"), {}, "kept", "ai-agents:GPTBot"),
    (meta(tdm_reservation="1", tdm_policy="https://a.test/p"), {}, "opted-out", "tdm:1=https://a.test/p"),
    (meta(tdm_reservation="0"), {}, "kept", "tdm:0"),
    ("", {"X-Robots-Tag": "noarchive, noindex"}, "noindex", "noindex"),
    ("", {"X-Robots-Tag": "googlebot: noindex, nofollow"}, "kept", ""),
    ("", {"X-Robots-Tag": "unavailable_after: Wed, 03 Aug 2022 15:00:00 GMT"}, "noindex",
     "unavailable-after:2022-08-03T15:00:00Z"),
    ("", {"X-Robots-Tag": "unavailable_after: 2099-01-01"}, "kept", "unavailable-after:2099-01-01T00:00:00Z"),
    ("", {"tdm-reservation": "1"}, "opted-out", "tdm:1"),
    ("", {"Content-Usage": "train-ai=n"}, "opted-out", "content-usage:train-ai=n"),
    ("", {"Content-Usage": "train-ai=y"}, "kept", "content-usage:train-ai=y"),
    ("", {"Content-Signal": "search=yes, ai-train=no"}, "opted-out", "content-signal:ai-train=no"),
    ("", link("/none.xml"), "opted-out", "rsl:unknown=http://fees.test/none.xml"),
    ("", link("/secret/l.xml"), "opted-out", "rsl:unknown=http://fees.test/secret/l.xml"),
    ("", link("/l.xml"), "opted-out", "rsl:payment:crawl"),
    ('<link rel="license" type="application/rsl+xml" href="/free.xml">', {}, "kept", "rsl:attribution"),
    (inline(rsl(NO_TRAINING, "")), {}, "opted-out", "rsl:prohibited"),
    (inline(rsl("", "")), {}, "kept", "rsl:free"),
    (inline("<rsl><!-- "), {}, "opted-out", "rsl:unknown"),
]  # fmt: skip
"""(head, headers, end, what the document or the end says of it) of pages of said.test."""
MARKED = document("marked", "/from-marked").replace("<a ", '<a rel="ugc nofollow" ')
ODD_PATHS = ("/..%2f..%2fetc/passwd", "/a%00b", "/C:\\x", "/../../up", "/%2e%2e/%2e%2e/up2")
LINKS = {
    "/": (page("plain", *ODD_PATHS), ""),
    "/..%2f..%2fetc/passwd": (page("passwd"), ""),
    "/up": (page("up"), ""),
    "/up2": (page("up2"), ""),
    "/marked": (html(MARKED), ""),
    "/nofollow": (saying("nofollow", meta(robots="nofollow"), {}, "/from-nofollow"), "nofollow"),
    "/header": (saying("header", "", {"X-Robots-Tag": "nofollow"}, "/from-header"), "nofollow"),
    "/from-noindex": (page("from noindex"), ""),
}
"""Path -> (page, what its document says) of links.test; all are kept."""
NO_TEXT = {
    "/noindex": saying("noindex", meta(robots="noindex"), {}, "/from-noindex"),
    "/none": saying("none", meta(robots="none"), {}, "/from-none"),
    "/hub": html('<meta name=robots content=nofollow><a href="/from-hub">x</a>'),
}
TDMREP = [{"location": "/free/", "tdm-reservation": 0}, {"location": "/*.html$", "tdm-reservation": 1}]
SIGNALS = "User-agent: *\nContent-Signal: search=yes\nContent-Usage: train-ai=n\nContent-Usage: /ok/ train-ai=y\n"
SITES = {
    "said.test": {
        "/free.xml": licence(ATTRIBUTION),
        **{f"/paid/{number}": saying(number, head, headers) for number, (head, headers, _, _) in enumerate(SAID)},
    },
    "links.test": NO_TEXT | {path: answer for path, (answer, _) in LINKS.items()},
    "reserves.test": {"/.well-known/tdmrep.json": plain(json.dumps(TDMREP)), "/free/a.html": page("t1")},
    "moved.test": {"/ai.txt": redirect("http://ai-text.test/ai.txt"), "/a": page("moved")},
    "signals.test": {"/robots.txt": plain(SIGNALS), "/a": page("s1"), "/ok/a": page("s2")},
    "agents.test": {
        "/robots.txt": plain("User-agent: GPTBot\nDisallow: /\n\nUser-agent: spider\nDisallow: /"),
        "/a": page("agents"),
    },
    "licensed.test": {
        "/robots.txt": plain("License: /l.xml\nLicense: http://fees.test/l.xml\nLicense: /duty.xml"),
        "/l.xml": licence(NO_TRAINING, "/no/"),
        "/duty.xml": licence(ATTRIBUTION, "/duty/"),
        **{f"{path}a": page(f"licensed {path}") for path in ("/", "/no/", "/paid/", "/duty/")},
    },
    "fees.test": {
        "/robots.txt": plain("User-agent: *\nDisallow: /secret"),
        "/l.xml": licence('<payment type="crawl"/>', "/paid/"),
        "/secret/l.xml": licence(""),
    },
    "down.test": {"/.well-known/tdmrep.json": WebResponse(503), "/ai.txt": html("Not found"), "/a": page("down")},
}
ENDS = {
    **{f"http://said.test/paid/{number}": (end, detail) for number, (_, _, end, detail) in enumerate(SAID)},
    **{f"http://links.test{path}": ("kept", said) for path, (_, said) in LINKS.items()},
    "http://links.test/noindex": ("noindex", "noindex"),
    "http://links.test/none": ("noindex", "noindex"),
    "http://links.test/hub": ("boilerplate-only", ""),
    "http://reserves.test/free/a.html": ("kept", "tdm-file:0"),
    "http://signals.test/ok/a": ("kept", "content-signal:search=yes content-usage:train-ai=y"),
    "http://agents.test/a": ("kept", "ai-agents:GPTBot"),
    "http://licensed.test/a": ("kept", ""),
    "http://licensed.test/duty/a": ("kept", "rsl:attribution"),
    "http://down.test/a": ("kept", ""),
}
RESERVED = (
    "http://moved.test/a", "http://signals.test/a", "http://licensed.test/no/a", "http://licensed.test/paid/a",
)  # fmt: skip
ENDS |= dict.fromkeys(RESERVED, ("site-opted-out", ""))
NAMING_HOSTS = {"rsl-head.test", "rsl-link.test", "said.test", PRECEDENCE_HOST}
"""Hosts with pages that name a licence by a link."""
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


class Crawled(NamedTuple):
    crawl: Crawl
    cases: list
    ends: dict[str, tuple[str, str]]
    fetched: list[str]  # URLs in the order of the access log

    def violations(self, letter: str) -> list[str]:
        reasons = {url: reason for url, (reason, _) in self.ends.items()}
        return violations(self.cases, letter, reasons, set(self.fetched))


def crawled(directory: Path, letter: str, **started) -> Crawled:
    """A crawl for the purpose *letter*."""
    web, cases = consent_web(document)
    seeds = directory / "seeds.txt"
    seeds.write_text("\n".join([seeds_of(cases), *(url for url in ENDS if "/from-" not in url)]))
    with serving(FixedWeb({**web.sites, **SITES})) as server:
        options = {"OPTOUTS": "", "PURPOSE": PURPOSES[letter], "HOST_INTERVAL_S": 0.02}
        crawl = Crawl(directory / "job", server, started.pop("project", ROOT), **options)
        result = crawl.start(str(seeds), **started).wait()
        assert result.code == 0 and "Traceback" not in result.output, result.output[-3000:]
        return Crawled(
            crawl, cases, crawl.ended(), [f"http://{entry.host}{entry.path}" for entry in server.log_entries]
        )


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Crawled:
    """A crawl for training, of which all paths that it opens for writing are in the file written.txt beside it."""
    base = tmp_path_factory.mktemp("consent")
    project = base / "project"
    project.mkdir()
    (project / "scrapy.cfg").write_text("[settings]\ndefault = spiderling.settings\n")
    (project / "sitecustomize.py").write_text(RECORDER.format(log=str(base / "written.txt"), events=EVENTS))
    return crawled(base, "T", project=project, fresh=True)  # which reads sitecustomize.py


def test_each_page_is_fetched_and_kept_as_its_owner_says(first):
    assert first.violations("T") == []
    for_moved = Counter(["http://ai-text.test/ai.txt"])
    twice = {url: number for url, number in (Counter(first.fetched) - for_moved).items() if number > 1}
    assert {urlsplit(url).hostname for url in twice} == NAMING_HOSTS, "nothing but what names a licence by a link"
    assert set(twice.values()) == {2}
    assert len({urlsplit(case.url).hostname for case in first.cases}) >= 30
    assert {case.end for case in first.cases} >= {
        "site-opted-out",
        "opted-out",
        "noindex",
        "host-refused",
        "challenged",
    }


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["S", "R"])
def test_so_it_is_for_other_purposes(letter, tmp_path):
    assert crawled(tmp_path, letter).violations(letter) == []


def test_the_table_of_precedence_is_true_of_every_pair(first):
    lines = (ROOT / "docs/opt-outs.md").read_text("utf-8").splitlines()
    expected = {}
    for line in takewhile(bool, lines[lines.index("| no says | then | unless |") + 2 :]):
        names, letter, exceptions = (cell.strip() for cell in line.strip("|").split("|"))
        assert not exceptions or exceptions.endswith(" says yes: kept")
        says_yes = re.findall(r"`([\w-]+)`", exceptions)
        for no in re.findall(r"`([\w-]+)`", names):
            expected |= {(no, yes): "K" if yes in says_yes else letter for yes in SPEAKERS if yes != no}
    assert expected.keys() == set(pairs())
    told = {(no, yes): first.ends[f"http://{PRECEDENCE_HOST}/{no}/{yes}"][0] for no, yes in expected}
    assert {pair: end for pair, end in told.items() if end not in LETTERS[expected[pair]]} == {}


def test_documents_and_ends_say_which_signals_there_were(first):
    documents = {doc.url: doc.attributes for doc in first.crawl.documents()}
    got = {
        url: (reason, documents[url].get("optout", "") if reason == "kept" else detail)
        for url, (reason, detail) in first.ends.items()
    }
    assert {url: got.get(url) for url in ENDS} == ENDS
    assert {url for url in got if "/from-" in url} == {"http://links.test/from-noindex"}, "other links are not followed"
    assert {got[url][0] for url in got if "links.test" in url and url not in ENDS} <= {"http-error"}
    licences = [documents[url].get("licence") for url in ("http://said.test/paid/19", "http://licensed.test/duty/a")]
    assert licences == ["attribution (RSL)"] * 2 and documents["http://links.test/"].get("licence") is None


def test_no_page_is_asked_for_before_the_files_of_its_site(first):
    asked: dict[str, list[str]] = {}
    for url in first.fetched:
        asked.setdefault(urlsplit(url).hostname or "", []).append(url.partition(".test")[2])
    assert Counter(asked.pop("fees.test")) == dict.fromkeys(["/robots.txt", "/l.xml", "/none.xml"], 1), (
        "once for all pages and sites, as its robots.txt allows"
    )
    for host in SITES.keys() & asked:
        paths = [path for path in asked[host] if not path.endswith(".xml")]
        assert tuple(paths[:3]) == SITE_FILES
    assert not set(RESERVED) & set(first.fetched)


def test_ledger_holds_what_every_site_was_asked_and_answered(first):
    with closing(Inspection(first.crawl.directory)) as inspection:
        rows = inspection.rows("SELECT * FROM consents")
        purposes = json.loads(inspection.meta["purposes"])
    said = {(row["origin"].removeprefix("http://"), row["file"]): (row["answer"], row["says"]) for row in rows}
    ours = {key: answer for key, (answer, _) in said.items() if key[0] in SITES}
    licences = {key: answer for key, answer in ours.items() if key[1].endswith(".xml")}
    assert licences == {
        ("licensed.test", "/l.xml"): "200", ("licensed.test", "/duty.xml"): "200", ("fees.test", "/l.xml"): "200",
        ("fees.test", "/none.xml"): "404", ("fees.test", "/secret/l.xml"): "no answer",
        ("said.test", "/free.xml"): "200",
    }  # fmt: skip
    assert ours.keys() - licences.keys() == {
        (host, file) for host in SITES for file in SITE_FILES if host != "fees.test" or file == "/robots.txt"
    }
    assert said["signals.test", "/robots.txt"] == ("200", "content-signal:search=yes content-usage:train-ai=n")
    assert said["ai-text.test", "/ai.txt"] == said["moved.test", "/ai.txt"] == ("200", "ai-txt")
    assert said["links.test", "/robots.txt"] == ("404", "")
    assert said["down.test", "/.well-known/tdmrep.json"] == ("503", "")
    assert purposes == ["ai-train"]


def test_nothing_is_left_outside_of_the_directory_of_the_crawl(first):
    """Libraries make temporary files when they are imported, which are gone."""
    directory = first.crawl.directory
    written = directory.with_name("written.txt").read_text().splitlines()
    places = {os.path.realpath(line.partition(" ")[2].removeprefix("file:").partition("?")[0]) for line in written}
    mine = [place for place in places if Path(place).is_relative_to(directory)]
    assert len(mine) >= 5, "state, lock, corpus, log"
    others = {place for place in places if os.path.exists(place) and place not in mine and "__pycache__" not in place}
    assert {place for place in others if not place.startswith(("/dev/", "/proc/")) and not place.isdecimal()} <= {
        os.path.realpath(directory)
    }
    names = {str(path.relative_to(directory)) for path in directory.rglob("*")}
    assert all("passwd" not in name and "test" not in name for name in names), names


class RestlessWeb(FixedWeb):
    """Each answer names another licence."""

    def respond(self, host: str, path: str) -> WebResponse:
        return saying("r", "", link(f"/{random()}.xml")) if path == "/" else super().respond(host, path)


def test_a_page_that_names_another_licence_each_time_is_fetched_twice(tmp_path):
    """It was fetched for ever, and so were licences, from whatever host it named."""
    with serving(RestlessWeb({"r.test": {}, "fees.test": {}})) as server:
        crawl = Crawl(tmp_path / "job", server, OPTOUTS="")
        assert crawl.run("http://r.test/").code == 0
        asked = [entry.path for entry in server.log_entries if entry.path not in SITE_FILES]
    assert crawl.ended()["http://r.test/"][0] == "opted-out"
    assert [path == "/" for path in asked] == [True, False, True]
