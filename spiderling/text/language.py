"""Recognises languages: naive Bayes over character n-grams, and a test whether a text is in no known language.

A model holds the counts of the 1- to ORDER-grams of a plain text in one language.
`LanguageModels` joins the models of all languages to be told apart into one table of
log-probabilities of hashed n-grams, so one look-up scores all paragraphs of a page.
Naive Bayes names the nearest of the known languages.  The *known share* tells whether
the text is in that language at all: the share of its 4-grams (3- or 2-grams where a
letter says more) that are usual in the language, divided by the share expected in text
of the language; less where too many of its short words are not in the language's list
(words.py).  So one threshold suits small and large models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.encoding.labels import codecs_of
from spiderling.text.encoding.spelling import Spelling
from spiderling.text.ngrams import (
    ORDER,
    Array,
    Hashes,
    Places,
    crossing,
    hash_rows,
    normalised,
    windows,
)
from spiderling.text.words import (
    LanguageModel,
    ShortWords,
    Sisters,
    TextWords,
    WordList,
    families_among,
    is_alone_in_script,
    short_words,
)

_USUAL_BITS = 18  # binary logarithm of the number of hashes of usual n-grams; chosen
_USUAL_SHARE = 0.8  # share of a text's n-grams that the usual ones make up; chosen


class UsualNgrams:
    """The usual n-grams of a language."""

    def __init__(self, model: LanguageModel) -> None:
        self.size = model.known_size
        """Their characters."""
        self.expected = model.expected_share
        """Share of a text's n-grams that they make up."""
        self._table = np.zeros(1 << _USUAL_BITS, np.bool_)
        """Whether a hash is that of a usual one."""
        if self.size in model.ngrams.sizes:
            weights = model.ngrams.weights()[self.size]
            usual = model.ngrams.sizes[self.size][0][weights >= _least_usual(weights)]
            self._table[hash_rows(usual, self.size) & np.uint32(len(self._table) - 1)] = True

    def share(self, grams: Hashes, starts: Places) -> Array:
        """Share of usual n-grams in each text; *grams* are hashed, *starts* as from `normalised`."""
        usual = self._table.take(grams & np.uint32(len(self._table) - 1))
        usual[crossing(starts, self.size)] = False
        shares: Array = np.add.reduceat(usual, starts[:-1], dtype=np.float32)
        shares /= np.maximum(1, numbers(starts, self.size))
        return shares


def numbers(starts: Places, size: int) -> Array:
    """Number of n-grams of *size* in each text; *starts* as from `normalised`."""
    found: Array = np.maximum(0, starts[1:] - starts[:-1] - (size - 1)).astype(np.float32)
    return found


def _least_usual(weights: Array) -> float:
    """The least weight of a usual n-gram: those make up _USUAL_SHARE of a text.

    Rarer n-grams (names, foreign words) tell little, and a longer training text has more of them.  By counts instead of
    weights, all n-grams in the rarer of two alphabets would be rare.
    """
    falling = np.sort(weights)[::-1]
    mass = np.cumsum(falling, dtype=np.float64)
    return float(falling[np.searchsorted(mass, _USUAL_SHARE * mass[-1])]) if len(mass) else 0.0


LOG_UNITS = 512  # units of the table for one nat of log-probability; the table holds 16-bit integers
MAX = (1 << 15) // ORDER - 1
"""Largest number in the table, so that a sum over ORDER sizes of n-grams does not overflow 16 bits."""


class Scored(NamedTuple):
    """Some texts as letters, with their n-grams and scores."""

    chars: Hashes
    starts: Places
    written: Hashes
    """As from `normalised`."""
    grams: Mapping[int, Hashes]  # size -> hash of the n-gram that begins at each character
    scores: Array  # sum of log-probabilities (text, column of the table)


Score = Callable[[Sequence[str], npt.NDArray[np.int16]], Scored]


