"""Output for people: text that is safe for a terminal, tables, guesses at mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_LIKENESS = 0.6
"""Share of letters in common, as difflib counts it, from which a name may have been meant (difflib's own default)."""
_MOST_SHOWN = 60
"""Characters of a value in a message (chosen)."""


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
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def counted(number: int, noun: str) -> str:
    """*number* of things that *noun* names.

    >>> counted(1, "seed"), counted(1000, "seed")
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

    >>> nearest("lsvc", ["lswc", "bfs"])
    ['lswc']
    """
    return difflib.get_close_matches(name, list(known), most, likeness)


def hint(name: str, known: Iterable[str], likeness: float = _LIKENESS) -> str:
    """The end of a message about an unknown *name*.

    >>> hint("lsvc", ["lswc", "bfs"])
    'did you mean lswc? known are lswc, bfs.'
    """
    near = nearest(name, known, likeness=likeness)
    return "".join([*(f"did you mean {meant}? " for meant in near), f"known are {', '.join(known)}."])
