"""The sketch of a page: a 64-bit hash of its text without numbers and the words of its own address.

Calendars, counters and "not found" pages that answer 200 show the same text under many
addresses, but for a date, an id, the address itself, or how often a line stands there.
Pages that differ in any other word have different sketches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import xxhash

from spiderling.text.ngrams import code_points_of, codepoints

MIN_CHARS = 40
"""Letters in long words from which on a page has a sketch; chosen."""
_WORD = re.compile(r"[^\W\d_]{4,}")
"""A long word.  Shorter ones are left out, for those of an address occur in any text."""
_SHORT_WORDS = 12
"""Long words of a line up to which it may be a heading or note that names the page's address; chosen."""


def sketch(texts: Iterable[str], url: str) -> int:
    """The sketch of a page at *url* with these *texts*, boilerplate included; 0 for next to no text."""
    own = set(_WORD.findall(f"{url} {unquote(url)}".lower()))  # pages print their address quoted or unquoted
    text = "\n".join(dict.fromkeys(texts)).lower()  # each line once
    joined = _long_words(_foreign(text, own))
    return int(xxhash.xxh3_64_intdigest(joined.encode())) if len(joined) >= MIN_CHARS else 0


def _foreign(text: str, own: set[str]) -> str:
    """*text* without the address's *own* words in its short lines."""
    parts = []
    done = 0
    for begin in sorted({begin for word in own for begin in _lines_with(word, text)}):
        end = _end(text, begin)
        words = _WORD.findall(text, begin, end)
        if len(words) <= _SHORT_WORDS:
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
    """The matches of _WORD in *text*, joined; several times as fast, because arrays hold all characters."""
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
