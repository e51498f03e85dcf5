"""Commands that take long show on a terminal how far they are."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import termios
import threading
from pathlib import Path

import pytest
from conftest import DEADLINE_S, ROOT, paragraphs, scrapy, start_scrapy

from spiderling.text.prevertical import render

SENTENCE = "Snažili jsme se, aby tato kniha byla užitečná pro více kategorií čtenářů."


def on_terminal(*arguments: str, module: str = "scrapy") -> str:
    """What ``python -m MODULE`` with *arguments* shows on a terminal of 120 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # EIO is the end
            while part := os.read(ours, 4096):
                shown.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "wb") as terminal, open(os.devnull, "rb") as nothing:
        streams = (nothing, terminal, terminal)
        assert start_scrapy(arguments, ROOT, os.environ, streams, module=module).wait(DEADLINE_S) == 0
    reader.join(DEADLINE_S)
    os.close(ours)
    return b"".join(shown).decode()


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "c.prevert"
    path.write_text("".join(render({"id": f"{n}", "lang": "cs"}, [(SENTENCE, "")]) for n in range(50)), "utf-8")
    return path


JOBDIR = ROOT / "tests" / "jobdirs" / "killed"
WORDS = ["export", "c.prevert", "-o", "out.txt"]
COMMANDS = {
    "export": (WORDS, ["0 documents [", " documents/s]"]),
    "identify": (["identify", "c.prevert", "--among", "cs,sk"], ["x 200 paragraphs"]),
    "extract": (["extract", *["c.prevert"] * 50], ["/50 [", " files"]),
    "dedup": (["dedup", "c.prevert", "-o", "new.prevert"], [" documents read", " ranges of hashes", "0/50 ["]),
    "simulator": (["bfs", "--pages", "500", "--jobs", "1"], ["1 of 1 crawls: ", " pages"]),
    "check": (["inspect", str(JOBDIR), "--check"], [" rows of the table host", " documents of the corpus"]),
    "train": (["train", "xx", "text", "--out", "models", "--neighbours", "cs,sk"], ["reading: ", " steps"]),
}
"""Name -> words of a command, and what its bars show."""


def words_of(name: str, directory: Path) -> list[str]:
    (directory / "text").write_text("".join(f"{paragraphs(n)[0]}\n" for n in range(60)))
    files = {"c.prevert", "out.txt", "new.prevert", "text", "models"}
    return [str(directory / word) if word in files else word for word in COMMANDS[name][0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_bar_says_how_far_a_command_is(corpus, tmp_path, name):
    shown = on_terminal(*words_of(name, tmp_path), module="simulator" if name == "simulator" else "scrapy")
    assert all(bar in shown for bar in COMMANDS[name][1]), shown


@pytest.mark.parametrize("name", ["export", "train"])
def test_a_log_or_pipe_gets_nothing(corpus, tmp_path, name):
    ended = scrapy(*words_of(name, tmp_path))
    assert (ended.code, ended.log) == (0, "")
