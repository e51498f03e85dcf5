"""Tells sister languages apart by their words.

Sisters share most n-grams, so that a few topics weigh more than *ikke* against *ikkje*.  If the nearest language of a
text is one of several sisters, each of the text's words adds to these its log-probability, less the mean over them.
The probabilities are those of the models' word lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import Array, Hashes, Places, codepoints

SISTERS = (
    ("da", "nb", "nn", "sv"),
    ("hr", "bs", "sr"),
    ("id", "ms"),
    ("xh", "zu", "ss", "nr"),
    ("st", "nso", "tn"),
    ("af", "nl"),
    ("hi", "mr", "ne"),
    ("cs", "sk"),
    ("gl", "pt", "es"),
)
"""Languages that are taken for each other; chosen from the errors on held-out text."""
_SMOOTHING = 4.0
"""Added to each count; chosen on held-out text and the Universal Declaration, as are the two below."""
_MORE_TOKENS = 1000
"""Added to the number of words of a text, so that a small list does not weigh too much."""
_LIMIT = 4.0
"""Most nats that a word says for or against a language."""
_BEHIND_LATIN = "\u0370"
"""First letter that is not Latin."""
_SPACE = 32
_BASE = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The word list of a language's model."""

    words: Mapping[str, int]
    tokens: int
    """Words of the text, those not in the list included."""

    def logs(self, vocabulary: Sequence[str]) -> Array:
        """Log-probability of each word, in a text written in its alphabet."""
        listed = sum(count for word, count in self.words.items() if word < _BEHIND_LATIN)
        latin = self.tokens * listed / max(1, sum(self.words.values()))
        counts = np.array([self.words.get(word, 0) for word in vocabulary], np.float32)
        sizes = np.where([word < _BEHIND_LATIN for word in vocabulary], latin, self.tokens - latin)
        logs: Array = np.log((counts + _SMOOTHING) / (sizes + _MORE_TOKENS)).astype(np.float32)
        return logs


@dataclass(frozen=True, slots=True)
class Sisters:
    """Some sisters that are told apart."""

    columns: Places
    """Their places among all languages."""
    keys: Keys
    """The words of all, as sorted `word_keys`."""
    weights: Array
    """(word, sister): log-probability less its mean; a last row of zeros stands for all other words."""

    @classmethod
    def of(cls, columns: Sequence[int], counts: Sequence[WordCounts]) -> Sisters:
        """The sisters in these *columns* with these word lists."""
        vocabulary = sorted({word for each in counts for word in each.words})
        logs = np.stack([each.logs(vocabulary) for each in counts], axis=1)
        weights = (logs - logs.mean(1, keepdims=True)).clip(-_LIMIT, _LIMIT)
        keys = word_keys(codepoints(f" {' '.join(vocabulary)} "))[1]
        order = np.argsort(keys)
        rows = np.concatenate([weights[order], np.zeros((1, len(counts)), np.float32)])
        return cls(np.array(columns, np.intp), keys[order], rows.astype(np.float32))

    def evidence(self, keys: Keys, texts: Places, number: int) -> Array:
        """What the words with *keys*, in the *number* texts with the indices *texts*, say (text, sister)."""
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        places[self.keys[places] != keys] = len(self.keys)
        said = self.weights[places]
        return np.stack([np.bincount(texts, column, number) for column in said.T], axis=1).astype(np.float32)


def sisters_among(codes: Sequence[str], counts: Mapping[str, WordCounts]) -> tuple[Sisters, ...]:
    """The sisters among the languages *codes* that are told apart, by word lists *counts* (code -> list)."""
    loaded = [[code for code in family if code in counts] for family in SISTERS]
    return tuple(
        Sisters.of([codes.index(code) for code in family], [counts[code] for code in family])
        for family in loaded
        if len(family) > 1
    )


def word_keys(chars: Hashes) -> tuple[Places, Keys]:
    """Where each word between spaces begins, and its 64-bit hash: a polynomial of its code points."""
    powers, inverses = _powers(1 << len(chars).bit_length())
    sums = np.zeros(len(chars) + 1, np.uint64)
    np.cumsum(chars * powers[: len(chars)], out=sums[1:])
    spaces = np.flatnonzero(chars == _SPACE)
    long = np.diff(spaces) > 1
    starts, ends = spaces[:-1][long] + 1, spaces[1:][long]
    keys: Keys = (sums[ends] - sums[starts]) * inverses[starts]
    return starts, keys


@lru_cache(maxsize=2)
def _powers(number: int) -> tuple[Keys, Keys]:
    """The first powers of the polynomial's base and of its inverse."""
    return np.cumprod(np.full(number, _BASE)), np.cumprod(np.full(number, _INVERSE))
