"""A second crawler to stand against: plain Scrapy with LinkExtractor and trafilatura."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trafilatura
from scrapy.http import Response, TextResponse

sys.path.insert(0, str(Path(__file__).parent))

from naive import NaiveSpider as _Naive


class TrafilaturaSpider(_Naive):
    """``scrapy runspider benchmarks/peers/naive_trafilatura.py -a seeds=URL,URL``"""

    name = "naive-trafilatura"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        stats = self.crawler.stats
        stats.inc_value("naive/bytes", len(response.body))
        if not isinstance(response, TextResponse) or response.status != 200:
            return
        for link in self._links.extract_links(response):
            if link.url.startswith("http://"):
                yield response.follow(link)
        text = trafilatura.extract(response.body, url=response.url) if response.body.strip() else None
        if text:
            stats.inc_value("naive/kept_bytes", len(text.encode()))


del _Naive  # runspider takes the one spider that is left
