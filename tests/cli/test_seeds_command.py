"""``scrapy seeds``: sources and the check of seeds, against real servers on loopback; dumps and indexes as files."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, document, flags, scrapy
from test_progress_bars import on_terminal

from spiderling.languages.seeds import read_seeds
from webs.web import WebResponse, html, plain, redirect


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_accepts_and_never_answers_is_named_at_once_and_given_up(tmp_path, scheme, monkeypatch):
    out = tmp_path / "seeds.txt"
    with socket.create_server(("127.84.13.99", 0)) as silent:
        port = silent.getsockname()[1]
        places = ("engine.download_handler", "seeding")
        constants = {f"spiderling.{place}.FIRST_BYTE_TIMEOUT_S": 0.5 for place in places}
        monkeypatch.setenv("CONSTANTS", json.dumps(constants))
        limits = {"OFFLINE_WAIT_S": 1, "HOSTS": "silent.test=127.84.13.99", "PORTS": "all"}
        given = flags(DEFAULTS | {f"SPIDERLING_{name}": value for name, value in limits.items()})
        ended = scrapy("seeds", "sitemap", f"{scheme}://silent.test:{port}", "-a", "lang=cs", "-o", str(out), *given)
    asking, away, error = ended.log.splitlines()
    assert ended.code == 3
    assert asking.startswith(f"Asking {scheme}://silent.test:{port}/robots.txt; an answer may take 0.5 s")
    assert away.startswith(f"The network seems to be away: 1 of 1 hosts fail: timeout (silent.test:{port})")
    assert f"1 of 1 hosts fail: timeout (silent.test:{port}), for as long as SPIDERLING_OFFLINE_WAIT_S=1" in error
    assert error.endswith(f"Stopped with 0 new seeds in {out}; the same command goes on.")


def xml(text: str) -> WebResponse:
    return WebResponse(200, {"Content-Type": "application/xml"}, text.encode())


def urlset(*urls: str) -> str:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def index(*urls: str) -> str:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'


DUMP = (
    "-- MySQL dump\nCREATE TABLE `externallinks` (\n  `el_id` int,\n  `el_from` int,\n"
    "  `el_to_domain_index` varbinary(255),\n  `el_to_path` blob\n);\n"
    "INSERT INTO `externallinks` VALUES (1,5,'https://cz.example.www.','/a\\'(b),c'),(2,5,'http://cz.other.','/'),"
    "(3,6,'https://org.third.:8080','NULL'),(4,6,'http://com.facebook.','/x');\n"
    "-- Dump completed on 2026-11-01\n"
)
CAPTURES = [
    {"url": "http://one.cz/a", "status": "200", "languages": "ces"},
    {"url": "http://one.cz/b", "status": "200", "languages": "ces,eng"},
    {"url": "http://two.cz/", "status": "200", "languages": "eng"},
    {"url": "http://three.cz/", "status": "200"},
    {"url": "http://four.com/", "status": "200", "languages": "ces"},
    {"url": "http://five.com/", "status": "200"},
    {"url": "http://six.cz/", "status": "404", "languages": "ces"},
]
HOMES = ["http://four.com/", "http://one.cz/", "http://three.cz/"]
QUERY = "/index?url=%2A.{}&output=json&fl=url%2Cstatus%2Clanguages&filter=%3Dstatus%3A200"


def json_answer(value: object) -> WebResponse:
    return plain(value if isinstance(value, str) else json.dumps(value))


PAGE = json_answer("".join(json.dumps(capture) + "\n" for capture in CAPTURES))
INDEX = {
    "/collinfo.json": json_answer([{"id": "CC-MAIN-2026-40", "cdx-api": "http://cc.test/index"}]),
    QUERY.format("cz") + "&showNumPages=true": json_answer({"pages": 40, "pageSize": 5, "blocks": 200}),
    **{QUERY.format("cz") + f"&page={number}": PAGE for number in range(40)},
    "/down.json": json_answer("<html>Service Unavailable</html>"),
}
ENGLISH = "The house that stood at the end of the road was old, and nobody in the village knew who had built it there. "
WEB = {
    "a.test": {
        "/robots.txt": plain("User-agent: *\nDisallow: /private\nSitemap: http://a.test/index.xml\n"),
        "/index.xml": xml(index("/one.xml", "http://a.test/two.xml.gz", "http://a.test/private/x.xml", "/no.xml")),
        "/one.xml": xml(urlset("http://a.test/1", "http://a.test/2#x", "http://a.test/1", "http://other.test/")),
        "/two.xml.gz": WebResponse(
            200, {"Content-Type": "application/gzip"}, gzip.compress(urlset("http://a.test/3").encode())
        ),
    },
    "b.test": {"/sitemap.xml": xml(urlset(*(f"http://b.test/{n}" for n in range(9))))},
    "broken.test": {"/sitemap.xml": xml("<urlset><url><loc>http://broken.test/1</loc></url><url")},
    "no.test": {"/sitemap.xml": html("<h1>no sitemap</h1>")},
    "many.test": {"/sitemap.xml": xml(urlset(*(f"http://many.test/{n}" for n in range(50_003))))},
    "loop.test": {"/sitemap.xml": xml(index("http://loop.test/sitemap.xml", "http://loop.test/sitemap.xml?2"))},
    "shut.test": {"/robots.txt": plain("User-agent: *\nDisallow: /")},
    "slow.test": {
        "/robots.txt": plain("Sitemap: http://slow.test/index.xml"),
        "/index.xml": xml(index(*(f"http://slow.test/{n}.xml" for n in range(4)))),
        **{f"/{n}.xml": xml(urlset(f"http://slow.test/page{n}")) for n in range(4)},
    },
    "good.test": {
        "/": html(document("g", count=6)),
        "/2": html(document("g2", count=6) + "<br>" * 3000),
        "/moved": html(document("moved", count=6) + "<br>" * 600),
    },
    "moved.test": {"/": redirect("http://good.test/moved")},
    "english.test": {"/": html(f"<html><body>{f'<p>{ENGLISH * 4}</p>' * 3}</body></html>")},
    "cc.test": INDEX,
}


@pytest.fixture
def settings(server):
    return flags({**DEFAULTS, "SPIDERLING_HOSTS": server.hosts_option})


@pytest.fixture
def seeds(settings, tmp_path):
    """Runs ``scrapy seeds`` on the loopback web, with seeds.txt in the test's directory as its output."""

    def run(*arguments, lang="cs", output="seeds.txt"):
        return scrapy("seeds", *arguments, "-a", f"lang={lang}", "-o", str(tmp_path / output), *settings)

    return run


