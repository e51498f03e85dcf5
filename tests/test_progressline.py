"""The line of a long command: on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from spiderling.base.progress_line import progress_line, with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_line_grows_on_a_terminal_and_is_gone_at_the_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(with_progress("abc", "letters", 3, every_s=0.0)) == ["a", "b", "c"]
    *lines, last = sys.stderr.getvalue().split("\r\x1b[K")[1:]
    assert [line.partition("]")[0].count("#") for line in lines] == [10, 20, 30] and last == ""
    assert all(f"{number} of 3 letters" in line for number, line in enumerate(lines, 1))


def test_line_is_gone_after_an_error_too(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError):
        list(with_progress((1 // n for n in (1, 1, 0)), "numbers", every_s=0.0))
    assert sys.stderr.getvalue().endswith("\r\x1b[K")


def test_no_terminal_no_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(with_progress(range(3), "numbers", every_s=0.0)) == [0, 1, 2]
    assert sys.stderr.getvalue() == ""


def test_more_than_was_expected_and_no_time_at_all():
    assert progress_line(5, "pages", 3, 0.0).startswith("[" + "#" * 30 + "] 5 of 3 pages")
    assert progress_line(1500, "documents", 3000, 2.0).endswith("1,500 of 3,000 documents, 750/s, 2 s left")
