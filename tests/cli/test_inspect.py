"""``scrapy inspect``: hosts and URLs of a crawl as text, read beside the running crawl and after a kill."""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Crawl, page, paragraphs, scrapy, serving
from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.reasons import Reason
from spiderling.commands.inspect import Command
from spiderling.jobdir.as_text import of_host, of_url, overview
from spiderling.jobdir.damage import problems
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.state_reader import urls_of
from spiderling.jobdir.status import status_of
from webs.web import FixedWeb, html, plain, redirect

PAGES = {f"/{n}": page(f"n{n}", f"/{n + 1}", f"/{n + 2}") for n in range(60)}
SITES = {
    "a.test": {
        "/": page("a", "/short", "/private", "/moved", "/gone", "http://poor.test/", "http://b.test/0"),
        "/robots.txt": plain("User-agent: *\nDisallow: /private"),
        "/short": html(f"<p>{paragraphs('short', 1, 2)[0]}</p>"),
        "/moved": redirect("/target"),
        "/target": page('target <&> "quoted"'),
    },
    "b.test": PAGES,
    "poor.test": {
        "/": html("".join(f'<a href="/{n}">{n}</a> ' for n in range(25))),
        **{f"/{n}": html(f"<b>{n}</b>" + "<br>" * 200) for n in range(25)},
    },
}
ADDRESSES = {host: f"127.84.7.{number}" for number, host in enumerate(SITES, 1)}
SETTINGS = {
    "YIELD_PROFILE": "paper",
    "QUALITY": "text_chars=400..",
    "CONSTANTS": {"frontier.host_closing.MIN_BYTES": 1000},
}


@pytest.fixture(scope="module")
def server():
    with serving(FixedWeb(SITES, ADDRESSES)) as running:
        yield running


@pytest.fixture(scope="module")
def crawl(server, tmp_path_factory) -> Crawl:
    """A crawl that was killed once, and is finished."""
    crawl = Crawl(tmp_path_factory.mktemp("inspected") / "job", server, **SETTINGS)
    running = crawl.start("http://a.test/", HOST_INTERVAL_S=0.1)
    running.until(lambda: len(server.log_entries) > 25)
    running.process.kill()
    running.process.wait()
    assert crawl.run(HOST_INTERVAL_S=0.02).code == 0
    return crawl


def told(crawl: Crawl, *arguments: str) -> str:
    """What the command prints, without a process of its own."""
    with closing(Inspection(crawl.directory)) as opened:
        if not arguments:
            return "\n".join(overview(status_of(opened)))
        if arguments[0] == "host":
            return "\n".join(of_host(opened, arguments[1], urls="--urls" in arguments))
        return "\n".join(of_url(opened, arguments[1]))


def run(crawl: Crawl, *arguments: str) -> str:
    """The output of the real command."""
    ended = scrapy("inspect", str(crawl.directory), *arguments)
    assert ended.code == 0, ended.log
    assert ended.log == ""
    return ended.out


def verdicts(crawl: Crawl, url: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in told(crawl, "url", url).splitlines() if line[:12].strip()}


def test_overview_of_a_crawl(crawl: Crawl) -> None:
    out = told(crawl)
    assert "crawling    no process" in out
    for title in ("How URLs ended", "Yield by distance from the seeds", "hosts that gave most", "Output"):
        assert title in out
    kept = crawl.state().ends["kept"]
    assert any(line.split() == ["distance", "1", "2", *line.split()[3:]] for line in out.splitlines())
    assert any(line.split()[:2] == ["kept", str(kept)] for line in out.splitlines())


def test_a_kept_page_is_shown_with_its_origin_its_scores_and_its_text(crawl: Crawl) -> None:
    found = verdicts(crawl, "http://A.test/target#part")
    assert found["verdict"] == "kept: its text is in the corpus"
    assert found["found on"] == "http://a.test/moved"
    assert found["badness"] and found["langs"] == "cs:1.00"
    assert found["title"] == 'Strana target <&> "quoted"'
    out = told(crawl, "url", "http://a.test/target")
    assert all(paragraph in out for paragraph in paragraphs('target <&> "quoted"'))


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("http://a.test/private", "robots-forbidden: "),
        ("http://a.test/gone", "http-error: "),
        ("http://a.test/moved", "redirected: "),
        ("http://poor.test/", "boilerplate-only: "),
        ("http://a.test/picture.jpg", "never accepted; a mention of it is refused: out-of-scope"),
        ("http://nowhere.test/", "never found"),
        ("http://a.test/nowhere", "never found"),
    ],
)
def test_why_a_url_is_not_in_the_corpus(crawl: Crawl, url: str, verdict: str) -> None:
    assert verdicts(crawl, url)["verdict"].startswith(verdict)


