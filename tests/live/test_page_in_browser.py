"""The live page in a real browser, which may reach nothing but the crawl's own server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from browser import browsing
from conftest import document, serving
from needs import needs
from watched import asked, watching, web

from webs.web import html

pytestmark = [pytest.mark.slow, needs("chromium")]
MARKUP = '</li><img src=http://evil.test/x onerror="window.hit=1"><script>window.hit=1</script>'
HOSTS = """
const asked = window.fetch;
window.fetch = async (path) => {
  const answer = await asked(path);
  const told = await answer.json();
  for (const host of told.hosts) host.name = host.state = NAME;
  return new Response(JSON.stringify(told));
};
readHosts().then(() => window.fetch = asked);
"""
"""Shows a list of hosts that are called NAME: the crawl accepts no such name, but an old state might hold one."""
WIDTHS = (400, 768, 1600)


def hostile(number: int) -> str:
    """A page whose title is markup in a page that is not careful."""
    escaped = MARKUP.replace("&", "&amp;").replace("<", "&lt;")
    links = f'/{number + 1}?a="><script>window.hit=1</script>', f"/{number + 1}"
    return document(f"odd{number}", *links).replace("<title>", f"<title>{escaped} ")


@pytest.fixture(scope="module")
def server():
    pages = {f"/{n}": html(hostile(n)) for n in range(300)}
    with serving(web() | {"odd.test": pages}) as running:
        yield running


async def text(browser, selector: str) -> str:
    return await browser.value(f"document.querySelector({selector!r}).textContent")


async def click(browser, selector: str) -> None:
    await browser.value(f"document.querySelector({selector!r}).click()")


async def read_aloud(browser) -> set[tuple[str, str]]:
    """The (role, name) of all that a screen reader finds."""
    tree = (await browser.send("Accessibility.getFullAXTree"))["nodes"]
    return {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if "role" in node}


async def test_a_person_watches_and_controls_a_crawl(server, tmp_path: Path):
    with watching(tmp_path / "job", server) as watched:
        (watched.crawl.directory / "control.yaml").write_text('seeds: ["http://odd.test/1"]\n')
        async with browsing(tmp_path / "profile") as browser:
            await browser.open(f"{watched.url}#token={watched.token}")
            assert await browser.value("location.hash + document.cookie") == ""
            await browser.value("window.marker = 1")

            words = await text(browser, "#tiles dd.value")
            await browser.until(f"document.querySelector('#tiles dd.value').textContent !== {words!r}")
            assert await text(browser, "#phase") == "running"

            await browser.value("document.getElementById('search-for').value = 'lou'")
            await click(browser, "#search button")
            await browser.until("document.getElementById('place').textContent.endsWith(', 1 hosts')")
            await click(browser, "#host-table tbody button")
            await browser.until("document.getElementById('host-lines').textContent.includes('yield rate')")
            assert await text(browser, "#host-name") == "loud.test"
            await click(browser, "#host-block")
            await browser.until("document.getElementById('host-said').textContent.includes('is blocked')")
            watched.running.until(lambda: "blocked loud.test" in watched.running.output())
            blocked = time.monotonic() + 0.5
            await click(browser, "#host-close")

            await browser.until("document.querySelector('#newest-list').textContent.includes('onerror')")
            await browser.value(HOSTS.replace("NAME", repr(MARKUP)))
            await browser.until("document.querySelector('#host-table tbody').textContent.includes('<script>')")
            assert browser.messages == []
            await browser.value(f"openHost({MARKUP!r})")
            await browser.until("document.getElementById('host-lines').textContent.includes('knows no host')")
            await click(browser, "#host-close")
            assert await browser.value("window.hit === undefined && !document.querySelector('body img, body script')")

            watched.running.until(lambda: asked(server, "calm.test", blocked) > 5)
            assert not asked(server, "loud.test", blocked)
            for width in WIDTHS:
                await browser.look("dark", width, 800)
                assert await browser.value("document.documentElement.scrollWidth <= innerWidth"), width
            await browser.look("dark", WIDTHS[0], 800)
            cut = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
            await browser.until(f"{cut} === 0")  # no table is cut on a phone, once it is laid out anew
            assert await browser.value("window.marker") == 1, "it was not loaded again"
            assert {url for url in browser.requests if not url.startswith((watched.url, "data:"))} == set()

            watched.running.process.send_signal(2)
            await browser.until("document.getElementById('said').textContent.includes('it has ended')")
            assert await text(browser, "#phase") == "no answer"
            assert await text(browser, "#tiles dd.value") != "0", "the last numbers stay"


async def test_it_is_used_by_keyboard_and_read_aloud(server, tmp_path: Path):
    with watching(tmp_path / "job", server) as watched:
        async with browsing(tmp_path / "profile") as browser:
            await browser.open(watched.url)
            await browser.until("document.querySelectorAll('#host-table tbody tr').length > 1")
            await browser.value("document.querySelector('#host-table th:nth-child(5) button').focus()")
            await browser.press("Enter")
            await browser.until("document.querySelector('#host-table th:nth-child(5)').ariaSort === 'descending'")
            assert await browser.value("document.activeElement.textContent") == "pages"
            for _ in range(7):
                await browser.press("Tab")
            assert await browser.value("document.activeElement.closest('tbody') !== null")
            await browser.press("Enter")
            await browser.until("document.getElementById('host').open")
            named = await read_aloud(browser)
            assert ("dialog", await text(browser, "#host-name")) in named
            await click(browser, "#host-close")
            await browser.until("document.querySelector('#ends-table table') !== null")
            named = await read_aloud(browser)
            assert {("table", "How URLs ended"), ("table", "Hosts")} <= named and ("heading", "Now") in named
            assert {"term", "definition"} <= {role for role, _ in named}
            assert any(role in ("image", "img") and name.startswith("Pages a second") for role, name in named)
            assert await browser.value("document.getElementById('locked').hidden"), "controls need the token"
            await browser.send(
                "Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}]
            )
            assert await browser.value("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
            assert browser.messages == []
