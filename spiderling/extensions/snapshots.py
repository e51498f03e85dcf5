"""Writes the near-duplicate filter to disk every ``dedup_snapshot_s`` seconds."""

from __future__ import annotations

import asyncio

from spiderling.engine.component import Extension


class Snapshots(Extension):
    """Bounds how many documents a start after a kill reads again; ``Crawl.close`` writes the last snapshot."""

    def opened(self) -> None:
        if self.crawl.near is not None:
            self.keep_running(self._write(), "the snapshots of the near-duplicate filter")

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(self.crawl.options.dedup_snapshot_s)
            await self.crawl.snapshot()
