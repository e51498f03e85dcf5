"""The line of a long command: on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from spiderling.base.terminal import with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("spiderling.base.terminal.BAR_EVERY_S", 0.0)


def shown() -> list[str]:
    """What stood on the line, one state after the other."""
    return sys.stderr.getvalue().split("\r")[1:]


def test_line_grows_on_a_terminal_and_is_gone_at_the_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(with_progress("abc", "letters", 3)) == ["a", "b", "c"]
    *lines, last = shown()
    assert [f"{number}/3" in line for number, line in enumerate(lines[:4])] == [True] * 4
    assert "letters/s" in lines[3] and not last.strip()


def test_line_is_gone_after_an_error_too(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError):
        list(with_progress((1 // n for n in (1, 1, 0)), "numbers"))
    assert any("2 numbers" in line for line in shown()) and not shown()[-1].strip()


def test_no_terminal_no_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(with_progress(range(3), "numbers")) == [0, 1, 2]
    assert sys.stderr.getvalue() == ""
