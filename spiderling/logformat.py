"""Log lines of single pages, which nobody reads at a hundred pages a second: shown at DEBUG only."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


class QuietLogFormatter(LogFormatter):
    """No line for pages crawled and items scraped, unless DEBUG is on."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult | None:  # type: ignore[override]
        return super().crawled(request, response, spider) if _debug() else None

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult | None:  # type: ignore[override]
        return None

    def dropped(  # type: ignore[override]
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        if hasattr(exception, "reason") and not _debug():
            return None
        url = getattr(getattr(item, "response", None), "url", "")
        return {
            "level": logging.DEBUG,
            "msg": "Dropped %(url)s: %(exception)s",
            "args": {"url": url, "exception": exception},
        }


def _debug() -> bool:
    return logging.getLogger("scrapy").isEnabledFor(logging.DEBUG) and logging.getLogger().isEnabledFor(logging.DEBUG)
