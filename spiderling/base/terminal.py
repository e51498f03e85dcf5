"""What a person at a terminal reads and presses: safe text, tables, guesses at mistyped names, progress, signals.

Before and after a command works, SIGINT and SIGTERM end it with one line and no traceback, for nothing is under way.
A closed terminal (SIGHUP) is a SIGTERM; ``nohup`` has it ignored, and so it stays.
"""

from __future__ import annotations

import difflib
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

_LIKENESS = 0.6
"""Share of letters in common, as difflib counts it, from which a name may have been meant (difflib's own default)."""
_MAX_SHOWN = 60  # characters of a value in a message (chosen)


def printable(text: str) -> str:
    """*text* with U+FFFD for each character that could command a terminal, or hide or turn what stands beside it.

    Names, URLs and pages come from the web and may hold any.

    >>> printable("a\\x1b[2Jb\\u202ec")
    'a\ufffd[2Jb\ufffdc'
    """
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def shown(value: object) -> str:
    """*value* as it may stand in a message: in one line, and not too long.

    >>> shown(["a\\n", 5]), len(shown("x" * 200)), shown(1 << 100_000)
    ("['a\\\\n', 5]", 63, 'a number of more than 4,300 digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes out no longer ones
        return "a number of more than 4,300 digits"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def entries_of(text: str) -> list[str]:
    """The entries of *text*, which commas separate.

    >>> entries_of(" cs, sk,,")
    ['cs', 'sk']
    """
    return [entry for entry in map(str.strip, text.split(",")) if entry]


def count_of(number: int, noun: str) -> str:
    """*number* of things that *noun* names.

    >>> count_of(1, "seed"), count_of(1000, "seed")
    ('1 seed', '1,000 seeds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table in Markdown.

    >>> list(markdown_table(("a", "b"), [("1", "2")]))
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def aligned_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a table in columns named by the keys of *rows*; numbers stand to the right.

    >>> list(aligned_table([{"host": "a.test", "pages": 1200}]))
    ['  host    pages', '  a.test  1,200']
    """
    columns = list(rows[0]) if rows else []
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(column), *(len(row[at]) for row in cells)) for at, column in enumerate(columns)]
    is_number = [isinstance(rows[0][column], (int, float)) for column in columns]
    for row in (columns, *cells):
        parts = (
            part.rjust(width) if right else part.ljust(width)
            for part, width, right in zip(row, widths, is_number, strict=True)
        )
        yield "  " + "  ".join(parts).rstrip()


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def nearest(name: str, known: Iterable[str], most: int = 1, likeness: float = _LIKENESS) -> list[str]:
    """At most *most* names of *known* that *name* may stand for, the likeliest first.

    >>> nearest("yeild", ["yield", "bfs"])
    ['yield']
    """
    return difflib.get_close_matches(name, list(known), most, likeness)


def hint(name: str, known: Iterable[str], likeness: float = _LIKENESS) -> str:
    """The end of a message about an unknown *name*.

    >>> hint("yeild", ["yield", "bfs"])
    'did you mean yield? known are yield, bfs.'
    """
    near = nearest(name, known, likeness=likeness)
    return "".join([*(f"did you mean {meant}? " for meant in near), f"known are {', '.join(known)}."])


_T = TypeVar("_T")

BAR_EVERY_S = 1.0  # seconds between two states of a bar (chosen)


def progress_bar(unit: str, total: int = 0, *, in_bytes: bool = False) -> Any:
    """A bar of tqdm that counts how many *unit* of *total* (0: unknown) are done; it is shown on a terminal alone.

    *in_bytes*: the number is written in kB, MB and so on.
    """
    from tqdm import tqdm  # takes longer to load than most commands run

    return tqdm(
        total=total or None,
        unit="B" if in_bytes else f" {unit}",
        unit_scale=in_bytes,
        leave=False,
        mininterval=BAR_EVERY_S,
        smoothing=0,
        disable=not sys.stderr.isatty(),
    )


def with_progress(entries: Iterable[_T], unit: str, total: int = 0) -> Iterator[_T]:
    """Yield *entries* and show how many *unit* came; *total* is their number, 0 if unknown."""
    if not sys.stderr.isatty():
        yield from entries
        return
    with progress_bar(unit, total) as bar:
        for entry in entries:
            yield entry
            bar.update()


NUMBERS = (signal.SIGINT, signal.SIGTERM)
_USUAL: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_PROGRAMS = ("scrapy", "spiderling")


class ExitHandler:
    """A signal's handler that ends the process with one line."""

    def __init__(self, sentence: str, code: int | None = None) -> None:
        """*code*: the exit code, by default 128 + the signal's number, as shells have it."""
        self._sentence = sentence
        self._code = code

    def __call__(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # the terminal may be gone
            os.write(2, f"{_program()}: {self._sentence}\n".encode())  # print may be what was interrupted
        os._exit(128 + number if self._code is None else self._code)


def end_at_signal(end: ExitHandler = ExitHandler("interrupted.")) -> None:  # noqa: B008 - it is never changed
    """From now on a signal ends this process as *end* says, if it is a command line."""
    if _program() in _PROGRAMS:
        for number in filter(_is_free, _USUAL):
            signal.signal(number, _terminate if number == signal.SIGHUP else end)


def restore_signals() -> None:
    """From now on SIGINT raises KeyboardInterrupt again; SIGTERM and SIGHUP end the process without a word."""
    for number in filter(_is_free, _USUAL):
        signal.signal(number, _USUAL[number])


def ignore_signals() -> None:
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
    return isinstance(handler, ExitHandler) or handler in (_terminate, *_USUAL.values())


def command_name() -> str:
    """The command that this process was started with, which Scrapy's program takes out of ``sys.argv``; '' if none."""
    names = [Path(part).name for part in sys.orig_argv]
    place = next((number for number, name in enumerate(names, 1) if name in _PROGRAMS), 0)
    arguments = sys.orig_argv[place:] if place else sys.argv[1:]
    return next((argument for argument in arguments if not argument.startswith("-")), "")


def runs_without_us() -> bool:
    """Whether this command line is one of Scrapy's that begins no crawl; it runs as in a project without the add-on."""
    return _program() in _PROGRAMS and command_name() in ("bench", "check", "fetch", "parse", "shell", "view")


def _program() -> str:
    path = Path(sys.argv[0])
    return path.parent.name if path.name == "__main__.py" else path.name
