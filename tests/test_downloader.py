"""The downloader without slots: what Scrapy's engine, extensions and middlewares see of it is the same."""

from __future__ import annotations

import asyncio

import pytest
from pydispatch import dispatcher
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from spiderling.downloader import DirectDownloader, PlainMiddlewares, is_heard

SIGNALS = ("request_reached_downloader", "response_downloaded", "request_left_downloader")


async def fetched(cls, failure: Exception | None):
    """What came of one request, the signals sent, and the slots that are left."""
    crawler = get_crawler(Spider, {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0})
    crawler.spider = Spider("a")
    downloader, seen = cls(crawler), []
    for name in SIGNALS:
        crawler.signals.connect(lambda signal, name=name: seen.append(name), getattr(signals, name), weak=False)

    async def answer(request):
        seen.append(downloader.needs_backout())
        if failure:
            raise failure
        return Response(request.url)

    downloader.handlers.download_request_async = answer
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


@pytest.mark.parametrize("failure", [None, ValueError("broken")])
async def test_a_file_goes_past_the_engine_and_its_end_is_told(failure):
    crawler = get_crawler(Spider, {"CONCURRENT_REQUESTS": 1})
    crawler.spider = Spider("a")
    downloader, ended = DirectDownloader(crawler), []

    async def answer(request):
        assert downloader.needs_backout()
        if failure:
            raise failure
        return Response(request.url)

    downloader.handlers.download_request_async = answer
    request = Request("http://a.test/robots.txt")
    downloader.fetch_file(request, lambda *told: ended.append(told))
    await downloader.files_over()
    downloader.close()
    assert not downloader.needs_backout()
    ((about, error),) = ended
    assert about is request
    assert error is failure if failure else isinstance(error, IgnoreRequest)


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


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
@pytest.mark.parametrize("failure", [None, ValueError("broken")])
@pytest.mark.parametrize(
    ("name", "method"),
    [(name, made(value)) for name, values in METHODS.items() for value in values for made in (returning, awaiting)]
    + [("process_request", ancient)],
)
async def test_middlewares_are_asked_as_by_scrapys_manager(name, method, failure):
    crawler = get_crawler(Spider)
    crawler.spider = Spider("a")
    results = []

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
    crawler, another = get_crawler(Spider), get_crawler(Spider)
    assert not is_heard(crawler, signals.bytes_received)
    for sender, signal in ((crawler, signals.bytes_received), (dispatcher.Any, signals.bytes_received),
                           (crawler, dispatcher.Any), (dispatcher.Any, dispatcher.Any)):  # fmt: skip
        dispatcher.connect(returning, signal, sender)
        try:
            assert is_heard(crawler, signals.bytes_received)
            assert is_heard(another, signals.bytes_received) == (sender is dispatcher.Any)
        finally:
            dispatcher.disconnect(returning, signal, sender)
