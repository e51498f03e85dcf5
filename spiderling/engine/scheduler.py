"""The Scrapy scheduler: opens and closes the crawl, and passes the engine's calls on to its dispatcher.

Here stand also what a signal does while the crawl is being opened, and how the command tells that it failed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from spiderling.base.errors import BadInput, NetworkAway, NoFreeShard, SpiderlingError, Stopped
from spiderling.base.machine import require
from spiderling.base.terminal import NUMBERS, ExitHandler
from spiderling.crawl.arguments import directory_of, options_of, refuse_recrawl

if TYPE_CHECKING:
    from pathlib import Path

    from spiderling.base.options import Options
    from spiderling.cluster.shard import Shard
    from spiderling.crawl.crawl import Crawl
    from spiderling.engine.dispatcher import Dispatcher

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it: 128 + SIGINT
NO_NETWORK = 3  # exit code of a crawl that stopped since nothing answers; it keeps its URLs
FAILED_STAT = "spiderling/failed"
"""Stat of a crawl that could not begin, go on or be saved; its value is the finish reason.  The command exits with 1,
or with NO_NETWORK if it is OFFLINE."""
OFFLINE = NetworkAway.finish_reason  # finish reason of a crawl that has no network
NOT_OPENED = ExitHandler(
    "stopped before the crawl was opened; nothing is lost, and the same command begins it or goes on.", 0
)
_AT_ONCE = ExitHandler("stopped at once by a second signal; nothing is lost, and the same command goes on.", 0)
_POLL_S = 0.01  # seconds between two checks whether the engine runs; chosen


class Opening:
    """Takes signals while a crawl is being opened, which may take long: the first stops it, as a later one does.

    Scrapy's own handlers would end the process amid the opening, as after a second signal.  What takes long and leaves
    nothing to be closed is left at once (`prompt`).  In what follows the signal waits until Scrapy's handlers can take
    it, and then pauses the crawl.
    """

    current: Opening | None = None  # that of the crawl which this process was started for

    def __init__(self, crawler: Crawler) -> None:
        """Take the place of Scrapy's handlers, which are there when the event loop runs."""
        self._crawler = crawler
        self._first: int | None = None
        self._has_begun = False
        self._is_prompt = False
        crawler.signals.connect(self._engine_started, signals.engine_started)
        self._theirs: dict[int, Any] = {number: signal.signal(number, self._note) for number in NUMBERS}
        Opening.current = self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self._has_begun:
            NOT_OPENED(number, frame)
        if self._first is not None:
            _AT_ONCE(number, frame)
        self._first = number
        self._refuse_to_go_on()

    def _refuse_to_go_on(self) -> None:
        if self._is_prompt and self._first is not None:
            raise Stopped

    @contextmanager
    def prompt(self) -> Iterator[None]:
        """Within it a signal raises Stopped, at its end if not before."""
        self._is_prompt = self._has_begun = True
        try:
            yield
            self._refuse_to_go_on()
        except SpiderlingError:
            self._refuse_to_go_on()  # whatever the exception has become
            raise
        finally:
            self._is_prompt = False

    async def _engine_started(self) -> None:
        self._has_begun = True
        self._handing_over = asyncio.ensure_future(self._hand_over())

    async def _hand_over(self) -> None:
        while not self._crawler.engine.running and self._crawler.crawling:
            await asyncio.sleep(_POLL_S)
        for number, handler in self._theirs.items():
            signal.signal(number, handler)
        if self._first is not None:
            os.kill(os.getpid(), self._first)


@contextmanager
def prompt() -> Iterator[None]:
    """`Opening.prompt` in a process that was started for one crawl; elsewhere signals are not ours."""
    if Opening.current is None:
        yield
    else:
        with Opening.current.prompt():
            yield


logger = logging.getLogger(__name__)

_FAST = "spiderling.engine.fast_scrapy"  # it is loaded only with releases of Scrapy that it was tried with (addon.py)


