"""A crawl that is watched, over real sockets, of a web that changes."""

from __future__ import annotations

import time

HOST = "news.test"
DAY_S = 0.4
DAYS = 30
ARTICLES = 14
SETTINGS = {
    "WATCH": "on",
    "WATCH_DAY_S": DAY_S,
    "WATCH_REQUESTS": 60,
    "WATCH_LEAST_WORD_DAYS": 0,
    "HOST_INTERVAL_S": 0.02,
    "ROBOTS_MAX_AGE_S": 1,
    "YIELD_PROFILE": "off",
}


class ChangingWeb:
    """A paper that publishes an article every other day, and mends, drops and closes some of its old ones."""

    def __init__(self) -> None:
        self.began = 0.0

    @property
    def day(self) -> float:
        return (time.monotonic() - self.began) / DAY_S if self.began else 0.0

    def published(self) -> list[str]:
        return [f"/{n}" for n in range(1 + min(ARTICLES - 1, int(self.day / 2)))]
