"""The stats are Scrapy's."""

from __future__ import annotations

import pytest
from scrapy import Spider
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from spiderling.engine.fast_scrapy import PlainStats


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