class Scheduler(BaseScheduler):
    """Opens the crawl and hands out its requests."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.dispatcher: Dispatcher | None = None  # None until the crawl is open; it stays None when that fails
        self._crawl: Crawl | None = None
        self.error: SpiderlingError | None = None  # why the crawl could not be opened or had to stop
        self._shard: Shard | None = None  # this process as a shard of the crawl, if that has any
        self._is_closed = False  # whether the crawl is being closed, or is

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Open the crawl; a failure is kept in ``error`` and closes the spider once it is open (Lifecycle)."""
        # what a crawl needs takes half a second to import; the spiders, which need this module, are imported for a list
        from spiderling.base.addresses import HostMap
        from spiderling.crawl.crawl import Crawl
        from spiderling.engine.dispatcher import Dispatcher
        from spiderling.fetch.resolver import Resolver

        if type(self._crawler.engine.downloader).__module__ == _FAST:
            import_module(_FAST).install(self._crawler)
        try:
            with prompt():
                options = options_of(self._crawler.settings, spider)
                getattr(spider, "prepare", lambda: None)()
                archives = getattr(spider, "archives", None)
                refuse_recrawl(options, archives is not None)
                suffix = "" if archives is None else "-archive"
                directory = directory_of(self._crawler.settings, options, suffix)
                if options.cluster:
                    shard = self._shard = self._join_cluster(options, directory, archives)
                    options, directory = shard.options, shard.directory
                host_map = HostMap(options.hosts)
                resolver = Resolver(options, host_map)
                elsewhere = None if self._shard is None else self._shard.elsewhere
                self._crawl = Crawl(options, directory, self._stop, archives, elsewhere)
        except SpiderlingError as error:
            self._note_error(error)
            return
        self.dispatcher = Dispatcher(self._crawler, self._crawl, resolver, host_map)
        if self._shard is not None:
            self._shard.begin(self._crawl, self.dispatcher.wake)
            self.dispatcher.shard = self._shard

    @staticmethod
    def _join_cluster(options: Options, directory: Path, archives: object) -> Shard:
        """A shard of the crawl in *directory* that is this process's own now; raises SpiderlingError."""
        require("cluster")
        from spiderling.cluster.shard import Shard

        if archives is not None:
            raise BadInput("archives are read without SPIDERLING_CLUSTER: each process can read its own files.")
        return Shard(options, directory)

    def close(self, reason: str) -> Deferred[None]:
        """Make everything durable."""
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        self._is_closed = True
        opened = self.dispatcher or self._crawl  # the latter alone when no dispatcher could be made
        try:
            if self._shard is not None:
                await self._shard.stop()
            if opened is not None:
                await opened.close()
        except SpiderlingError as error:
            self._note_error(error)
        finally:
            if self._shard is not None:
                self._shard.close()

    def has_pending_requests(self) -> bool:
        return self.dispatcher is not None and not self.dispatcher.crawl.is_finished

    def enqueue_request(self, request: Request) -> bool:
        """Put *request* into the frontier; False when it was refused (seen, not http ...) or no crawl is open.

        Seeds may still come while Scrapy closes the spider; the next start has them again.
        """
        return self.dispatcher is not None and not self._is_closed and self.dispatcher.enqueue(request)

    def next_request(self) -> Request | None:
        """A request that is due now, or None."""
        return None if self.dispatcher is None else self.dispatcher.next_request()

    def _stop(self, error: SpiderlingError) -> None:
        """Close the spider, since *error* stops the crawl; everything acknowledged is safe."""
        self._note_error(error)
        engine = self._crawler.engine
        if engine.spider is None:
            return
        reason = (self.error or error).finish_reason
        if self.dispatcher is not None:
            self.dispatcher.close_spider(reason)
        else:  # while the crawl is being opened
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason=reason))

    def _note_error(self, error: SpiderlingError) -> None:
        if self.error is None:
            self.error = error
            if isinstance(error, (NoFreeShard, Stopped)):
                logger.info("%s", error)
                return
            self._crawler.stats.set_value(FAILED_STAT, error.finish_reason)
            logger.error("The crawl stops: %s", error)
