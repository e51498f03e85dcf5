"""Measures how well bytes, decoded by a codec, spell words of a language.

chared (Pomikálek and Suchomel 2011) keeps byte trigrams of a language for each of its
encodings.  Here the character trigrams of the language model serve all encodings.  Each
candidate decodes the bytes, and gives

    log P(text) = sum of log P(letter | the two before it) + log P of other characters

Candidates can be compared even if they give different numbers of characters, because
each value is the probability of the same bytes.  Conditional probabilities are
interpolated between the orders (Jelinek and Mercer 1980).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spiderling.text.ngrams import Array, Hashes, NgramCounts, codepoints, hash_rows, normalise, windows

SAMPLE_BYTES = 4000
"""Bytes of the sample: words with non-ASCII bytes; chosen."""
_SEARCHED_BYTES = 1_000_000
"""Bytes of a page that are searched for these words; chosen."""
_BITS = 18
"""Binary logarithm of the number of hashes in a table; chosen."""
_ORDER = 3
"""Characters of the longest n-grams: trigrams, as in chared."""
_TRUST = 0.8
"""Weight of the longer n-gram in the interpolation; chosen."""
_UNSEEN = math.log(1e-7)
"""log P of a letter that the language does not have; chosen, as are the three below."""
_USUAL_COST = math.log(1 / 50)
"""log P of a non-letter that is usual in running text."""
_ODD_COST = math.log(1 / 50_000)
"""log P of any other non-letter: box drawing, C1 controls, bytes that could not be decoded."""
_FOREIGN_COST = math.log(1e-7)
"""log P added for an encoding that is not in use for the language."""
_OTHERS = re.compile(r"[^\w\x00-\x7f]")
_USUAL = re.compile("[\xa0«»–—‘’“”„‚…•·§©®°€£№\u3000-\u303f\uff00-\uffef]")
_SEPARATORS = bytes.maketrans(b"<>", b"  ")


class Fit(NamedTuple):
    """How well a sample fits one encoding."""

    score: float
    """log P of the sample in the language that it fits best."""
    cost: float
    """-score / bytes, in nats.  Measured: text of a known language costs 2.3 to 3.2 (3.3 to 3.8 where a character is
    a word, as in Chinese); text of another language in the wrong encoding costs 3.1 and more."""


def telling_words(body: bytes) -> bytes:
    """The words of *body* with non-ASCII bytes, joined; the others are the same in every encoding.

    White space and angle brackets divide them; in legacy encodings these bytes are part of no other character.
    """
    words = body[:_SEARCHED_BYTES].translate(_SEPARATORS).split()
    return b" ".join(word for word in words if not word.isascii())[:SAMPLE_BYTES]


class Spelling:
    """The letter sequences of some languages, and the codecs in use for each (as Python names them)."""

    def __init__(self, languages: Iterable[tuple[NgramCounts, Collection[str]]]) -> None:
        self._languages = tuple(languages)
        self.codecs = tuple(dict.fromkeys(codec for _, codecs in self._languages for codec in codecs))
        """The codecs of all the languages, each once."""

    @cached_property
    def _logs(self) -> Array:
        """Log-probabilities (hash, language); built at first use, because most pages are in UTF-8."""
        return np.stack([_table(ngrams) for ngrams, _ in self._languages], axis=1)

    def fits(self, body: bytes, codecs: Iterable[str]) -> dict[str, Fit]:
        """How well *body* fits each of *codecs*; empty if none of its words holds a non-ASCII byte."""
        sample = telling_words(body)
        return {codec: self._fit(sample, codec) for codec in codecs if sample}

    def _fit(self, sample: bytes, codec: str) -> Fit:
        # windows-1258 has accents as characters of their own
        text = unicodedata.normalize("NFC", sample.decode(codec, "replace"))
        chars = codepoints(normalise(text))
        logs = np.maximum(self._look_up(chars, 1)[2:], self._look_up(chars, 2)[1:-1])
        logs = np.maximum(np.maximum(logs, self._look_up(chars, 3)[:-2]), _UNSEEN)
        foreign = np.array([0.0 if codec in codecs else _FOREIGN_COST for _, codecs in self._languages])
        score = float((logs.sum(0) + foreign).max()) + _others(text)
        return Fit(score, -score / max(1, len(sample)))

    def _look_up(self, chars: Hashes, size: int) -> Array:
        """Log-probabilities of the n-gram that begins at each character, by language."""
        found: Array = self._logs[windows(chars, size) & np.uint32(len(self._logs) - 1)]
        return found


def _table(ngrams: NgramCounts) -> Array:
    """By hash of an n-gram, log P of its last letter after the others; -inf for n-grams that were never seen.

    The value of a shorter n-gram is for text whose longer n-gram was never seen, and lower for that reason.
    """
    shares, counts, logs = (np.zeros(1 << _BITS, np.float32) for _ in range(3))
    mask = np.uint32(len(logs) - 1)
    for size in range(1, _ORDER + 1):
        if size not in ngrams.sizes:
            continue
        grams, integers = ngrams.sizes[size]
        numbers = integers.astype(np.float32)
        own = hash_rows(grams, size) & mask
        np.add.at(counts, own, numbers)
        if size == 1:
            found = numbers / numbers.sum()
        else:
            before = np.maximum(counts[hash_rows(grams[:, :-1], size - 1) & mask], numbers)
            found = _TRUST * numbers / before + (1 - _TRUST) * shares[hash_rows(grams[:, 1:], size - 1) & mask]
        shares[own] = found
        logs[own] = found * (1 - _TRUST) ** (_ORDER - size)
    with np.errstate(divide="ignore"):
        return np.log(logs)


def _others(text: str) -> float:
    """Sum of log P of the non-ASCII characters of *text* that are neither letters nor marks."""
    others = _OTHERS.findall(text)
    usual = sum(1 for char in others if _USUAL.match(char))
    marks = sum(1 for char in others if unicodedata.category(char)[0] == "M")
    return usual * _USUAL_COST + (len(others) - usual - marks) * _ODD_COST
