"""An extension for a process of its own: a checkpoint after every few pages, however fast the machine reads them."""

from __future__ import annotations

from spiderling.crawl import checkpoint


class FrequentCheckpoints:
    @classmethod
    def from_crawler(cls, crawler: object) -> FrequentCheckpoints:
        checkpoint.MAX_OUTCOMES = 8
        return cls()
