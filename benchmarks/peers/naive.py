"""The naive crawler to stand against: plain Scrapy, LinkExtractor, stock jusText, a pure-Python trigram cosine.

It keeps no state, obeys nothing and writes no corpus.  The loopback server is its
HTTP proxy (environment variable http_proxy), because plain Scrapy cannot be told which
address and port a name has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Any, ClassVar

import justext
from scrapy import Spider
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor

from spiderling import languages


class NaiveSpider(Spider):
    """``scrapy runspider benchmarks/peers/naive.py -a seeds=URL,URL``"""

    name = "naive"
    custom_settings: ClassVar[dict[str, Any]] = {
        "CONCURRENT_REQUESTS": 200,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_MAXSIZE": 5_000_000,
        "ROBOTSTXT_OBEY": False,
        "DEPTH_LIMIT": 30,
    }

    def __init__(self, seeds: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.start_urls = seeds.split(",")
        self._links = LinkExtractor()
        self._stoplist = justext.get_stoplist("Czech")
        self._models = {code: _vector(_text(code)) for code in ("cs", "sk", "pl", "en", "de")}

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        stats = self.crawler.stats
        stats.inc_value("naive/bytes", len(response.body))
        if not isinstance(response, TextResponse) or response.status != 200:
            return
        for link in self._links.extract_links(response):
            if link.url.startswith("http://"):
                yield response.follow(link)
        text = self._text_of(response) if response.body.strip() else ""
        stats.inc_value("naive/kept_bytes", len(text.encode()))

    def _text_of(self, response: TextResponse) -> str:
        """What is kept of a page."""
        paragraphs = justext.justext(response.body, self._stoplist)
        text = "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)
        return text if text and self._language(text) == "cs" else ""

    def _language(self, text: str) -> str:
        vector = _vector(text)
        return max(self._models, key=lambda code: sum(n * self._models[code].get(g, 0.0) for g, n in vector.items()))


def _vector(text: str) -> dict[str, float]:
    counts = Counter(text[index : index + 3] for index in range(len(text) - 2))
    norm = sqrt(sum(count * count for count in counts.values())) or 1.0
    return {gram: count / norm for gram, count in counts.items()}


def _text(code: str) -> str:
    """Something like text of a language, from its model's frequent words."""
    (info,) = languages.find_languages(code)
    return " ".join(word for word, _ in list(info.words().items())[:3000])