def scored(texts: Sequence[str], logs: npt.NDArray[np.int16]) -> Scored:
    """The *texts*, at least one, with their scores by *logs*: (hash, column), and a last row of zeros."""
    chars, starts, written = normalised(texts)
    grams = windows(chars, ORDER)
    last = len(logs) - 1
    width = logs.shape[1]
    rows = logs.view(f"V{2 * width}")[:, 0]  # each row as one value, which is copied as a whole
    total = np.zeros((starts[-1], width), np.int16)
    for size, hashes in grams.items():
        places = (hashes & np.uint32(last - 1)).astype(np.intp)
        places[crossing(starts, size)] = last
        total += rows.take(places, mode="clip").view(np.int16).reshape(total.shape)
    sums = np.add.reduceat(total, starts[:-1], axis=0, dtype=np.int32)
    return Scored(chars, starts, written, grams, (sums / np.float32(LOG_UNITS)).astype(np.float32))


def nothing(number: int, columns: int) -> Scored:
    """*number* texts without letters, or without *columns*."""
    empty = np.zeros(0, np.uint32)
    starts = np.zeros(number + 1, np.intp)
    return Scored(empty, starts, empty, windows(empty, ORDER), np.zeros((number, columns), np.float32))


MIN_CHARS = 40  # 4-grams that a text with a sure language has at least; chosen
_MIN_MARGIN = 6.0  # natural logarithm of the odds against the second language at which the first is sure; chosen
_ALL = slice(None)
_NOBODY = np.zeros(0, np.intp)


class Evidence(NamedTuple):
    """What a language's n-grams and words say of some texts."""

    usual: Array  # share of usual n-grams in each text, in units of the share expected in the language
    listed: WordList | None  # None if its words tell nothing
    unlisted: Places  # number of short words of each text that are not listed
    short: Places  # number of its short words


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses at the languages of some texts, as arrays."""

    codes: tuple[str, ...]
    scores: Array  # log-probability (text, language), less its mean over the languages
    sizes: Array  # number of 4-grams (text)
    evidence: Callable[[str], Evidence]
    """What a language's n-grams and words say of the texts."""

    def nearest(self, rows: list[int] | slice = _ALL) -> str | None:
        """The nearest language of the texts *rows*, taken as one; None without letters."""
        if not self.codes or not self.sizes[rows].sum():
            return None
        return self.codes[int(self.scores[rows].sum(0).argmax())]

    def known_share(self, code: str, rows: list[int] | slice = _ALL) -> float:
        """Known share of the texts *rows*, taken as one, in the language *code*; at most 1."""
        usual, listed, unlisted, short = self.evidence(code)
        sizes = self.sizes[rows]
        share = min(1.0, float((usual[rows] * sizes).sum() / max(1.0, sizes.sum())))
        return share * float(listed.likeness(unlisted[rows].sum(), short[rows].sum())) if listed else share

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
        shares = np.empty(len(rows), np.float32)
        for code in set(codes):
            places = [place for place, each in enumerate(codes) if each == code]
            mine = [rows[place] for place in places]
            usual, listed, unlisted, short = self.evidence(code)
            shares[places] = np.minimum(1, usual[mine])
            if listed:
                shares[places] *= listed.likeness(unlisted[mine], short[mine]).astype(np.float32)
        return list(shares.tolist())

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

    def leaning(self, code: str | None, weight: float) -> Guesses:
        """These guesses with *weight*, a natural logarithm of odds, in favour of *code* in each text."""
        if code not in self.codes:
            return self
        scores = self.scores.copy()
        scores[:, self.codes.index(code)] += weight * ORDER * (self.sizes > 0)
        return replace(self, scores=scores)


