"""What of the machine a crawl uses: its cores, and clocks that no jump, stop or sleep upsets."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from spiderling.base import machine
from spiderling.base.machine import STOPPED_S, TICK_S, Clock, running_time


@pytest.mark.parametrize(
    ("group", "limits", "cores"),
    [
        ("0::/", {".": "150000 100000"}, 2),  # a container that sees its own group as the root
        ("0::/docker/a", {".": "400000 100000"}, 4),  # one that does not
        ("0::/a/b", {".": "max 100000", "a": "300000 100000", "a/b": "max 100000"}, 3),
        ("0::/a", {"a": "max 100000"}, 8),
        ("0::/a", {"a": "1000 100000"}, 1),
        ("0::/a", {"a": "nonsense"}, 8),
        ("3:cpu:/a", {"a": "100000 100000"}, 8),
        ("", {}, 8),
    ],
)
def test_cores_of_a_control_group(tmp_path: Path, monkeypatch, group: str, limits: dict[str, str], cores: int) -> None:
    for name, text in limits.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cpu.max").write_text(f"{text}\n")
    groups = tmp_path / "cgroup"
    groups.write_text(f"12:pids:/x\n{group}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(machine, "GROUPS", groups)
    monkeypatch.setattr(machine, "MOUNTED", tmp_path)
    assert machine.usable_cores() == cores


def test_cores_where_there_are_no_control_groups(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(3)))
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "none")
    assert machine.usable_cores() == 3
    assert machine.memory_bytes() > 10**8


def test_the_machines_clock_is_read_once_and_may_jump_afterwards(monkeypatch):
    """It is set by twenty years, forward or back; the crawl's own clock goes on by the time that has passed."""
    crawl_clock = Clock()
    began, before = crawl_clock.now(), time.monotonic()
    for jump_s in (6e8, -6e8):
        monkeypatch.setattr(machine.time, "time", lambda jump_s=jump_s: before + jump_s)
        passed_s = time.monotonic() - before
        assert 0 <= crawl_clock.now() - began <= passed_s + 60


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
