"""Tells sister languages apart by their words.

Sisters share most n-grams, so that a few topics weigh more than *ikke* against *ikkje*.  If the nearest language of a
text is one of several sisters, each of the text's words adds to these its log-probability, less the mean over them.
The probabilities are those of the models' word lists.  A word of a model's contrast list, which people made of words
that not all sisters use, says more.  Chinese and Cantonese, without spaces, have only lists of characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spiderling.text.language.words import Keys, keys_of
from spiderling.text.ngrams import Array, Places

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
    ("tr", "az", "crh"),
    ("zh", "yue"),
)
"""Languages that are taken for each other; chosen from the errors on held-out text."""
_SMOOTHING = 4.0
"""Added to each count; chosen on held-out text and the Universal Declaration, as are the two below."""
_MORE_TOKENS = 1000
"""Added to the number of words of a text, so that a small list does not weigh too much."""
_LIMIT = 4.0
"""Most nats that a word says for or against a language."""
_CONTRAST = 6.0
"""Nats by which a word of a contrast list tells the sisters that have it from the others; chosen as above."""
_CHARACTER_CONTRAST = 20.0
"""The same for a character: standard Chinese has none of those in which Cantonese is written."""
_DOUBT = 6.0
"""Nats between the two nearest sisters, for a text without letters, from which on words are not asked; words overruled
6 at most in the paragraphs of the Universal Declaration.  Characters are always asked."""
_DOUBT_OF_CHARACTER = 0.1
"""Nats that each character of the text adds to these."""
_PRIORS = {"hi": 1.5, "nl": 1.0, "id": 1.0, "sv": 1.0, "zu": 0.5, "bs": -0.5, "crh": -1.0}
"""Nats in favour of a sister; fitted on words and paragraphs of the Universal Declaration, so that no sister's model
gains what another loses."""
_BEHIND_LATIN = "\u0370"
"""First letter that is not Latin."""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The word list of a language's model."""

    words: Mapping[str, int]
    tokens: int
    """Words of the text, those not in the list included."""
    contrast: frozenset[str] = frozenset()
    """Words that a sister lacks."""

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
    """The words of all, as sorted keys; where words are not written between spaces, their characters."""
    weights: Array
    """(word, sister): log-probability less its mean; a last row of zeros stands for all other words."""
    priors: Array
    """Nats in favour of each sister."""
    spaced: bool
    """Whether words are written between spaces; else their characters are looked up."""

    @classmethod
    def of(cls, columns: Sequence[int], counts: Sequence[WordCounts], priors: Sequence[float], spaced: bool) -> Sisters:
        """The sisters in these *columns* with these word lists."""
        vocabulary = sorted({word for each in counts for word in (*each.words, *each.contrast)})
        logs = np.stack([each.logs(vocabulary) for each in counts], axis=1)
        weights = (logs - logs.mean(1, keepdims=True)).clip(-_LIMIT, _LIMIT)
        has = np.array([[word in each.contrast for each in counts] for word in vocabulary], np.float32)
        listed = has.any(1)
        contrast = _CONTRAST if spaced else _CHARACTER_CONTRAST
        weights[listed] = contrast * (has - has.mean(1, keepdims=True))[listed]
        keys = keys_of(vocabulary) if spaced else np.array(list(map(ord, vocabulary)), np.uint64)
        order = np.argsort(keys)
        rows = np.concatenate([weights[order], np.zeros((1, len(counts)), np.float32)])
        return cls(
            np.array(columns, np.intp), keys[order], rows.astype(np.float32), np.array(priors, np.float32), spaced
        )

    def in_doubt(self, scores: Array, sizes: Places) -> npt.NDArray[np.bool_]:
        """In which texts words may change the nearest sister; *scores*: nats (text, sister), *sizes*: characters."""
        bounds = scores.max(1) - (_DOUBT + _DOUBT_OF_CHARACTER * sizes)
        doubt: npt.NDArray[np.bool_] = ((scores > bounds[:, None]).sum(1) > 1) | (not self.spaced)
        return doubt

    def evidence(self, texts: Places, keys: Keys, number: int) -> Array:
        """What words say of *number* texts (text, sister): each word is in one of *texts* and has one of *keys*."""
        rows = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        rows[self.keys[rows] != keys] = len(self.keys)
        width = len(self.columns)
        places = texts[:, None] * width + np.arange(width)
        sums = np.bincount(places.ravel(), self.weights.take(rows, 0).ravel(), number * width)
        return (sums.reshape(number, width) + self.priors).astype(np.float32)


def sisters_among(
    codes: Sequence[str], spaced: Mapping[str, WordCounts], unspaced: Mapping[str, WordCounts]
) -> tuple[Sisters, ...]:
    """The sisters among the languages *codes* that are told apart, by lists (code -> list) of words, and of characters
    where words are not *spaced*."""
    found = []
    for family in SISTERS:
        for counts, is_spaced in ((spaced, True), (unspaced, False)):
            loaded = [code for code in family if code in counts]
            if len(loaded) > 1 and any(counts[code].words or counts[code].contrast for code in loaded):
                columns = [codes.index(code) for code in loaded]
                priors = [_PRIORS.get(code, 0.0) for code in loaded]
                found.append(Sisters.of(columns, [counts[code] for code in loaded], priors, is_spaced))
    return tuple(found)
