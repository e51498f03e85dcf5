"""The line that shows how far a long command is, on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")
_ERASE = "\r\x1b[K"
_CELLS = 30


def with_progress(entries: Iterable[_T], unit: str, total: int = 0, every_s: float = 1.0) -> Iterator[_T]:
    """*entries* as they are; meanwhile a line on standard error, if that is a terminal, says how many came.

    *total*: how many there will be; 0: nobody knows.  The line is gone afterwards.
    """
    if not sys.stderr.isatty():
        yield from entries
        return
    begin = shown = time.monotonic()
    try:
        for number, entry in enumerate(entries, 1):
            yield entry
            now = time.monotonic()
            if now - shown >= every_s:
                shown = now
                sys.stderr.write(_ERASE + progress_line(number, unit, total, now - begin))
                sys.stderr.flush()
    finally:
        sys.stderr.write(_ERASE)
        sys.stderr.flush()


def progress_line(number: int, unit: str, total: int, seconds: float) -> str:
    """What is shown after *number* entries.

    >>> progress_line(1500, "documents", 3000, 2.0)
    '[###############...............] 1,500 of 3,000 documents, 750/s, 2 s left'
    >>> progress_line(1500, "documents", 0, 2.0)
    '1,500 documents, 750/s'
    """
    rate = number / max(seconds, 1e-6)
    if not total:
        return f"{number:,} {unit}, {rate:,.0f}/s"
    done = min(number / total, 1.0)
    bar = ("#" * int(done * _CELLS)).ljust(_CELLS, ".")
    return f"[{bar}] {number:,} of {total:,} {unit}, {rate:,.0f}/s, {max(total - number, 0) / rate:,.0f} s left"
