"""What of this machine the process may use."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/proc/self/cgroup")
"""The file that names this process's control group."""
MOUNTED = Path("/sys/fs/cgroup")
"""Where the control groups are."""

RESERVED = 96
"""File descriptors that sockets to servers and browsers leave to files, name servers and processes (chosen)."""
_MOST_DESCRIPTORS = 65_536
"""The highest limit that is set (chosen: some machines allow a thousand millions)."""


def usable_cores() -> int:
    """Cores that this process may be run on, at least 1; no more than its control group has time for."""
    return max(1, math.ceil(min(len(os.sched_getaffinity(0)), _quota_cores(GROUPS, MOUNTED))))


def memory_bytes() -> int:
    """All memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def descriptor_limit() -> int:
    """File descriptors that this process may have open."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_descriptor_limit() -> None:
    """Let this process have as many as it may give itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _bounded(soft) < _bounded(hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_bounded(hard), hard))


def open_descriptors() -> int:
    """File descriptors that this process has open."""
    return len(os.listdir("/proc/self/fd")) - 1


def is_reserved(descriptor: int) -> bool:
    """Whether a socket with that *descriptor* leaves too few: each gets the lowest free number (open(2))."""
    return descriptor >= descriptor_limit() - RESERVED


def _bounded(limit: int) -> int:
    return min(limit, _MOST_DESCRIPTORS) if limit != resource.RLIM_INFINITY else _MOST_DESCRIPTORS


def _quota_cores(groups: Path, mounted: Path) -> float:
    """Cores' worth of time that the control groups above this process give it, as containers have (cgroups(7), v2).

    *groups*: the file that names its group; *mounted*: where the groups are.
    """
    return min(_quotas(groups, mounted), default=math.inf)


def _quotas(groups: Path, mounted: Path) -> Iterator[float]:
    with suppress(OSError, ValueError):
        (name,) = (line[3:] for line in groups.read_text().splitlines() if line.startswith("0::"))
        inner = mounted / name.strip("/")
        for group in (inner, *inner.parents):
            with suppress(OSError, ValueError):
                quota, period = (group / "cpu.max").read_text().split()
                yield float(quota) / float(period)  # 'max' is no number
            if group == mounted:
                return
