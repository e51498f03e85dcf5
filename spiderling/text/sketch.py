"""The sketch of a page: a 64-bit hash of its text without numbers and words of its own address.

Calendars, counters and "not found" pages with status 200 show one text under many
addresses; only a date, an id, the address, or the number of equal lines differs.  Pages
that differ in any other long word have different sketches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import xxhash

from spiderling.text.ngrams import code_points_of, codepoints

MIN_CHARS = 40
"""Letters in long words that a page needs to have a sketch; chosen."""
_WORD = re.compile(r"[^\W\d_]{4,}")
"""A long word.  Shorter ones are left out, because those of an address occur in any text."""
SHORT_WORDS = 12
"""Most long words of a line that may be a heading or note with the page's address in it; chosen."""


LongWords = Callable[[Iterable[str], "set[str]"], str]
"""Type of `long_words`."""


def long_words(texts: Iterable[str], own: set[str]) -> str:
    """The letters of the long words of a page, each of whose paragraphs *texts* counts once.

    They are in lower case.  The *own* words of its address are left out in short lines.
    """
    return _long_words(_foreign("\n".join(dict.fromkeys(texts)).lower(), own))


def sketch(texts: Iterable[str], url: str, words: LongWords = long_words) -> int:
    """The sketch of a page at *url* with the paragraphs *texts*, boilerplate included; 0 below MIN_CHARS.

    *words* may be compiled (text/steps.py).
    """
    own = set(_WORD.findall(f"{url} {unquote(url)}".lower()))  # pages print their address quoted or unquoted
    joined = words(texts, own)
    return int(xxhash.xxh3_64_intdigest(joined.encode())) if len(joined) >= MIN_CHARS else 0


def _foreign(text: str, own: set[str]) -> str:
    """*text* without the *own* words of the address in its short lines."""
    parts = []
    done = 0
    for begin in sorted({begin for word in own for begin in _lines_with(word, text)}):
        end = _end(text, begin)
        words = _WORD.findall(text, begin, end)
        if len(words) <= SHORT_WORDS:
            parts += [text[done:begin], " ".join([word for word in words if word not in own])]
            done = end
    return "".join([*parts, text[done:]])


def _lines_with(word: str, text: str) -> Iterator[int]:
    """Beginnings of the lines that hold *word*."""
    place = text.find(word)
    while place >= 0:
        yield text.rfind("\n", 0, place) + 1
        place = text.find(word, _end(text, place))


def _end(text: str, place: int) -> int:
    """End of the line that holds *place*."""
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _long_words(text: str) -> str:
    """The matches of _WORD in *text*, joined; with arrays this is several times as fast as with the expression."""
    chars = codepoints(f"{text}   ")
    letters = _letters().take(chars, mode="clip")
    begins = letters[:-3] & letters[1:-2] & letters[2:-1] & letters[3:]  # four letters in a row
    inside = np.zeros_like(letters)
    for offset in range(4):
        inside[offset : offset + len(begins)] |= begins
    return chars.compress(inside).tobytes().decode("utf-32-le")


@lru_cache(maxsize=1)
def _letters() -> npt.NDArray[np.bool_]:
    return ~code_points_of(re.compile(r"[\W\d_]+"))
