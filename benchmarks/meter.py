"""A Scrapy extension that writes what a crawl used from its opening to its end: CPU, pages, bytes, time, memory.

The start (imports, language models) is left out: it is paid once, whatever the crawl's length.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path

from scrapy import Spider, signals
from scrapy.crawler import Crawler


class Meter:
    """From spider_opened to spider_closed, into the file METER_FILE."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._file = Path(crawler.settings["METER_FILE"])
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Meter:
        return cls(crawler)

    def _opened(self, spider: Spider) -> None:
        self._wall, self._cpu, self._workers = time.perf_counter(), time.process_time(), _running_children_s()

    def _closed(self, spider: Spider) -> None:
        stats = self._crawler.stats
        result = {
            "wall_s": time.perf_counter() - self._wall,
            "main_cpu_s": time.process_time() - self._cpu,
            "worker_cpu_s": _ended_children_s() - self._workers,
            "pages": stats.get_value("response_received_count", 0),
            "bytes": stats.get_value("spiderling/total/downloaded_bytes") or stats.get_value("naive/bytes", 0),
            "kept_bytes": stats.get_value("spiderling/total/kept_bytes") or stats.get_value("naive/kept_bytes", 0),
            "main_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        self._file.write_text(json.dumps(result))


def _running_children_s() -> float:
    """CPU seconds of the worker processes so far."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            ticks += sum(map(int, Path("/proc", child, "stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _ended_children_s() -> float:
    """CPU seconds of the workers, which have been waited for when the spider is closed."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
