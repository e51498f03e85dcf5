"""``scrapy seeds``: dumps and indexes as files; the check of seeds, against real servers on loopback."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, document, flags, scrapy
from test_progress_bars import on_terminal

from spiderling.languages.seeds import read_seeds
from webs.web import html, redirect


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_accepts_and_never_answers_is_named_and_given_up(tmp_path, scheme, monkeypatch):
    seeds = tmp_path / "seeds.txt"
    with socket.create_server(("127.84.13.99", 0)) as silent:
        port = silent.getsockname()[1]
        constants = {"spiderling.engine.download_handler.FIRST_BYTE_TIMEOUT_S": 0.5}
        monkeypatch.setenv("CONSTANTS", json.dumps(constants))
        limits = {"OFFLINE_WAIT_S": 1, "HOSTS": "silent.test=127.84.13.99", "PORTS": "all"}
        given = flags(DEFAULTS | {f"SPIDERLING_{name}": value for name, value in limits.items()})
        seeds.write_text(f"{scheme}://silent.test:{port}")
        out = str(tmp_path / "good.txt")
        ended = scrapy("seeds", "check", str(seeds), "-a", "lang=cs", "-o", out, *given)
    away, error = ended.log.splitlines()
    assert ended.code == 3
    assert away.startswith(f"The network seems to be away: 1 of 1 hosts fail: timeout (silent.test:{port})")
    assert f"1 of 1 hosts fail: timeout (silent.test:{port}), for as long as SPIDERLING_OFFLINE_WAIT_S=1" in error


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
ENGLISH = "The house that stood at the end of the road was old, and nobody in the village knew who had built it there. "
WEB = {
    "slow.test": {f"/{n}": html(document(f"s{n}", count=6)) for n in range(8)},
    "good.test": {
        "/": html(document("g", count=6)),
        "/2": html(document("g2", count=6) + "<br>" * 3000),
        "/moved": html(document("moved", count=6) + "<br>" * 600),
    },
    "moved.test": {"/": redirect("http://good.test/moved")},
    "english.test": {"/": html(f"<html><body>{f'<p>{ENGLISH * 4}</p>' * 3}</body></html>")},
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


# -- Wikipedia and Common Crawl


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "x-externallinks.sql.gz"
    path.write_text(DUMP)
    return str(path)


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


def test_what_is_known_is_not_added_again_nor_more_of_a_host(seeds, tmp_path, dump):
    (tmp_path / "seeds.txt").write_text("# mine\nhttp://other.cz/\nhttps://third.org:8080/1\n")
    assert seeds("wikipedia", dump, "--per-host", "1").code == 0
    assert (tmp_path / "seeds.txt").read_text().splitlines() == [
        "# mine", "http://other.cz/", "https://third.org:8080/1", "# from wikipedia", "https://www.example.cz/a'(b),c",
    ]  # fmt: skip


def test_home_pages(seeds, tmp_path, dump):
    assert seeds("wikipedia", dump, "--homes").code == 0
    assert urls(tmp_path / "seeds.txt") == ["https://www.example.cz/", "http://other.cz/", "https://third.org:8080/"]


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


def test_in_a_project_without_the_add_on_it_asks_in_the_same_way(server, settings, tmp_path):
    """It asked as stock Scrapy does, without robots.txt and at once."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own\n")
    (tmp_path / "own.py").write_text("COMMANDS_MODULE = 'spiderling.commands'\n")
    (tmp_path / "all.txt").write_text("http://good.test/2\n")
    before = len(server.log_entries)
    ended = scrapy("seeds", "check", "all.txt", "-a", "lang=cs", "-o", "s.txt", *settings, cwd=tmp_path)
    assert ended.code == 0, ended.log
    assert urls(tmp_path / "s.txt")
    assert server.log_entries[before].path == "/robots.txt"


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_check_that_was_ended_goes_on(server, settings, tmp_path, number):
    """The eight pages of slow.test, two a second: what was asked before is not asked again."""
    out = tmp_path / "good.txt"
    results = tmp_path / "good.txt.results"
    (tmp_path / "all.txt").write_text("".join(f"http://slow.test/{n}\n" for n in range(8)))
    command = [sys.executable, "-m", "scrapy", "seeds", "check", str(tmp_path / "all.txt"), "-a", "lang=cs"]
    command += ["-o", str(out), *settings, "-s", "SPIDERLING_HOST_INTERVAL_S=0.5"]
    before = len(server.log_entries)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + DEADLINE_S
        while not (results.exists() and results.read_text().count("\n") > 1) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)  # a checkpoint is made every second
        process.send_signal(number)
        process.wait(DEADLINE_S)
    assert 0 < len(results.read_text().splitlines()) < 8
    assert (tmp_path / "good.txt.state").is_dir()
    ended = scrapy(*command[3:])
    assert ended.code == 0, ended.log
    assert sorted(urls(out)) == [f"http://slow.test/{n}" for n in range(8)]
    asked = [entry.path for entry in server.log_entries[before:] if entry.path[1:].isdigit()]
    assert asked.count(asked[0]) == 1 and len(asked) <= 12


@pytest.mark.slow
def test_a_bar_on_a_terminal_tells_how_far_it_is(settings, tmp_path):
    (tmp_path / "all.txt").write_text("http://good.test/\nhttp://english.test/\n")
    out = str(tmp_path / "good.txt")
    shown = on_terminal("seeds", "check", str(tmp_path / "all.txt"), "-a", "lang=cs", "-o", out, *settings)
    assert "0/2 [" in shown


# -- bad input


def test_bad_input(seeds, tmp_path):
    assert seeds("check", "none.txt").refusal.startswith("the seed file none.txt cannot be read")
    assert not (tmp_path / "seeds.txt").exists()


def test_a_refused_command_leaves_no_file(tmp_path):
    """Without a contact and a private network nothing may be asked."""
    (tmp_path / "urls.txt").write_text("http://a.test/\n")
    ended = scrapy("seeds", "check", str(tmp_path / "urls.txt"), "-a", "lang=cs", "-o", str(tmp_path / "seeds.txt"))
    assert ended.code == 1 and "SPIDERLING_CONTACT" in ended.log
    assert [path.name for path in tmp_path.iterdir()] == ["urls.txt"]


def test_unknown_language(seeds, dump):
    assert seeds("wikipedia", dump, lang="zz").refusal.startswith("there is no model for the language 'zz'")


def test_unwritable_output(seeds, dump):
    assert "cannot be written" in seeds("wikipedia", dump, output="none/seeds.txt").refusal


@pytest.mark.parametrize("arguments", [(), ("nothing", "file"), ("commoncrawl",), ("check", "one", "two")])
def test_usage(seeds, arguments):
    ended = seeds(*arguments)
    assert ended.code == 2
    assert "scrapy seeds wikipedia|" in ended.out + ended.log or "scrapy seeds check" in ended.log
