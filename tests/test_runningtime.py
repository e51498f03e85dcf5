"""What is counted while the process is stopped, the machine asleep or the event loop busy."""

from __future__ import annotations

import asyncio
import time

import pytest

from spiderling.base.machine import STOPPED_S, TICK_S, running_time


@pytest.fixture
def skip(monkeypatch):
    """Lets the time go on by so many seconds in which nothing runs."""
    skipped, read = [0.0], time.clock_gettime
    monkeypatch.setattr("spiderling.base.machine.time.clock_gettime", lambda clock: read(clock) + sum(skipped))
    return skipped.append


async def test_a_stopped_process_and_a_sleeping_machine_grow_no_older(skip):
    """Whether that is asked before the next tick of the event loop or after it."""
    running = running_time()
    began = running.now()
    for hours in (1, 2):
        skip(hours * 3600.0)
        assert running.stopped_s() == pytest.approx(sum(range(hours + 1)) * 3600, abs=60)
        assert running.now() - began < 60
        await asyncio.sleep(2 * TICK_S)
        assert running.stopped_s() == pytest.approx(sum(range(hours + 1)) * 3600, abs=60)
        assert running.now() - began < 60


async def test_a_busy_event_loop_is_no_stopped_process(skip):
    running = running_time()
    began = running.now()
    skip(STOPPED_S / 2)
    assert running.now() - began >= STOPPED_S / 2
    assert running_time() is running, "one for each event loop"
