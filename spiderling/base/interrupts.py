"""SIGINT and SIGTERM before and after a command works: one line and no traceback, for nothing is under way.

A closed terminal (SIGHUP) is a SIGTERM; ``nohup`` has it ignored, and so it stays.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)
_USUAL: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_PROGRAMS = ("scrapy", "spiderling")


class End:
    """A signal's handler that ends the process with one line."""

    def __init__(self, sentence: str, code: int | None = None) -> None:
        """*code*: the exit code, by default 128 + the signal's number, as shells have it."""
        self._sentence = sentence
        self._code = code

    def __call__(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # the terminal may be gone
            os.write(2, f"{_program()}: {self._sentence}\n".encode())  # print may be what was interrupted
        os._exit(128 + number if self._code is None else self._code)


def end_at_once(end: End = End("interrupted.")) -> None:  # noqa: B008 - it is never changed
    """From now on a signal ends this process as *end* says, if it is a command line."""
    if _program() in _PROGRAMS:
        for number in filter(_is_free, _USUAL):
            signal.signal(number, _terminate if number == signal.SIGHUP else end)


def end_as_usual() -> None:
    """From now on SIGINT raises KeyboardInterrupt again; SIGTERM and SIGHUP end the process without a word."""
    for number in filter(_is_free, _USUAL):
        signal.signal(number, _USUAL[number])


def ignore() -> None:
    """From now on no signal kills this command line, which has saved all: Python ends without its handlers.

    What a closed terminal has not taken is given up.
    """
    if _program() in _PROGRAMS:
        for number in _USUAL:
            signal.signal(number, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # else Python tries again at its end, and exits with 120
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _terminate(number: int, frame: FrameType | None) -> None:
    """The shell and the kernel may both tell that the terminal is closed: that is no second signal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.raise_signal(signal.SIGTERM)


def _is_free(number: int) -> bool:
    """Whether nobody else handles or ignores the signal; a job of a script in the background ignores SIGINT."""
    handler = signal.getsignal(number)
    return isinstance(handler, End) or handler in (_terminate, *_USUAL.values())


def _program() -> str:
    path = Path(sys.argv[0])
    return path.parent.name if path.name == "__main__.py" else path.name
