"""Has ``control.yaml`` of the crawl's directory applied whenever it changes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from scrapy.crawler import Crawler

from spiderling.base.errors import BadInput, StorageError
from spiderling.base.reasons import Reason
from spiderling.crawl.control import apply_control
from spiderling.crawl.ended_urls import ask_again
from spiderling.engine.component import Extension
from spiderling.extensions.limits import stop_if_spent
from spiderling.jobdir.control_file import TEMPLATE, ControlFile, read_control, stamp_of

logger = logging.getLogger(__name__)

_POLL_S = 2.0  # seconds between two checks of the file; chosen


class Control(Extension):
    """Polls the file and applies what changed."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._stamp: tuple[int, ...] = ()
        self._told = ""  # why the file is left aside, as the log has it
        self._applied = ControlFile()

    async def opened(self) -> None:
        crawl = self.crawl
        with crawl.errors.changing():
            if self.dispatcher.shard is None and not os.path.lexists(crawl.jobdir.control):
                crawl.jobdir.control.write_text(TEMPLATE, encoding="utf-8")
            await self._poll()  # a crawl without URLs would end before the first poll
            stop_if_spent(self.dispatcher)  # a budget may be spent before the start
        self.repeat(self._poll, _POLL_S, "control.yaml")

    async def _poll(self) -> None:
        crawl = self.crawl
        shard = self.dispatcher.shard
        try:
            text = self._changed_text(crawl.jobdir.control) if shard is None else shard.control.changed_text()
            if text is None:
                return
            wanted = ControlFile.parse(text)
        except (BadInput, OSError, StorageError, UnicodeDecodeError) as error:
            is_text = not isinstance(error, UnicodeDecodeError)
            why = (getattr(error, "strerror", None) or error) if is_text else "it is not UTF-8"
            place = crawl.jobdir.control if shard is None else shard.control.path
            if str(why) != self._told:
                logger.error("%s is left aside until it is mended: %s", place, why)
            self._told = str(why)
            return
        self._told = ""
        former = self._applied
        self._applied = wanted
        apply_control(crawl, former, wanted)
        self.dispatcher.wake()
        if crawl.archives is None:
            await ask_again(crawl, [Reason.of(key) for key in wanted.ask_again if key not in former.ask_again])
            self.dispatcher.wake()

    def _changed_text(self, path: Path) -> str | None:
        """The text of the file at *path*; None if it is as it was, or missing."""
        stamp = stamp_of(path)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return read_control(path) if stamp else None
