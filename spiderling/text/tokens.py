"""A simple tokeniser for vertical files, the same for every language.

It uses Unicode's classes and no dictionary.  A token is a word with its marks, inner apostrophes and hyphens; a number
with its separators; an address; a Chinese or Japanese character; or any other sign.  Thai, Lao, Khmer and Burmese
are divided only at spaces, because their words need a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from spiderling.text.ngrams import MARKS
from spiderling.text.shingles import HAN_KANA

_JOINERS = "\u200c\u200d"
_LETTER = rf"(?:(?!{HAN_KANA.pattern})[^\W\d_]|[{MARKS}{_JOINERS}])"
_TOKEN = re.compile(
    rf"""
      (?:https?://|www\.)[^\s<>"]{{1,2000}}(?<![.,;:!?)\]'’»“”])   # an address, without the sentence's signs behind it
    | [\w.+-]{{1,64}}@\w[\w-]{{0,63}}(?:\.\w[\w-]{{0,63}}){{1,8}}  # of mail
    | \d+(?:[.,:]\d+)*
    | {_LETTER}(?:{_LETTER}|\d|_)*(?:['’\-‐‑·](?={_LETTER})(?:{_LETTER}|\d|_)+)*
    | {HAN_KANA.pattern}[{MARKS}]*
    | (?P<sign>[^\w\s])(?P=sign)*                                  # ... and --- are one
    | \S
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A word or sign."""

    text: str
    glued: bool
    """Whether no space stands before it."""


def tokens(text: str) -> Iterator[Token]:
    """The tokens of *text*; each of its characters but white space is in one of them.

    >>> [token.text for token in tokens("Don't (e.g. 3.14)...")]
    ["Don't", '(', 'e', '.', 'g', '.', '3.14', ')', '...']
    """
    end = -1
    for match in _TOKEN.finditer(text):
        yield Token(match[0], match.start() == end)
        end = match.end()
