"""Each command in a process of its own, as a user starts it; the other tests fork theirs, which must be the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import ROOT, scrapy


@pytest.mark.parametrize("command", ["crawl", pytest.param("export", marks=pytest.mark.slow)])
def test_a_forked_command_is_what_a_fresh_one_is(command):
    ended = scrapy(command, "--help")
    assert ended.code == 0 and ended.out
    assert ended == scrapy(command, "--help", fresh=True)


def test_arguments_and_surroundings_reach_a_forked_process(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN_BY", "the command")
    (tmp_path / "told.py").write_text(
        "import os, sys\n"
        "print(os.environ['SEEN_BY'], os.getcwd(), sys.stdin.read(), sys.path[0])\n"
        "print('ž', file=sys.stderr)\n"
        "sys.exit(7)\n"
    )
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = told\n")
    for fresh in (False, True):
        ended = scrapy("list", cwd=tmp_path, stdin="čau".encode(), fresh=fresh)
        assert ended == (7, f"the command {tmp_path} čau {tmp_path}\n", "ž\n")


@pytest.mark.parametrize("fresh", [False, True])
def test_the_signal_that_ended_it_is_told(tmp_path, fresh):
    (tmp_path / "ends.py").write_text(f"import os\nos.kill(os.getpid(), {signal.SIGKILL:d})\n")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ends\n")
    assert scrapy("list", cwd=tmp_path, fresh=fresh).code == -signal.SIGKILL


def test_damage_is_told_by_the_exit_code_though_nobody_reads_the_output(tmp_path):
    """The pipe is closed at its other end, as ``head`` does once it has seen enough."""
    job = shutil.copytree(ROOT / "tests/jobdirs/killed", tmp_path / "job")
    segment = min(job.glob("corpus/*.zst"))
    segment.write_bytes(segment.read_bytes()[:50])
    nobody, output = os.pipe()
    os.close(nobody)
    command = [sys.executable, "-u", "-m", "scrapy", "inspect", str(job), "--check"]
    with open(output, "wb") as stream:
        assert subprocess.run(command, cwd=ROOT, stdout=stream, check=False).returncode == 1
