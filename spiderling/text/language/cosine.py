"""Recognises languages by the cosine of vectors of character trigrams, as in the SpiderLing papers (Pomikálek &
Suchomel 2011, Suchomel & Pomikálek 2012, Suchomel 2017).

A document is in the language with the largest cosine if that is at least 0.5; a single
paragraph seldom reaches that.  Trigrams are hashed and of lower-case letters, as in models.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spiderling.text.ngrams import Array, Hashes, NgramCounts, codepoints, hash_rows, normalise, windows

_BITS = 16
"""Binary logarithm of a vector's length; chosen."""
_MASK = np.uint32((1 << _BITS) - 1)
_SIZE = 3
_TIE = 1.05
"""A language is a candidate, too, if its cosine times this factor reaches the best cosine, as in TextCat."""


@dataclass(frozen=True, slots=True)
class CosineGuesses:
    """Guesses at the languages of some texts, with the methods of `spiderling.text.language.guesses.Guesses`."""

    codes: tuple[str, ...]
    vectors: Array
    """(trigram, language), of unit length for each language."""
    texts: Sequence[Hashes]
    """The hashed trigrams of each text."""
    min_chars: int

    def _cosines(self, rows: Sequence[int] | None) -> Array:
        """The cosine between the texts *rows*, taken as one, and each language; None: all texts."""
        trigrams = self.texts if rows is None else [self.texts[row] for row in rows]
        counts = np.bincount(np.concatenate([np.zeros(0, np.uint32), *trigrams]), minlength=1 << _BITS)
        norm = max(1.0, float(np.linalg.norm(counts)))
        used = np.flatnonzero(counts)
        unit = counts[used].astype(np.float32) / np.float32(norm)
        return (unit @ self.vectors[used]).astype(np.float32, copy=False)

    def nearest(self, rows: Sequence[int] | None = None) -> str | None:
        """The language with the largest cosine; None without letters."""
        cosines = self._cosines(rows)
        return self.codes[int(cosines.argmax())] if len(cosines) and cosines.max() > 0 else None

    def known_share(self, code: str, rows: Sequence[int] | None = None) -> float:
        """The cosine between the texts *rows*, taken as one, and the language *code*."""
        return min(1.0, float(self._cosines(rows)[self.codes.index(code)]))

    def known_shares(self, codes: Sequence[str], rows: Sequence[int]) -> list[float]:
        """The cosine between each of the texts *rows* and its language, which *codes* names."""
        return [self.known_share(code, [row]) for code, row in zip(codes, rows, strict=True)]

    def candidates(self, min_share: float) -> tuple[str, ...]:
        """The languages that the texts together may be in, nearest first; none when no cosine reaches *min_share*."""
        cosines = self._cosines(None)
        order = np.argsort(-cosines, kind="stable").tolist()
        least = max(min_share, float(cosines[order[0]]) / _TIE) if order else 0.0
        return tuple(self.codes[index] for index in order if cosines[index] >= least)

    def sure(self) -> list[str | None]:
        """The nearest language of each text; None when it is too short."""
        long = [len(trigrams) >= self.min_chars for trigrams in self.texts]
        return [self.nearest([row]) if enough else None for row, enough in enumerate(long)]

    def leaning(self, code: str | None, weight: float) -> CosineGuesses:
        """These guesses unchanged: the papers' rule takes no other evidence."""
        return self


def vectors(languages: Sequence[NgramCounts]) -> Array:
    """Unit vectors (trigram, language) of the trigram counts of *languages*."""
    table = np.zeros((1 << _BITS, len(languages)), np.float32)
    for column, ngrams in enumerate(languages):
        if _SIZE in ngrams.sizes:
            grams, numbers = ngrams.sizes[_SIZE]
            np.add.at(table[:, column], hash_rows(grams, _SIZE) & _MASK, numbers.astype(np.float32))
    table /= np.maximum(np.linalg.norm(table, axis=0), 1)
    return table


def trigrams(text: str) -> Hashes:
    """Hashed trigrams of a text."""
    hashes: Hashes = windows(codepoints(normalise(text)), _SIZE)[_SIZE][: 1 - _SIZE] & _MASK
    return hashes
