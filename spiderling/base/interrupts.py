"""SIGINT and SIGTERM before a command works: one line and no traceback, for nothing is under way yet."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)
_PROGRAMS = ("scrapy", "spiderling")


class End:
    """A signal's handler that ends the process with one line."""

    def __init__(self, sentence: str, code: int | None = None) -> None:
        """*code*: the exit code, by default 128 + the signal's number, as shells have it."""
        self._sentence = sentence
        self._code = code

    def __call__(self, number: int, frame: FrameType | None) -> None:
        os.write(2, f"{_program()}: {self._sentence}\n".encode())  # print may be what was interrupted
        os._exit(128 + number if self._code is None else self._code)


def end_at_once(end: End = End("interrupted.")) -> None:  # noqa: B008 - it is never changed
    """From now on a signal ends this process as *end* says, if it is a command line."""
    if _program() in _PROGRAMS:
        for number in filter(_is_free, NUMBERS):
            signal.signal(number, end)


def end_as_usual() -> None:
    """From now on SIGINT raises KeyboardInterrupt again, and SIGTERM ends the process without a word."""
    if isinstance(signal.getsignal(signal.SIGINT), End):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if isinstance(signal.getsignal(signal.SIGTERM), End):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _is_free(number: int) -> bool:
    """Whether nobody else handles or ignores the signal; a job of a script in the background ignores SIGINT."""
    handler = signal.getsignal(number)
    return isinstance(handler, End) or handler in (signal.default_int_handler, signal.SIG_DFL)


def _program() -> str:
    path = Path(sys.argv[0])
    return path.parent.name if path.name == "__main__.py" else path.name
