"""Words and signs of a text: a simple tokeniser for vertical files, the same for every language.

By Unicode's classes alone, without a dictionary: words with their marks, inner apostrophes and hyphens, numbers with
their separators, addresses; each Chinese or Japanese character, and any other sign, by itself.  Thai, Lao, Khmer and
Burmese, which need a dictionary, stay whole between spaces.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from spiderling.text.ngrams import MARKS
from spiderling.text.shingles import HAN_KANA

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """The tokens of *text*, in which all that is no white space stands once.

    >>> [token.text for token in tokens("Don't (e.g. 3.14)...")]
    ["Don't", '(', 'e', '.', 'g', '.', '3.14', ')', '...']
    """
    end = -1
    for match in _TOKEN.finditer(text):
        yield Token(match[0], match.start() == end)
        end = match.end()
