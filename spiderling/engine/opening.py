"""Signals while a crawl is being opened, which may take long: the first stops it, as one that comes later does.

Scrapy's own handlers end the process amid the opening as after a second signal.  What takes long and leaves nothing to
be closed is left at once (`prompt`).  In what follows the signal waits until the crawl runs, and then pauses it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from spiderling.base.errors import SpiderlingError, Stopped
from spiderling.base.interrupts import NUMBERS, End

NOT_OPENED = End("stopped before the crawl was opened; nothing is lost, and the same command begins it or goes on.", 0)
_AT_ONCE = End("stopped at once by a second signal; nothing is lost, and the same command goes on.", 0)
_LOOK_S = 0.01
"""Seconds between two looks whether the engine runs (chosen)."""


class Opening:
    """Keeps the first signal until Scrapy's handlers can take it."""

    current: Opening | None = None
    """That of the crawl which this process was started for."""

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
            await asyncio.sleep(_LOOK_S)
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
