"""Numbers in text that somebody else wrote: headers of servers, attributes in files."""

from __future__ import annotations

_MOST_DIGITS = 18
"""Digits that always fit into 64 bits; int() itself raises ValueError for more than 4,300."""


def whole_number(text: str | bytes) -> int | None:
    """The number that *text* is, in ASCII digits; None for anything else.

    >>> whole_number("120"), whole_number(b"7"), whole_number("²"), whole_number("-1"), whole_number("9" * 5000)
    (120, 7, None, None, None)
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS  # "²".isdigit(), but int("²") raises
    return int(text) if is_number else None
