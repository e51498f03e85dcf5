"""Guesses at the name that was meant by an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LIKENESS = 0.6
"""Share of letters in common, as difflib counts it, from which a name may have been meant (difflib's own default)."""


def nearest(name: str, known: Iterable[str], most: int = 1, likeness: float = _LIKENESS) -> list[str]:
    """Those of *known* that *name* may stand for, the likeliest first, at most *most*.

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
