"""What a page says, apart from numbers and from the words of its own address: one 64-bit value.

Calendars, counters and "not found" pages that answer 200 say the same under any number of
addresses, but for a date, an id, the address itself, or how often a line comes.  Exact on
the rest: a page that differs in one further word is another page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_CHARS = 40
"""Letters that a page must hold to be compared at all."""
_WORD = re.compile(r"[^\W\d_]{4,}")
"""Shorter ones are left out: those of an address stand in any text."""


_SHORT_WORDS = 12
"""Pages name their address in headings and short notes; a word of it that stands in running text is a word."""


def sketch(texts: Iterable[str], url: str) -> int:
    """The sketch of a page at *url* with these *texts*, boilerplate included; 0 for next to no text."""
    own = set(_WORD.findall(f"{url} {unquote(url)}".lower()))  # pages print their address as it was sent, or as meant
    words: list[str] = []
    for text in dict.fromkeys(texts):  # a list may hold the same entry any number of times
        line = _WORD.findall(text.lower())
        words += line if len(line) > _SHORT_WORDS else [word for word in line if word not in own]
    joined = "".join(words)
    return int(xxhash.xxh3_64_intdigest(joined.encode("utf-8", "surrogatepass"))) if len(joined) >= MIN_CHARS else 0