def urls(path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]


# -- sitemaps


def test_sitemaps_of_several_sites(seeds, tmp_path):
    ended = seeds("sitemap", "http://a.test", "http://b.test", "http://loop.test", "--per-host", "5")
    assert ended.code == 0, ended.log
    found = urls(tmp_path / "seeds.txt")
    assert sorted(url for url in found if "a.test" in url) == [f"http://a.test/{n}" for n in (1, 2, 3)]
    assert len(found) == 8, "five of b.test"
    assert "8 new seeds" in ended.out and "which holds 2 hosts" in ended.out
    assert "robots.txt forbids" in ended.out or "robots-forbidden" in ended.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seeds.txt"], "its state is removed when it is whole"


def test_in_a_project_without_the_add_on_it_asks_in_the_same_way(server, settings, tmp_path):
    """It asked as stock Scrapy does, without robots.txt and at once."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own\n")
    (tmp_path / "own.py").write_text("COMMANDS_MODULE = 'spiderling.commands'\n")
    before = len(server.log_entries)
    ended = scrapy("seeds", "sitemap", "http://a.test/one.xml", "-a", "lang=cs", "-o", "s.txt", *settings, cwd=tmp_path)
    assert ended.code == 0, ended.log
    assert urls(tmp_path / "s.txt")
    assert [entry.path for entry in server.log_entries[before:]] == ["/robots.txt", "/one.xml"]


def test_what_is_known_is_not_added_again(seeds, tmp_path):
    (tmp_path / "seeds.txt").write_text("# mine\nhttp://a.test/1\n")
    ended = seeds("sitemap", "http://a.test/one.xml")
    assert ended.code == 0, ended.log
    assert (tmp_path / "seeds.txt").read_text().splitlines() == [
        "# mine", "http://a.test/1", "# from sitemap", "http://a.test/2",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["no.test", "shut.test"])
def test_site_without_a_sitemap(seeds, name):
    message = seeds("sitemap", f"http://{name}").refusal
    assert message.startswith("sitemap gave no seeds")


def test_all_urls_of_a_sitemap_are_taken(seeds, tmp_path):
    """Also those that are more than the protocol allows."""
    ended = seeds("sitemap", "http://many.test", "--per-host", "100000")
    assert len(urls(tmp_path / "seeds.txt")) == 50_003, ended


def test_a_broken_sitemap_gives_what_can_be_read(seeds, tmp_path):
    seeds("sitemap", "http://broken.test")
    assert urls(tmp_path / "seeds.txt") in ([], ["http://broken.test/1"])


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_command_that_was_ended_goes_on(server, settings, tmp_path, number):
    """The four sitemaps of slow.test, one a second: what was asked before is not asked again."""
    out = tmp_path / "seeds.txt"
    command = [sys.executable, "-m", "scrapy", "seeds", "sitemap", "http://slow.test", "-a", "lang=cs", "-o", str(out)]
    command += [*settings, "-s", "SPIDERLING_HOST_INTERVAL_S=1"]
    before = len(server.log_entries)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + DEADLINE_S
        while not (out.exists() and urls(out)) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)  # a checkpoint is made every 0.2 s
        process.send_signal(number)
        process.wait(DEADLINE_S)
    some = urls(out)
    assert 0 < len(some) < 4
    assert (tmp_path / "seeds.txt.state").is_dir()
    ended = scrapy(*command[3:])
    assert ended.code == 0, ended.log
    assert sorted(urls(out)) == [f"http://slow.test/page{n}" for n in range(4)]
    asked = Counter(entry.path for entry in server.log_entries[before:] if entry.path.endswith(".xml"))
    assert asked["/index.xml"] == 1 and asked.total() <= 6


def test_home_pages(seeds, tmp_path):
    ended = seeds("sitemap", "http://a.test", "http://b.test", "--homes")
    assert ended.code == 0, ended.log
    assert sorted(urls(tmp_path / "seeds.txt")) == ["http://a.test/", "http://b.test/"]


# -- Wikipedia and Common Crawl


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wikipedia_by_its_dump(seeds, tmp_path, pack):
    path = tmp_path / "x-externallinks.sql.gz"
    path.write_bytes(pack(DUMP.encode()))
    ended = seeds("wikipedia", str(path))
    assert ended.code == 0, ended.log
    assert urls(tmp_path / "seeds.txt") == [
        "https://www.example.cz/a'(b),c",
        "http://other.cz/",
        "https://third.org:8080/",
    ]


@pytest.mark.parametrize(
    ("source", "content", "message"),
    [
        ("wikipedia", gzip.compress(DUMP.encode() * 50)[:-40], "cannot be read to its end (it is not whole); download"),
        ("wikipedia", DUMP.partition("-- Dump")[0].encode(), "breaks off before its end; download it again. 3 new"),
        ("wikipedia", b"<html>not found</html>", "is no dump of external links; take"),
        ("wikipedia", DUMP.replace("el_to_path", "el_to").encode(), "is no dump of external links; take"),
        ("commoncrawl", gzip.compress(b"no index\n"), "line 1: no line of a CDXJ index"),
    ],
    ids=["cut", "without an end", "no dump", "of another form", "no index"],
)
def test_a_file_that_is_broken_or_none_of_these(seeds, tmp_path, source, content, message):
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    assert message in seeds(source, str(path)).refusal


def test_common_crawl_by_its_server(server, seeds, tmp_path):
    collections = ("--collections", "http://cc.test/collinfo.json", "--pages", "2", "-a", "tlds=cz,sk")
    ended = seeds("commoncrawl", *collections)
    assert ended.code == 0, ended.log
    assert sorted(urls(tmp_path / "seeds.txt")) == HOMES, "none of .sk, of which the index has nothing (404)"
    asked = [entry.path.rpartition("=")[2] for entry in server.log_entries if "&page=" in entry.path]
    assert sorted(asked) == ["0", "20"], "spread over the forty"


def test_common_crawl_that_gives_no_answer_is_asked_again(server, seeds, tmp_path):
    for times in (1, 2):
        ended = seeds("commoncrawl", "--collections", "http://cc.test/down.json")
        assert "answered 200 with something that is no answer of an index of Common Crawl" in ended.refusal
        assert (tmp_path / "seeds.txt.state").is_dir(), "the same request is made again"
        assert [entry.path for entry in server.log_entries].count("/down.json") == times


def test_common_crawl_by_a_cdx_file(seeds, tmp_path):
    path = tmp_path / "cdx-00000.gz"
    lines = "".join(f"cz,x)/ 20260101000000 {json.dumps(capture)}\n" for capture in CAPTURES)
    path.write_bytes(gzip.compress(lines.encode()))
    assert seeds("commoncrawl", str(path)).code == 0
    assert sorted(urls(tmp_path / "seeds.txt")) == HOMES


# -- the check


def test_check(seeds, tmp_path):
    path = tmp_path / "all.txt"
    path.write_text(
        "# from news (trusted)\nhttp://good.test/2\nhttp://good.test/\n# moved\nhttp://moved.test/\n"
        "# from search\nhttp://english.test/\nhttp://good.test/lost\n"
    )
    ended = seeds("check", str(path), output="good.txt")
    assert ended.code == 0, ended.log
    lines = (line.strip().rsplit(maxsplit=4) for line in ended.out.splitlines() if line.startswith("  "))
    table = {name: row for name, *row in lines}
    assert table["from news (trusted)"][:3] == ["2", "2", "2"], ended.out
    assert table["from search"] == ["2", "1", "0", "0.0"]
    assert table["english.test"][:3] == ["1", "1", "0"]
    assert sorted(urls(tmp_path / "good.txt")) == ["http://good.test/", "http://good.test/2", "http://moved.test/"]
    rates = {name: float(row[-1]) for name, row in table.items() if name in ("good.test", "moved.test")}
    first = urls(tmp_path / "good.txt")[0]
    assert max(rates, key=rates.get) in first, "those of the host with the best yield first"
    assert {seed.url for seed in read_seeds(str(tmp_path / "good.txt")) if seed.trusted} == {
        "http://good.test/", "http://good.test/2"
    }  # fmt: skip
    assert "3 of 5 seeds are good" in ended.out and "wrong-language 1" in ended.out and "no page 1" in ended.out
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["all.txt", "good.txt"]


@pytest.mark.slow
def test_a_bar_on_a_terminal_tells_how_far_it_is(settings, tmp_path):
    (tmp_path / "all.txt").write_text("http://good.test/\nhttp://english.test/\n")
    out = str(tmp_path / "good.txt")
    shown = on_terminal("seeds", "check", str(tmp_path / "all.txt"), "-a", "lang=cs", "-o", out, *settings)
    assert "2/2 [" in shown


# -- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sitemap",), "name the sites: scrapy seeds sitemap"),
        (("sitemap", "mailto:x@a.test"), "mailto:x@a.test is no site"),
        (("check", "none.txt"), "the seed file none.txt cannot be read"),
    ],
)
def test_bad_input(seeds, tmp_path, arguments, message):
    assert seeds(*arguments).refusal.startswith(message)
    assert not (tmp_path / "seeds.txt").exists()


@pytest.mark.parametrize("arguments", [("sitemap", "a.test"), ("check", "urls.txt")])
def test_a_refused_command_leaves_no_file(tmp_path, arguments):
    """Without a contact and a private network nothing may be asked."""
    (tmp_path / "urls.txt").write_text("http://a.test/\n")
    names = [str(tmp_path / name) if name.endswith(".txt") else name for name in arguments]
    ended = scrapy("seeds", *names, "-a", "lang=cs", "-o", str(tmp_path / "seeds.txt"))
    assert ended.code == 1 and "SPIDERLING_CONTACT" in ended.log
    assert [path.name for path in tmp_path.iterdir()] == ["urls.txt"]


def test_unknown_language(seeds):
    assert seeds("sitemap", "http://a.test", lang="zz").refusal.startswith("there is no model for the language 'zz'")


def test_unwritable_output(seeds):
    assert "cannot be written" in seeds("sitemap", "http://a.test", output="none/seeds.txt").refusal


@pytest.mark.parametrize("arguments", [(), ("nothing",)])
def test_usage(seeds, arguments):
    ended = seeds(*arguments)
    assert ended.code == 2
    assert "scrapy seeds sitemap|wikipedia|" in ended.out + ended.log
