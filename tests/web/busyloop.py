"""A crawl that loses the processor again and again, at the worst moment; EXTENSIONS loads it into the crawl."""

from __future__ import annotations

import random
import time
from typing import Any

from scrapy.crawler import Crawler

from spiderling.engine.dispatcher import Dispatcher

EXTENSIONS = '{"tests.web.busyloop.BusyLoop": 1}'
SHARE, MIN_S, MAX_S = 0.25, 0.005, 0.06


class BusyLoop:
    """Scrapy extension: in SHARE of the cases nothing runs for MIN_S to MAX_S when a start has just been noted."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BusyLoop:
        rng, inner = random.Random(5), Dispatcher.started

        def started(dispatcher: Dispatcher, *args: Any) -> None:
            inner(dispatcher, *args)
            if rng.random() < SHARE:
                time.sleep(rng.uniform(MIN_S, MAX_S))

        Dispatcher.started = started  # type: ignore[method-assign]
        return cls()
