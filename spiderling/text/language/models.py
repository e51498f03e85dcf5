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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spiderling.text.encoding.labels import codecs_of
from spiderling.text.encoding.spelling import Spelling
from spiderling.text.language.cosine import CosineGuesses, trigrams, vectors
from spiderling.text.language.function_words import Profile
from spiderling.text.language.guesses import MIN_CHARS, Guesses
from spiderling.text.language.known import (
    NOT_MEASURED,
    KnownWords,
    ShortWords,
    WordList,
    expected_share,
    is_alone_in_script,
    short_words,
)
from spiderling.text.language.scores import LOG_UNITS, MOST, Score, nothing, scored
from spiderling.text.language.sisters import Sisters, WordCounts, sisters_among
from spiderling.text.language.usual import TextNgrams, UsualNgrams, numbers, usual_ngrams
from spiderling.text.language.words import TextWords
from spiderling.text.ngrams import ORDER, Array, NgramCounts, Places, hash_rows

MAX_CHARS = 600
"""Characters of a text that are read; chosen: more do not change the answer."""
_TABLE_BITS = 17
"""Binary logarithm of the number of hashes with log-probabilities; chosen, as are the constants below."""
_SMOOTHING = 0.3
"""Count that every hash has at least (additive smoothing)."""
_SCALE = 500_000
"""Sum to which the counts of each model are scaled, so that smoothing weighs the same in all."""
_BLOCK = 4096
"""Hashes whose logarithms are taken at once: they fit into a processor's cache."""
_LANES = 8
"""16-bit integers that every processor adds at once; with 16 the table is larger and no faster."""
_SYLLABLES = 150
"""Letters above which a language writes syllables."""
_IDEOGRAPHS = 500
"""Letters above which a language writes ideographs."""


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

    @property
    def expected_share(self) -> float:
        """Share of usual n-grams in text of the language."""
        return expected_share(self.code, self.known, self.ngrams, self.known_size)


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
            rounded = np.rint((block - block.mean(0)) * LOG_UNITS).clip(-MOST, MOST)
            centred[start : start + _BLOCK, : len(logs)] = rounded.T
        return centred

    @cached_property
    def _usual(self) -> dict[str, UsualNgrams]:
        """The usual n-grams of each language."""
        return usual_ngrams((each.code, each.ngrams, each.known_size, each.expected_share) for each in self.models)

    def usual_share(self, code: str, texts: Sequence[str]) -> float:
        """Share of n-grams that are usual in the language *code* among those of the *texts*, taken as one."""
        guesses = self.identify(texts)
        hits = guesses.ngrams.likeness(code) * guesses.sizes
        return float(self._usual[code].expected * hits.sum() / max(1.0, guesses.sizes.sum()))

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

    def _tell_sisters(self, scores: Array, words: TextWords) -> None:
        """Add to *scores* what *words* say where the nearest language has sisters."""
        families, family_of = self._sisters
        found = family_of[scores.argmax(1)]
        sizes = words.starts[1:] - words.starts[:-1]
        for index in set(found.tolist()) - {-1}:
            family = families[index]
            rows = np.flatnonzero(found == index)
            rows = rows[family.in_doubt(scores[rows[:, None], family.columns] / ORDER, sizes[rows])]
            if len(rows):
                texts, keys = words.keys_in(rows) if family.spaced else words.characters_in(rows)
                scores[rows[:, None], family.columns] += ORDER * family.evidence(texts, keys, len(sizes))[rows]

    def compare(self, texts: Sequence[str]) -> CosineGuesses:
        """Guess by the cosine of trigrams, from the first MAX_CHARS characters of each text."""
        return CosineGuesses(self.codes, self._vectors, [trigrams(text[:MAX_CHARS]) for text in texts], MIN_CHARS)

    def identify(self, texts: Sequence[str], score: Score = scored, count: ShortWords = short_words) -> Guesses:
        """Guess by naive Bayes, from the first MAX_CHARS characters of each text, all in one pass.

        *score* and *count* may be the compiled ones (text/steps.py).
        """
        if texts and self.models:
            found = score([text[:MAX_CHARS] for text in texts], self._logs)
        else:
            found = nothing(len(texts), len(self.models))
        words = TextWords(found.chars, found.starts, found.written)
        scores = found.scores[:, : len(self.models)]
        if scores.size:
            self._tell_sisters(scores, words)
        ngrams = TextNgrams(found.grams, found.starts, self._usual.__getitem__)
        known = KnownWords(words, self._word_list, count)
        return Guesses(self.codes, scores, numbers(found.starts, ORDER), ngrams, known)
