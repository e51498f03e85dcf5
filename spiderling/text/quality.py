"""Signals of a document's quality, beside badness: cheap counts over its good paragraphs.

After the heuristics that large web corpora are filtered with (Rae et al., *Scaling
Language Models*, 2021, appendix A; Raffel et al. 2020): lists and tables have no
function words and endless or tiny sentences, spam repeats itself, code and price lists
are digits and symbols.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_SENTENCE_END = re.compile(r"[.!?…](?=\s|[\"'»”’)\]]|$)|[。！？।॥؟።]")
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(r"[#*|<>{}\[\]=~^_\\/@+•·»«→←©®™$€%&]|\.\.\.|…")


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

    def attributes(self) -> dict[str, str]:
        """As document attributes."""
        return {
            name: f"{value:.1f}" if name == "sentence_words" else f"{value:.2f}"
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
    known: set[str] = set()
    repeated = 0
    for paragraph in paragraphs:
        repeated += len(paragraph) if paragraph in known else 0
        known.add(paragraph)
    text = "\n".join(paragraphs)
    # the end of a paragraph ends a sentence without a mark
    sentences = sum(max(1, len(_SENTENCE_END.findall(paragraph))) for paragraph in paragraphs)
    return Quality(
        sum(word in stoplist for word in words) / max(1, len(words)) if stoplist else 1.0,
        len(text.split()) / sentences,
        repeated / chars,
        len(_DIGIT.findall(text)) / chars,
        len(_SYMBOL.findall(text)) / chars,
        min(1.0, chars / max(1, page_chars)),
    )
