"""Keeps ``spider.state`` as Scrapy's SpiderState does, but safe on a full disk and with the default JOBDIR."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from spiderling.base.atomic_files import replacing
from spiderling.engine.component import Component

logger = logging.getLogger(__name__)


class SpiderState(Component):
    """Loads the spider's dict ``state`` at the start and saves it at a clean end, whole or not at all."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    def _opened(self, spider: Spider) -> None:
        state: Any = {}
        path = self._path()
        try:
            if path is not None and path.exists():
                state = pickle.loads(path.read_bytes())  # noqa: S301 - written below, in the user's own directory
        except Exception as error:  # pickle raises anything for a damaged file
            logger.warning("%s cannot be read (%s); the spider begins with an empty state", path, error)
        spider.state = state  # type: ignore[attr-defined]

    def _closed(self, spider: Spider) -> None:
        path = self._path()
        state = getattr(spider, "state", None)
        if path is None or not (state or path.exists()):
            return
        try:
            with replacing(path) as file:
                pickle.dump(state, file, protocol=4)
        except Exception as error:
            logger.warning("%s cannot be written (%s); the spider's former state stays", path, error)

    def _path(self) -> Path | None:
        return self.crawl.jobdir.path / "spider.state" if self.has_crawl else None