MAX_CHARS = 600  # characters of a text that are read; chosen: more do not change the answer
_TABLE_BITS = 17  # binary logarithm of the number of hashes with log-probabilities; chosen, as are the constants below
_SMOOTHING = 0.3  # count that every hash has at least (additive smoothing)
_SCALE = 500_000  # sum to which the counts of each model are scaled, so that smoothing weighs the same in all
_BLOCK = 512  # hashes whose logarithms are taken at once; chosen: in 130 languages they fit into a core's own cache
_LANES = 8  # 16-bit integers that every processor adds at once; with 16 the table is larger and no faster


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

    def warm_up(self) -> None:
        """Build the tables before the first text comes."""
        self.identify(["a"])

    @cached_property
    def _logs(self) -> npt.NDArray[np.int16]:
        """Centred log-probabilities (hash, language) in units of 1 / LOG_UNITS nat; the last row is zero.

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
            rounded = np.rint((block - block.mean(0)) * LOG_UNITS).clip(-MAX, MAX)
            centred[start : start + _BLOCK, : len(logs)] = rounded.astype(np.int16).T  # before it is turned: faster
        return centred

    @cached_property
    def _usual(self) -> Callable[[str], UsualNgrams]:
        """The usual n-grams of a language; most are never asked for."""
        return cache(lambda code: UsualNgrams(self[code]))

    def usual_share(self, code: str, texts: Sequence[str]) -> float:
        """Share of n-grams that are usual in the language *code* among those of the *texts*, taken as one."""
        guesses = self.identify(texts)
        hits = guesses.evidence(code).usual * guesses.sizes
        return float(self._usual(code).expected * hits.sum() / max(1.0, guesses.sizes.sum()))

    @cached_property
    def _word_list(self) -> Callable[[str], WordList | None]:
        """The word list of a language that others are mistaken for; None if it tells nothing."""

        @cache
        def word_list(code: str) -> WordList | None:
            model = self[code]
            alone = not model.spaced or is_alone_in_script(model.ngrams)
            return None if alone else WordList.of(code, model.words, model.unlisted)

        return word_list

    @cached_property
    def _sisters(self) -> tuple[Callable[[int], Sisters], Places]:
        """The sisters of a family, by its index, most of which are never asked for; each language's family, or -1."""
        families = families_among(self.models)
        family_of = np.full(len(self.models), -1)
        for index, (columns, _) in enumerate(families):
            family_of[columns] = index
        return cache(lambda index: Sisters.of(*families[index], self.models)), family_of

    def _tell_sisters(self, scores: Array, words: TextWords) -> None:
        """Add to *scores* what *words* say where the nearest language has sisters."""
        family_at, family_of = self._sisters
        found = family_of[scores.argmax(1)]
        sizes = words.starts[1:] - words.starts[:-1]
        for index in set(found.tolist()) - {-1}:
            family = family_at(index)
            rows = np.flatnonzero(found == index)
            nats = scores[rows[:, None], family.columns] / np.float32(ORDER)
            rows = rows[family.in_doubt(nats, sizes[rows])]
            if len(rows):
                texts, keys = words.keys_in(rows, family.spaced)
                scores[rows[:, None], family.columns] += ORDER * family.evidence(texts, keys, len(sizes))[rows]

    def identify(self, texts: Sequence[str], score: Score = scored, count: ShortWords = short_words) -> Guesses:
        """Guess by naive Bayes, from the first MAX_CHARS characters of each text, all in one pass."""
        if texts and self.models:
            found = score([text[:MAX_CHARS] for text in texts], self._logs)
        else:
            found = nothing(len(texts), len(self.models))
        words = TextWords(found.chars, found.starts, found.written)
        scores = found.scores[:, : len(self.models)]
        if scores.size:
            self._tell_sisters(scores, words)

        @cache
        def evidence(code: str) -> Evidence:
            usual = self._usual(code)
            shares = usual.share(found.grams[usual.size], found.starts) / np.float32(usual.expected)
            listed = self._word_list(code)
            unlisted, short = count(words, listed) if listed else (_NOBODY, _NOBODY)
            return Evidence(shares, listed, unlisted, short)

        return Guesses(self.codes, scores, numbers(found.starts, ORDER), evidence)
