"""A second crawler to stand against: plain Scrapy with LinkExtractor and trafilatura."""

from __future__ import annotations

import sys
from pathlib import Path

import trafilatura
from scrapy.http import TextResponse

sys.path.insert(0, str(Path(__file__).parent))

from naive import NaiveSpider as _Naive


class TrafilaturaSpider(_Naive):
    """``scrapy runspider benchmarks/peers/naive_trafilatura.py -a seeds=URL,URL``"""

    name = "naive-trafilatura"

    def _text_of(self, response: TextResponse) -> str:
        return trafilatura.extract(response.body, url=response.url) or ""


del _Naive  # runspider takes the one spider that is left
