"""Commands that take long show on a terminal how far they are, and nothing elsewhere."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading

import pytest
from conftest import DEADLINE_S, ROOT, document

from spiderling.text.prevertical import rendered
from tests.archives.made_warcs import FORMS, record

SENTENCE = "Snažili jsme se, aby tato kniha byla užitečná pro více kategorií čtenářů."


def on_terminal(*arguments: str) -> str:
    """What ``scrapy`` with *arguments* shows on a terminal of 120 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # EIO is the end
            while part := os.read(ours, 4096):
                shown.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-m", "scrapy", *arguments]
    subprocess.run(command, cwd=ROOT, stdout=theirs, stderr=theirs, timeout=DEADLINE_S, check=True)
    os.close(theirs)
    reader.join(DEADLINE_S)
    os.close(ours)
    return b"".join(shown).decode()


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "c.prevert"
    path.write_text("".join(rendered({"id": f"{n}", "lang": "cs"}, [(SENTENCE, "")]) for n in range(50)), "utf-8")
    return path


@pytest.mark.parametrize(
    ("command", "bars"),
    [
        (
            ["export", "c.prevert", "-o", "out.txt", "--shuffle", "sentences"],
            [" documents [", "0/50 [", "sentences/s]"],
        ),
        (["identify", "c.prevert", "--among", "cs,sk"], ["x 200 paragraphs/s]"]),
    ],
    ids=["export", "identify"],
)
def test_a_bar_says_how_far_a_command_is(corpus, tmp_path, command, bars):
    shown = on_terminal(*(str(tmp_path / part) if "." in part else part for part in command))
    assert all(bar in shown for bar in bars), shown


def test_the_log_of_an_archive_crawl_scrolls_above_its_bar(tmp_path):
    records = [record(f"http://h{n % 4}.test/{n}", document(f"{n}").encode()) for n in range(100)]
    archive = tmp_path / "a.warc.gz"
    archive.write_bytes(FORMS["gzip by record"](records))
    shown = on_terminal(
        "crawl", "archive", "-a", "lang=cs", "-a", f"warc={archive}", "-s", f"JOBDIR={tmp_path / 'job'}",
        "-s", "SPIDERLING_PROGRESS_S=1",
    )  # fmt: skip
    total = archive.stat().st_size
    assert re.search(rf"\d+%\|.*/{total / 1000:.3g}k", shown), shown
    lines = [line for line in re.split(r"[\r\n]", shown) if "[spiderling" in line]
    assert len(lines) >= 2 and all(re.match(r"\d{4}-\d\d-\d\d ", line) for line in lines), "each begins a line"
    assert "is finished: all archives are read." in shown
