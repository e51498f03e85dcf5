"""Scrapy extensions of tests: errors on order in parts of Spiderling, and a count of the log lines that are made.

    -s EXTENSIONS='{"tests.crawl.brokenparts.BrokenParts": 1}' -s FAULT="report http://a.test/3 KeyError"

``FAULT`` is a list, with semicolons, of a point of POINTS, a part of the URL and the error that is raised there.
"""

from __future__ import annotations

import builtins
import json
import logging
from functools import wraps
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from spiderling.base import errors
from spiderling.engine import outcomes
from spiderling.extensions.lifecycle import Lifecycle
from spiderling.frontier import Frontier, known_files, robots
from spiderling.frontier.admission import Admission
from spiderling.frontier.host_closing import HostClosing
from spiderling.workers import pool

EXTENSIONS = json.dumps({"tests.crawl.brokenparts.BrokenParts": 1})
COUNTED = json.dumps({"tests.crawl.brokenparts.MadeLines": 1})
POINTS = {
    "opened": (Lifecycle, "opened"),
    "outcome": (outcomes, "of_item"),
    "site-file": (known_files, "parse_rules"),
    "sitemap": (pool, "unpack"),
    "report": (HostClosing, "review"),
    "take": (Admission, "left_out"),
    "answered": (robots.Robots, "note_answer"),
}


class BrokenParts:
    """Wraps what stands in POINTS: it raises when one of its arguments tells of the URL."""

    def __init__(self, crawler: Any) -> None:
        self._reported = ""
        self._wrap(Frontier, "report", self._note)
        for fault in filter(None, (crawler.settings.get("FAULT") or "").split(";")):
            point, url, error = fault.split()
            self._wrap(*POINTS[point], self._raise(url, error))

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))

    def _note(self, frontier: Frontier, outcome: Any, now: float) -> None:
        self._reported = outcome.url

    def _raise(self, url: str, error: str) -> Any:
        kind = getattr(errors, error, None) or getattr(builtins, error)

        def check(*arguments: Any) -> None:
            about = [*map(str, arguments), *(getattr(one, "url", "") for one in arguments)]
            if any(isinstance(one, HostClosing) for one in arguments):
                about = [self._reported]
            if any(url in text for text in about):
                raise kind("on order")

        return check

    def _wrap(self, owner: Any, name: str, check: Any) -> None:
        function = getattr(owner, name)

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            check(*args)
            return function(*args, **kwargs)

        setattr(owner, name, wrapped)


class MadeLines:
    """Writes how many lines below INFO are made, from the first page on, to the file LOG_MADE."""

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
