"""What changes, pauses or stops a crawl that runs: ``control.yaml``, a spent budget, a disk that is nearly full.

Nothing is lost by any.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from scrapy.crawler import Crawler

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.option_values import PREFIX
from spiderling.base.reasons import Reason
from spiderling.crawl.control import apply_control
from spiderling.crawl.ended_urls import ask_again
from spiderling.engine.component import Extension
from spiderling.engine.dispatcher import Dispatcher
from spiderling.jobdir.control_file import TEMPLATE, ControlFile, read_control, stamp_of
from spiderling.jobdir.coverage import COVERAGES, Coverage, coverage_of, in_words, with_point
from spiderling.jobdir.inspection import Inspection
from spiderling.jobdir.state_reader import read_note, telling_damage

logger = logging.getLogger(__name__)

_LOOK_S = 2.0  # seconds between two looks at control.yaml; chosen
_UNREAD = (-1,)  # in place of the stamp of a file that could not be read
POLL_S = 5.0  # seconds between two questions for the free disk; chosen: a busy crawl writes some ten megabytes in them
COVERAGE_S = 3600.0  # seconds between two estimates of coverage; each reads 8 bytes for every URL that has ended
_TICK_S = 1.0  # seconds between two counts of the running time, each with a check of the budgets; chosen


class Control(Extension):
    """Polls ``control.yaml`` and applies what changed."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._stamp: tuple[int, ...] = ()
        self._is_gone = False  # whether the file is no longer there
        self._told = ""  # why the file is left aside, as the log has it
        self._applied = ControlFile()
        self._asking: asyncio.Task[None] | None = None  # lets URLs wait again

    async def opened(self) -> None:
        crawl = self.crawl
        shard = self.dispatcher.shard
        self._place = crawl.jobdir.control if shard is None else shard.control
        with crawl.errors.changing():
            with suppress(FileExistsError), self._place.open("x", encoding="utf-8") as file:
                file.write(TEMPLATE)
            await self._poll()  # a crawl without URLs would end before the first poll
            if self._asking is not None:
                await asyncio.wait([self._asking])
            stop_if_spent(self.dispatcher)  # a budget may be spent before the start
        self.repeat(self._poll, _LOOK_S, "control.yaml")

    async def _poll(self) -> None:
        crawl = self.crawl
        if crawl.stopping:  # the state may be closed at any moment; the next start reads the file
            return
        try:
            text = self._changed_text(self._place)
            if text is None:
                return
            wanted = ControlFile.parse(text)
        except (BadInput, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError):  # it may be read in two seconds, though nobody has changed it
                self._stamp = _UNREAD
            is_text = not isinstance(error, UnicodeDecodeError)
            why = (getattr(error, "strerror", None) or error) if is_text else "it is not UTF-8"
            if str(why) != self._told:
                logger.error("%s is left aside until it is mended: %s", self._place, why)
            self._told = str(why)
            return
        self._told = ""
        former = self._applied
        self._applied = wanted
        apply_control(crawl, former, wanted)
        self.dispatcher.wake()
        if crawl.archives is None:
            reasons = [Reason.of(key) for key in wanted.ask_again if key not in former.ask_again]
            if reasons:  # apart, since a long log takes minutes, and other changes are not to wait for it
                asking = self._ask_again(reasons, self._asking)
                self._asking = crawl.errors.watch_task(asking, "ask_again in control.yaml")
                self._tasks.append(self._asking)  # it ends with the spider

    async def _ask_again(self, reasons: list[Reason], before: asyncio.Task[None] | None) -> None:
        """Let URLs that ended for *reasons* wait again, once the task *before* is over."""
        if before is not None:
            await asyncio.wait([before])
        await ask_again(self.crawl, reasons)
        self.dispatcher.wake()

    def _changed_text(self, path: Path) -> str | None:
        """The text of the file at *path*, "" if two looks in a row have missed it; None if it is as it was.

        One look may miss it while an editor saves it.
        """
        stamp = stamp_of(path)
        was_gone = self._is_gone
        self._is_gone = not stamp and stamp == self._stamp
        if stamp == self._stamp:
            return "" if self._is_gone and not was_gone else None
        self._stamp = stamp
        return read_control(path) if stamp else None


class BudgetCheck(Extension):
    """Counts the running time, and checks the budgets (crawl/budgets.py) every second.

    Restarted with a larger budget, the crawl goes on.

    As the end comes near, fewer pages are begun (`Budgets.has_room`), so little is in transit at the stop.  It may
    still come, but no document is kept beyond the budget (pipelines.py).
    """

    def opened(self) -> None:
        self._counted_at = self.crawl.now()
        self.repeat(self._count_time, _TICK_S, "the budgets' clock")
        stop_if_spent(self.dispatcher)

    def _count_time(self) -> None:
        seconds = int(self.crawl.now() - self._counted_at)
        self.crawl.frontier.ledger.totals["time_s"] += 0 if self.crawl.is_paused else seconds
        self._counted_at += seconds
        stop_if_spent(self.dispatcher)


def stop_if_spent(dispatcher: Dispatcher) -> None:
    """Close the spider if a budget of its crawl is spent."""
    crawl = dispatcher.crawl
    if crawl.stopping:
        return
    marks = crawl.budgets.marks
    spent = crawl.budgets.find_spent(crawl.totals())
    if crawl.budgets.marks is not marks:
        crawl.checkpoint.set_meta("marginal", crawl.budgets.marks)
    if spent is not None:
        crawl.note_event(spent.message)
        dispatcher.close_spider(spent.reason)


class CoverageCheck(Extension):
    """Estimates by lists of pages how much the crawl has, and stops it when that is enough (jobdir/coverage.py)."""

    def opened(self) -> None:
        if self.crawl.page_lists:
            self.repeat(self._estimate, COVERAGE_S, "the estimate of coverage")

    async def _estimate(self) -> None:
        crawl = self.crawl
        try:
            found, earlier = await asyncio.to_thread(self._read)
        except SpiderlingError as error:
            logger.warning("Coverage is not estimated: %s", error)
            return
        crawl.coverage = found.shares()
        crawl.checkpoint.set_meta(COVERAGES, with_point(earlier, crawl.now(), found))
        missing = f"; not estimated: {found.why}" if found.why else ""
        logger.info(
            "Of the text on the web, the crawl has %s%s", in_words(crawl.coverage) or "an unknown part", missing
        )
        least = found.words or found.pages
        if least is not None and 0 < crawl.options.coverage_share <= least.low and not crawl.stopping:
            said = f"{PREFIX}COVERAGE_SHARE={crawl.options.coverage_share:g} (-a coverage)"
            crawl.note_event(f"{said} is reached; a larger one lets the crawl go on")
            self.dispatcher.close_spider("coverage")

    def _read(self) -> tuple[Coverage, list[dict[str, Any]]]:
        database = self.crawl.jobdir.database
        with closing(Inspection(self.crawl.jobdir.path)) as crawl, telling_damage(database):
            return coverage_of(crawl, self.crawl.page_lists), read_note(crawl.meta, COVERAGES, list[dict[str, Any]]())


class FreeDisk(Extension):
    """Pauses the crawl before a write fails and ends it; it goes on when there is room again.

    Archives are read to their end all the same.
    """

    async def opened(self) -> None:
        if self.crawl.options.min_free_bytes and self.crawl.archives is None:
            await self._poll()
            self.repeat(self._poll, POLL_S, "the question for the free disk")

    async def _poll(self) -> None:
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
