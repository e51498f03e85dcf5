"""``scrapy seeds``: dumps and indexes as files."""

from __future__ import annotations

import errno
import gzip
import json
from contextlib import closing

import pytest
from conftest import scrapy

from spiderling.base.errors import StorageError
from spiderling.seeding import SeedFile
from tests.recorded_disk import Recording, recorded

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


@pytest.fixture
def seeds(tmp_path):
    """Runs ``scrapy seeds``, with seeds.txt in the test's directory as its output."""

    def run(*arguments, lang="cs", output="seeds.txt"):
        return scrapy("seeds", *arguments, "-a", f"lang={lang}", "-o", str(tmp_path / output))

    return run


class Full(Recording):
    """A disk on which a file can be made, and nothing be written to it."""

    def refusal(self, kind: str, name: str) -> int:
        return errno.ENOSPC if kind == "write" else 0


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


# -- bad input


def test_a_last_line_without_an_end_stays_a_line(seeds, tmp_path, dump):
    (tmp_path / "seeds.txt").write_text("http://mine.cz/a")
    assert seeds("wikipedia", dump, "--per-host", "1").code == 0
    assert (tmp_path / "seeds.txt").read_text().splitlines()[:3] == [
        "http://mine.cz/a", "# from wikipedia", "https://www.example.cz/a'(b),c",
    ]  # fmt: skip


def test_a_full_disk_is_said_in_a_sentence(tmp_path):
    full = pytest.raises(StorageError, match=r"seeds\.txt could not be written: No space left on device")
    with recorded(tmp_path, Full(tmp_path)), closing(SeedFile(tmp_path / "seeds.txt", 20)) as file, full:
        file.add("http://a.cz/")
    assert file.added == 0


def test_unknown_language(seeds, dump):
    assert seeds("wikipedia", dump, lang="zz").refusal.startswith("there is no model for the language 'zz'")


def test_unwritable_output(seeds, dump):
    assert "cannot be written" in seeds("wikipedia", dump, output="none/seeds.txt").refusal


@pytest.mark.parametrize("arguments", [(), ("nothing", "file"), ("commoncrawl",)])
def test_usage(seeds, arguments):
    ended = seeds(*arguments)
    assert ended.code == 2
    assert "scrapy seeds wikipedia|" in ended.out + ended.log


def test_a_section_without_a_seed_leaves_no_heading(tmp_path) -> None:
    (tmp_path / "seeds.txt").write_text("http://a.cz/")  # whose line has no end
    with closing(SeedFile(tmp_path / "seeds.txt", 20)) as file:
        file.comment("from nothing")
        file.comment("from something")
        assert file.add("http://b.cz/") and file.add("http://c.cz/")
    assert (tmp_path / "seeds.txt").read_text() == "http://a.cz/\n# from something\nhttp://b.cz/\nhttp://c.cz/\n"
