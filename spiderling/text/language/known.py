"""Whether a text is in a known language at all, or only in a relative of it: what its n-grams and short words say.

By n-grams alone, Scots is English: relatives share most of them, but fewer of the short words, most of which are
function words.  A text of the language has few short words that the model's list lacks.  If a text has more of them
than expected, its known share falls in proportion.  Words with a capital letter do not count: most unlisted ones are
names and titles, and a relative's function words are seldom capitalised.

What is expected depends on the script.  A language that is alone in its script is mistaken for no other, but its words
are often long, and each text has others.  Chinese characters count as such a script, since only Chinese languages and
Japanese have them.  Where most writers leave out the tone marks, words count without them, and
few n-grams suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spiderling.text.language.words import Keys, TextWords, keys_of
from spiderling.text.ngrams import Array, NgramCounts, Places, are_capital

NOT_MEASURED = 1.0
"""Share of unlisted words of a model whose word list tells nothing."""
_SHORT_SHARE = 0.7
"""Share of a text that its short words make up; chosen on texts of half of the languages without a model, as are the
constants below."""
_ELSEWHERE = 0.8
"""Usual n-grams in texts of other sources, as a share of those in held-out text of the model's sources."""
_ALONE = 0.57
"""The same for a language that is alone in its script."""
_FEW_NGRAMS = 13_000
"""A model with fewer n-grams knows fewer of those in other texts, in proportion to this power of its number:"""
_FEW_EXPONENT = 0.15
_UNLISTED_ELSEWHERE = 1.25
"""Unlisted short words in texts of other sources, in units of those in held-out text of the model's sources."""
_TERMS = 0.16
"""Share of short words that are terms and names without capitals, which no list holds (benchmarks/results.md)."""
_DOUBT = 10
"""Words as expected that are added to each text, so that a few words alone do not decide."""
_ALONE_IN_SCRIPT = np.array(
    [
        (0x0370, 0x0400),  # Greek
        (0x0530, 0x0590),  # Armenian
        (0x0590, 0x0600),  # Hebrew
        (0x0780, 0x07C0),  # Thaana
        (0x0A00, 0x0E00),  # Gurmukhi, Gujarati, Odia, Tamil, Telugu, Kannada, Malayalam, Sinhala
        (0x0E00, 0x0F00),  # Thai, Lao
        (0x1000, 0x10A0),  # Burmese
        (0x10A0, 0x1100),  # Georgian
        (0x1780, 0x1800),  # Khmer
        (0x3040, 0x3100),  # kana
        (0x4E00, 0xA000),  # Chinese characters
        (0xAC00, 0xD7B0),  # Hangul
    ]
)
"""First code points of scripts in which nearly all text is in one language, and of what follows (Unicode,
Blocks.txt)."""
_WITHOUT_TONES = frozenset({"yo"})
"""Languages whose tone marks most writers leave out."""
_WITH_TONES = 0.15
"""Usual n-grams in text of these languages with all tone marks, in the unit of _ELSEWHERE."""
_SPACE = 32
_Numbers = Any
"""A number, or an array of them."""


def expected_share(code: str, known: float, ngrams: NgramCounts, size: int) -> float:
    """Share of the usual n-grams of *size* that text of the language has; *known*: that in held-out text."""
    if code in _WITHOUT_TONES:
        return known * _WITH_TONES
    if is_alone_in_script(ngrams):
        return known * _ALONE
    number = len(ngrams.sizes[size][1]) if size in ngrams.sizes else 0
    return float(known * _ELSEWHERE * min(1.0, number / _FEW_NGRAMS) ** _FEW_EXPONENT)


def is_alone_in_script(ngrams: NgramCounts) -> bool:
    """Whether most letters are of a script in which nearly all text is in one language."""
    if 1 not in ngrams.sizes:
        return False
    letters, counts = ngrams.sizes[1]
    weights = counts * (letters[:, 0] != _SPACE)
    inside = np.searchsorted(_ALONE_IN_SCRIPT[:, 0], letters[:, 0], "right") - 1
    alone = letters[:, 0] < _ALONE_IN_SCRIPT[inside, 1]
    alone &= inside >= 0
    return bool(2 * weights[alone].sum(dtype=np.uint64) > weights.sum(dtype=np.uint64))


