"""Makes ``tests/jobdirs/killed``, a small JOBDIR as a crawl that was killed leaves it, and what its code makes of it.

It is made anew when what is stored changes before a release:

    PYTHONPATH=. python tests/jobdirs/made_jobdirs.py

The crawl has a spider of a user's own with callbacks and their arguments, a retired host with its queue, a strategy
that learns, links and an archive.  It is killed after the segments of a batch were written and before its
transaction, while a page is in transit.  A copy of the directory is then crawled to its end, with the same code:
what is in it at last stands in ``killed.json``.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from conftest import Crawl, page, serving  # noqa: E402

from webs.web import FixedWeb, WebResponse, html, plain, redirect  # noqa: E402

PAGES, ITEMS = 30, 40
SEEDS = "http://rich.test/ http://poor.test/"
SETTINGS = {
    "SPIDERLING_HOST_INTERVAL_S": 0.15,
    "SPIDERLING_YIELD_PROFILE": "paper",
    "CONSTANTS": {"crawl.crawl.SEGMENT_BYTES": 12_000, "frontier.host_closing.MIN_BYTES": 1000},
    "SPIDERLING_LINKS": "on",
    "SPIDERLING_WARC": "on",
    "SPIDERLING_OPTOUTS": "",
    "EXTENSIONS": json.dumps({"shop.spiders.Killed": 1}),
}
PROJECT = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
ADDONS = {"spiderling.addon.SpiderlingAddon": 300}
COMMANDS_MODULE = "spiderling.commands"
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
"""
SPIDER = f"""
import os, signal
from pathlib import Path
from scrapy import Request
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.items import PageItem
from spiderling.spiders.spiderling import SpiderlingSpider

class Shop(SpiderlingSpider):
    name = "shop"

    async def start(self):
        async for request in super().start():
            yield request
        for number in range({ITEMS}):
            yield Request(f"http://shop.test/item/{{number}}", self.item, headers={{"X-Number": str(number)}},
                          meta={{"colour": "red"}}, cb_kwargs={{"number": number}})

    def item(self, response, number):
        yield {{"number": number, "colour": response.meta["colour"], "url": response.url}}
        yield PageItem(response)


class Killed:  # before the transaction of a batch with documents, as soon as the file "kill" is there
    def __init__(self, crawler):
        directory, prepare, commit = Path(crawler.settings["JOBDIR"]), SqliteStore._prepare, SqliteStore.commit

        def preparing(store):
            prepare(store)
            store._writer.connection.execute("PRAGMA wal_autocheckpoint=12")  # so that the log stays small

        def committing(store, changes):
            if changes.segments and (directory / "kill").exists():
                os.kill(os.getpid(), signal.SIGKILL)
            commit(store, changes)

        SqliteStore._prepare, SqliteStore.commit = preparing, committing

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))
"""


def web(is_slow: bool = False) -> FixedWeb:
    """Pages of text, a host of little text, a shop; if *is_slow*, a page that does not come before the kill."""
    texts = {f"/{n}": page(f"rich {n}", f"/{n + 1}", f"/{n + 7}", "/gone", "/moved") for n in range(PAGES)}
    empty = {f"/{n}": html(f"<b>{n}</b>" + "<br>" * 200) for n in range(25)}
    slow = page("slow", "http://rich.test/2")
    sites = {
        "rich.test": {
            **texts,
            "/": page("rich", "/0", "/3", "http://slow.test/"),
            "/moved": redirect("/9"),
            "/robots.txt": plain("User-agent: *\nDisallow: /private"),
            "/ai.txt": plain("User-Agent: *\nDisallow: /private"),
        },
        "poor.test": {"/": html("".join(f'<a href="/{n}">{n}</a> ' for n in range(25))), **empty},
        "shop.test": {f"/item/{n}": page(f"item {n}") for n in range(ITEMS)},
        "slow.test": {"/": WebResponse(200, slow.headers, slow.body, delay_s=60) if is_slow else slow},
    }
    return FixedWeb(sites, {host: f"127.84.11.{number}" for number, host in enumerate(sites, 1)})


def project(directory: Path) -> Path:
    """The user's Scrapy project."""
    package = directory / "shop"
    (package / "spiders").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(PROJECT)
    (package / "spiders" / "__init__.py").write_text(SPIDER)
    (directory / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    return directory


def crawl_in(directory: Path, server, scratch: Path) -> Crawl:  # type: ignore[no-untyped-def]
    """The crawl of *directory*, whose project and files of output stand in *scratch*."""
    crawl = Crawl(directory, server, project(scratch), "shop")
    crawl.settings.update(SETTINGS, FEEDS=json.dumps({str(scratch / "items.jsonl"): {"format": "jsonlines"}}))
    return crawl


def outcome(crawl: Crawl) -> dict[str, object]:
    """What a finished crawl came to, however it was interrupted."""
    state = crawl.state()
    return {"digests": crawl.digests(), "ends": state.ends, "discovered": state.counts["discovered"]}


def is_ready(database: Path) -> bool:
    """Whether everything that is wanted is in the state: a retired host, one in transit, notes, waiting payloads."""
    if not database.exists():
        return False
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as state:
        try:
            hosts = dict(state.execute("SELECT name, transit IS NOT NULL FROM host").fetchall())
            states = {row[0] for row in state.execute("SELECT state FROM host")}
            learnt = state.execute("SELECT 1 FROM meta WHERE key LIKE 'learnt%'").fetchone()
            kept = state.execute("SELECT sum(entries) FROM file WHERE kind = 'corpus'").fetchone()[0]
        except sqlite3.Error:
            return False
    return bool("retired" in states and hosts.get("slow.test") and learnt and kept and kept > 12)


def leave_killed(crawl: Crawl) -> None:
    """Run *crawl* until everything that is wanted is in its directory, and kill it."""
    running = crawl.start(SEEDS)
    running.until(lambda: is_ready(crawl.directory / "state/frontier.sqlite"))
    (crawl.directory / "kill").touch()
    running.wait()
    (crawl.directory / "kill").unlink()
    for file in ("state/lock", "state/frontier.sqlite-shm", "crawl.log"):
        (crawl.directory / file).unlink()


def main() -> None:
    target = HERE / "killed"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch, serving(web(is_slow=True)) as server:
        crawl = crawl_in(Path(scratch, "job"), server, Path(scratch, "first"))
        leave_killed(crawl)
        shutil.copytree(crawl.directory, target)
        with serving(web()) as again:
            last = crawl_in(crawl.directory, again, Path(scratch, "second"))
            result = last.run()
            assert "is finished." in result.output, result.output
        items = [json.loads(line) for line in Path(scratch, "second/items.jsonl").read_text().splitlines()]
        numbers = sorted(item["number"] for item in items if "number" in item)
        expected = {**outcome(last), "items": numbers}
    target.with_suffix(".json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
