"""What of this machine the process may use: its cores, memory and descriptors, packages, and clocks.

Running time stands still while the process is stopped (SIGSTOP) or the machine sleeps, so no server is blamed for such
a pause.  A tick of the event loop that comes late shows the pause.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import os
import resource
import shlex
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from spiderling.base.errors import BadInput

GROUPS = Path("/proc/self/cgroup")  # the file that names this process's control group
MOUNTED = Path("/sys/fs/cgroup")  # where the control groups are

RESERVED = 96
"""File descriptors that sockets to servers and browsers leave to files, name servers and processes (chosen)."""
_MAX_DESCRIPTORS = 65_536  # the highest limit that is set (chosen: some machines allow a thousand millions)


def usable_cores() -> int:
    """Cores that this process may be run on, at least 1; no more than its control group has time for."""
    return max(1, math.ceil(min([len(os.sched_getaffinity(0)), *_quotas()])))


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def descriptor_limit() -> int:
    return _bound(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_descriptor_limit() -> None:
    """Let this process have as many as it may give itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _bound(soft) < _bound(hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_bound(hard), hard))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) - 1


def is_reserved(descriptor: int) -> bool:
    """Whether a socket with that *descriptor* leaves too few: each gets the lowest free number (open(2))."""
    return descriptor >= descriptor_limit() - RESERVED


def _bound(limit: int) -> int:
    return min(limit, _MAX_DESCRIPTORS) if limit != resource.RLIM_INFINITY else _MAX_DESCRIPTORS


def _quotas() -> Iterator[float]:
    """Cores that each control group above this process gives time for (cgroups(7), v2), as containers have them."""
    with suppress(OSError, ValueError):
        (name,) = (line[3:] for line in GROUPS.read_text().splitlines() if line.startswith("0::"))
        inner = MOUNTED / name.strip("/")
        for group in (inner, *inner.parents):
            with suppress(OSError, ValueError):
                quota, period = (group / "cpu.max").read_text().split()
                yield float(quota) / float(period)  # 'max' is no number
            if group == MOUNTED:
                return


def refusal() -> str:
    """Why no command runs on this system; empty on Linux.

    Limits of memory and time for pages, locks and what survives a power cut are tried on Linux only.
    """
    if sys.platform == "linux":
        return ""
    return (
        f"Spiderling runs on Linux, and this is {sys.platform}; use the container in examples/operations/ (Dockerfile)."
    )


EXTRAS = {
    "cluster": ("redis", "redis>=8,<9"),
    "parquet": ("duckdb", "duckdb>=1.1"),
    "pii": ("phonenumbers", "phonenumbers>=9"),
    "vertical": ("icu4py", "icu4py>=1.2"),
}
"""Extra of the distribution, as pyproject.toml has it -> (the module that it brings, the requirement for it)."""


def missing(extra: str) -> str:
    """What is missing for *extra*, and how to install it; empty if it is there."""
    module, requirement = EXTRAS[extra]
    if importlib.util.find_spec(module):
        return ""
    install = shlex.join([sys.executable, "-m", "pip", "install", requirement])
    return f"the package {module} is not installed; say: {install}"


def require(extra: str) -> None:
    """Raise BadInput if the package of *extra* is missing."""
    if sentence := missing(extra):
        raise BadInput(f"{sentence}.")


TICK_S = 0.5  # seconds between two ticks (chosen)
STOPPED_S = 2.0
"""Seconds late from which a tick means a stopped process; no work blocks the event loop for half as long."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # CLOCK_BOOTTIME goes on while the machine sleeps


def elapsed_s() -> float:
    """Seconds since an arbitrary moment; they go on while the process is stopped or the machine sleeps."""
    return time.clock_gettime(_CLOCK)


def steady_clock() -> Callable[[], float]:
    """A clock of seconds since 1970 that never goes back while the crawl runs.

    They are wall time at the start plus monotonic time since: comparable over restarts, immune to clock changes.
    """
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


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
        self.counts = [0] * (len(BOUNDS_S) + 1)  # values up to each bound and above the one before; the last: above all
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class StageTimes:
    """One histogram for each stage."""

    download: Histogram = field(default_factory=Histogram)  # from the request's turn to the end of its body
    text: Histogram = field(default_factory=Histogram)  # in the queue of the text workers and in work there
    dns: Histogram = field(default_factory=Histogram)  # resolving one name
