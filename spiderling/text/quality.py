"""Signals of a document's quality, beside badness: cheap counts over its good paragraphs.

After the heuristics that large web corpora are filtered with (Rae et al., *Scaling
Language Models*, 2021, appendix A; Raffel et al. 2020): lists and tables have no
function words and endless or tiny sentences, spam repeats itself, code and price lists
are digits and symbols.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import code_points_of, codepoints

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_END, _FOLLOWING, _FULL_STOP, _DIGIT, _SYMBOL = (1 << bit for bit in range(5))
_DIGITS = re.compile(r"\d+")
_MARKS = {
    _END: ".!?…",  # the end of a sentence before white space or these
    _FOLLOWING: " \n\"'»”’)]",
    _FULL_STOP: "。！？।॥؟።",  # anywhere
    _SYMBOL: "#*|<>{}[]=~^_\\/@+•·»«→←©®™$€%&…",
}


_RATES = ("sentence_words", "outlinks")


class Quality(NamedTuple):
    """Shares are 0 .. 1."""

    stopword_share: float
    """Words on the language's stop list / words; 1 when there is no stop list."""
    sentence_words: float
    """Mean length of a sentence in white-space separated words."""
    repeated_share: float
    """Characters in paragraphs that stood before in the same document / characters."""
    digit_share: float
    """Digits / characters."""
    symbol_share: float
    """Symbols that running text has few of / characters."""
    good_share: float
    """Characters in good paragraphs / in all paragraphs of the page."""
    packed_share: float = 1.0
    """Packed / unpacked bytes of the clean text; this and what follows: text/spam.py."""
    top_word_share: float = 0.0
    """The most frequent word that is no stop word / words."""
    outlinks: float = 0.0
    """Addresses on other hosts that running text links to, in 1,000 bytes of text."""
    translated: str = ""
    """Who translated the page by machine, as far as that shows."""

    def attributes(self) -> dict[str, str]:
        """As document attributes."""
        return {
            name: value if isinstance(value, str) else f"{value:.1f}" if name in _RATES else f"{value:.2f}"
            for name, value in self._asdict().items()
        }


NOTHING = Quality(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of a page without text."""


def quality(paragraphs: Sequence[str], words: Sequence[str], stoplist: Collection[str], page_chars: int) -> Quality:
    """Of the good *paragraphs* of a page; *words* are theirs in lower case, *page_chars* is its text, boilerplate
    included."""
    chars = sum(map(len, paragraphs))
    if not chars:
        return NOTHING
    text = "\n".join(paragraphs)
    kinds = _kinds().take(codepoints(text), mode="clip")
    # the end of a paragraph ends a sentence without a mark
    stops = np.flatnonzero(kinds & (_FULL_STOP | _END))
    following = kinds.take(stops + 1, mode="clip")  # behind the last character comes that itself
    following[stops == len(kinds) - 1] = _FOLLOWING
    stops = stops[(kinds[stops] & _FULL_STOP | following & _FOLLOWING) != 0]
    starts = np.cumsum([0, *map(len, paragraphs)]) + np.arange(len(paragraphs) + 1)
    sentences = int(np.maximum(1, np.diff(np.searchsorted(stops, starts))).sum())
    digits, symbols = (int(np.count_nonzero(kinds & kind)) for kind in (_DIGIT, _SYMBOL))
    return Quality(
        sum(map(stoplist.__contains__, words)) / max(1, len(words)) if stoplist else 1.0,
        words_in(text) / sentences,
        (chars - sum(map(len, set(paragraphs)))) / chars,
        digits / chars,
        (symbols + text.count("...")) / chars,
        min(1.0, chars / max(1, page_chars)),
    )


def words_in(text: str) -> int:
    """Words, parted by white space, of paragraphs (single spaces within, none at their ends) with line feeds between.

    >>> words_in("two words\nthree more words")
    5
    """
    return text.count(" ") + text.count("\n") + 1 if text else 0


@lru_cache(maxsize=1)
def _kinds() -> npt.NDArray[np.uint8]:
    """What each code point is, as bits."""
    table = np.zeros(0x110000, np.uint8)
    for kind, marks in _MARKS.items():
        table[list(map(ord, marks))] |= kind
    table[code_points_of(_DIGITS)] |= _DIGIT
    return table
