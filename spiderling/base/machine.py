"""What of this machine the process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/proc/self/cgroup")
"""The file that names this process's control group."""
MOUNTED = Path("/sys/fs/cgroup")
"""Where the control groups are."""


def usable_cores() -> int:
    """Cores that this process may be run on, at least 1; no more than its control group has time for."""
    return max(1, math.ceil(min(len(os.sched_getaffinity(0)), _quota_cores(GROUPS, MOUNTED))))


def memory_bytes() -> int:
    """All memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
