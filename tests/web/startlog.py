"""The crawler's own log of its connections, for test_politeness_log.py; EXTENSIONS loads it into the crawl."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy.crawler import Crawler

from spiderling.engine.download_handler import DownloadHandler

EXTENSIONS = '{"tests.web.startlog.StartLog": 1}'


class StartLog:
    """Scrapy extension: a line in the file LOG_STARTS for each connection, when it is about to be opened.

    For a second address the crawler reads its clock while ``_may_connect`` runs, so that the time this took belongs
    to the line: the process may have lost the processor in between.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StartLog:
        file = Path(crawler.settings["LOG_STARTS"]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115
        inner = DownloadHandler._may_connect

        def logged(handler: DownloadHandler, request: Any, first: str, address: str) -> bool:
            before = time.monotonic()
            may = inner(handler, request, first, address)
            if may:
                parts, now = urlsplit(request.url), time.monotonic()
                file.write(f"{now:.6f}\t{address}\t{parts.hostname}\t{parts.path}\t{now - before:.6f}\n")
            return may

        DownloadHandler._may_connect = logged  # type: ignore[method-assign]
        return cls()
