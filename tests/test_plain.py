"""The plain parts do what Scrapy's do: the same calls in the same order, the same results, the same log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
import scrapy
from conftest import DEADLINE_S, ROOT
from pydispatch import dispatcher
from scrapy import Request, Spider, signals
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.scraper import Scraper
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, succeed

from spiderling.addon import FAST, SpiderlingAddon
from spiderling.engine.fast_scrapy import (
    PlainMiddlewares,
    PlainPipelines,
    PlainScraper,
    PlainSignals,
    PlainSpiderMiddlewares,
)

pytestmark = pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")


def crawler_of(**settings):
    crawler = get_crawler(Spider, settings)
    crawler.spider = Spider("a")
    return crawler


def returning(value):
    def method(self, request, **others):
        if isinstance(value, Exception):
            raise value
        return others.get("response") if value == "same" else value

    return method


def awaiting(value):
    async def method(self, request, **others):
        return returning(value)(self, request, **others)

    return method


def ancient(self, request, spider):
    """A method that takes the spider, as methods of old did."""
    return Response("http://answer.test/", flags=[spider.name])


OTHER, ANSWER = Request("http://other.test/"), Response("http://answer.test/")
METHODS = {
    "process_request": [None, ANSWER, OTHER, 7, IgnoreRequest("no")],
    "process_response": ["same", ANSWER, OTHER, None, IgnoreRequest("no")],
    "process_exception": [None, ANSWER, OTHER, 7],
}


@pytest.mark.parametrize("failure", [None, ValueError("broken")])
@pytest.mark.parametrize(
    ("name", "method"),
    [(name, made(value)) for name, values in METHODS.items() for value in values for made in (returning, awaiting)]
    + [("process_request", ancient)],
)
async def test_middlewares_are_asked_as_by_scrapys_manager(name, method, failure):
    crawler, results = crawler_of(), []

    async def answer(request):
        if failure:
            raise failure
        return Response(request.url)

    for manager in (PlainMiddlewares, DownloaderMiddlewareManager):
        asked = []

        def noting(self, *, asked=asked, **values):
            asked.append(sorted(values))

        noter = type("Noter", (), dict.fromkeys(("process_request", "process_exception"), noting))
        chain = manager(noter(), type("Foreign", (), {name: method})(), noter(), crawler=crawler)
        got = await asyncio.gather(chain.download_async(answer, Request("http://a.test/")), return_exceptions=True)
        results.append((type(got[0]), "" if type(got[0]).__name__ == "_InvalidOutput" else str(got[0]), asked))
    assert results[0] == results[1]


def test_a_signal_is_heard_by_whoever_is_connected_to_it():
    sender, another = SignalManager(object()), SignalManager(object())
    sender.__class__ = another.__class__ = PlainSignals
    wanted = signals.bytes_received
    assert not sender.is_heard(wanted)
    for about, signal in ((sender.sender, wanted), (dispatcher.Any, wanted), (sender.sender, dispatcher.Any),
                          (dispatcher.Any, dispatcher.Any)):  # fmt: skip
        dispatcher.connect(returning, signal, about)
        try:
            assert sender.is_heard(wanted)
            assert another.is_heard(wanted) == (about is dispatcher.Any)
        finally:
            dispatcher.disconnect(returning, signal, about)


async def late(item):
    await asyncio.sleep(0)
    return f"late {item}"


async def broken(item):
    raise ValueError(item)


def wrong(spider):
    raise TypeError(spider)


def dropping(item):
    raise DropItem(item)


class Listener:
    def heard(self, item, unsaid=7):
        return f"{item} {unsaid}"


RECEIVERS = {
    "method": Listener().heard,
    "too much": lambda item, unsaid: None,
    "answers": lambda item, spider: f"{item} {spider}",
    "everything": lambda **values: sorted(values),
    "nothing": lambda: None,
    "late": late,
    "broken": broken,
    "wrong": wrong,
    "dropping": dropping,
    "deferred": lambda item: succeed(item),
}


@pytest.mark.parametrize("expected", [(), DropItem, (DropItem, ValueError)])
async def test_receivers_are_told_as_by_scrapys_signals(expected, caplog):
    results = []
    for cls in (PlainSignals, SignalManager):
        manager, told = cls(cls), []
        for name, receiver in RECEIVERS.items():
            manager.connect(receiver, "a signal", weak=False)
            answers = await manager.send_catch_log_async("a signal", item=name, spider="s", dont_log=expected)
            told.append([(who, str(got), type(got)) for who, got in answers])
            manager.disconnect(receiver, "a signal", weak=False)
        for receiver in RECEIVERS.values():
            manager.connect(receiver, "a signal", weak=False)
        answers = await manager.send_catch_log_async("a signal", item=1, spider="s", dont_log=expected)
        told.append(sorted((repr(who), str(got)) for who, got in answers))
        told.append(sorted(record.getMessage() for record in caplog.records if record.levelno == logging.ERROR))
        told.append(manager.send_catch_log("another signal", item=1))
        manager.disconnect_all("a signal")
        caplog.clear()
        results.append(told)
    assert results[0] == results[1]


PIPELINES = {
    "same": lambda self, item: item,
    "more": lambda self, item: item + 1,
    "of old": lambda self, item, spider: item + len(spider.name),
    "none": lambda self, item: None,
    "deferred": lambda self, item: succeed(item * 2),
    "drops": lambda self, item: dropping(item),
}


@pytest.mark.parametrize(
    "names", [[name] for name in PIPELINES] + [["same", "deferred", "of old", "more", "drops"], []]
)
async def test_items_go_through_pipelines_as_by_scrapys_manager(names):
    crawler, results = crawler_of(), []

    async def awaited(self, item):
        await asyncio.sleep(0)
        return item and item + 10

    methods = [awaited, *(PIPELINES[name] for name in names), awaited]
    made = [type("Pipeline", (), {"process_item": method})() for method in methods]
    for manager in (PlainPipelines, ItemPipelineManager):
        chain = manager(*made, crawler=crawler)
        (got,) = await asyncio.gather(chain.process_item_async(5), return_exceptions=True)
        results.append((type(got), str(got)))
    assert results[0] == results[1]
    assert not isinstance(got, Deferred)


class Faulty:
    """An iterator that goes on after an error."""

    def __init__(self):
        self._rest = iter([1, None, Request("http://a.test/"), ValueError("broken"), 2])

    def __iter__(self):
        return self

    def __next__(self):
        entry = next(self._rest)
        if isinstance(entry, Exception):
            raise entry
        return entry


async def generated():
    for entry in Faulty():
        yield entry


@pytest.mark.parametrize("output", [Faulty, generated])
async def test_output_of_callbacks_is_read_as_by_scrapys_scraper(output):
    results = []
    for cls in (PlainScraper, Scraper):
        crawler, seen = crawler_of(CONCURRENT_ITEMS=1), []
        crawler.engine = SimpleNamespace(crawl=lambda request, seen=seen: seen.append(str(request)))
        crawler.signals.connect(lambda item, seen=seen: seen.append(str(item)), signals.item_scraped, weak=False)
        scraper = Scraper(crawler)
        scraper.__class__ = cls
        await scraper.open_spider_async()
        scraper.handle_spider_error = lambda failure, request, response, seen=seen: seen.append(str(failure.value))
        await scraper.handle_spider_output_async(output(), Request("http://b.test/"), Response("http://b.test/"))
        results.append(sorted(seen))
    assert results[0] == results[1]
    assert "broken" in results[0]


async def test_a_callback_of_much_output_leaves_the_loop_to_others():
    crawler, turns = crawler_of(CONCURRENT_ITEMS=1), 0
    crawler.engine = SimpleNamespace(crawl=lambda request: None)
    scraper = Scraper(crawler)
    scraper.__class__ = PlainScraper

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    output = (Request(f"http://b.test/{number}") for number in range(50))
    task = asyncio.ensure_future(others())
    await scraper.handle_spider_output_async(output, Request("http://b.test/"), Response("http://b.test/"))
    task.cancel()
    assert turns >= 49


def reading(name, seen):
    """A spider middleware with both methods, as Scrapy's documentation has them."""

    def process_spider_output(self, response, result):
        for entry in result:
            seen.append((name, str(entry)))
            yield entry

    async def process_spider_output_async(self, response, result):
        async for entry in result:
            seen.append((name, str(entry)))
            yield entry

    methods = process_spider_output, process_spider_output_async
    return type(name, (), {method.__name__: method for method in methods})()