def short_chars(words: Mapping[str, int]) -> int:
    """Letters of the longest short words, by a list: word -> count."""
    mass = np.cumsum(np.bincount(list(map(len, words)), list(words.values())))
    return int(np.searchsorted(mass, _SHORT_SHARE * mass[-1]))


@dataclass(frozen=True, slots=True)
class WordList:
    """The words of a language, as far as they tell whether a text is in it."""

    keys: Keys
    """Sorted."""
    max_chars: int
    """Letters of the longest short words."""
    unlisted: float
    """Share of unlisted ones expected among the short words of a text."""
    without_tones: bool

    @classmethod
    def of(cls, code: str, words: Mapping[str, int], unlisted: float) -> WordList | None:
        """None when the *words* tell nothing; *unlisted*: share of unlisted short words in held-out text."""
        if not words or unlisted >= NOT_MEASURED:
            return None
        without_tones = code in _WITHOUT_TONES
        keys = keys_of(words, without_tones)
        expected = min(1.0, _UNLISTED_ELSEWHERE * unlisted + _TERMS)
        return cls(np.sort(keys), short_chars(words), expected, without_tones)


ShortWords = Callable[[TextWords, WordList], tuple[Places, Places]]
"""Type of `short_words`."""


def short_words(words: TextWords, listed: WordList) -> tuple[Places, Places]:
    """Number of the unlisted short words in small letters, and of all of these, in each text."""
    found = words.split(listed.without_tones)
    short = (found.lengths <= listed.max_chars) & ~are_capital(found.first)
    texts, keys = found.texts[short], found.keys[short]
    places = np.searchsorted(listed.keys, keys).clip(max=len(listed.keys) - 1)
    unlisted = texts[listed.keys[places] != keys]
    size = len(words.starts) - 1
    return np.bincount(unlisted, minlength=size), np.bincount(texts, minlength=size)


@dataclass(frozen=True, slots=True)
class KnownWords:
    """Which words of some texts are in the word lists of languages."""

    words: TextWords
    list_of: Callable[[str], WordList | None]
    """The word list of a language."""
    count: ShortWords
    """`short_words`, perhaps compiled (text/steps.py)."""
    _counted: dict[str, tuple[Places, Places]] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[KnownWords]) -> KnownWords:
        """The words of all texts of *parts*, of which there is at least one."""
        return cls(TextWords.joined([part.words for part in parts]), parts[0].list_of, parts[0].count)

    def likeness(self, code: str, rows: Sequence[int] | slice) -> float:
        """How many short words the texts *rows*, taken as one, have as expected in the language *code*: 0 to 1."""
        words = self.list_of(code)
        if words is None:
            return 1.0
        unlisted, number = self._counts(code, words)
        return float(_likeness(words.unlisted, unlisted[rows].sum(), number[rows].sum()))

    def likenesses(self, codes: Sequence[str], rows: Sequence[int]) -> Array:
        """The same for each of the texts *rows* and its language, which *codes* names."""
        found = np.ones(len(rows), np.float32)
        for code, words in ((code, self.list_of(code)) for code in set(codes)):
            if words is not None:
                places = [place for place, each in enumerate(codes) if each == code]
                mine = [rows[place] for place in places]
                unlisted, number = self._counts(code, words)
                found[places] = _likeness(words.unlisted, unlisted[mine], number[mine])
        return found

    def _counts(self, code: str, listed: WordList) -> tuple[Places, Places]:
        """`short_words` of each text, which are counted once."""
        if code not in self._counted:
            self._counted[code] = self.count(self.words, listed)
        return self._counted[code]


def _likeness(expected: _Numbers, unlisted: _Numbers, number: _Numbers) -> _Numbers:
    found = (unlisted + _DOUBT * expected) / (number + _DOUBT)
    return expected / np.maximum(found, expected)
