"""``scrapy report`` of a real crawl, looked at as a file and in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from browser import browsing
from conftest import scrapy
from finished import SITES
from needs import needs


@pytest.fixture(scope="module")
def report(finished) -> Path:
    ended = scrapy("report", str(finished.directory))
    assert (ended.code, ended.log) == (0, "")
    assert ended.out == f"The report is in {finished.directory}/report.html\n"
    return finished.directory / "report.html"


def data_of(report: Path) -> dict:
    (data,) = re.findall(r'<script type="application/json" id="saved">(.*?)</script>', report.read_text("utf-8"))
    return json.loads(data)


def test_its_data_are_the_status_and_the_hosts(finished, report):
    told = json.loads(scrapy("inspect", str(finished.directory), "--json").out)
    found = data_of(report)
    assert found["status"] | {"made": 0} == told | {"made": 0}
    assert {host["name"]: host["words"] for host in found["hosts"]} == {
        name: row["words"] for name, row in finished.state().hosts.items()
    }


def test_without_scripts_all_of_it_stands_in_tables(finished, report):
    """Hosts, languages, reasons, yields, growth, and what to do next."""
    markup = re.sub(r"<script.*?</script>", "", report.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", "|", markup)
    state = finished.state()
    for wanted in (
        "The crawl is finished",
        f"|host-retired||{state.ends['host-retired']:,}|",
        f"|cs||{state.counts['language/cs']:,}||{state.counts['fact/words/cs']:,}|",
        f"|poor.test||retired||1||{state.hosts['poor.test']['pages']}|",
        f"||{state.counts['total/pages']}||{state.counts['total/documents']}||{state.counts['total/words']:,}|",
    ):
        assert wanted in text, wanted


def test_nothing_from_the_web_becomes_markup_or_is_asked_for(report):
    text = report.read_text("utf-8")
    assert any("<img" in one["title"] for one in data_of(report)["status"]["newest"]), "the title is among the data"
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "<img" not in markup
    assert not re.search(r'(?:src|href)="(?!#|data:,)', markup)
    assert "script-src 'sha256-" in markup and "connect-src" not in markup


@pytest.mark.slow
def test_beside_a_running_crawl(finished, tmp_path):
    state = tmp_path / "job/state/frontier.sqlite"
    state.parent.mkdir(parents=True)
    with (
        closing(sqlite3.connect(finished.directory / "state/frontier.sqlite")) as source,
        closing(sqlite3.connect(state, isolation_level=None)) as writer,
    ):
        source.backup(writer)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE host SET words = 123456789")
        out = tmp_path / "page.html"
        ended = scrapy("report", str(tmp_path / "job"), "-o", str(out))
    assert ended.code == 0
    assert "123,456,789" not in out.read_text("utf-8"), "not committed"


@pytest.mark.parametrize("what", ["no crawl", "damaged", "unwritable"])
def test_what_cannot_be_done_is_said_in_a_sentence(finished, tmp_path, what):
    arguments = [str(tmp_path)]
    if what == "damaged":
        (tmp_path / "state").mkdir()
        (tmp_path / "state/frontier.sqlite").write_bytes(b"no database" * 100)
    elif what == "unwritable":
        arguments = [str(finished.directory), "-o", str(tmp_path / "none/page.html")]
    ended = scrapy("report", *arguments)
    assert ended.code == 1
    assert ended.log.startswith("scrapy report: ")
    assert ended.log.count("\n") == 1


@pytest.fixture
def report_of_seconds(finished, tmp_path) -> Path:
    """The report of the same crawl, had it run for a second between two rows of its history: curves need points."""
    job = shutil.copytree(finished.directory, tmp_path / "job")
    with closing(sqlite3.connect(job / "state/frontier.sqlite")) as state, state:
        state.execute("UPDATE history SET time_s = tick - (SELECT min(tick) FROM history)")
    assert scrapy("report", str(job)).code == 0
    return job / "report.html"


@pytest.mark.slow
@needs("chromium")
async def test_in_a_browser(report_of_seconds, tmp_path):
    """No complaint, no request, every chart drawn; hosts are found and sorted by keyboard; in light and in dark."""
    hosts = "[...document.querySelectorAll('#host-table tbody tr')].map(row => row.cells[{}].textContent)"
    async with browsing(tmp_path / "profile") as tab:
        await tab.open(report_of_seconds.as_uri())
        assert await tab.value("document.querySelectorAll('#charts .curve[d]').length") == 6
        assert await tab.value("document.querySelectorAll('#scatter circle').length") == len(SITES)
        assert await tab.value("document.getElementById('phase').textContent") == "finished"
        light = await tab.value("getComputedStyle(document.body).backgroundColor")
        await tab.value("document.querySelector('#host-table th:nth-child(5) button').focus()")
        await tab.press("Enter")
        given = [int(cell) for cell in await tab.value(hosts.format(4))]
        assert given == sorted(given, reverse=True) and len(given) == len(SITES) + 1
        await tab.value("document.querySelector('#host-table th:nth-child(1) button').click()")
        assert await tab.value(hosts.format(0)) == sorted([*SITES, "nowhere.test"])
        await tab.value("document.getElementById('search-for').value = 'oor'")
        await tab.value("document.querySelector('#search button').click()")
        assert await tab.value(hosts.format(0)) == ["poor.test"]
        for width in (400, 1000, 1400):
            await tab.look("dark", width=width)
            await tab.until(f"({CUT}).length == 0")
        assert await tab.value("getComputedStyle(document.body).backgroundColor") != light
        assert await tab.value("!document.querySelector('body img, #controls, dialog')")
        assert tab.messages == []
        assert set(tab.requests) == {report_of_seconds.as_uri()}


@pytest.mark.slow
@needs("chromium")
async def test_in_a_browser_that_runs_no_scripts(report, tmp_path):
    async with browsing(tmp_path / "profile") as tab:
        await tab.send("Page.enable")
        await tab.send("Emulation.setScriptExecutionDisabled", value=True)
        await tab.look("light", width=400)
        await tab.send("Page.navigate", url=report.as_uri())
        shown = "[...document.querySelectorAll('h2')].filter(e => e.checkVisibility()).map(e => e.textContent)"
        await tab.until("document.readyState === 'complete' && document.querySelectorAll('h2').length > 5")
        heads = await tab.value(shown)
        assert {"Growth", "Hosts", "How URLs ended", "Languages", "What to do next"} <= set(heads)
        assert not {"Curves", "Newest texts"} & set(heads), "what the script would draw is not there"
        await tab.until(f"({CUT}).length == 0")


CUT = """[document.documentElement, ...document.querySelectorAll('.scroll')]
    .filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel ?? e.tagName)"""
"""What does not fit: the page, tables."""
