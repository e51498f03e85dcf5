"""Counts the log lines of a crawl that are made below INFO, for test_start.py; EXTENSIONS loads it into the crawl."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

EXTENSIONS = '{"tests.crawl.madelines.MadeLines": 1}'


class MadeLines:
    """Writes their number, from the first page on, to the file LOG_MADE."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MadeLines:
        made: list[str] = []
        inner = logging.getLogRecordFactory()

        def counted(name: str, level: int, *args: Any, **more: Any) -> logging.LogRecord:
            if level < logging.INFO:
                made.append(name)
            return inner(name, level, *args, **more)

        def began() -> None:
            logging.setLogRecordFactory(counted)

        def ended() -> None:
            Path(crawler.settings["LOG_MADE"]).write_text(str(len(made)))

        crawler.signals.connect(began, signals.request_reached_downloader, weak=False)
        crawler.signals.connect(ended, signals.spider_closed, weak=False)
        return cls()
