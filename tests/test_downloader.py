"""The downloader without slots: what Scrapy's engine, extensions and middlewares see of it is the same."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from spiderling.engine.fast_scrapy import DirectDownloader

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
