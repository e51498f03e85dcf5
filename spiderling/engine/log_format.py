"""Log lines of single pages: made with LOG_LEVEL=DEBUG only, since nobody reads a hundred of them a second."""

from __future__ import annotations

import logging
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult
from twisted.python.failure import Failure

from spiderling.base.errors import is_ours


class QuietLogFormatter(LogFormatter):
    """No line for items scraped, and for pages crawled and items dropped at DEBUG only.

    Scrapy's loggers take every line, and their handlers refuse it: so the level of the setting decides here.
    """

    def __init__(self, is_heard: bool) -> None:
        self._is_heard = is_heard

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(str(crawler.settings["LOG_LEVEL"]) in ("DEBUG", str(logging.DEBUG)))

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult | None:  # type: ignore[override]
        return super().crawled(request, response, spider) if self._is_heard else None

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult | None:  # type: ignore[override]
        return None

    def item_error(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Tell an error of ours at DEBUG only: crawl/internal_errors.py logs it too."""
        line = super().item_error(item, exception, response, spider)
        return {**line, "level": logging.DEBUG} if is_ours(exception) else line

    def dropped(  # type: ignore[override]
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        if not self._is_heard:
            return None
        return {
            "level": logging.DEBUG,
            "msg": "Dropped %(url)s: %(exception)s",
            "args": {"url": getattr(getattr(item, "response", None), "url", ""), "exception": exception},
        }
