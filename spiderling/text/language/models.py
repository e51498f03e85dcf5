"""Which language a text is in: naive Bayes over character n-grams, and an open-set test.

A model is the counts of the 1- to ORDER-grams of a plain text in one language.
`LanguageModels` joins the models of all languages to be told apart into one table
of log-probabilities over hashed n-grams, so that a whole page (each paragraph and
their sum) is scored by one look-up.  Naive Bayes names the nearest of the known
languages.  Whether the text *is* in that language says its *known share*: the share
of its 4-grams (3- or 2-grams where a letter says more) that are usual in the language,
divided by what held-out text of the language itself has, so that 0.5 is a fair
threshold for small models as for large.
Both are measured against the papers' cosine of trigrams (W12, H17) in docs/sources.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spiderling.text.encoding.labels import codecs_of
from spiderling.text.encoding.spelling import Spelling
from spiderling.text.language.cosine import CosineGuesses, trigrams, vectors
from spiderling.text.ngrams import Array, Hashes, Places, crossing, hash_rows, normalised, windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spiderling.text.language.function_words import Profile
    from spiderling.text.ngram_counts import NgramCounts

ORDER = 4
MAX_CHARS = 600
"""Characters of one text that are looked at: more do not change the answer."""
MIN_CHARS = 40
"""Shorter texts are never sure."""
_TABLE_BITS = 17
_KNOWN_BITS = 18
_SMOOTHING = 0.3
_SCALE = 500_000
_USUAL_SHARE = 0.8
_BLOCK = 4096
_LOG_UNITS, _LANES = 512, 16
_MOST = (1 << 15) // ORDER - 1
"""One n-gram of each size together do not overflow: a log-probability is at most 16 from the mean."""
_SYLLABLES = 150
_IDEOGRAPHS = 500
_MIN_MARGIN = 6.0
_COUNT_BITS = 12
"""Of a count of n-grams of one text, of which there are fewer than 2 * MAX_CHARS + 3."""
_COUNTS = 64 // _COUNT_BITS
"""So many languages are counted by one addition."""
_SHIFTS = (np.arange(_COUNTS) * _COUNT_BITS).astype(np.uint64)
_SPREAD = (
    (np.arange(1 << _COUNTS, dtype=np.uint64)[:, None] >> np.arange(_COUNTS, dtype=np.uint64) & 1) << _SHIFTS
).sum(1)
"""The bits of _COUNTS languages as numbers to be added."""


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """What is known of one language; counts are of a text by people who write it."""

    code: str
    ngrams: NgramCounts
    words: Mapping[str, int]
    profile: Profile
    stoplist: frozenset[str] = frozenset()
    spaced: bool = True
    """Whether words are written between spaces."""
    encodings: tuple[str, ...] = ()
    known: float = 1.0
    """Share of usual 4-grams in held-out text of the language; the unit of known shares."""
    tokens: int = 0
    """Words of the text, those left out of `words` among them."""

    @property
    def known_size(self) -> int:
        """Characters of the n-grams that known shares are about: fewer where a letter says more."""
        letters = self.ngrams.letters
        return 2 if letters > _IDEOGRAPHS else 3 if letters > _SYLLABLES or not self.spaced else ORDER


@dataclass(frozen=True, slots=True)
class Guesses:
    """The languages of some texts, as arrays; see the methods."""

    codes: tuple[str, ...]
    scores: Array
    """Centred log-probability (text, language)."""
    hits: Array
    """4-grams that are usual in the language, in units of its held-out text (text, language)."""
    sizes: Array
    """4-grams (text)."""

    def nearest(self, rows: Sequence[int] | None = None) -> str | None:
        """The language that the texts *rows* together are nearest to; None without letters."""
        chosen = slice(None) if rows is None else list(rows)
        if not self.codes or not self.sizes[chosen].sum():
            return None
        return self.codes[int(self.scores[chosen].sum(0).argmax())]

    def known_share(self, code: str, rows: Sequence[int] | None = None) -> float:
        """How much of the texts *rows* together is usual in a language; 1 is as much as in its own texts."""
        chosen = slice(None) if rows is None else list(rows)
        hits = self.hits[chosen, self.codes.index(code)].sum()
        return min(1.0, float(hits / max(1.0, self.sizes[chosen].sum())))

    def sure(self) -> list[str | None]:
        """The nearest language of each text; None when it is too short, or too near to a second language."""
        if not self.codes:
            return [None] * len(self.sizes)
        best = self.scores.argmax(1)
        margins = np.full(len(best), np.inf, np.float32)
        if len(self.codes) > 1:
            second, first = np.partition(self.scores, -2, axis=1)[:, -2:].T
            margins = (first - second) / ORDER  # overlapping n-grams tell everything ORDER times
        enough = (self.sizes >= MIN_CHARS) & (margins >= _MIN_MARGIN)
        return [self.codes[i] if yes else None for i, yes in zip(best.tolist(), enough.tolist(), strict=True)]

    def known_shares(self, codes: Sequence[str], rows: Sequence[int]) -> list[float]:
        """The same for each of the texts *rows* by itself in its language of *codes*."""
        columns = [self.codes.index(code) for code in codes]
        shares: list[float] = np.minimum(1, self.hits[rows, columns] / np.maximum(1, self.sizes[rows])).tolist()
        return shares

    def candidates(self, min_share: float) -> tuple[str, ...]:
        """The languages that the texts together may be in, nearest first; none when there is too little text,
        or the nearest language knows less than *min_share* of it."""
        nearest = self.nearest()
        if nearest is None or self.sizes.sum() < MIN_CHARS or self.known_share(nearest) < min_share:
            return ()
        totals = self.scores.sum(0)
        order = np.argsort(-totals, kind="stable").tolist()
        return tuple(self.codes[i] for i in order if totals[order[0]] - totals[i] < _MIN_MARGIN * ORDER)

    def leaning(self, code: str | None, weight: float) -> Guesses:
        """These guesses with *weight* (natural logarithm of odds) in favour of a language, for each text."""
        if code not in self.codes:
            return self
        scores = self.scores.copy()
        scores[:, self.codes.index(code)] += weight * ORDER * (self.sizes > 0)
        return replace(self, scores=scores)


@dataclass(frozen=True)
class LanguageModels:
    """The languages that are told apart, in order of their codes' first mention."""

    models: tuple[LanguageModel, ...]
    codes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", tuple(model.code for model in self.models))

    def __getitem__(self, code: str) -> LanguageModel:
        return self.models[self.codes.index(code)]

    def encodings(self, codes: Sequence[str]) -> tuple[str, ...]:
        """Legacy encodings of the languages *codes*, each once."""
        return tuple(dict.fromkeys(name for code in codes for name in self[code].encodings))

    @cached_property
    def spelling(self) -> Spelling | None:
        """What the languages look like in their legacy encodings; None without languages."""
        known = [(model.ngrams, codecs_of(model.encodings)) for model in self.models if len(model.ngrams)]
        return Spelling(known) if known else None

    @cached_property
    def _vectors(self) -> Array:
        return vectors([model.ngrams for model in self.models])

    def warm_up(self) -> None:
        """Build the tables now rather than with the first text."""
        self.identify(["a"])

    @cached_property
    def _logs(self) -> npt.NDArray[np.int16]:
        """Centred log-probabilities (hash, language) in units of 1 / _LOG_UNITS, the last row zero.

        Rows have the next multiple of _LANES columns: so few bytes are looked up twice as fast as 32-bit numbers.
        """
        logs = np.empty((len(self.models), 1 << _TABLE_BITS), np.float32)
        for row, model in zip(logs, self.models, strict=True):
            row[:] = _SMOOTHING
            weights = model.ngrams.weights()
            scale = _SCALE / max(1, model.ngrams.total)
            for size, (grams, _) in model.ngrams.sizes.items():
                hashes = hash_rows(grams, size) & np.uint32(len(row) - 1)
                row += np.bincount(hashes, weights[size] * scale, len(row))
        centred = np.zeros((logs.shape[1] + 1, -(-len(logs) // _LANES) * _LANES), np.int16)
        for start in range(0, logs.shape[1], _BLOCK):  # the turned table is far larger than any cache
            block = np.log(logs[:, start : start + _BLOCK])  # all have the same sum in each alphabet
            rounded = np.rint((block - block.mean(0)) * _LOG_UNITS).clip(-_MOST, _MOST)
            centred[start : start + _BLOCK, : len(logs)] = rounded.T
        return centred

    @cached_property
    def _usual(self) -> tuple[_Usual, ...]:
        """Of each size of n-grams that known shares are about."""
        sizes = sorted({model.known_size for model in self.models})
        return tuple(_Usual.of(size, self.models) for size in sizes)

    def compare(self, texts: Sequence[str]) -> CosineGuesses:
        """The papers' way to look at the first MAX_CHARS characters of each text."""
        return CosineGuesses(self.codes, self._vectors, [trigrams(text[:MAX_CHARS]) for text in texts], MIN_CHARS)

    def identify(self, texts: Sequence[str]) -> Guesses:
        """Look at the first MAX_CHARS characters of each text, all in one pass."""
        if not self.models or not texts:
            empty = np.zeros((len(texts), len(self.models)), np.float32)
            return Guesses(self.codes, empty, empty, np.zeros(len(texts), np.float32))
        chars, starts = normalised([text[:MAX_CHARS] for text in texts])
        sizes = _sizes(starts, ORDER)
        hits = np.zeros((len(texts), len(self.models)), np.float32)
        grams = {size: windows(chars, size) for size in range(1, ORDER + 1)}
        for usual in self._usual:
            hits[:, usual.columns] = usual.shares(grams[usual.size], starts) * sizes[:, None]
        units = np.array([model.known for model in self.models], np.float32)
        scores = _scores(grams, starts, self._logs)[:, : len(self.models)]
        return Guesses(self.codes, scores, hits / units, sizes)


@dataclass(frozen=True, slots=True)
class _Usual:
    """The n-grams of one size that are usual in those languages whose known shares are about that size."""

    size: int
    columns: npt.NDArray[np.intp]
    """Of the languages among all."""
    table: npt.NDArray[np.uint8]
    """(hash, languages): a number for every _COUNTS languages, with a bit for each."""

    @classmethod
    def of(cls, size: int, models: Sequence[LanguageModel]) -> _Usual:
        """From all models that there are."""
        columns = [column for column, model in enumerate(models) if model.known_size == size]
        table = np.zeros((1 << _KNOWN_BITS, -(-len(columns) // _COUNTS)), np.uint8)
        for index, column in enumerate(columns):
            group, place = divmod(index, _COUNTS)
            ngrams = models[column].ngrams
            weights = ngrams.weights().get(size, _NO_WEIGHTS)
            grams, _ = ngrams.sizes.get(size, _NOTHING)
            hashes = hash_rows(grams[weights >= _least_usual(weights)], size) & np.uint32(len(table) - 1)
            table[hashes, group] |= np.uint8(1 << place)
        return cls(size, np.array(columns, np.intp), table)

    def shares(self, grams: Hashes, starts: Places) -> Array:
        """Share of the hashed n-grams of each text that are usual (text, language)."""
        number, width = self.table.shape
        rows = self.table.view(f"V{width}")[:, 0].take(grams & np.uint32(number - 1), mode="clip")
        bits = rows.view(np.uint8).reshape(-1, width)
        bits[crossing(starts, self.size)] = 0
        sums = np.add.reduceat(_SPREAD.take(bits, mode="clip"), starts[:-1], axis=0)
        counts = sums[:, :, None] >> _SHIFTS
        counts &= np.uint64((1 << _COUNT_BITS) - 1)
        known: Array = counts.reshape(len(sums), -1)[:, : len(self.columns)].astype(np.float32)
        known /= np.maximum(1, _sizes(starts, self.size))[:, None]
        return known


_NOTHING = (np.zeros((0, ORDER), np.uint32), np.zeros(0, np.uint32))
_NO_WEIGHTS = np.zeros(0, np.float32)


def _sizes(starts: Places, size: int) -> Array:
    """N-grams of each text."""
    found: Array = np.maximum(0, np.diff(starts) - (size - 1)).astype(np.float32)
    return found


def _least_usual(weights: Array) -> float:
    """The weight from which on n-grams are usual: those make up most of a text, and rarer ones (names, foreign
    words) tell nothing; a longer training text would know more of them.  By weight, for by count those of the
    rarer one of two alphabets would be rare."""
    mass = np.cumsum(np.sort(weights)[::-1], dtype=np.float64)
    place = int(np.searchsorted(mass, _USUAL_SHARE * mass[-1])) if len(mass) else 0
    return float(np.sort(weights)[-1 - place]) if len(mass) else 0.0


def _scores(grams: Mapping[int, Hashes], starts: Places, logs: npt.NDArray[np.int16]) -> Array:
    """Sum of log-probabilities (text, column of *logs*); *grams* are hashed n-grams by size."""
    nothing, width = len(logs) - 1, logs.shape[1]
    rows = logs.view(f"V{2 * width}")[:, 0]  # a row is moved as one thing
    total = np.zeros((starts[-1], width), np.int16)
    for size, hashes in grams.items():
        places = (hashes & np.uint32(nothing - 1)).astype(np.intp)
        places[crossing(starts, size)] = nothing
        total += rows.take(places, mode="clip").view(np.int16).reshape(total.shape)
    scores: Array = np.add.reduceat(total, starts[:-1], axis=0, dtype=np.int32) / np.float32(_LOG_UNITS)
    return scores.astype(np.float32, copy=False)
