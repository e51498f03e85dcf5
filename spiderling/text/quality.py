"""Signals of a document's quality besides badness: cheap counts over its good paragraphs.

They follow the heuristics by which large web corpora are filtered (Rae et al.,
*Scaling Language Models*, 2021, appendix A; Raffel et al. 2020).  Lists and tables have
no function words, and very long or very short sentences; spam repeats itself; code and
price lists consist of digits and symbols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.base.option_values import parse_preset
from spiderling.text.ngrams import code_points_of, codepoints

END = 1
"""The character ends a sentence if a FOLLOWING comes after it."""
FOLLOWING = 2
FULL_STOP = 4
"""The character always ends a sentence."""
DIGIT = 8
SYMBOL = 16
_DIGITS = re.compile(r"\d+")
_MARKS = {
    END: ".!?…",
    FOLLOWING: " \n\"'»”’)]",
    FULL_STOP: "。！？।॥؟።",
    SYMBOL: "#*|<>{}[]=~^_\\/@+•·»«→←©®™$€%&…",
}
_RATES = ("sentence_words", "outlinks")
"""Fields of Quality that are numbers but no shares."""


class Quality(NamedTuple):
    """The signals of one page; shares are 0 .. 1."""

    stopword_share: float
    """Words on the language's stop list / words; 1 when there is no stop list."""
    sentence_words: float
    """Mean length of a sentence in white-space separated words."""
    repeated_share: float
    """Characters in paragraphs that repeat an earlier one of the document / characters."""
    digit_share: float
    """Digits / characters."""
    symbol_share: float
    """Symbols that are rare in running text / characters."""
    good_share: float
    """Characters in good paragraphs / in all paragraphs of the page."""
    packed_share: float = 1.0
    """Packed / unpacked bytes of the clean text.  text/spam.py sets this field and those below."""
    top_word_share: float = 0.0
    """The most frequent word that is no stop word / words."""
    outlinks: float = 0.0
    """Addresses on other hosts that running text links to, per 1,000 bytes of text."""
    translated: str = ""
    """Name of the machine translator, as `spam.translated` finds it; '' for none."""

    def attributes(self) -> dict[str, str]:
        """The signals as attributes of a document."""
        return {
            name: value if isinstance(value, str) else f"{value:.1f}" if name in _RATES else f"{value:.2f}"
            for name, value in self._asdict().items()
        }


