"""A Scrapy extension that writes what a crawl used from its opening to its end: CPU, pages, bytes, memory, pauses.

The start (imports, language models) is left out: it is paid once, whatever the crawl's length.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import time
from pathlib import Path

from scrapy import Spider, signals
from scrapy.crawler import Crawler

_TICK_S = 0.05
_MARK_S = 1.0


class Meter:
    """From spider_opened to spider_closed, into the file METER_FILE.

    ``lags_ms``: how late the event loop was, 20 times a second; ``own_ms``: the same, at most what the loop's thread
    worked meanwhile, without the turns that other processes took; ``marks``: pages, seconds, CPU seconds and resident
    MB of the main process, requests in work, once a second; ``opened_s``: the opening, by ``time.perf_counter()``.

    The setting METER_CONSTANTS, in JSON, gives constants of the package other values: module.NAME -> value.
    """

    def __init__(self, crawler: Crawler) -> None:
        for name, value in json.loads(crawler.settings.get("METER_CONSTANTS", "{}")).items():
            module, _, constant = name.rpartition(".")
            getattr(importlib.import_module(module), constant)  # one that is gone is an error
            setattr(importlib.import_module(module), constant, value)
        self._crawler = crawler
        self._file = Path(crawler.settings["METER_FILE"])
        self._lags: list[float] = []
        self._own: list[float] = []
        self._marks: list[tuple[int, float, float, float, int]] = []
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Meter:
        return cls(crawler)

    def _opened(self, spider: Spider) -> None:
        self._wall, self._cpu, self._workers = time.perf_counter(), time.process_time(), _running_children_s()
        self._ticking = asyncio.ensure_future(self._tick())

    async def _tick(self) -> None:
        marked = 0.0
        while True:
            due, worked = time.perf_counter() + _TICK_S, time.thread_time()
            await asyncio.sleep(_TICK_S)
            now = time.perf_counter()
            self._lags.append(1000 * (now - due))
            self._own.append(min(self._lags[-1], 1000 * (time.thread_time() - worked)))
            if now - marked > _MARK_S:
                marked = now
                cpu_s, active = time.process_time() - self._cpu, len(self._crawler.engine.downloader.active)
                self._marks.append((self._pages(), now - self._wall, cpu_s, _resident_mb(), active))

    def _closed(self, spider: Spider) -> None:
        self._ticking.cancel()
        stats = self._crawler.stats
        workers = resource.getrusage(resource.RUSAGE_CHILDREN)  # they have been waited for
        result = {
            "opened_s": self._wall,
            "wall_s": time.perf_counter() - self._wall,
            "main_cpu_s": time.process_time() - self._cpu,
            "worker_cpu_s": workers.ru_utime + workers.ru_stime - self._workers,
            "pages": self._pages(),
            "bytes": stats.get_value("spiderling/total/downloaded_bytes") or stats.get_value("naive/bytes", 0),
            "kept_bytes": stats.get_value("spiderling/total/kept_bytes") or stats.get_value("naive/kept_bytes", 0),
            "words": stats.get_value("spiderling/total/words", 0),
            "main_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "worker_rss_mb": workers.ru_maxrss / 1024,
            "lags_ms": self._lags,
            "own_ms": self._own,
            "marks": self._marks,
            "errors": {
                reason: stats.get_value(f"spiderling/end/{reason}", 0)
                for reason in ("connection", "timeout", "dns", "bad-http")
            },
        }
        self._file.write_text(json.dumps(result))

    def _pages(self) -> int:
        return int(self._crawler.stats.get_value("response_received_count", 0))


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _running_children_s() -> float:
    """CPU seconds of the worker processes so far."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            ticks += sum(map(int, Path("/proc", child, "stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