async def listed(output):
    return [entry async for entry in output] if isinstance(output, AsyncIterator) else list(output)


def asking(self, response):
    if response.status == 404:
        raise ValueError("not wanted")


async def only_later(self, response, result):
    async for entry in result:
        yield f"{entry}!"


def mending(self, response, exception):
    return ["mended"]


def failing_callback(entries):
    yield entries
    raise ValueError("broken")


@pytest.mark.parametrize("further", [{}, {"process_spider_input": asking}, {"process_spider_output": only_later},
                                     {"process_spider_exception": mending}])  # fmt: skip
@pytest.mark.parametrize("callback", ["plain", "async", "failing", "raises"])
@pytest.mark.parametrize("status", [200, 404])
async def test_spider_middlewares_read_as_by_scrapys_manager(further, callback, status):
    results = []

    async def scrape(response, request):
        if callback == "raises" or not isinstance(response, Response):
            raise ValueError("at once")
        return {"plain": iter, "async": generated_plain, "failing": failing_callback}[callback]([1, None, "two"])

    for cls in (PlainSpiderMiddlewares, SpiderMiddlewareManager):
        seen = []
        foreign = [type("Foreign", (), further)()] if further else []
        manager = SpiderMiddlewareManager(reading("first", seen), *foreign, reading("last", seen), crawler=crawler_of())
        manager.__class__ = cls
        request = Request("http://a.test/")
        try:
            output = await manager.scrape_response_async(scrape, Response(request.url, status), request)
            results.append((await listed(output), seen))
        except ValueError as error:
            results.append((str(error), seen))
    assert results[0] == results[1]


async def generated_plain(entries):
    for entry in entries:
        yield entry


class Site:
    """A download handler, and how many requests it had at once."""

    lazy = True
    at_once = most = 0

    async def download_request(self, request):
        Site.at_once += 1
        Site.most = max(Site.most, Site.at_once)
        await asyncio.sleep(0.01)
        Site.at_once -= 1
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
from test_plain import Redirecting, Site, Visitor

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
        assert type(cls.crawler.engine.scraper.spidermw) is plain.PlainSpiderMiddlewares

process = AsyncCrawlerProcess({
    "DOWNLOADER": "spiderling.engine.fast_scrapy.DirectDownloader",
    "DOWNLOAD_HANDLERS": {"http": Site}, "CONCURRENT_ITEMS": 1,
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
print(json.dumps([Site.most, sorted(seen), sorted(line for line in stats if "time" not in line and "mem" not in line)]))
"""


@pytest.mark.slow
def test_a_crawl_on_the_plain_engine_is_the_same():
    """The same responses, items, errors and stats, and it ends by itself."""
    results = []
    for way in ("plain", "scrapy"):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))}
        run = subprocess.run(
            [sys.executable, "-c", CRAWL, way],
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=True,
        )
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
