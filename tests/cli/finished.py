"""A crawl that was killed once and is finished; tests look at it by inspect, report, card and exports."""

from __future__ import annotations

from html import escape
from pathlib import Path

from conftest import Crawl, document, page, paragraphs, serving

from webs.web import html, plain, redirect

TITLE = "</script><img src=http://evil.test/x onerror=alert(1)>"
LICENCE = "https://creativecommons.org/licenses/by-sa/4.0/"
LINKS = (
    "/short",
    "/private",
    "/moved",
    "/gone",
    *(f"http://{host}.test/" for host in ("poor", "b", "c_c", "licensed")),
)
SITES = {
    "a.test": {
        "/": page("a", *LINKS),
        "/robots.txt": plain("User-agent: *\nDisallow: /private"),
        "/short": html(f"<p>{paragraphs('short', 1, 2)[0]}</p>"),
        "/moved": redirect("/target"),
        "/target": page('target <&> "quoted"'),
    },
    "b.test": {
        f"/{n or ''}": html(document(n, f"/{n + 1}", f"/{n + 2}").replace("<title>", f"<title>{escape(TITLE)}"))
        for n in range(60)
    },
    "c_c.test": {"/": html("<p>no</p>")},
    "licensed.test": {"/": html(document("l").replace("<ul>", f'<a rel="license" href="{LICENCE}">l</a><ul>'))},
    "poor.test": {
        "/": html("".join(f'<a href="/{n}">{n}</a> ' for n in range(25))),
        **{f"/{n}": html(f"<b>{n}</b>" + "<br>" * 200) for n in range(25)},
    },
}
SEEDS = ["http://a.test/", "http://nowhere.test/"]
SETTINGS = {
    "YIELD_PROFILE": "paper", "TLDS": "test", "QUALITY": "text_chars=400..", "MAX_WORDS": 1_000_000,
    "LOGSTATS_INTERVAL": 1,
    "CONSTANTS": {
        "frontier.host_closing.MIN_BYTES": 1000, "frontier.frontier.TICK_S": 1, "crawl.crawl.SEGMENT_BYTES": 3000,
    },
}  # fmt: skip


def finish(directory: Path) -> Crawl:
    with serving(SITES) as server:
        crawl = Crawl(directory, server, **SETTINGS)
        running = crawl.start(" ".join(SEEDS), HOST_INTERVAL_S=0.1)
        running.until(lambda: len(server.log_entries) > 25)
        running.process.kill()
        running.process.wait()
        assert not (directory / "corpus/README.md").exists()
        assert crawl.run(HOST_INTERVAL_S=0.02).code == 0
    return crawl
