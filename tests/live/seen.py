"""An extension that says which modules of the live page a crawl has imported."""

from __future__ import annotations

import sys

from scrapy import signals

PARTS = ("spiderling.live.server", "spiderling.reporting.page", "prometheus_client")
"""aiohttp's server is none of them: Scrapy imports it for an extension of its own."""


class Seen:
    @classmethod
    def from_crawler(cls, crawler):
        crawler.signals.connect(tell, signals.spider_closed)
        return cls()


def tell():
    print("Imported:", *(name for name in PARTS if name in sys.modules))
