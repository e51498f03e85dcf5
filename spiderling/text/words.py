"""What the words of a text tell about its language, as 64-bit hashes that are looked up all at once.

Sisters share most n-grams, so that a few topics weigh more than *ikke* against *ikkje*.  If the nearest language of a
text is one of several sisters, each of the text's words adds to these its log-probability, less the mean over them.
The probabilities are those of the models' word lists.  A word of a model's contrast list, which people made of words
that not all sisters use, says more.  Chinese and Cantonese, without spaces, have only lists of characters.

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

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import ORDER, Array, Hashes, Keys, NgramCounts, Places, are_capital, codepoints, run_hashes
from spiderling.text.quality import Profile

_BASE = 0x9E3779B97F4A7C15  # of the polynomial that is a word's key
_SPACE = 32
_TONE_MARKS = dict.fromkeys(map(ord, "\u0300\u0301\u0302\u0304\u030c"))
_TONED = 0x1F00  # code point behind the letters that may have tone marks (Unicode, Latin Extended Additional)


class Words(NamedTuple):
    """The words of some texts."""

    texts: Places  # the text of each word
    first: Hashes  # its first letter, as it is written
    lengths: Places  # its number of letters
    keys: Keys


@dataclass(frozen=True, slots=True)
class TextWords:
    """Some texts, and their words when these are asked for."""

    chars: Hashes
    starts: Places
    written: Hashes
    """As from `normalised`."""
    _split: dict[bool, Words] = field(default_factory=dict)

    def split(self, without_tones: bool = False) -> Words:
        """The words."""
        if without_tones not in self._split:
            chars, starts, written = self.chars, self.starts, self.written
            if without_tones:
                chars, kept = _toneless(chars)
                starts, written = np.concatenate(([0], np.cumsum(kept)))[starts], written[kept]
            begins, lengths, keys = _words(chars)
            texts = np.searchsorted(starts, begins, "right") - 1
            self._split[without_tones] = Words(texts, written[begins], lengths, keys)
        return self._split[without_tones]

    def keys_in(self, rows: Places, spaced: bool) -> tuple[Places, Keys]:
        """Of each word in the texts *rows* its text and its key; if not *spaced*, of each character: its code point."""
        sizes = np.diff(self.starts)
        if spaced:
            texts, _, _, keys = self.split()
        else:
            texts, keys = np.repeat(np.arange(len(sizes)), sizes), self.chars.astype(np.uint64)
        asked = np.zeros(len(sizes), np.bool_)
        asked[rows] = True
        mine = asked[texts]
        return texts[mine], keys[mine]


def keys_of(words: Iterable[str], without_tones: bool = False) -> Keys:
    """The keys of *words*, none of which is empty."""
    chars = codepoints(f" {' '.join(words)} ")
    return _words(_toneless(chars)[0] if without_tones else chars)[2]


def _words(chars: Hashes) -> tuple[Places, Places, Keys]:
    """Where each word between spaces begins, its length, and its key."""
    spaces = np.flatnonzero(chars == _SPACE)
    lengths = np.diff(spaces) - 1
    long = np.flatnonzero(lengths)
    starts, lengths = spaces[long] + 1, lengths[long]
    return starts, lengths, run_hashes(chars.astype(np.uint64), starts, starts + lengths, _BASE)


def _toneless(chars: Hashes) -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """The code points *chars* without tone marks, and which of the old ones were kept."""
    table = _letters_without_tones()
    letters = np.where(chars < len(table), table.take(chars, mode="clip"), chars)
    kept = letters != 0
    return letters[kept].astype(np.uint32), kept


@lru_cache(maxsize=1)
def _letters_without_tones() -> Hashes:
    """For each code point that may have tone marks the letter without them; 0 for a mark itself."""
    found = np.arange(_TONED, dtype=np.uint32)
    for code in range(0xC0, _TONED):
        bare = unicodedata.normalize("NFC", unicodedata.normalize("NFD", chr(code)).translate(_TONE_MARKS))
        if len(bare) <= 1:
            found[code] = ord(bare) if bare else 0
    return found


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
_SMOOTHING = 4.0  # added to each count; chosen on held-out text and the Universal Declaration, as are the two below
_MORE_TOKENS = 1000  # added to the number of words of a text, so that a small list does not weigh too much
_MAX_NATS = 4.0  # most nats that a word says for or against a language
_CONTRAST = 6.0  # nats by which a word of a contrast list tells sisters that have it from others; chosen as above
_CHARACTER_CONTRAST = 20.0  # the same for a character: standard Chinese has none of those in which Cantonese is written
_DOUBT_NATS = 6.0
"""Nats between the two nearest sisters, for a text without letters, from which on words are not asked; words overruled
6 at most in the paragraphs of the Universal Declaration.  Characters are always asked."""
_DOUBT_OF_CHARACTER = 0.1  # nats that each character of the text adds to these
_PRIORS = {"hi": 1.5, "nl": 1.0, "id": 1.0, "sv": 1.0, "zu": 0.5, "bs": -0.5, "crh": -1.0}
"""Nats in favour of a sister; fitted on words and paragraphs of the Universal Declaration, so that no sister's model
gains what another loses."""
_BEHIND_LATIN = "\u0370"  # first letter that is not Latin


def _word_logs(model: LanguageModel, vocabulary: Sequence[str]) -> Array:
    """Log-probability of each word of *vocabulary*, in a text written in its alphabet."""
    listed = sum(count for word, count in model.words.items() if word < _BEHIND_LATIN)
    latin = model.tokens * listed / max(1, sum(model.words.values()))
    counts = np.fromiter(map(model.words.get, vocabulary, repeat(0)), np.float32)
    sizes = np.where(np.array(vocabulary) < _BEHIND_LATIN, latin, model.tokens - latin)
    logs: Array = np.log((counts + _SMOOTHING) / (sizes + _MORE_TOKENS)).astype(np.float32)
    return logs


@dataclass(frozen=True, slots=True)
class Sisters:
    """Some sisters that are told apart."""

    columns: Places  # their places among all languages
    keys: Keys  # the words of all, as sorted keys; where words are not written between spaces, their characters
    weights: Array  # (word, sister): log-probability less its mean; a last row of zeros stands for all other words
    priors: Array  # nats in favour of each sister
    spaced: bool  # whether words are written between spaces; else their characters are looked up

    @classmethod
    def of(cls, columns: Sequence[int], spaced: bool, every: Sequence[LanguageModel]) -> Sisters:
        """The languages that stand at *columns* of *every* model."""
        models = [every[column] for column in columns]
        lists = [set(each.contrast).union(each.words if spaced else ()) for each in models]
        vocabulary = sorted(set().union(*lists))
        words = [each if spaced else replace(each, words={}, tokens=0) for each in models]
        logs = np.stack([_word_logs(each, vocabulary) for each in words], axis=1)
        weights = (logs - logs.mean(1, keepdims=True)).clip(-_MAX_NATS, _MAX_NATS)
        has = np.array([list(map(each.contrast.__contains__, vocabulary)) for each in models], np.float32).T
        listed = has.any(1)
        contrast = _CONTRAST if spaced else _CHARACTER_CONTRAST
        weights[listed] = contrast * (has - has.mean(1, keepdims=True))[listed]
        keys = keys_of(vocabulary) if spaced else np.array(list(map(ord, vocabulary)), np.uint64)
        order = np.argsort(keys)
        rows = np.concatenate([weights[order], np.zeros((1, len(models)), np.float32)])
        priors = np.array([_PRIORS.get(each.code, 0.0) for each in models], np.float32)
        return cls(np.array(columns, np.intp), keys[order], rows.astype(np.float32), priors, spaced)

    def in_doubt(self, scores: Array, sizes: Places) -> npt.NDArray[np.bool_]:
        """In which texts words may change the nearest sister; *scores*: nats (text, sister), *sizes*: characters."""
        bounds = scores.max(1) - (_DOUBT_NATS + _DOUBT_OF_CHARACTER * sizes)
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


def families_among(models: Sequence[LanguageModel]) -> list[tuple[Sequence[int], bool]]:
    """The places of sisters among *models*, and whether these are told apart by lists of words, or of characters."""
    found: list[tuple[Sequence[int], bool]] = []
    for family, spaced in product(SISTERS, (True, False)):
        known = {model.code: place for place, model in enumerate(models) if model.spaced is spaced}
        columns = [known[code] for code in family if code in known and (models[known[code]].words or not spaced)]
        loaded = [models[column] for column in columns]
        if len(loaded) > 1 and any(model.words if spaced else model.contrast for model in loaded):
            found.append((columns, spaced))
    return found


NOT_MEASURED = 1.0  # share of unlisted words of a model whose word list tells nothing
_SYLLABLES = 150  # letters above which a language writes syllables
_IDEOGRAPHS = 500  # letters above which a language writes ideographs
_SHORT_SHARE = 0.7
"""Share of a text that its short words make up; chosen on texts of half of the languages without a model, as are the
constants below."""
_ELSEWHERE = 0.8  # usual n-grams in texts of other sources, as a share of those in held-out text of the model's sources
_ALONE = 0.57  # the same for a language that is alone in its script
_FEW_NGRAMS = 13_000
"""A model with fewer n-grams knows fewer of those in other texts, in proportion to this power of its number:"""
_FEW_EXPONENT = 0.15
_UNLISTED_ELSEWHERE = 1.25  # unlisted short words in texts of other sources, in units of those in held-out text
_TERMS = 0.16  # share of short words that are terms and small names, in no list; chosen on held-out texts
_EXPECTED_WORDS = 10  # words as expected that are added to each text, so that a few words alone do not decide
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
_WITHOUT_TONES = frozenset({"yo"})  # languages whose tone marks most writers leave out
_WITH_TONES = 0.15  # usual n-grams in text of these languages with all tone marks, in the unit of _ELSEWHERE
_Numbers = Any  # a number, or an array of them


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


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """The model of one language, counted in text by people who write it."""

    code: str
    ngrams: NgramCounts
    words: Mapping[str, int]
    profile: Profile
    stoplist: frozenset[str] = frozenset()
    spaced: bool = True  # whether words are written between spaces
    encodings: tuple[str, ...] = ()
    known: float = 1.0  # share of usual n-grams in held-out text of the language
    unlisted: float = NOT_MEASURED  # share of words that `words` lacks among the short words of held-out text
    tokens: int = 0  # number of words in the text, those not in `words` included
    contrast: frozenset[str] = frozenset()  # words (unspaced: characters) that a sister language lacks

    @property
    def known_size(self) -> int:
        """Characters of the n-grams of the known share: fewer where a letter says more."""
        letters = self.ngrams.letters
        return 2 if letters > _IDEOGRAPHS else 3 if letters > _SYLLABLES or not self.spaced else ORDER

    @property
    def expected_share(self) -> float:
        """Share of usual n-grams in text of the language."""
        if self.code in _WITHOUT_TONES:
            return self.known * _WITH_TONES
        if is_alone_in_script(self.ngrams):
            return self.known * _ALONE
        number = len(self.ngrams.sizes[self.known_size][1]) if self.known_size in self.ngrams.sizes else 0
        return float(self.known * _ELSEWHERE * min(1.0, number / _FEW_NGRAMS) ** _FEW_EXPONENT)


def short_chars(words: Mapping[str, int]) -> int:
    """Letters of the longest short words, by a list: word -> count."""
    mass = np.cumsum(np.bincount(list(map(len, words)), list(words.values())))
    return int(np.searchsorted(mass, _SHORT_SHARE * mass[-1]))


@dataclass(frozen=True, slots=True)
class WordList:
    """The words of a language, as far as they tell whether a text is in it."""

    keys: Keys  # sorted
    max_chars: int  # letters of the longest short words
    unlisted: float  # share of unlisted ones expected among the short words of a text
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

    def likeness(self, unlisted: _Numbers, short: _Numbers) -> _Numbers:
        """How well the listed words of a text, *unlisted* of *short* ones apart, are as expected: 0 to 1."""
        found = (unlisted + _EXPECTED_WORDS * self.unlisted) / (short + _EXPECTED_WORDS)
        return self.unlisted / np.maximum(found, self.unlisted)


ShortWords = Callable[[TextWords, WordList], tuple[Places, Places]]


def short_words(words: TextWords, listed: WordList) -> tuple[Places, Places]:
    """Number of the unlisted short words in small letters, and of all of these, in each text."""
    found = words.split(listed.without_tones)
    short = (found.lengths <= listed.max_chars) & ~are_capital(found.first)
    texts, keys = found.texts[short], found.keys[short]
    places = np.searchsorted(listed.keys, keys).clip(max=len(listed.keys) - 1)
    unlisted = texts[listed.keys[places] != keys]
    size = len(words.starts) - 1
    return np.bincount(unlisted, minlength=size), np.bincount(texts, minlength=size)
