"""A wall clock that is wrong in one run of a crawl: EXTENSIONS loads it, before the crawl reads its clock."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

from spiderling.base import machine


def shifted_by(seconds: float) -> dict[str, str]:
    """Settings of a run whose clock is *seconds* ahead of the true time."""
    return {"EXTENSIONS": json.dumps({"tests.shiftedclock.ShiftedClock": 0}), "FAULT": str(seconds)}


class ShiftedClock:
    def __init__(self, crawler):
        shift_s = crawler.settings.getfloat("FAULT")
        machine.time = SimpleNamespace(
            time=lambda: time.time() + shift_s, monotonic=time.monotonic, clock_gettime=time.clock_gettime
        )

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))
