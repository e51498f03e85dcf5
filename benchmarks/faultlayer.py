"""Faults on order inside a crawl's process: a Scrapy extension, which is made before the crawl is opened.

    -s EXTENSIONS='{"benchmarks.faultlayer.FaultLayer": 1}' -s FAULT=commit:3

``FAULT=POINT:N`` ends the process with SIGKILL when it comes to POINT for the N-th time.
``FAULT=POINT:N:ENOSPC`` (or EIO) makes the disk refuse what is done there, that time and
ever after; at POINT ``pages`` SQLite finds no room for more than N further pages.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from functools import wraps
from typing import IO, Any

from scrapy.crawler import Crawler

from spiderling.corpus.segments import SegmentWriter
from spiderling.frontier import Frontier
from spiderling.frontier.storage.sqlite import SqliteStore, StateWriter
from spiderling.jobdir import directory, surplus

BEFORE: dict[str, tuple[Any, str]] = {
    "load": (SqliteStore, "load"),
    "recover": (surplus, "recorded_segments"),
    "restore": (Frontier, "restore"),
    "fsync": (os, "fsync"),
    "commit": (SqliteStore, "commit"),
}
AFTER: dict[str, tuple[Any, str]] = {
    "lock": (directory, "acquired"),
    "truncate": (os, "truncate"),
    "transaction": (StateWriter, "_write"),
    "committed": (SqliteStore, "commit"),
}
POINTS = (*BEFORE, *AFTER, "rotate", "write")
"""``rotate``: a new segment was begun; ``write``: half of a frame is written."""
_WAL_PAGES = 20
"""SQLite moves its log into the file so often that a kill meets it."""


class FaultLayer:
    """Wraps the functions at which the crawl touches the disk."""

    def __init__(self, crawler: Crawler) -> None:
        point, number, *error = (crawler.settings.get("FAULT") or ":0").split(":")
        self._point, self._number, self._error = point, int(number), error[0] if error else ""
        self._passed = 0
        for places, before in ((BEFORE, True), (AFTER, False)):
            for name, (owner, function) in places.items():
                self._wrap(owner, function, name, before)
        self._wrap_writer()
        self._wrap_store()

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))

    def passes(self, point: str) -> None:
        """The process is at *point*: the fault happens here if it is its time."""
        if point != self._point:
            return
        self._passed += 1
        if self._passed >= self._number:
            if not self._error:
                os.kill(os.getpid(), signal.SIGKILL)
            number = getattr(errno, self._error)
            raise OSError(number, os.strerror(number))

    def _wrap(self, owner: Any, name: str, point: str, before: bool) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if before:
                self.passes(point)
            result = function(*args, **kwargs)
            if not before:
                self.passes(point)
            return result

        setattr(owner, name, wrapped)

    def _wrap_writer(self) -> None:
        function, layer = SegmentWriter._open, self

        def wrapped(writer: SegmentWriter) -> Any:
            row = function(writer)
            if row.length_bytes == 0:
                layer.passes("rotate")
            assert writer._file is not None
            if not isinstance(writer._file, _File):
                writer._file = _File(writer._file, layer)  # type: ignore[assignment]
            return row

        SegmentWriter._open = wrapped  # type: ignore[method-assign]

    def _wrap_store(self) -> None:
        function = SqliteStore._prepare
        most = self._number if self._point == "pages" else 0

        def wrapped(store: SqliteStore) -> None:
            function(store)
            store._writer.connection.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
            if most:
                pages = store._writer.connection.execute("PRAGMA page_count").fetchone()[0]
                store._writer.connection.execute(f"PRAGMA max_page_count={pages + most}")

        SqliteStore._prepare = wrapped  # type: ignore[method-assign]


class _File:
    """A file that is at the point ``write`` with half of its bytes on their way."""

    def __init__(self, file: IO[bytes], layer: FaultLayer) -> None:
        self._file, self._layer = file, layer

    def write(self, data: bytes) -> int:
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._layer.passes("write")
        return half + self._file.write(data[half:])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
