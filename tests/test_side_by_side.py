"""Tests in several processes give the outcomes of one; what ends a process is a failure of the test that it ran."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CONFTEST = "from side_by_side import pytest_addoption, pytest_runtestloop"
ENDING = """
import os, warnings, pytest
@pytest.fixture(scope="module")
def made(tmp_path_factory): return tmp_path_factory.mktemp("made")
def test_passes(made): print("not seen")
def test_fails(tmp_path):
    print("what it said")
    assert 1 == 2
def test_warns(): warnings.warn("careful")
@pytest.mark.xfail
def test_fails_as_it_should(): assert False
"""
KILLING = """
import os, pytest
@pytest.mark.parametrize("number", range(30))
def test_many(number, tmp_path): assert not list(tmp_path.iterdir())
def test_ends_its_process(): os._exit(0)
def test_after(): pass
"""


def test_every_test_runs_once_and_its_outcome_is_told(tmp_path):
    for name, text in {"conftest": CONFTEST, "test_ending": ENDING, "test_killing": KILLING}.items():
        (tmp_path / f"{name}.py").write_text(text)
    options = ["--processes-a-core", "1", "-rA", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": "", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", *options]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    out = ended.stdout
    assert ended.returncode == 1, out
    assert "2 failed, 33 passed, 1 xfailed, 1 warning" in out
    failed = re.findall(r"^FAILED \S+::(\w+) - (.*)", out, re.MULTILINE)
    assert failed == [("test_fails", "assert 1 == 2"), ("test_ends_its_process", "its process ended with 0")]
    assert "what it said" in out
    assert len(set(re.findall(r"^PASSED (\S+)", out, re.MULTILINE))) == 33
