"""Recognises languages: naive Bayes over character n-grams, and a test whether a text is in no known language.

A model holds the counts of the 1- to ORDER-grams of a plain text in one language.
`LanguageModels` joins the models of all languages to be told apart into one table of
log-probabilities of hashed n-grams, so one look-up scores all paragraphs of a page.
Naive Bayes names the nearest of the known languages.  The *known share* tells whether
the text is in that language at all: the share of its 4-grams (3- or 2-grams where a
letter says more) that are usual in the language, divided by the share expected in text
of the language; less where too many of its short words are not in the language's list
(known.py).  So one threshold suits small and large models.  benchmarks/language.py
compares this with the cosine of trigrams (cosine.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spiderling.text.encoding.labels import codecs_of
from spiderling.text.encoding.spelling import Spelling
from spiderling.text.language.cosine import CosineGuesses, trigrams, vectors
from spiderling.text.language.function_words import Profile
from spiderling.text.language.known import NOT_MEASURED, TextWords, WordList, expected_share, is_alone_in_script
from spiderling.text.language.sisters import Sisters, WordCounts, sisters_among
from spiderling.text.ngrams import Array, Hashes, NgramCounts, Places, crossing, hash_rows, normalised, windows

ORDER = 4
"""Characters of the longest n-grams; chosen."""
MAX_CHARS = 600
"""Characters of a text that are read; chosen: more do not change the answer."""
MIN_CHARS = 40
"""4-grams that a text with a sure language has at least; chosen."""
_TABLE_BITS = 17
"""Binary logarithm of the number of hashes with log-probabilities; chosen, as are the constants below."""
_KNOWN_BITS = 18
"""Binary logarithm of the number of hashes of usual n-grams."""
_SMOOTHING = 0.3
"""Count that every hash has at least (additive smoothing)."""
_SCALE = 500_000
"""Sum to which the counts of each model are scaled, so that smoothing weighs the same in all."""
_USUAL_SHARE = 0.8
"""Share of a text's n-grams that the usual ones make up."""
_BLOCK = 4096
"""Hashes whose logarithms are taken at once: they fit into a processor's cache."""
_LOG_UNITS = 512
"""Units of the table for one nat of log-probability; the table holds 16-bit integers."""
_LANES = 8
"""16-bit integers that every processor adds at once; with 16 the table is larger and no faster."""
_MOST = (1 << 15) // ORDER - 1
"""Largest number in the table, so that a sum over ORDER sizes of n-grams does not overflow 16 bits."""
_SYLLABLES = 150
"""Letters above which a language writes syllables."""
_IDEOGRAPHS = 500
"""Letters above which a language writes ideographs."""
_MIN_MARGIN = 6.0
"""Natural logarithm of the odds against the second language at which the first is sure."""
_COUNT_BITS = 12
"""Bits of a count of one text's n-grams, of which there are fewer than 2 * MAX_CHARS + 3."""
_COUNTS = 64 // _COUNT_BITS
"""Languages whose counts one 64-bit addition increases."""
_ALL = slice(None)
_SHIFTS = (np.arange(_COUNTS) * _COUNT_BITS).astype(np.uint64)
_SPREAD = (
    (np.arange(1 << _COUNTS, dtype=np.uint64)[:, None] >> np.arange(_COUNTS, dtype=np.uint64) & 1) << _SHIFTS
).sum(1)
"""For each set of _COUNTS languages, as bits: the number to add to increase their counts by one."""


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """The model of one language, counted in text by people who write it."""

    code: str
    ngrams: NgramCounts
    words: Mapping[str, int]
    profile: Profile
    stoplist: frozenset[str] = frozenset()
    spaced: bool = True
    """Whether words are written between spaces."""
    encodings: tuple[str, ...] = ()
    known: float = 1.0
    """Share of usual n-grams in held-out text of the language."""
    unlisted: float = NOT_MEASURED
    """Share of words that `words` lacks among the short words of held-out text."""
    tokens: int = 0
    """Number of words in the text, those not in `words` included."""
    contrast: frozenset[str] = frozenset()
    """Words, or characters where words are not spaced, that a sister language lacks (sisters.py)."""

    @property
    def known_size(self) -> int:
        """Characters of the n-grams of the known share: fewer where a letter says more."""
        letters = self.ngrams.letters
        return 2 if letters > _IDEOGRAPHS else 3 if letters > _SYLLABLES or not self.spaced else ORDER


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses at the languages of some texts, as arrays."""

    codes: tuple[str, ...]
    scores: Array
    """Log-probability (text, language), less its mean over the languages."""
    hits: Array
    """Number of usual n-grams / their expected share (text, language)."""
    sizes: Array
    """Number of 4-grams (text)."""
    words: TextWords

    def nearest(self, rows: list[int] | slice = _ALL) -> str | None:
        """The nearest language of the texts *rows*, taken as one; None without letters."""
        if not self.codes or not self.sizes[rows].sum():
            return None
        return self.codes[int(self.scores[rows].sum(0).argmax())]

    def known_share(self, code: str, rows: list[int] | slice = _ALL) -> float:
        """Known share of the texts *rows*, taken as one, in the language *code*; at most 1."""
        hits = self.hits[rows, self.codes.index(code)].sum()
        return min(1.0, float(hits / max(1.0, self.sizes[rows].sum()))) * self.words.likeness(code, rows)

    def sure(self) -> list[str | None]:
        """The nearest language of each text; None when it is too short, or too near to a second language."""
        if not self.codes:
            return [None] * len(self.sizes)
        best = self.scores.argmax(1)
        enough = self.sizes >= MIN_CHARS
        if len(self.codes) > 1:
            second, first = np.partition(self.scores, -2, axis=1)[:, -2:].T
            enough &= (first - second) / ORDER >= _MIN_MARGIN  # overlapping n-grams count each letter ORDER times
        return [self.codes[i] if yes else None for i, yes in zip(best.tolist(), enough.tolist(), strict=True)]

    def known_shares(self, codes: Sequence[str], rows: Sequence[int]) -> list[float]:
        """The known share of each of the texts *rows* in its language, which *codes* names."""
        columns = [self.codes.index(code) for code in codes]
        shares = np.minimum(1, self.hits[rows, columns] / np.maximum(1, self.sizes[rows]))
        return list((shares * self.words.likenesses(codes, rows)).tolist())

    def candidates(self, min_share: float) -> tuple[str, ...]:
        """The languages that the texts, taken as one, may be in, nearest first.

        Empty for too little text, or when the known share in the nearest language is below *min_share*.
        """
        nearest = self.nearest()
        if nearest is None or self.sizes.sum() < MIN_CHARS or self.known_share(nearest) < min_share:
            return ()
        totals = self.scores.sum(0)
        order = np.argsort(-totals, kind="stable").tolist()
        return tuple(self.codes[i] for i in order if totals[order[0]] - totals[i] < _MIN_MARGIN * ORDER)

    @classmethod
    def joined(cls, parts: Sequence[Guesses]) -> Guesses:
        """The guesses at all texts of *parts*, of which there is at least one."""
        scores = np.concatenate([part.scores for part in parts])
        hits = np.concatenate([part.hits for part in parts])
        sizes = np.concatenate([part.sizes for part in parts])
        return cls(parts[0].codes, scores, hits, sizes, TextWords.joined([part.words for part in parts]))

    def leaning(self, code: str | None, weight: float) -> Guesses:
        """These guesses with *weight*, a natural logarithm of odds, in favour of *code* in each text."""
        if code not in self.codes:
            return self
        scores = self.scores.copy()
        scores[:, self.codes.index(code)] += weight * ORDER * (self.sizes > 0)
        return replace(self, scores=scores)


@dataclass(frozen=True)
class LanguageModels:
    """The models of the languages that are told apart."""

    models: tuple[LanguageModel, ...]

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The languages' codes, in the order of `models`."""
        return tuple(model.code for model in self.models)

    def __getitem__(self, code: str) -> LanguageModel:
        return self.models[self.codes.index(code)]

    def encodings(self, codes: Sequence[str]) -> tuple[str, ...]:
        """Labels of the legacy encodings of the languages *codes*, each once."""
        return tuple(dict.fromkeys(name for code in codes for name in self[code].encodings))

    @cached_property
    def spelling(self) -> Spelling | None:
        """The spelling of the languages, which tells a page's encoding; None without languages."""
        known = [(model.ngrams, codecs_of(model.encodings)) for model in self.models if len(model.ngrams)]
        return Spelling(known) if known else None

    @cached_property
    def _vectors(self) -> Array:
        return vectors([model.ngrams for model in self.models])

    def warm_up(self) -> None:
        """Build the tables before the first text comes."""
        self.identify(["a"])

    @cached_property
    def _logs(self) -> npt.NDArray[np.int16]:
        """Centred log-probabilities (hash, language) in units of 1 / _LOG_UNITS nat; the last row is zero.

        Zero columns fill each row up to a multiple of _LANES.  16 bits are looked up twice as fast as 32.
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
        for start in range(0, logs.shape[1], _BLOCK):  # the table is far larger than any cache
            block = np.log(logs[:, start : start + _BLOCK])  # all languages have the same sum
            rounded = np.rint((block - block.mean(0)) * _LOG_UNITS).clip(-_MOST, _MOST)
            centred[start : start + _BLOCK, : len(logs)] = rounded.T
        return centred

    @cached_property
    def _usual(self) -> tuple[_Usual, ...]:
        """The usual n-grams of each size that known shares need."""
        sizes = sorted({model.known_size for model in self.models})
        return tuple(_Usual.of(size, self.models) for size in sizes)

    @cached_property
    def _expected(self) -> Array:
        """Share of usual n-grams in text of each language."""
        shares = [expected_share(each.code, each.known, each.ngrams, each.known_size) for each in self.models]
        return np.array(shares, np.float32)

    def usual_share(self, code: str, texts: Sequence[str]) -> float:
        """Share of n-grams that are usual in the language *code* among those of the *texts*, taken as one."""
        guesses, column = self.identify(texts), self.codes.index(code)
        return float(self._expected[column] * guesses.hits[:, column].sum() / max(1.0, guesses.sizes.sum()))

    @cached_property
    def _word_lists(self) -> dict[str, WordList | None]:
        return {}

    def _word_list(self, code: str) -> WordList | None:
        if code not in self._word_lists:
            model = self[code]
            alone = not model.spaced or is_alone_in_script(model.ngrams)
            self._word_lists[code] = None if alone else WordList.of(code, model.words, model.unlisted)
        return self._word_lists[code]

    @cached_property
    def _sisters(self) -> tuple[tuple[Sisters, ...], Places]:
        """The families of sisters, and the family of each language, by its index; -1: none."""
        spaced = {
            model.code: WordCounts(model.words, model.tokens, model.contrast)
            for model in self.models
            if model.spaced and model.words
        }
        unspaced = {model.code: WordCounts({}, 0, model.contrast) for model in self.models if not model.spaced}
        families = sisters_among(self.codes, spaced, unspaced)
        family_of = np.full(len(self.models), -1)
        for index, family in enumerate(families):
            family_of[family.columns] = index
        return families, family_of

    def _tell_sisters(self, scores: Array, chars: Hashes, starts: Places) -> None:
        """Add to *scores* what words say where the nearest language has sisters; *chars*, *starts*: `normalised`."""
        families, family_of = self._sisters
        found = family_of[scores.argmax(1)]
        sizes = np.diff(starts)
        for index in set(found.tolist()) - {-1}:
            family = families[index]
            rows = np.flatnonzero(found == index)
            rows = rows[family.in_doubt(scores[rows[:, None], family.columns] / ORDER, sizes[rows])]
            if len(rows):
                mine = np.zeros(len(sizes), np.bool_)
                mine[rows] = True
                evidence = family.evidence(chars[np.repeat(mine, sizes)], sizes[rows])
                scores[rows[:, None], family.columns] += ORDER * evidence

    def compare(self, texts: Sequence[str]) -> CosineGuesses:
        """Guess by the cosine of trigrams, from the first MAX_CHARS characters of each text."""
        return CosineGuesses(self.codes, self._vectors, [trigrams(text[:MAX_CHARS]) for text in texts], MIN_CHARS)

    def identify(self, texts: Sequence[str]) -> Guesses:
        """Guess by naive Bayes, from the first MAX_CHARS characters of each text, all in one pass."""
        if not self.models or not texts:
            empty = np.zeros((len(texts), len(self.models)), np.float32)
            nothing = TextWords(np.zeros(0, np.uint32), np.zeros(len(texts) + 1, np.intp), self._word_list)
            return Guesses(self.codes, empty, empty, np.zeros(len(texts), np.float32), nothing)
        chars, starts = normalised([text[:MAX_CHARS] for text in texts])
        sizes = _sizes(starts, ORDER)
        hits = np.zeros((len(texts), len(self.models)), np.float32)
        grams = windows(chars, ORDER)
        for usual in self._usual:
            hits[:, usual.columns] = usual.shares(grams[usual.size], starts) * sizes[:, None]
        scores = _scores(grams, starts, self._logs)[:, : len(self.models)]
        self._tell_sisters(scores, chars, starts)
        return Guesses(self.codes, scores, hits / self._expected, sizes, TextWords(chars, starts, self._word_list))


@dataclass(frozen=True, slots=True)
class _Usual:
    """The usual n-grams of one size, in the languages whose known shares use that size."""

    size: int
    columns: npt.NDArray[np.intp]
    """Places of these languages in `LanguageModels.models`."""
    table: npt.NDArray[np.uint8]
    """(hash, group of _COUNTS languages): a bit for each language of the group."""

    @classmethod
    def of(cls, size: int, models: Sequence[LanguageModel]) -> _Usual:
        """The usual n-grams of *size* in those *models* that need this size."""
        columns = [column for column, model in enumerate(models) if model.known_size == size]
        table = np.zeros((1 << _KNOWN_BITS, -(-len(columns) // _COUNTS)), np.uint8)
        for index, column in enumerate(columns):
            group, place = divmod(index, _COUNTS)
            ngrams = models[column].ngrams
            if size in ngrams.sizes:
                weights = ngrams.weights()[size]
                usual = ngrams.sizes[size][0][weights >= _least_usual(weights)]
                table[hash_rows(usual, size) & np.uint32(len(table) - 1), group] |= np.uint8(1 << place)
        return cls(size, np.array(columns, np.intp), table)

    def shares(self, grams: Hashes, starts: Places) -> Array:
        """Share of usual n-grams (text, language) among the hashed n-grams *grams*."""
        number, width = self.table.shape
        rows = self.table.view(f"V{width}")[:, 0].take(grams & np.uint32(number - 1), mode="clip")
        bits = rows.view(np.uint8).reshape(-1, width)
        bits[crossing(starts, self.size)] = 0
        sums = np.add.reduceat(_SPREAD.take(bits, mode="clip"), starts[:-1], axis=0)
        counts = sums[:, :, None] >> _SHIFTS & np.uint64((1 << _COUNT_BITS) - 1)
        known: Array = counts.reshape(len(sums), -1)[:, : len(self.columns)].astype(np.float32)
        known /= np.maximum(1, _sizes(starts, self.size))[:, None]
        return known


def _sizes(starts: Places, size: int) -> Array:
    """Number of n-grams of *size* in each text."""
    found: Array = np.maximum(0, np.diff(starts) - (size - 1)).astype(np.float32)
    return found


def _least_usual(weights: Array) -> float:
    """The least weight of a usual n-gram: those make up _USUAL_SHARE of a text.

    Rarer n-grams (names, foreign words) tell little, and a longer training text has more of them.  By counts instead of
    weights, all n-grams in the rarer of two alphabets would be rare.
    """
    falling = np.sort(weights)[::-1]
    mass = np.cumsum(falling, dtype=np.float64)
    return float(falling[np.searchsorted(mass, _USUAL_SHARE * mass[-1])]) if len(mass) else 0.0


def _scores(grams: Mapping[int, Hashes], starts: Places, logs: npt.NDArray[np.int16]) -> Array:
    """Sum of log-probabilities (text, column of *logs*); *grams*: size -> hashed n-grams."""
    nothing = len(logs) - 1
    width = logs.shape[1]
    rows = logs.view(f"V{2 * width}")[:, 0]  # each row as one value, which is copied as a whole
    total = np.zeros((starts[-1], width), np.int16)
    for size, hashes in grams.items():
        places = (hashes & np.uint32(nothing - 1)).astype(np.intp)
        places[crossing(starts, size)] = nothing
        total += rows.take(places, mode="clip").view(np.int16).reshape(total.shape)
    scores: Array = np.add.reduceat(total, starts[:-1], axis=0, dtype=np.int32) / np.float32(_LOG_UNITS)
    return scores.astype(np.float32, copy=False)
