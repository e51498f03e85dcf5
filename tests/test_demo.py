"""``make demo`` as a user runs it: interrupted, taken up again, and once more when it is finished."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from conftest import DEADLINE_S
from needs import needs

from examples.demo import shell_code

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "examples.demo"]


def run(jobdir: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*COMMAND, str(jobdir), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_demo_pauses_goes_on_and_says_when_it_is_finished(tmp_path: Path) -> None:
    jobdir = tmp_path / "demo"
    demo = subprocess.Popen(
        [*COMMAND, str(jobdir)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + DEADLINE_S
    while "pages (" not in (log(jobdir)) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to the demo and to the crawl
    output, _ = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 0
    assert "was paused (shutdown); the same command goes on with it." in output
    assert "Traceback" not in output

    output = run(jobdir)
    assert "Resuming the crawl" in output
    assert "is finished.\n" in output
    assert re.search(r"The live page: http://127\.0\.0\.1:\d+/ \(", output)
    assert f"The report is in {jobdir}/report.html" in output
    assert re.search(r"balance +([\d,]+) discovered = \1 ends \+ 0 waiting \+ 0 in transit\n", output)
    assert "Retired odkazy.test" in log(jobdir)
    with closing(sqlite3.connect(jobdir / "state/frontier.sqlite")) as state:
        (pages,) = state.execute("SELECT pages FROM hosts WHERE name = 'kalendar.test'").fetchone()
        assert 0 < pages < 30, "the calendar has no end"
        assert state.execute("SELECT value FROM count WHERE key = 'mention/trap-copy'").fetchone()

    output = run(jobdir)
    assert "is finished: no URL waits. To start afresh, remove that directory" in output


def living(place: Path) -> list[str]:
    """The command lines of all processes that know *place*."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if command and str(place).encode() in (process / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whom", "number", "when"),
    [("make", "TERM", "crawl"), ("demo", "TERM", "crawl"), ("demo", "KILL", "crawl"), ("demo", "TERM", "server"),
     ("demo", "INT", "server"), ("demo", "HUP", "crawl")],
)  # fmt: skip
def test_whoever_ends_it_nothing_is_left_running(tmp_path: Path, whom: str, number: str, when: str) -> None:
    """SIGTERM left the server of the miniature web running for good."""
    jobdir = tmp_path / "demo"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = ["make", "-o", "setup", "demo", f"JOBDIR={jobdir}", f"BIN={Path(sys.executable).parent}"]
    command = command if whom == "make" else [*COMMAND, str(jobdir)]
    with open(tmp_path / "output", "w+") as output:
        demo = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(temporary)},
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + DEADLINE_S
        while not (any("webs.server" in one for one in living(tmp_path)) if when == "server" else log(jobdir)):
            assert demo.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        demo.send_signal(signal.Signals[f"SIG{number}"])
        code = demo.wait(DEADLINE_S)
        while living(tmp_path):
            assert time.monotonic() < deadline, living(tmp_path)
            time.sleep(0.05)
        output.seek(0)
        said = output.read()
    assert "Traceback" not in said
    assert not list(temporary.iterdir()), "whatever is left lies beside the crawl"
    if when == "crawl" and number != "KILL":
        assert "was paused (shutdown); the same command goes on with it." in said
    if whom == "demo" and number != "KILL":
        assert code == (0 if when == "crawl" else 128 + signal.Signals[f"SIG{number}"])


def test_a_crawl_that_a_signal_killed_gives_the_exit_code_of_a_shell() -> None:
    """It was 256 - N."""
    assert [shell_code(code) for code in (0, 3, -9)] == [0, 3, 137]


@pytest.mark.slow
@needs("redis")
def test_four_shards_crawl_the_same_web_with_one_summary(tmp_path: Path) -> None:
    jobdir = tmp_path / "demo"
    page = "SPIDERLING_PAGE=127.0.0.1:0"  # another demo may take the usual one after this one has asked
    output = run(jobdir, "-s", "SPIDERLING_SHARDS=4", "-s", page)
    assert "Starting the crawl in" in output and "4 shards on" in output
    assert re.search(r"shard \d: The live page: http://127\.0\.0\.1:\d+/ \(", output)
    assert output.count("is finished.\n") == 1
    assert re.search(r"balance +([\d,]+) discovered = \1 ends \+ 0 waiting \+ 0 in transit\n", output)
    assert f"The report is in {jobdir}/report.html" in output
    assert "ERROR" not in output and "Traceback" not in output
    assert [place.name for place in sorted(jobdir.glob("shard-*/corpus/*"))]


def log(jobdir: Path) -> str:
    path = jobdir / "crawl.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""
