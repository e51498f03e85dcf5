"""What runs as long as a crawl: ``crawl.log``, checkpoints and snapshots; ``spider.state``; revisits of known pages."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter, LogFormatterResult
from twisted.python.failure import Failure

from spiderling.base.errors import is_ours
from spiderling.base.files import open_regular, replacing
from spiderling.base.reasons import Reason
from spiderling.base.urls import registrable_domain
from spiderling.crawl.crawl import Crawl
from spiderling.crawl.ended_urls import plan, take_up
from spiderling.engine.component import Component, Extension, scheduler_of
from spiderling.engine.scheduler import FAILED_STAT
from spiderling.jobdir.snapshots import PAUSE_S

logger = logging.getLogger(__name__)

CHECKPOINT_S = 1.0
"""Longest time between two checkpoints, in seconds; chosen: what a kill may cost, and at most an fsync a second."""
SNAPSHOT_S = 600.0
"""Seconds between two snapshots of the near-duplicate filter; chosen: after a kill, later documents are read again."""
_POLL_S = 0.01  # seconds between two looks whether the spider is closed; chosen
_COLLECTED_OBJECTS = 3000
"""New objects after which Python collects garbage.  Chosen: a collection then takes 6 ms, every tenth some 30 ms."""


class Lifecycle(Extension):
    """Writes ``crawl.log``, checkpoints and snapshots; lets a crawl fail that may ask no seed.

    Raises CloseSpider for one that could not be opened, for which our other extensions are off.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._log: logging.Handler | None = None
        crawler.signals.connect(self._refuse, signals.spider_opened)
        crawler.signals.connect(self._ended, signals.engine_stopped)

    def _refuse(self) -> None:
        """Close the spider of a crawl that could not be opened, or has failed before its first request."""
        error = scheduler_of(self._crawler).error
        if error is not None:
            raise CloseSpider(error.finish_reason)

    def opened(self) -> None:
        if scheduler_of(self._crawler).error is not None:
            return
        registrable_domain("example.com")  # reads the list of suffixes now, not while the first page is settled
        _collect_less_often()
        is_debug = str(self._crawler.settings["LOG_LEVEL"]) in ("DEBUG", str(logging.DEBUG))
        # Scrapy's loggers make four lines a page, and its handlers refuse them
        logging.getLogger("scrapy").setLevel(logging.NOTSET if is_debug else logging.INFO)
        self._log = _file_log(self.crawl)
        crawl = self.crawl
        self.repeat(crawl.checkpoint.begin_if_needed, CHECKPOINT_S, "the checkpoints' clock")
        if crawl.near is not None:  # `Crawl.close` writes the last snapshot
            self.repeat(crawl.snapshot, SNAPSHOT_S, "the snapshots of the near-duplicate filter")
        if crawl.snapshots is not None:
            self.repeat(crawl.snapshots.step, PAUSE_S, "the snapshots")

    def closed(self, reason: str) -> None:
        """Let the command fail if no seed had an address that may be asked; other shards may own others."""
        crawl = self.crawl
        ends = set(+crawl.frontier.ledger.ends)
        is_whole = crawl.archives is None and crawl.options.shards == 1
        if reason == "finished" and is_whole and ends == {Reason.ADDRESS_FORBIDDEN}:
            logger.error("No seed may be crawled: %s", Reason.ADDRESS_FORBIDDEN.help)
            self._crawler.stats.set_value(FAILED_STAT, "bad-input")

    async def _ended(self) -> None:
        """Close ``crawl.log``, which has the summary when the spider is closed.

        A signal that comes while the spider is being closed stops Scrapy's engine before that is done, and the process
        would end amid the last checkpoint.
        """
        while self._crawler.engine.spider is not None:
            await asyncio.sleep(_POLL_S)
        if self._log is not None:
            logging.getLogger().removeHandler(self._log)
            self._log.close()


class ItemErrorFormatter(LogFormatter):
    """Logs errors of Spiderling's own in a pipeline at DEBUG: crawl/internal_errors.py has logged them already."""

    def item_error(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        line = super().item_error(item, exception, response, spider)
        return {**line, "level": logging.DEBUG} if is_ours(exception) else line


class _FileLog(logging.FileHandler):
    """Writes no traceback to the terminal when the disk is full; the lines themselves stand there too."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        return

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def _collect_less_often() -> None:
    """Collect garbage less often than Python does, which would take a tenth of the main process' time."""
    gc.freeze()
    first, *further = gc.get_threshold()
    if first:  # else somebody has switched it off
        gc.set_threshold(max(first, _COLLECTED_OBJECTS), *further)


def _file_log(crawl: Crawl) -> logging.Handler | None:
    """What writes ``crawl.log``; None, and a warning, if it cannot be written."""
    place = crawl.jobdir.log
    try:
        open_regular(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT).close()
    except OSError as error:
        logger.warning("%s cannot be written (%s): this crawl has no log there.", place, error.strerror or error)
        return None
    handler = _FileLog(place, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.setLevel(logging.INFO)
    logging.getLogger().addHandler(handler)
    return handler


class SpiderState(Component):
    """Loads the spider's dict ``state`` at the start and saves it at a clean end, whole or not at all.

    Scrapy's own SpiderState needs JOBDIR, and is not safe on a full disk.
    """

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


_MIN_S, _MAX_S = 0.05, 60.0  # bounds of the seconds between two steps; chosen
_BLOCK_PAUSE_S = 0.05  # seconds between two blocks of a sweep, so that other tasks have their turn; chosen


class Recrawls(Extension):
    """Takes up what has ended, and plans revisits, if there is a recrawl (docs/recrawl.md)."""

    def opened(self) -> None:
        recrawl = self.crawl.frontier.recrawl
        if recrawl.is_on:
            every_s = min(_MAX_S, max(_MIN_S, recrawl.sweep_s))
            self.repeat(self._take_up, every_s, "the recrawl's log")
            self.repeat(self._plan, every_s, "the recrawl")

    async def _take_up(self) -> None:
        await take_up(self.crawl)

    async def _plan(self) -> None:
        crawl = self.crawl
        while not crawl.is_paused and not crawl.stopping and plan(crawl):
            await asyncio.sleep(_BLOCK_PAUSE_S)
        self.dispatcher.wake()
