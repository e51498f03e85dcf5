"""Which lines of single pages are made."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from spiderling.engine.log_format import QuietLogFormatter
from spiderling.items import PageItem


@pytest.mark.parametrize(("level", "number"), [("INFO", 0), ("DEBUG", 2), (logging.DEBUG, 2), (None, 0)])
def test_lines_of_single_pages_are_made_at_debug_alone(level, number):
    formatter = QuietLogFormatter.from_crawler(SimpleNamespace(settings={"LOG_LEVEL": level}))
    answer = Response("http://a.cz/", request=Request("http://a.cz/"))
    item, spider = PageItem(answer), Spider("a")
    lines = [
        formatter.crawled(answer.request, answer, spider),
        formatter.dropped(item, ValueError("why"), answer, spider),
        formatter.scraped(item, answer, spider),
    ]
    made = [line["msg"] % line["args"] for line in lines if line is not None]
    assert len(made) == number and all("http://a.cz/" in line for line in made)
