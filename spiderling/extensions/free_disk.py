"""Pauses a crawl whose disk is nearly full, before a write fails and ends it; it goes on when there is room again."""

from __future__ import annotations

import asyncio
import logging
import shutil

from spiderling.base.option_values import PREFIX
from spiderling.engine.component import Extension

logger = logging.getLogger(__name__)

LOOK_S = 5.0
"""Seconds between two looks (chosen: a busy crawl writes some ten megabytes in them)."""


class FreeDisk(Extension):
    """Looks at the free bytes of the disk that the crawl writes to.  Archives are read to their end all the same."""

    async def opened(self) -> None:
        if self.crawl.options.min_free_bytes and self.crawl.archives is None:
            await self._look()
            self.repeat(self._look, LOOK_S, "the look at the free disk")

    async def _look(self) -> None:
        crawl = self.crawl
        try:
            free = (await asyncio.to_thread(shutil.disk_usage, crawl.jobdir.path)).free
        except OSError as error:  # the next write says more
            logger.warning("How much of the disk is free cannot be found out: %s", error)
            return
        was_full = crawl.is_disk_full
        crawl.is_disk_full = free < crawl.options.min_free_bytes
        if crawl.is_disk_full and not was_full:
            logger.warning(
                "paused: the disk of the crawl has only %s MB left, less than %sMIN_FREE_BYTES. Nothing is asked for "
                "and nothing is lost; make room, and it goes on by itself.", f"{free / 1e6:,.0f}", PREFIX,
            )  # fmt: skip
        elif was_full and not crawl.is_disk_full:
            logger.warning("The crawl goes on: its disk has %s MB left.", f"{free / 1e6:,.0f}")
            self.dispatcher.wake()
