"""A progress bar of a crawl of archives, on a terminal only: how many of their bytes are read."""

from __future__ import annotations

import logging
import os
import sys
from typing import IO, Any

from spiderling.archives.sources import is_url
from spiderling.engine.component import Extension

_EVERY_S = 1.0
"""Seconds between two looks at the number of bytes (chosen)."""


class ArchiveBar(Extension):
    """Shows the bar, and lets the lines of the log scroll above it."""

    def opened(self) -> None:
        self._bar: Any = None
        self._handlers: list[logging.StreamHandler[IO[str]]] = []
        archives = self.crawl.archives
        if archives is None or not sys.stderr.isatty():
            return
        from tqdm import tqdm  # a crawl of the web needs none

        sizes = [0 if is_url(source) else os.path.getsize(source) for source in archives.unread]
        self._bar = tqdm(total=sum(sizes) if all(sizes) else None, unit="B", unit_scale=True, leave=False)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
                handler.setStream(_AboveBar(self._bar))
                self._handlers.append(handler)
        self.repeat(self._show, _EVERY_S, "the progress bar")

    def _show(self) -> None:
        assert self.crawl.archives is not None
        self._bar.update(self.crawl.archives.bytes_read - self._bar.n)

    def closed(self, reason: str) -> None:
        for handler in self._handlers:
            handler.setStream(sys.stderr)
        if self._bar is not None:
            self._bar.close()


class _AboveBar:
    """Standard error for a log: the bar is taken away for each line, and drawn again."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def write(self, text: str) -> None:
        with self._bar.external_write_mode(sys.stderr):
            sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()
