"""The clock of a crawl, and the running time of its process.

Running time stands still while the process is stopped (SIGSTOP) or the machine sleeps, so no server is blamed for such
a pause.  A tick of the event loop that comes late shows the pause.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

TICK_S = 0.5
"""Seconds between two ticks (chosen)."""
STOPPED_S = 2.0
"""Seconds late from which a tick means a stopped process; no work blocks the event loop for half as long."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # CLOCK_BOOTTIME goes on while the machine sleeps


def elapsed_s() -> float:
    """Seconds since an arbitrary moment; they go on while the process is stopped or the machine sleeps."""
    return time.clock_gettime(_CLOCK)


class Clock:
    """Seconds since 1970 that never go back while the crawl runs.

    They are wall time at the start plus monotonic time since: comparable over restarts, immune to clock changes.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()


class RunningTime:
    """Measures the running time of one event loop; ticks as long as the loop lives."""

    def __init__(self) -> None:
        self._stopped_s = 0.0
        self._due = time.clock_gettime(_CLOCK)
        self._tick()

    def _tick(self) -> None:
        self._stopped_s = self.stopped_s()
        self._due = time.clock_gettime(_CLOCK) + TICK_S
        asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def stopped_s(self) -> float:
        """Seconds for which the process was stopped or the machine asleep since the first tick."""
        late_s = time.clock_gettime(_CLOCK) - self._due
        return self._stopped_s + (late_s if late_s > STOPPED_S else 0.0)

    def now(self) -> float:
        """Seconds since an arbitrary moment, without `stopped_s`."""
        return time.clock_gettime(_CLOCK) - self.stopped_s()


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, RunningTime] = WeakKeyDictionary()


def running_time() -> RunningTime:
    """The running time of the event loop that runs now."""
    loop = asyncio.get_running_loop()
    if loop not in _OF_LOOP:
        _OF_LOOP[loop] = RunningTime()
    return _OF_LOOP[loop]


BOUNDS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Upper bounds of the classes, in seconds (chosen: three a decade are enough to see a change)."""


class Histogram:
    """Counts durations by class."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """Values up to each bound and above the one before; the last: above all."""
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class StageTimes:
    """One histogram for each stage."""

    download: Histogram = field(default_factory=Histogram)
    """From the request's turn to the end of its body."""
    text: Histogram = field(default_factory=Histogram)
    """In the queue of the text workers and in work there."""
    dns: Histogram = field(default_factory=Histogram)
    """Resolving one name."""
