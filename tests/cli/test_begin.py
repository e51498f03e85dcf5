"""How a crawl begins and is taken up again, as its first and last lines tell."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from conftest import CONTACT, scrapy

SEED = "http://127.0.0.1:1/"  # nothing listens there, and it may not be asked


def begin(jobdir: Path, *arguments: str, code: int = 1) -> str:
    given = [part for setting in (CONTACT, "SPIDERLING_PORTS=1,80", f"JOBDIR={jobdir}") for part in ("-s", setting)]
    ended = scrapy("crawl", "spiderling", "-a", "lang=cs", *given, *arguments)
    assert ended.code == code
    assert "Traceback" not in ended.log
    return ended.log


def hosts(jobdir: Path) -> list[str]:
    with closing(sqlite3.connect(jobdir / "state/frontier.sqlite")) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM host ORDER BY name")]


def test_a_crawl_that_has_begun_gets_new_seeds_only_when_told_so(tmp_path: Path) -> None:
    assert "1 seed from " + SEED in begin(tmp_path / "job", "-a", f"seeds={SEED}")
    assert hosts(tmp_path / "job") == ["127.0.0.1:1"]
    log = begin(tmp_path / "job")  # the model's seeds are public sites: they must not creep in
    assert "seeds from" not in log
    assert "is finished: no URL waits." in log
    assert hosts(tmp_path / "job") == ["127.0.0.1:1"]
    begin(tmp_path / "job", "-a", "seeds=http://127.0.0.2:1/")
    assert hosts(tmp_path / "job") == ["127.0.0.1:1", "127.0.0.2:1"]


def test_a_crawl_without_a_page_says_why(tmp_path: Path) -> None:
    log = begin(tmp_path / "job", "-a", f"seeds={SEED}")
    assert "ERROR: No seed may be crawled: its host has no address that may be asked" in log
    assert (
        "No page could be fetched: its host has no address that may be asked: SPIDERLING_CONTACT allows public" in log
    )
    allowed = ("-s", "SPIDERLING_ALLOW_NETWORKS=127.0.0.0/8", "-s", "SPIDERLING_OFFLINE_WAIT_S=0")
    log = begin(tmp_path / "job", "-a", f"seeds={SEED}", *allowed, code=3)  # it is asked, and does not answer
    assert "1 discovered = 0 ends + 1 waiting" in log


def test_a_seed_with_a_port_outside_the_list_is_named(tmp_path: Path) -> None:
    log = begin(tmp_path / "job", "-a", "seeds=http://127.0.0.1:22/")
    assert "Refused http://127.0.0.1:22/: its port is not one of SPIDERLING_PORTS" in log


def test_the_terminal_shows_what_a_person_reads(tmp_path: Path) -> None:
    log = begin(tmp_path / "job", "-a", f"seeds={SEED}")
    assert "Enabled" not in log
    assert "Dumping Scrapy stats" not in log and "Using selector" not in log
    assert (tmp_path / "job/crawl.log").read_text().count("balance") == 1, "the summary is in the log file too"


def test_a_misspelt_spider_is_named(tmp_path: Path) -> None:
    ended = scrapy("crawl", "spiderlings", "-a", "lang=cs")
    assert ended.code == 2
    assert "there is no spider 'spiderlings'; did you mean spiderling?" in ended.log
    assert "Traceback" not in ended.log
