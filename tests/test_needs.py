"""What a test needs of the machine is said in one place, and hidden, installed and demanded from there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import conftest
import needs
import pytest
from sources import ROOT, TESTS


@pytest.mark.parametrize(
    ("is_strict", "may_be_missing", "ends"),
    [(False, False, pytest.skip), (True, False, pytest.fail), (True, True, pytest.skip)],
)
def test_what_is_missing_skips_and_says_how_one_gets_it_or_fails_where_all_was_installed(
    monkeypatch, is_strict, may_be_missing, ends
):
    monkeypatch.setenv(needs.STRICT, "1" if is_strict else "")
    missing = needs.Need(is_here=lambda: False, how="buy one", may_be_missing=may_be_missing)
    monkeypatch.setitem(needs.NEEDS, "a tape", missing)
    needs.why_not.cache_clear()
    with pytest.raises(ends.Exception, match=r"a tape is missing here \(buy one\)"):
        conftest.pytest_runtest_setup(SimpleNamespace(iter_markers=lambda _: [needs.needs("a tape").mark]))
    needs.why_not.cache_clear()
    with pytest.raises(AssertionError, match=r"say in tests/needs\.py what gs9 is"):
        needs.needs("gs9")


def test_no_test_skips_in_a_way_of_its_own():
    ways = re.compile(r"\b(skipif|importorskip|skipTest|mark\.skip\b|pytest\.skip\()")
    places = {path: ways.search(path.read_text("utf-8")) for path in TESTS}
    mine = {Path(__file__), ROOT / "tests/conftest.py"}
    assert [str(path) for path, way in places.items() if way and path not in mine] == [], "use needs()"


def test_a_bare_path_has_all_programs_but_those_that_are_named(tmp_path):
    """It is made without anything installed."""
    hidden = {name for need in needs.NEEDS.values() for name in need.programs}
    assert {"redis-server", "chromium", "fish", "systemd-analyze", "cc"} <= hidden
    bare, programs = tmp_path / "bare", tmp_path / "programs"
    programs.mkdir()
    for name in (*hidden, "of-mine", "no-program"):
        (programs / name).touch(mode=0o644 if name == "no-program" else 0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-IS", str(ROOT / "tests/needs.py"), "hide", str(bare)]
    subprocess.run(command, env=environment, check=True)
    assert [name for name in sorted(hidden) if shutil.which(name, path=str(bare))] == []
    assert all(shutil.which(name, path=str(bare)) for name in ("of-mine", "sh", "git", "make"))
    assert not (bare / "no-program").exists()


def test_every_program_is_brought_by_a_package():
    assert [name for name, need in needs.NEEDS.items() if need.programs and not need.package] == []


@pytest.mark.parametrize("name", ["run", "try-scrapy"])
def test_a_script_of_the_ci_can_be_read(name):
    subprocess.run(["bash", "-n", ROOT / ".ci" / name], check=True)
