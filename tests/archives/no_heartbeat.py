"""A Scrapy extension: the engine looks for work when something happens, and never by itself.

-s EXTENSIONS='{"tests.archives.no_heartbeat.NoHeartbeat": 1}'
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy.core import engine


class NoHeartbeat:
    @classmethod
    def from_crawler(cls, crawler: Any) -> NoHeartbeat:
        engine.create_looping_call = lambda function: SimpleNamespace(start=lambda s: None, running=False)  # type: ignore[attr-defined]
        return cls()
