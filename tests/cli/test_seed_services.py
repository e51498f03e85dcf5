"""``scrapy seeds wikipedia|commoncrawl``: dumps, and an index as a file and from a server on loopback."""

from __future__ import annotations

import gzip
import json

import pytest
from conftest import DEFAULTS, scrapy, serving

from webs.web import FixedWeb, WebResponse

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


def told(value: object) -> WebResponse:
    body = value if isinstance(value, str) else json.dumps(value)
    return WebResponse(200, {"Content-Type": "application/json"}, body.encode())


PAGE = told("".join(json.dumps(capture) + "\n" for capture in CAPTURES))
INDEX = {
    "/collinfo.json": told([{"id": "CC-MAIN-2026-40", "cdx-api": "http://cc.test/index"}]),
    QUERY.format("cz") + "&showNumPages=true": told({"pages": 40, "pageSize": 5, "blocks": 200}),
    **{QUERY.format("cz") + f"&page={number}": PAGE for number in range(40)},
    "/down.json": told("<html>Service Unavailable</html>"),
}


@pytest.fixture(scope="module")
def server():
    with serving(FixedWeb({"cc.test": INDEX}, {"cc.test": "127.84.14.1"})) as running:
        yield running


@pytest.fixture
def seeds(tmp_path, server):
    options = {**DEFAULTS, "SPIDERLING_HOSTS": server.hosts_option}
    settings = [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    out = str(tmp_path / "seeds.txt")
    return lambda *arguments: scrapy("seeds", *arguments, "-a", "lang=cs", "-o", out, *settings)


@pytest.fixture
def found(tmp_path):
    return lambda: [line for line in (tmp_path / "seeds.txt").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wikipedia_by_its_dump(seeds, found, tmp_path, pack):
    path = tmp_path / "x-externallinks.sql.gz"
    path.write_bytes(pack(DUMP.encode()))
    ended = seeds("wikipedia", str(path))
    assert ended.code == 0, ended.log
    assert found() == ["https://www.example.cz/a'(b),c", "http://other.cz/", "https://third.org:8080/"]


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


def test_common_crawl_by_its_server(server, seeds, found):
    collections = ("--collections", "http://cc.test/collinfo.json", "--pages", "2", "-a", "tlds=cz,sk")
    ended = seeds("commoncrawl", *collections)
    assert ended.code == 0, ended.log
    assert sorted(found()) == HOMES, "none of .sk, of which the index has nothing (404)"
    asked = [entry.path.rpartition("=")[2] for entry in server.log_entries if "&page=" in entry.path]
    assert sorted(asked) == ["0", "20"], "spread over the forty"


def test_common_crawl_that_gives_no_answer_is_asked_again(server, seeds, tmp_path):
    for times in (1, 2):
        ended = seeds("commoncrawl", "--collections", "http://cc.test/down.json")
        assert "answered 200 with something that is no answer of an index of Common Crawl" in ended.refusal
        assert (tmp_path / "seeds.txt.state").is_dir(), "the same request is made again"
        assert [entry.path for entry in server.log_entries].count("/down.json") == times


def test_common_crawl_by_a_cdx_file(seeds, found, tmp_path):
    path = tmp_path / "cdx-00000.gz"
    lines = "".join(f"cz,x)/ 20260101000000 {json.dumps(capture)}\n" for capture in CAPTURES)
    path.write_bytes(gzip.compress(lines.encode()))
    assert seeds("commoncrawl", str(path)).code == 0
    assert sorted(found()) == HOMES