def test_why_a_url_of_a_retired_host_is_not_in_the_corpus(crawl: Crawl) -> None:
    parked = [url for url, is_parked in crawl.state().urls if is_parked]
    found = verdicts(crawl, parked[0])
    assert found["verdict"].startswith(
        "host-retired: its host gave too little text for the bytes it cost; it is parked"
    )
    assert found["found on"] == "http://poor.test/"


def test_what_was_measured_is_told(crawl: Crawl) -> None:
    found = verdicts(crawl, "http://a.test/short")
    assert found["verdict"].startswith("bad-quality: ")
    assert found["because"].startswith("only ") and found["because"].endswith(" characters of clean text")
    assert found["found on"] == "http://a.test/"
    assert verdicts(crawl, "http://a.test/")["found on"].startswith("no page: a seed")


def test_every_end_of_the_counts_is_on_record(crawl: Crawl) -> None:
    state = crawl.state()
    with closing(Inspection(crawl.directory)) as opened:
        stories = [opened.story(f"http://{host}{path}") for host, paths in SITES.items() for path in paths]
        named = {story.url: story.ended.end.reason for story in stories if story.ended}
        hosts = [opened.host(name)["id"] for name in SITES]
        ends = sum((opened.ends_of(host) for host in hosts), start=type(opened.ends_of(hosts[0]))())
    assert len(named) > 60
    assert {**ends, Reason.HOST_RETIRED.value: state.ends["host-retired"]} == state.ends


def test_a_host_with_its_queue(crawl: Crawl) -> None:
    out = told(crawl, "host", "poor.test", "--urls")
    assert "state       retired" in out and "distance    1" in out
    assert f"{crawl.state().ends['host-retired']:,} URLs at " in out
    listed = [line for line in out.splitlines() if "http://poor.test/" in line]
    assert len(listed) == crawl.state().ends["host-retired"]
    assert "boilerplate-only 11" in out
    assert told(crawl, "host", "https://www.poor.test:443/x") == told(crawl, "host", "poor.test")


def test_views_are_readable_with_sqlite(crawl: Crawl) -> None:
    with closing(sqlite3.connect(crawl.directory / "state/frontier.sqlite")) as file:
        ends = {reason: urls for reason, urls, _ in file.execute("SELECT * FROM ends")}
        all_hosts, at0, at1 = file.execute("SELECT hosts_at, hosts, documents FROM yield").fetchall()
        assert file.execute("SELECT * FROM waiting").fetchall() == []
    assert ends == crawl.state().ends
    assert all_hosts == ("all", 3, ends["kept"])
    assert at0[:2] == ("distance 0", 1) and at1[:2] == ("distance 1", 2)


def test_a_running_crawl_can_be_read_and_goes_on(server, tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "job", server)
    running = crawl.start("http://b.test/0", HOST_INTERVAL_S=0.2)
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


def test_the_command_prints_it(crawl: Crawl) -> None:
    assert run(crawl, "url", "http://a.test/target") == told(crawl, "url", "http://a.test/target") + "\n"


@pytest.mark.parametrize("arguments", [(), ("job", "host"), ("job", "page", "x"), ("job", "host", "a", "b")])
def test_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="say scrapy inspect JOBDIR"):
        Command().run(list(arguments), argparse.Namespace())


def test_no_crawl_no_host_no_url(crawl: Crawl, tmp_path: Path) -> None:
    ended = scrapy("inspect", str(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert "holds no crawl" in ended.log and "Traceback" not in ended.log
    with closing(Inspection(crawl.directory)) as opened, pytest.raises(BadInput, match="is no http"):
        opened.story("ftp://a.test/")
    (tmp_path / "state").mkdir()
    (tmp_path / "state/frontier.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(JobdirError, match="cannot be read as the state of a crawl"):
        Inspection(tmp_path)
