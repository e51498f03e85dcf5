"""The plain parts do what Scrapy's do: the same calls in the same order, the same results, the same log."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
import scrapy
from conftest import DEADLINE_S, ROOT
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.exceptions import DropItem
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from spiderling.addon import FAST, SpiderlingAddon
from spiderling.engine.fast_scrapy import DirectDownloader

pytestmark = pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")


class Handling:
    """A download handler, and how many requests it had at once."""

    lazy = True
    at_once = most = 0

    async def download_request(self, request):
        Handling.at_once += 1
        Handling.most = max(Handling.most, Handling.at_once)
        await asyncio.sleep(0.01)
        Handling.at_once -= 1
        if request.url.endswith("broken"):
            raise ValueError(request.url)
        return Response(request.url)

    async def close(self):
        """Nothing is open."""


class Visitor(Spider):
    name = "visitor"

    async def start(self):
        for path in ("item", "broken", "late", "twice", "raises", "errback", "dropped", "other", "request",
                     "cancelled", "asks"):  # fmt: skip
            errback = self.mourn if path in ("errback", "broken", "cancelled") else None
            yield Request(f"http://a.test/{path}", errback=errback, meta={"path": path})

    def parse(self, response):
        path = response.meta["path"]
        if path == "late":
            return self.later()
        if path == "asks":
            return self.asking()
        if path == "raises":
            raise ValueError(path)
        if path == "request":
            return iter([{"of": path}, Request("http://a.test/next", meta={"path": "next"})])
        return iter([{"of": path}] * (2 if path == "twice" else 1))

    async def later(self):
        await asyncio.sleep(0)
        yield {"of": "late"}

    async def asking(self):
        for path in ("file", "other", "broken"):
            try:
                response = await self.crawler.engine.download_async(Request(f"http://a.test/{path}"))
            except ValueError as error:
                yield {"of": f"no answer: {error}"}
            else:
                yield {"of": f"answer {response.url} to {response.request.url}"}

    def mourn(self, failure):
        yield {"of": f"mourned {failure.value}"}


class Redirecting:
    """A downloader middleware and a pipeline."""

    def process_response(self, request, response):
        if "cancelled" in request.url:
            raise asyncio.CancelledError
        return Request("http://a.test/elsewhere", meta={"path": "elsewhere"}) if "other" in request.url else response

    async def process_item(self, item):
        if item["of"] == "dropped":
            raise DropItem("dropped")
        return item


CRAWL = """
import asyncio, json, sys
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from spiderling.engine import fast_scrapy as plain
from test_plain import Redirecting, Handling, Visitor

class Installing:
    @classmethod
    def from_crawler(cls, crawler):
        if sys.argv[1] == "plain":
            crawler.signals.connect(cls.install, signals.engine_started, weak=False)
            cls.crawler = crawler
        return cls()

    @classmethod
    def install(cls):
        plain.install(cls.crawler)
        assert type(cls.crawler.engine) is plain.PlainEngine
        assert type(cls.crawler.engine.scraper) is plain.PlainScraper

process = AsyncCrawlerProcess({
    "DOWNLOADER": "spiderling.engine.fast_scrapy.DirectDownloader",
    "DOWNLOAD_HANDLERS": {"http": Handling}, "CONCURRENT_ITEMS": 1,
    "CONCURRENT_REQUESTS": 2,
    "DOWNLOADER_MIDDLEWARES": {Redirecting: 1}, "ITEM_PIPELINES": {Redirecting: 1}, "EXTENSIONS": {Installing: 1},
    "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "RETRY_ENABLED": False,
})
crawler, seen = process.create_crawler(Visitor), []
for name in ("response_received", "item_scraped", "item_dropped", "spider_error", "request_scheduled"):
    def note(name=name, item=None, request=None, response=None, signal=None, sender=None, **values):
        about = item or getattr(request, "url", None) or getattr(response, "url", None)
        seen.append(f"{name} {about} {type(response).__name__ if item else ''}")
    crawler.signals.connect(note, getattr(signals, name), weak=False)
async def leaving():
    raise asyncio.CancelledError  # as an extension does that waits for a task which it has cancelled
crawler.signals.connect(leaving, signals.spider_closed, weak=False)
process.crawl(crawler)
process.start()
stats = [f"{name} {value}" for name, value in crawler.stats.get_stats().items() if isinstance(value, (int, str))]
stats = sorted(line for line in stats if "time" not in line and "mem" not in line)
print(json.dumps([Handling.most, sorted(seen), stats]))
"""


@pytest.mark.slow
def test_a_crawl_on_the_plain_engine_is_the_same():
    """The same responses, items, errors and stats, and it ends by itself."""
    results = []
    for way in ("plain", "scrapy"):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))}
        run = subprocess.run(
            [sys.executable, "-c", CRAWL, way], env=environment, capture_output=True, text=True, timeout=DEADLINE_S,
            check=True,
        )  # fmt: skip
        results.append((json.loads(run.stdout), run.stderr.count("Traceback")))
    assert results[0] == results[1]
    at_once, seen, _ = results[0][0]
    assert at_once == 2 and len(seen) > 30
    assert any("mourned" in line for line in seen if "cancelled" not in line)


@pytest.mark.parametrize(
    ("version", "given", "is_fast"),
    [
        ("2.19.9", {}, True),
        ("2.20.0", {}, False),
        ("3.0", {}, False),
        ("2.19.0", {"DOWNLOADER": "scrapy.core.downloader.Downloader"}, False),
    ],
)
def test_with_a_release_that_was_not_tried_scrapys_own_parts_run(version, given, is_fast, monkeypatch, caplog):
    monkeypatch.setattr(scrapy, "__version__", version)
    settings = Settings(given)
    SpiderlingAddon().update_settings(settings)
    ours = [name for name in FAST if str(settings[name]).startswith("spiderling.")]
    assert ours == (list(FAST) if is_fast else [])
    assert len(caplog.messages) == (not is_fast and not given)
    assert all(f"Scrapy {version} is none of those" in line for line in caplog.messages)


SIGNALS = ("request_reached_downloader", "response_downloaded", "request_left_downloader")


def crawler_with(answer):
    """A crawler whose handler for http gives what *answer* gives."""

    class Handler:
        lazy = True

        async def download_request(self, request):
            return await answer(request)

        async def close(self):
            pass

    handlers = {"DOWNLOAD_HANDLERS": {"http": Handler}}
    crawler = get_crawler(Spider, {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0, **handlers})
    crawler.spider = Spider("a")
    return crawler


async def fetched(cls, failure: Exception | None):
    """What came of one request, the signals sent, and the slots that are left."""

    async def answer(request):
        seen.append(downloader.needs_backout())
        if failure:
            raise failure
        return Response(request.url)

    crawler = crawler_with(answer)
    downloader, seen = cls(crawler), []
    for name in SIGNALS:
        crawler.signals.connect(lambda signal, name=name: seen.append(name), getattr(signals, name), weak=False)
    result = await asyncio.gather(
        downloader.fetch(Request("http://a.test/")).asFuture(asyncio.get_running_loop()), return_exceptions=True
    )
    downloader.close()
    assert not downloader.needs_backout()
    return str(result[0]), seen, len(downloader.slots)


@pytest.mark.parametrize("failure", [None, ValueError("broken")])
async def test_it_is_scrapys_downloader_without_slots(failure):
    result, seen, slots = await fetched(DirectDownloader, failure)
    assert slots == 0
    assert (result, seen) == (await fetched(Downloader, failure))[:2]
    assert result == (str(failure) if failure else "<200 http://a.test/>")
