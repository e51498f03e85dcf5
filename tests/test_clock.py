"""The clock of a crawl goes on steadily, whatever becomes of the machine's."""

from __future__ import annotations

import time

from spiderling.base import machine
from spiderling.base.machine import Clock


def test_the_machines_clock_is_read_once_and_may_jump_afterwards(monkeypatch):
    """It is set by twenty years, forward or back; the crawl's own clock goes on by the time that has passed."""
    crawl_clock = Clock()
    began, before = crawl_clock.now(), time.monotonic()
    for jump_s in (6e8, -6e8):
        monkeypatch.setattr(machine.time, "time", lambda jump_s=jump_s: before + jump_s)
        passed_s = time.monotonic() - before
        assert 0 <= crawl_clock.now() - began <= passed_s + 60
