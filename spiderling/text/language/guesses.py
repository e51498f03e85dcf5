"""Guesses at the languages of texts: which is the nearest, whether that is sure, whether it is known at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spiderling.text.language.known import KnownWords
from spiderling.text.language.usual import TextNgrams
from spiderling.text.ngrams import ORDER, Array

MIN_CHARS = 40
"""4-grams that a text with a sure language has at least; chosen."""
_MIN_MARGIN = 6.0
"""Natural logarithm of the odds against the second language at which the first is sure; chosen."""
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses at the languages of some texts, as arrays."""

    codes: tuple[str, ...]
    scores: Array
    """Log-probability (text, language), less its mean over the languages."""
    sizes: Array
    """Number of 4-grams (text)."""
    ngrams: TextNgrams
    words: KnownWords

    def nearest(self, rows: list[int] | slice = _ALL) -> str | None:
        """The nearest language of the texts *rows*, taken as one; None without letters."""
        if not self.codes or not self.sizes[rows].sum():
            return None
        return self.codes[int(self.scores[rows].sum(0).argmax())]

    def known_share(self, code: str, rows: list[int] | slice = _ALL) -> float:
        """Known share of the texts *rows*, taken as one, in the language *code*; at most 1."""
        sizes = self.sizes[rows]
        share = float((self.ngrams.likeness(code)[rows] * sizes).sum() / max(1.0, sizes.sum()))
        return min(1.0, share) * self.words.likeness(code, rows)

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
            shares[places] = self.ngrams.likeness(code)[[rows[place] for place in places]]
        return list((np.minimum(1, shares) * self.words.likenesses(codes, rows)).tolist())

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
        sizes = np.concatenate([part.sizes for part in parts])
        ngrams = TextNgrams.joined([part.ngrams for part in parts])
        return cls(parts[0].codes, scores, sizes, ngrams, KnownWords.joined([part.words for part in parts]))

    def leaning(self, code: str | None, weight: float) -> Guesses:
        """These guesses with *weight*, a natural logarithm of odds, in favour of *code* in each text."""
        if code not in self.codes:
            return self
        scores = self.scores.copy()
        scores[:, self.codes.index(code)] += weight * ORDER * (self.sizes > 0)
        return replace(self, scores=scores)
