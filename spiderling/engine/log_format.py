"""Log lines of single pages: made at DEBUG only, since nobody reads a hundred of them a second."""

from __future__ import annotations

import logging
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult
from twisted.python.failure import Failure

from spiderling.base.errors import is_ours

_ENGINE, _SCRAPER = map(logging.getLogger, ("scrapy.core.engine", "scrapy.core.scraper"))


class QuietLogFormatter(LogFormatter):
    """No line for items scraped, and for pages crawled and items dropped at DEBUG only."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult | None:  # type: ignore[override]
        return super().crawled(request, response, spider) if is_heard(_ENGINE) else None

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
        if not is_heard(_SCRAPER):
            return None
        return {
            "level": logging.DEBUG,
            "msg": "Dropped %(url)s: %(exception)s",
            "args": {"url": getattr(getattr(item, "response", None), "url", ""), "exception": exception},
        }


def is_heard(logger: logging.Logger) -> bool:
    """Whether a handler takes lines of DEBUG from *logger*.

    Scrapy's loggers pass every line on, some four a page, and only their handlers refuse them.
    """
    if not logger.isEnabledFor(logging.DEBUG):
        return False
    above: logging.Logger | None = logger
    while above is not None:
        for handler in above.handlers:
            if handler.level <= logging.DEBUG:
                return True
        above = above.parent if above.propagate else None
    return False
