"""Cores that a process may use: those of its affinity, and no more than its control groups have time for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spiderling.base import machine


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
