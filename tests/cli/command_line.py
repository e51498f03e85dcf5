"""The real command line, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
CONTACT = "SPIDERLING_CONTACT=test@example.org"
_ERROR = re.compile(r"^\d{4}-\S+ \S+ \[[^]]+\] (?:ERROR|CRITICAL): (.*)$", re.MULTILINE)


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    """Standard output."""
    log: str
    """Standard error."""

    @property
    def errors(self) -> list[str]:
        """The messages logged as errors."""
        return _ERROR.findall(self.log)


def scrapy(*arguments: str, timeout_s: float = 30, **process: Any) -> Ended:
    """Run ``scrapy`` with *arguments* in the project's directory."""
    command = [sys.executable, "-m", "scrapy", *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    process = {"cwd": ROOT, "env": environment, "stdin": subprocess.DEVNULL, **process}
    ended = subprocess.run(command, capture_output=True, timeout=timeout_s, **process)
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode("utf-8", "replace"))


def refusal(jobdir: Path, *arguments: str, contact: bool = True, **process: Any) -> str:
    """Run a crawl that must not begin; returns the one sentence that says why."""
    settings = [f"JOBDIR={jobdir}", *([CONTACT] if contact else [])]
    parts = [part for setting in settings for part in ("-s", setting)]
    ended = scrapy("crawl", "spiderling", *parts, *arguments, **process)
    assert "Traceback" not in ended.log, ended.log
    assert len(ended.errors) == 1, ended.log
    assert ended.code != 0
    return ended.errors[0].removeprefix("The crawl stops: ")
