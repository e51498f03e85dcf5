"""``scrapy report`` of a real crawl, looked at as a file and in a real browser."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from browser import browsing
from conftest import Crawl, document, page, scrapy, serving
from needs import needs

from spiderling.jobdir.inspection import Inspection
from spiderling.reporting.link_graph import LinkGraph
from spiderling.reporting.material import material_of
from webs.web import FixedWeb, html

LICENCE = "http://a.test/</script><img src=http://evil.test/x onerror=alert(1)>"
SITES = {
    "a.test": {
        "/": page("a", *(f"http://b.test/{n}" for n in range(30)), "http://poor.test/", "/licensed"),
        "/licensed": html(document("licensed").replace("<ul>", f'<a rel="license" href="{LICENCE}">l</a><ul>')),
    },
    "b.test": {f"/{n}": page(f"b{n}") for n in range(30)},
    "poor.test": {
        "/": html("".join(f'<a href="/{n}">{n}</a> ' for n in range(25))),
        **{f"/{n}": html(f"<b>{n}</b>" + "<br>" * 200) for n in range(25)},
    },
}
ADDRESSES = {host: f"127.84.9.{number}" for number, host in enumerate(SITES, 1)}
SETTINGS = {"YIELD_PROFILE": "paper", "YIELD_MIN_BYTES": 1000, "PROGRESS_S": 1, "LINKS": "on"}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory) -> Crawl:
    with serving(FixedWeb(SITES, ADDRESSES)) as server:
        crawl = Crawl(tmp_path_factory.mktemp("reported") / "job", server, **SETTINGS)
        assert crawl.run("http://a.test/ http://nowhere.test/", HOST_INTERVAL_S=0.05).code == 0
    return crawl


@pytest.fixture(scope="module")
def report(crawl) -> Path:
    ended = scrapy("report", str(crawl.directory))
    assert (ended.code, ended.log) == (0, "")
    assert ended.out == f"The report is in {crawl.directory}/report.html\n"
    return crawl.directory / "report.html"


def test_what_is_read_is_what_the_state_holds(crawl):
    with closing(Inspection(crawl.directory)) as opened:
        found = material_of(opened)
    state = crawl.state()
    assert dict(zip(found.hosts.names, found.hosts.words.tolist(), strict=True)) == {
        name: row["words"] for name, row in state.hosts.items()
    }
    last = found.history[-1]
    assert (last.pages, last.kept_bytes) == (state.counts["total/pages"], state.counts["total/kept_bytes"])
    assert {(seed.host, seed.end) for seed in found.seeds} == {("a.test", "kept"), ("nowhere.test", "dns")}
    assert isinstance(found.links, LinkGraph) and len(found.links.languages) == state.counts["total/pages"]
    assert found.counted("fact/encoding") == {"utf-8": state.counts["total/documents"]}
    assert found.counted("fact/words") == {"cs": state.counts["total/words"]}
    assert sum(found.counted("fact/licence").values()) == state.counts["total/documents"]


def test_the_page_names_hosts_reasons_and_advice(report):
    text = report.read_text("utf-8")
    for wanted in (
        "The crawl is finished",
        "poor.test",
        "host-retired",
        "Suchomel",
        "SPIDERLING_YIELD_PROFILE",
        "t(n) =",
        "Linguistic locality of links",
    ):
        assert wanted in text


def test_nothing_from_the_web_becomes_markup_or_is_asked_for(report):
    text = report.read_text("utf-8")
    assert "evil.test" in text, "the licence is shown"
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "<img" not in markup
    assert not re.search(r'(?:src|href)="(?!#)', markup)
    assert "Content-Security-Policy" in markup


@pytest.mark.slow
def test_beside_a_running_crawl(crawl, tmp_path):
    state = tmp_path / "job/state/frontier.sqlite"
    state.parent.mkdir(parents=True)
    with (
        closing(sqlite3.connect(crawl.directory / "state/frontier.sqlite")) as source,
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
def test_what_cannot_be_done_is_said_in_a_sentence(crawl, tmp_path, what):
    arguments = [str(tmp_path)]
    if what == "damaged":
        (tmp_path / "state").mkdir()
        (tmp_path / "state/frontier.sqlite").write_bytes(b"no database" * 100)
    elif what == "unwritable":
        arguments = [str(crawl.directory), "-o", str(tmp_path / "none/page.html")]
    ended = scrapy("report", *arguments)
    assert ended.code == 1
    assert ended.log.startswith("scrapy report: ")
    assert ended.log.count("\n") == 1


async def sorts_by_mouse_and_by_keyboard(tab):
    await tab.value("window.hosts = [...document.querySelectorAll('table')].find(t => t.textContent.includes('state'))")
    column = "[...hosts.tBodies[0].rows].map(row => row.cells[{}].textContent)"
    heads = await tab.value("[...hosts.tHead.rows[0].cells].map(cell => cell.textContent)")
    pages, name = heads.index("pages"), heads.index("host")
    given = [int(cell) for cell in await tab.value(column.format(pages))]
    press = f"hosts.tHead.rows[0].cells[{pages}].querySelector('button').{{}}()"
    await tab.value(press.format("click"))
    assert [int(cell) for cell in await tab.value(column.format(pages))] == sorted(given, reverse=True)
    await tab.value(press.format("focus"))
    await tab.press("Enter")
    assert [int(cell) for cell in await tab.value(column.format(pages))] == sorted(given)
    assert await tab.value(f"hosts.tHead.rows[0].cells[{pages}].ariaSort") == "ascending"
    await tab.value(f"hosts.tHead.rows[0].cells[{name}].querySelector('button').click()")
    assert await tab.value(column.format(name)) == ["a.test", "b.test", "nowhere.test", "poor.test"]
    assert await tab.value("hosts.querySelectorAll('th[aria-sort]').length") == 1


@pytest.mark.slow
@needs("chromium")
async def test_in_a_browser(report, tmp_path):
    """No complaint, no request, every chart drawn, all reached by keyboard, tables sorted; in light and in dark."""
    async with browsing(tmp_path / "profile") as tab:
        await tab.open(report.as_uri())
        charts = await tab.value("document.querySelectorAll('figure[data-chart]').length")
        assert charts == 6
        drawn = """[...document.querySelectorAll('.chart')].map(place => {
            const canvas = place.querySelector('canvas');
            if (!canvas) return place.querySelectorAll('svg .mark-line path[d]').length;
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Set();
            for (let at = 0; at < data.length; at += 4)
                if (data[at + 3] > 100) colours.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
            return colours.size})"""
        assert all(number > 0 for number in await tab.value(drawn))
        light = await tab.value("getComputedStyle(document.body).backgroundColor")
        await tab.value("document.body.focus()")
        stops = "[...document.querySelectorAll('nav a, .chart, .scroll, th button')]"
        wanted = await tab.value(f"{stops}.length")
        reached = set()
        for _ in range(wanted + 5):
            await tab.press("Tab")
            reached.add(await tab.value(f"{stops}.indexOf(document.activeElement)"))
        assert len(reached - {-1}) == wanted
        unnamed = "[...document.querySelectorAll('.chart, .scroll')].filter(e => !e.getAttribute('aria-label')).length"
        assert await tab.value(unnamed) == 0
        assert await tab.value("document.documentElement.scrollWidth <= innerWidth"), (
            "no sideways scrolling on a laptop"
        )
        await tab.look("light", width=1000)
        wide = (
            "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
        )
        await tab.until(f"{wide}.length == 0")  # nor in any table of a narrow window
        await tab.until("document.documentElement.scrollWidth <= innerWidth")
        await tab.value("delete document.body.dataset.drawn")
        await tab.look("dark")
        await tab.until("document.body.dataset.drawn ?? ''")
        assert await tab.value("getComputedStyle(document.body).backgroundColor") != light
        assert all(number > 0 for number in await tab.value(drawn))
        await sorts_by_mouse_and_by_keyboard(tab)
        for width in (400, 1400):
            await tab.open(report.as_uri(), width=width)
            assert await cut(tab) == []
        assert tab.messages == []
        assert set(tab.requests) == {report.as_uri()}


async def cut(tab):
    """What does not fit: the page, tables, charts, entries of legends."""
    return await tab.value("""[document.documentElement, ...document.querySelectorAll('.scroll, .chart')]
        .filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel ?? e.tagName)
        .concat([...document.querySelectorAll('.chart svg')].flatMap(svg =>
            [...svg.querySelectorAll('.role-legend-label text')]
                .filter(e => e.getBoundingClientRect().right > svg.getBoundingClientRect().right
                    || e.textContent.includes('\u2026'))
                .map(e => e.textContent)))""")


@pytest.mark.slow
@needs("chromium")
async def test_the_page_of_a_simulation_fits_into_narrow_and_wide_windows(tmp_path):
    path = tmp_path / "page.html"
    strategies = ["bfs", "yield", "lswc:s=3,t=5", "perfect", "spiderling:thrift=6"]
    assert scrapy(*strategies, "--pages", "300", "--jobs", "1", "--html", str(path), module="simulator").code == 0
    async with browsing(tmp_path / "profile") as tab:
        for width in (400, 1400):
            await tab.open(path.as_uri(), width=width)
            assert await tab.value("document.querySelectorAll('.role-legend-label text').length") == 11 * 5
            assert await cut(tab) == []
        assert tab.messages == []
