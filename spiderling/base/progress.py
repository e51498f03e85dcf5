"""How far a command is, on standard error: a bar on a terminal, a line a minute in a log, nothing in a pipe.

A log is a file, or the socket of the system's journal.  Who reads a pipe wants the output.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, TypeVar

_T = TypeVar("_T")

LOG_EVERY_S = 60.0
"""Seconds between two lines in a log."""
BAR_EVERY_S = 1.0
"""Seconds between two states of a bar (chosen)."""


class Meter:
    """Counts how many *unit* of *total* (0: unknown) are done; ``close`` takes a bar away."""

    def __init__(self, unit: str, total: int = 0, *, in_bytes: bool = False) -> None:
        """*in_bytes*: the number is written in kB, MB and so on."""
        self.done = 0
        self._unit = unit
        self._total = total
        self._what = ""
        self._bar: Any = None
        self._is_log = _is_log()
        self._begun = self._said = time.monotonic()
        if sys.stderr.isatty():
            from tqdm import tqdm  # takes longer to load than most commands run

            self._bar = tqdm(
                total=total or None,
                unit="B" if in_bytes else f" {unit}",
                unit_scale=in_bytes,
                leave=False,
                mininterval=BAR_EVERY_S,
                smoothing=0,
            )

    @property
    def is_shown(self) -> bool:
        """Whether anybody sees it."""
        return self._is_log or self._bar is not None

    def add(self, number: int = 1) -> None:
        """Count *number* more as done."""
        self.done += number
        if self._bar is not None:
            self._bar.update(number)
            if self.done == self._total:
                self._bar.refresh()  # it is taken away at once, and should have been seen whole
        elif self._is_log and time.monotonic() - self._said >= LOG_EVERY_S:
            self._said = time.monotonic()
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {self._line()}", file=sys.stderr, flush=True)

    def describe(self, what: str) -> None:
        """Say *what* is being done, before the numbers."""
        self._what = f"{what}: "
        if self._bar is not None:
            self._bar.set_description(what)

    def step(self, what: str) -> None:
        """Count one as done, and begin *what*."""
        self.add()
        self.describe(what)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _line(self) -> str:
        rate = self.done / max(self._said - self._begun, 1e-9)
        of = f" of {self._total:,} ({self.done / self._total:.0%})" if self._total else ""
        left_s = max(0, self._total - self.done) / max(rate, 1e-9)
        left = f", some {left_s / 60:,.0f} min left" if self._total else ""
        return f"{self._what}{self.done:,}{of} {self._unit}, {rate:,.1f}/s{left}"


def with_progress(entries: Iterable[_T], unit: str, total: int = 0) -> Iterator[_T]:
    """Yield *entries* and show how many *unit* came; *total* is their number, 0 if unknown."""
    with closing(Meter(unit, total)) as meter:
        if not meter.is_shown:
            yield from entries
            return
        for entry in entries:
            yield entry
            meter.add()


def _is_log() -> bool:
    try:
        mode = os.fstat(sys.stderr.fileno()).st_mode
    except (OSError, ValueError, AttributeError):  # it is closed, or none of the system's
        return False
    return stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
