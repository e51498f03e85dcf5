"""The stats are Scrapy's."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.http import Response
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from spiderling.engine.fast_scrapy import PlainStats
from spiderling.middlewares.stats import PlainDownloaderStats


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
def test_the_same_calls_give_the_same_values():
    results = []
    for cls in (PlainStats, MemoryStatsCollector):
        crawler = get_crawler(Spider)
        crawler.spider = Spider("a")
        stats = cls(crawler)
        stats.inc_value("a")
        stats.inc_value("a", 2, spider=crawler.spider)
        stats.inc_value("b", start=5)
        stats.max_value("c", 3)
        stats.max_value("c", 2)
        stats.min_value("d", 3)
        stats.set_value("e", "x", crawler.spider)
        stats.close_spider(reason="finished")
        results.append((stats.get_stats(), stats.get_value("a"), stats.get_value("z", 7)))
    assert results[0] == results[1]


URLS = [
    "http://a.test",
    "http://a.test/",
    "http://a.test?q=1",
    "https://A.Test:8443/way/to?page=1&x=%C4%8D",
    "http://a.test/way?",
    "http://me:secret@a.test/",
    "http://[::1]:80/",
    "http://a.test/a;b?c",
    "http://a.test/a;?c",
    "http://a.test/a#part",
    "http://a.test//double",
    "http://a.test/?a?b",
    "http://a.test:/",
    "http://a.test/?",
    "http://a.test/č?č",
    "http://a.test/a b\tc",
]


@pytest.mark.parametrize("url", URLS)
def test_requests_and_responses_count_as_in_scrapys_stats(url):
    results = []
    for cls in (PlainDownloaderStats, DownloaderStats):
        crawler = get_crawler(Spider)
        middleware = cls.from_crawler(crawler)
        for headers in ({}, {"A": ["1", "22"], "Accept": "text/html"}):
            for method, body in (("GET", b""), ("POST", b"body")):
                request = Request(url, method=method, headers=headers, body=body, meta={"verbatim_url": True})
                assert middleware.process_request(request) is None
                response = Response("http://b.test/", status=404 if headers else 799, headers=headers, body=body)
                assert middleware.process_response(request, response) is response
        middleware.process_exception(request, ValueError())
        results.append(crawler.stats.get_stats())
    assert results[0] == results[1]
    assert results[0]["downloader/request_bytes"] > 100
