"""The lowest floor: whose an error is, whole files, the line of a long command, and what of the machine is used."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from pathlib import Path

import pytest
import scrapy

import spiderling
from spiderling.base import machine
from spiderling.base.errors import StorageError, is_made_here, is_ours
from spiderling.base.files import write_whole
from spiderling.base.machine import STOPPED_S, TICK_S, running_time, steady_clock
from spiderling.base.terminal import with_progress

OURS = str(Path(spiderling.__file__).parent)
SCRAPY = str(Path(scrapy.__file__).parent)


def raised_in(path: str, caller: str) -> BaseException:
    """An error that the file *path* raised, called by the file *caller*."""
    inner = compile("raise LookupError", path, "exec")
    with pytest.raises(LookupError) as caught:
        exec(compile("exec(inner)", caller, "exec"), {"inner": inner})
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        (f"{OURS}/text/page.py", True),
        (f"{OURS}_extra/pipelines.py", False),
        ("/home/somebody/scrapy/pipelines.py", False),
        ("/home/somebody/twisted/corpus/pipelines.py", False),
    ],
)
def test_the_first_file_behind_scrapy_tells_whose_error_it_is(path: str, ours: bool) -> None:
    error = raised_in(path, f"{SCRAPY}/middleware.py")
    assert is_ours(error) is ours
    assert is_made_here(error) is ours


def test_what_a_library_raises_for_us_is_ours_and_for_a_project_is_not() -> None:
    library = "/usr/lib/python3/site-packages/lxml/html.py"
    assert is_ours(raised_in(library, f"{OURS}/text/page.py"))
    assert not is_ours(raised_in(library, "/home/somebody/scrapy/pipelines.py"))
    assert not is_made_here(raised_in(library, f"{OURS}/text/page.py"))


def test_a_file_is_replaced_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "after \ud800")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "after ?"
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_a_pipe_or_directory_stays_what_it_is(tmp_path: Path) -> None:
    """Root could lose a device by ``--html /dev/full``."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("pipe", "directory"):
        with pytest.raises(StorageError, match="could not be written: it is there, and is no file"):
            write_whole(tmp_path / name, "text")
    assert (tmp_path / "pipe").is_fifo() and sorted(os.listdir(tmp_path)) == ["directory", "pipe"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("spiderling.base.terminal.BAR_EVERY_S", 0.0)


def shown() -> list[str]:
    """What stood on the line, one state after the other."""
    return sys.stderr.getvalue().split("\r")[1:]


def test_a_line_grows_on_a_terminal_alone_and_is_gone_at_the_end_and_after_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(with_progress("abc", "letters", 3)) == ["a", "b", "c"]
    *lines, last = shown()
    assert [f"{number}/3" in line for number, line in enumerate(lines[:4])] == [True] * 4
    assert "letters/s" in lines[3] and not last.strip()

    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError):
        list(with_progress((1 // n for n in (1, 1, 0)), "numbers"))
    assert any("2 numbers" in line for line in shown()) and not shown()[-1].strip()

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(with_progress(range(3), "numbers")) == [0, 1, 2]
    assert sys.stderr.getvalue() == ""


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
        (None, {}, 8),  # there are no control groups
    ],
)
def test_cores_of_a_control_group(
    tmp_path: Path, monkeypatch, group: str | None, limits: dict[str, str], cores: int
) -> None:
    for name, text in limits.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cpu.max").write_text(f"{text}\n")
    groups = tmp_path / "cgroup"
    if group is not None:
        groups.write_text(f"12:pids:/x\n{group}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(machine, "GROUPS", groups)
    monkeypatch.setattr(machine, "MOUNTED", tmp_path)
    assert machine.usable_cores() == cores
    assert machine.memory_bytes() > 10**8


def test_the_machines_clock_is_read_once_and_may_jump_afterwards(monkeypatch):
    """It is set by twenty years, forward or back; the crawl's own clock goes on by the time that has passed."""
    now = steady_clock()
    began, before = now(), time.monotonic()
    for jump_s in (6e8, -6e8):
        monkeypatch.setattr(machine.time, "time", lambda jump_s=jump_s: before + jump_s)
        passed_s = time.monotonic() - before
        assert 0 <= now() - began <= passed_s + 60


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
