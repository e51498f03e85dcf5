"""The plain parts do what Scrapy's do: the same calls in the same order, the same results, the same log."""

from __future__ import annotations

import asyncio
import logging

import pytest
from pydispatch import dispatcher
from scrapy import Request, Spider, signals
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.scraper import Scraper
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, succeed

from spiderling.plain import PlainMiddlewares, PlainPipelines, PlainScraper, PlainSignals

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
    """With the argument of old."""
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


RECEIVERS = {
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
        scraper = Scraper(crawler)
        scraper.__class__ = cls

        async def noted(entry, response, seen=seen):
            seen.append(str(entry))

        scraper._process_spidermw_output_async = noted
        scraper.handle_spider_error = lambda failure, request, response, seen=seen: seen.append(str(failure.value))
        await scraper.handle_spider_output_async(output(), Request("http://b.test/"), Response("http://b.test/"))
        results.append(sorted(seen))
    assert results[0] == results[1]
    assert "broken" in results[0]
