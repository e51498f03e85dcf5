"""``scrapy inspect``: hosts and URLs of a crawl as text, read beside the running crawl and after a kill."""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Crawl, paragraphs, scrapy, serving
from finished import SITES
from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.reasons import Reason
from spiderling.commands.inspect import Command
from spiderling.jobdir.as_text import of_host, of_url, overview
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.state_reader import urls_of
from spiderling.jobdir.status import status_of

EVERY = SITES | {"nowhere.test": {"/": None}}


def told(finished: Crawl, *arguments: str) -> str:
    """What the command prints, without a process of its own."""
    with closing(Inspection(finished.directory)) as opened:
        if not arguments:
            return "\n".join(overview(status_of(opened)))
        if arguments[0] == "host":
            return "\n".join(of_host(opened, arguments[1], urls="--urls" in arguments))
        return "\n".join(of_url(opened, arguments[1]))


def run(finished: Crawl, *arguments: str) -> str:
    """The output of the real command."""
    ended = scrapy("inspect", str(finished.directory), *arguments)
    assert ended.code == 0, ended.log
    assert ended.log == ""
    return ended.out


def verdicts(finished: Crawl, url: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in told(finished, "url", url).splitlines() if line[:12].strip()}


def test_overview_of_a_crawl(finished: Crawl) -> None:
    out = told(finished)
    assert "crawling    no process" in out
    for title in ("How URLs ended", "Yield by distance from the seeds", "hosts that gave most", "Output"):
        assert title in out
    kept = finished.state().ends["kept"]
    assert any(line.split() == ["distance", "1", "4", *line.split()[3:]] for line in out.splitlines())
    assert any(line.split()[:2] == ["kept", str(kept)] for line in out.splitlines())


def test_a_kept_page_is_shown_with_its_origin_its_scores_and_its_text(finished: Crawl) -> None:
    found = verdicts(finished, "http://A.test/target#part")
    assert found["verdict"] == "kept: its text is in the corpus"
    assert found["found on"] == "http://a.test/moved"
    assert found["badness"] and found["langs"] == "cs:1.00"
    assert found["title"] == 'Strana target <&> "quoted"'
    out = told(finished, "url", "http://a.test/target")
    assert all(paragraph in out for paragraph in paragraphs('target <&> "quoted"'))


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("http://a.test/private", "robots-forbidden: "),
        ("http://a.test/gone", "http-error: "),
        ("http://a.test/moved", "redirected: "),
        ("http://poor.test/", "boilerplate-only: "),
        ("http://a.test/picture.jpg", "never accepted; a mention of it is refused: out-of-scope"),
        ("http://nowhere.test/", "dns: "),
        ("http://unknown.test/", "never found"),
        ("http://a.test/nowhere", "never found"),
    ],
)
def test_why_a_url_is_not_in_the_corpus(finished: Crawl, url: str, verdict: str) -> None:
    assert verdicts(finished, url)["verdict"].startswith(verdict)


def test_why_a_url_of_a_retired_host_is_not_in_the_corpus(finished: Crawl) -> None:
    parked = [url for url, is_parked in finished.state().urls if is_parked]
    found = verdicts(finished, parked[0])
    assert found["verdict"].startswith(
        "host-retired: its host gave too little text for the bytes it cost; it is parked"
    )
    assert found["found on"] == "http://poor.test/"


def test_what_was_measured_is_told(finished: Crawl) -> None:
    found = verdicts(finished, "http://a.test/short")
    assert found["verdict"].startswith("bad-quality: ")
    assert found["because"].startswith("only ") and found["because"].endswith(" characters of clean text")
    assert found["found on"] == "http://a.test/"
    assert verdicts(finished, "http://a.test/")["found on"].startswith("no page: a seed")


def test_every_end_of_the_counts_is_on_record(finished: Crawl) -> None:
    state = finished.state()
    with closing(Inspection(finished.directory)) as opened:
        stories = [opened.story(f"http://{host}{path}") for host, paths in EVERY.items() for path in paths]
        named = {story.url: story.ended.end.reason for story in stories if story.ended}
        hosts = [opened.host(name)["id"] for name in EVERY]
        ends = sum((opened.ends_of(host) for host in hosts), start=type(opened.ends_of(hosts[0]))())
    assert len(named) > 60
    assert {**ends, Reason.HOST_RETIRED.value: state.ends["host-retired"]} == state.ends


def test_a_host_with_its_queue(finished: Crawl) -> None:
    out = told(finished, "host", "poor.test", "--urls")
    assert "state       retired" in out and "distance    1" in out
    assert f"{finished.state().ends['host-retired']:,} URLs at " in out
    listed = [line for line in out.splitlines() if "http://poor.test/" in line]
    assert len(listed) == finished.state().ends["host-retired"]
    assert "boilerplate-only 11" in out
    assert told(finished, "host", "https://www.poor.test:443/x") == told(finished, "host", "poor.test")


def test_views_are_readable_with_sqlite(finished: Crawl) -> None:
    with closing(sqlite3.connect(finished.directory / "state/frontier.sqlite")) as file:
        ends = {reason: urls for reason, urls, _ in file.execute("SELECT * FROM ends")}
        all_hosts, at0, at1 = file.execute("SELECT hosts_at, hosts, documents FROM yield").fetchall()
        assert file.execute("SELECT * FROM waiting").fetchall() == []
    assert ends == finished.state().ends
    assert all_hosts == ("all", 6, ends["kept"])
    assert at0[:2] == ("distance 0", 2) and at1[:2] == ("distance 1", 4)


def test_a_running_crawl_can_be_read_and_goes_on(tmp_path: Path) -> None:
    with serving(SITES) as server:
        crawl = Crawl(tmp_path / "job", server)
        running = crawl.start("http://b.test/", HOST_INTERVAL_S=0.2)
        running.until(lambda: (tmp_path / "job/crawl.log").exists() and len(list(tmp_path.glob("job/corpus/*"))) > 0)
        out = told(crawl, "host", "b.test", "--urls")
        assert "http://b.test/" in out
        assert f"process {running.process.pid} on " in told(crawl)
        with closing(Inspection(crawl.directory)) as opened:
            assert list(problems(opened)) == []
            waiting = urls_of(opened.connection, opened.host("b.test")["id"])[0]
            assert opened.story(waiting.url).row == waiting
        running.process.kill()
        running.process.wait()
    out = run(crawl, "--check")
    assert out.startswith("The crawl is whole.\n\nCompared:\n")
    assert "no process" in told(crawl)


def test_the_command_prints_it(finished: Crawl) -> None:
    assert run(finished, "url", "http://a.test/target") == told(finished, "url", "http://a.test/target") + "\n"


@pytest.mark.parametrize("arguments", [(), ("job", "host"), ("job", "page", "x"), ("job", "host", "a", "b")])
def test_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="say scrapy inspect JOBDIR"):
        Command().run(list(arguments), argparse.Namespace())


def test_no_crawl_no_host_no_url(finished: Crawl, tmp_path: Path) -> None:
    ended = scrapy("inspect", str(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert "holds no crawl" in ended.log and "Traceback" not in ended.log
    with closing(Inspection(finished.directory)) as opened, pytest.raises(BadInput, match="is no http"):
        opened.story("ftp://a.test/")
    (tmp_path / "state").mkdir()
    (tmp_path / "state/frontier.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(JobdirError, match="cannot be read as the state of a crawl"):
        Inspection(tmp_path)