NO_QUALITY = Quality(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""The signals of a page without text."""


@dataclass(frozen=True, slots=True)
class Range:
    """Values from *low* to *high*, both included."""

    low: float = 0.0
    high: float = float("inf")

    def __str__(self) -> str:
        return f"{self.low:g}..{'' if self.high == float('inf') else f'{self.high:g}'}"


@dataclass(frozen=True, slots=True)
class QualityLimits:
    """Ranges of measures, under their names in documents; a document outside of one ends as bad-quality."""

    page_bytes: Range = Range()
    """Bytes of the page in UTF-8; no limit here, 2000 or more in texrex (Schäfer & Bildhauer 2012)."""
    text_chars: Range = Range(low=250)
    """Characters of clean text; chosen.  A page with less new text ends as near-duplicate."""
    badness: Range = Range(high=50.0)
    """Badness (text/language/function_words.py); chosen by eye: of 100 pages at 40 to 50, mostly manuals and guides to
    products, 81 were good prose, of 37 above 50 about 14; the others were lists, tables, code and close languages."""
    stopword_share: Range = Range(low=0.05)
    """Share of stop words, if the language has a list; chosen."""
    sentence_words: Range = Range(high=200.0)
    """Mean words of a sentence; chosen."""
    repeated_share: Range = Range(high=0.6)
    """Share of the text in repeated paragraphs; chosen."""
    digit_share: Range = Range(high=0.25)
    """Share of digits; chosen."""
    symbol_share: Range = Range(high=0.15)
    """Share of symbols; chosen."""
    good_share: Range = Range()
    """Share of the page's text in good paragraphs; no limit."""
    packed_share: Range = Range(low=0.1)
    """Packed / unpacked bytes, low for repetitions; of 531 good pages the least has .21."""
    top_word_share: Range = Range(high=0.2)
    """Share of the most frequent word that is no stop word; of 531 good pages the most has .13."""
    outlinks: Range = Range(high=20.0)
    """Links to other hosts per kB of text; with the two above it refuses one of 2,333 good pages."""


PRESETS = {"standard": QualityLimits(), "off": QualityLimits(*[Range()] * 12)}


@lru_cache(maxsize=16)
def parse_quality(text: str) -> QualityLimits:
    """The limits that *text* names: a preset, ranges of measures, or both; raises BadInput.

    An end of a range that *text* leaves out is that of the preset; if nothing would be left, there is none.

    >>> parse_quality("standard,sentence_words=5..").sentence_words
    Range(low=5.0, high=200.0)
    """
    return parse_preset("QUALITY", text, PRESETS, "standard", _read_range)


def _read_range(limits: QualityLimits, name: str, text: str) -> Range:
    """The range *text* of *name*; an end left out is that of *limits*, or open.  Raises ValueError."""
    former: Range = getattr(limits, name)
    low, dots, high = text.partition("..")
    is_share = name.endswith("_share")
    try:
        found = Range(float(low or former.low), float(high or former.high))
    except ValueError:
        found = Range(-1.0)
    if found.low > found.high and not (low and high):
        found = Range(low=found.low) if low else Range(high=found.high)
    if name == "sentence_words" and found.high < 1:
        raise ValueError("sentence_words must go up to 1 at least, such as sentence_words=..200")
    if not dots or not 0 <= found.low <= found.high or (is_share and not _is_of_shares(found)):
        small, large = ("0.02", "0.8") if is_share else ("20", "200")
        raise ValueError(
            f"{name} must be a range{' of shares from 0 to 1' if is_share else ''}, "
            f"such as {name}={small}.. or {name}=..{large} or {name}={small}..{large}"
        )
    return found


def _is_of_shares(found: Range) -> bool:
    return found.low <= 1 and (found.high <= 1 or found.high == float("inf"))


Marks = Callable[[Sequence[str]], tuple[int, int, int, int]]
"""Type of `marks`."""


def quality(paragraphs: Sequence[str], stopword_share: float, page_chars: int, count: Marks | None = None) -> Quality:
    """The quality of the good *paragraphs* of a page.

    *page_chars* is the number of the page's characters with its boilerplate; *count* may be a faster `marks`.
    """
    chars = sum(map(len, paragraphs))
    if not chars:
        return NO_QUALITY
    sentences, digits, symbols, words = (count or marks)(paragraphs)
    return Quality(
        stopword_share,
        words / sentences,
        (chars - sum(map(len, set(paragraphs)))) / chars,
        digits / chars,
        symbols / chars,
        min(1.0, chars / max(1, page_chars)),
    )


def marks(paragraphs: Sequence[str]) -> tuple[int, int, int, int]:
    """Numbers of sentences, digits, symbols and words in *paragraphs*; three full stops in a row are a symbol."""
    text = "\n".join(paragraphs)
    kinds = kinds_of_characters().take(codepoints(text), mode="clip")
    # the end of a paragraph ends a sentence without a mark
    stops = np.flatnonzero(kinds & (FULL_STOP | END))
    following = kinds.take(stops + 1, mode="clip")  # the last character is followed by itself; the next line mends that
    following[stops == len(kinds) - 1] = FOLLOWING
    stops = stops[(kinds[stops] & FULL_STOP | following & FOLLOWING) != 0]
    starts = np.cumsum([0, *map(len, paragraphs)]) + np.arange(len(paragraphs) + 1)
    sentences = int(np.maximum(1, np.diff(np.searchsorted(stops, starts))).sum())
    digits = int(np.count_nonzero(kinds & DIGIT))
    symbols = int(np.count_nonzero(kinds & SYMBOL))
    return sentences, digits, symbols + text.count("..."), words_in(text)


def words_in(text: str) -> int:
    """Number of words in *text*: paragraphs divided by line feeds, words by single spaces.

    >>> words_in("two words\nthree more words")
    5
    """
    return text.count(" ") + text.count("\n") + 1 if text else 0


@lru_cache(maxsize=1)
def kinds_of_characters() -> npt.NDArray[np.uint8]:
    """The kinds (END ...) of each code point, as bits."""
    table = np.zeros(0x110000, np.uint8)
    for kind, marks in _MARKS.items():
        table[list(map(ord, marks))] |= kind
    table[code_points_of(_DIGITS)] |= DIGIT
    return table
