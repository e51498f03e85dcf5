"""A Scrapy extension that adds up the processor time of a live page's own callbacks and of its thread (page.py).

It needs asyncio's own event loop (ASYNCIO_EVENT_LOOP), whose handles can be measured one by one.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from asyncio import events
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

_OURS = ("spiderling/live/", "spiderling/extensions/live_page", "aiohttp/web")
"""Parts of the paths of code that runs for the page alone: aiohttp's server serves nothing else."""


class PageMeter:
    """From spider_opened to spider_closed, into the file METER_FILE."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._spent_s = 0.0
        self._calls = 0
        run = events.Handle._run
        meter = self

        def measured(handle: Any) -> None:
            began = time.thread_time()
            is_ours = _is_ours(handle._callback)
            run(handle)
            if is_ours:
                meter._spent_s += time.thread_time() - began
                meter._calls += 1

        events.Handle._run = measured  # type: ignore[method-assign]
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageMeter:
        return cls(crawler)

    def _opened(self) -> None:
        self._began = time.perf_counter()

    def _closed(self) -> None:
        wall_s = time.perf_counter() - self._began
        stats = self._crawler.stats
        assert stats is not None
        measured = {
            "wall_s": wall_s, "loop_s": self._spent_s, "thread_s": _thread_s(), "calls": self._calls,
            "pages": stats.get_value("spiderling/total/pages", 0), "main_cpu_s": time.process_time(),
        }  # fmt: skip
        Path(self._crawler.settings["METER_FILE"]).write_text(json.dumps(measured))


def _is_ours(callback: Any) -> bool:
    """Whether *callback* runs the page's code: a task of it, or the transport of one of its connections."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        code = getattr(owner.get_coro(), "cr_code", None)
        return code is not None and any(part in code.co_filename for part in _OURS)
    protocol = getattr(owner, "_protocol", owner)
    return type(protocol).__module__.startswith("aiohttp.web")


def _thread_s() -> float:
    """Processor time of the page's thread, in seconds, as the kernel counts it."""
    return sum(
        int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0]) / 1e9
        for thread in threading.enumerate()
        if thread.name.startswith("live page")
    )
