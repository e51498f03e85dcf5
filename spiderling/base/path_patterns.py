"""Paths with ``*`` and ``$``, as rules of robots.txt have them; tdmrep.json and RSL use them too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar
from urllib.parse import quote

MAX_FILE_STARS = 4000
"""Stars in all patterns of a file; matching more takes milliseconds a URL (chosen)."""
MAX_STARS = 40
"""Stars in a pattern; one with more matches nothing, since matching takes the time of the path for each (chosen)."""
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
Value = TypeVar("Value")


class PathPattern:
    """A path as rules have it: ``*`` is any characters, ``$`` the end (RFC 9309, 2.2.3)."""

    def __init__(self, pattern: str) -> None:
        pattern = normal(pattern)
        self.length = len(pattern)
        """In characters; of the patterns that match, the longest counts (2.2.2)."""
        self._at_end = pattern.endswith("$")
        self._first, *self._parts = pattern.removesuffix("$").split("*")

    def matches(self, path: str) -> bool:
        """Whether the pattern matches *path* (a `normal` one) from its beginning; for each star in linear time."""
        if not path.startswith(self._first) or len(self._parts) > MAX_STARS:
            return False
        position = len(self._first)
        if not self._parts:
            return not self._at_end or len(path) == position
        for part in self._parts[:-1]:
            position = path.find(part, position)
            if position < 0:
                return False
            position += len(part)
        last = self._parts[-1]
        return path[position:].endswith(last) if self._at_end else path.find(last, position) >= 0


class Patterns(Generic[Value]):
    """Patterns, each with a value; of those that match a path the longest count, equal ones together."""

    def __init__(self, patterns: Iterable[tuple[PathPattern, Value]]) -> None:
        self._longest_first = sorted(patterns, key=lambda entry: -entry[0].length)

    def longest(self, path: str) -> list[Value]:
        """The values of the longest of those that match *path*."""
        path = normal(path)
        found: list[Value] = []
        length = 0
        for pattern, value in self._longest_first:
            if pattern.length < length:
                break
            if pattern.matches(path):
                length = pattern.length
                found.append(value)
        return found


def normal(text: str) -> str:
    """Percent-encoding in one form, so that equal paths are equal strings (RFC 9309, 2.2.2)."""
    if text.isascii() and "%" not in text and " " not in text:
        return text
    return _ESCAPE.sub(_unescaped, quote(text, safe="!#$%&'()*+,/:;=?@[]~"))


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else match[0].upper()
