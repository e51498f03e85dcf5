"""Solves simple substitutions of letters by what a language spells: which letter each symbol of a text stands for.

First each symbol is all letters to some degree, so that the pairs of letters are as probable as can be in the language;
the degrees are made sharper from round to round (graduated assignment, Gold and Rangarajan 1996).  Then each symbol
gets the letter, and the case, that triples of letters and whole words make the most probable, one for each symbol.
The constants are chosen, where nothing else is said.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from spiderling.text.encoding.mending import LOST
from spiderling.text.ngrams import ORDER, Array, Places, codepoints, lower_letters
from spiderling.text.words import LanguageModel

_MAX_CHARS = 20_000  # characters from which a substitution is found
BMP = 1 << 16  # characters of the Basic Multilingual Plane
_RARE = 3e-5  # share below which a character is no letter of the language
FOREIGN = -14.0  # log P of a character of another script
_SMOOTHING = 5  # n-grams that are added behind each shorter one, in proportion to those of the order below
_INITIAL = 0.85  # share of its places at which a symbol begins words, above which it may be a capital
_CAPITAL = 0.12  # share of capitals among first letters of words
_CAPITAL_INSIDE = 0.003  # the same among other letters
_TYPES = 16  # different words that judge a symbol
_LONGEST = 40  # letters of each that are looked at
_MAX_LOST = 60  # different symbols for which letters are sought where glyphs have no character
_CHOICES = 6  # letters of a symbol that words judge
_LISTED = 0.7  # share of words that are in the word list
_SURE = 2.0  # nats by which a symbol's letters must be more probable than the second choice
_OTHER_GLYPH = -1.5  # log P of a small letter that the text has from another glyph
_PRIOR = 0.5  # nats that a symbol e times too frequent for a letter, or too rare, loses for it
_SELDOM = 0.005  # share of the symbols' places below which words judge a symbol
_NEVER = -1e6  # nats for what cannot be
_TINY = 1e-30
_NOTHING = "0"  # a word that has no letters
_LIGATURES = ("ff", "fi", "fl", "ffi", "ffl", "tt", "ti", "ft", "fj", "th", "ij")  # the usual ones first
_USUAL = 3.0  # nats in favour of the first five, which many fonts have (Unicode, Alphabetic Presentation Forms)


class LetterChain:
    """The letters of a language as a Markov chain, with its usual words; letter 0 is the end of a word."""

    def __init__(self, model: LanguageModel) -> None:
        grams, counts = model.ngrams.sizes[1]
        commas = codepoints("șțȘȚ")
        cedillas = codepoints("şţŞŢ")
        usual = (counts >= _RARE * counts.sum()) & (grams[:, 0] != ord(" ")) & (grams[:, 0] < BMP)
        if np.isin(commas, grams[usual]).any():  # Romanian, where many wrote the cedillas of Turkish
            usual &= ~np.isin(grams[:, 0], cedillas)
        self.letters = np.concatenate((np.array([ord(" ")], np.uint32), grams[usual, 0]))
        """Their code points."""
        self.places = np.full(BMP, -1)  # code point -> letter; -1 for none of this language
        self.places[self.letters] = np.arange(len(self.letters))
        self.places[cedillas] = np.maximum(self.places[cedillas], self.places[commas])
        single = self._counts(model, 1)
        pairs = self._counts(model, 2)
        self._triples = self._counts(model, 3)
        self.shares = (single + 0.1) / (single + 0.1).sum()
        pair = (pairs + 4 * _SMOOTHING * self.shares) / (pairs.sum(1, keepdims=True) + 4 * _SMOOTHING)
        triple = (self._triples + _SMOOTHING * pair) / (self._triples.sum(2, keepdims=True) + _SMOOTHING)
        self.pairs, self.triples = (np.log(each).astype(np.float32) for each in (pair, triple))
        """log P of the last letter behind the others."""
        grams, counts = model.ngrams.sizes[ORDER]
        keys = self._key(self.places.take(grams.T, mode="clip"))
        order = np.argsort(keys)
        self._quadruples = keys[order], counts[order].astype(np.float32)
        self._words = {word: np.log(_LISTED * count / max(1, model.tokens)) for word, count in model.words.items()}
        self.script = script_of(chr(self.letters[1 + self.shares[1:].argmax()]))
        self.has_case = any(chr(code) != chr(code).upper() for code in self.letters.tolist())

    def _counts(self, model: LanguageModel, size: int) -> Array:
        """How often each n-gram of *size* letters occurs."""
        grams, counts = model.ngrams.sizes[size]
        places = self.places.take(grams, mode="clip")
        found = np.zeros((len(self.letters),) * size, np.float32)
        np.add.at(found, tuple(places[(places >= 0).all(1)].T), counts[(places >= 0).all(1)])
        return found

    def _key(self, four: Places) -> Places:
        """A number for each quadruple (place, quadruple), negative with letters of other languages."""
        keys: Places = len(self.letters) ** np.arange(ORDER - 1, -1, -1) @ four
        return np.where((four < 0).any(0), -1, keys)

    def log_words(self, words: Sequence[str]) -> tuple[Array, Array]:
        """log P of each of the *words*, in small letters, by triples; and what quadruples and the word list add."""
        row = self.places.take(codepoints(f" {' '.join(words)} "), mode="clip")
        ends = np.flatnonzero(row == 0)
        four = np.stack([row[place : len(row) - 3 + place] for place in range(ORDER)])
        logs, longer = np.zeros((2, len(row)), np.float32)
        logs[2:] = self.triples[row[:-2], row[1:-1], row[2:]]
        logs[ends[:-1] + 1] = self.pairs[0, row[ends[:-1] + 1]]
        logs[row < 0] = FOREIGN
        keys = self._key(four)
        found = np.minimum(np.searchsorted(self._quadruples[0], keys), len(self._quadruples[0]) - 1)
        seen = np.where(self._quadruples[0][found] == keys, self._quadruples[1][found], 0)
        seen = seen * np.exp(-logs[3:]) + _SMOOTHING
        longer[3:] = np.where(keys < 0, 0, np.log(seen / (self._triples[tuple(four[:3])] + _SMOOTHING)))
        longer[ends[:-1] + 1] = longer[ends[:-1] + 2] = 0  # before which the word has no three letters
        spelled, longer = (np.add.reduceat(each[1:], ends[:-1]) for each in (logs, longer))
        listed = np.array([self._words.get(word, -np.inf) for word in words], np.float32)
        return spelled, np.logaddexp(listed, spelled + longer + np.float32(np.log(1 - _LISTED))) - spelled


class Cipher:
    """The words of damaged texts, in which the symbols *unknown* stand for letters."""

    def __init__(self, texts: Sequence[str], chain: LetterChain, unknown: set[str]) -> None:
        self.chain = chain
        asked = codepoints("".join(char for char in unknown if ord(char) < BMP))
        codes = codepoints(" ".join(texts)[:_MAX_CHARS])
        words = np.where(np.isin(codes, asked), codes, lower_letters(codes)).tobytes().decode("utf-32-le").split()
        counted = Counter(words)
        codes = codepoints(f" {' '.join(words)} ")
        symbols, counts = np.unique(codes[np.isin(codes, asked)], return_counts=True)
        order = np.argsort(-counts, kind="stable")[: (1 + chain.has_case) * (len(chain.letters) - 1)]
        self.symbols = list(map(chr, symbols[order].tolist()))
        """The most frequent first."""
        self.words: dict[str, list[tuple[str, int]]] = {char: [] for char in self.symbols}
        """Symbol -> the first different words that hold it, with their counts."""
        for word, number in counted.items():
            for char in self.words.keys() & set(word):
                if len(self.words[char]) < _TYPES:
                    self.words[char].append((word[:_LONGEST], number))
        self.counts = counts[order].astype(np.float32)
        self.size = len(chain.letters)
        places = chain.places.copy()
        places[symbols] = -1
        places[symbols[order]] = self.size + np.arange(len(order))
        self.row = places.take(codes, mode="clip")  # letter, or size + symbol; -1 for others
        three = np.stack((self.row[:-2], self.row[1:-1], self.row[2:]))
        keys = np.array([1 << 32, 1 << 16, 1]) @ three[:, (three >= 0).all(0)]
        keys, times = np.unique(keys, return_counts=True)
        self.three = np.stack((keys >> 32, keys >> 16 & 0xFFFF, keys & 0xFFFF))  # the different triples of the row
        self.times = times.astype(np.float32)
        inside = self.row[1:][(self.row[1:] >= self.size) & (self.row[:-1] != 0)] - self.size
        self.inside = np.bincount(inside, minlength=len(order)).astype(np.float32)

    def solve(self) -> dict[str, str]:
        """Symbol -> letter, another one for each."""
        chain = self.chain
        size = self.size
        initial = self.counts - self.inside
        lower = initial * np.log(1 - _CAPITAL)
        upper = initial * np.log(_CAPITAL) + self.inside * np.log(_CAPITAL_INSIDE)
        capital = np.array([char.isupper() for char in self.symbols], np.bool_)
        if not capital[: size // 2].any():  # then each has its case still
            lower -= 3 * self.counts * capital
            upper -= 3 * self.counts * ~capital
        best = self._by_pairs()
        slots = best
        for judges_words in (False, False, True):
            gain = self._by_triples(best)
            gain[:, 0] = _NEVER
            if judges_words:
                self._add_words(gain, best)
            both = (gain + lower[:, None], gain + upper[:, None]) if chain.has_case else (gain,)
            slots = _assign(np.concatenate(both, 1))
            best = slots % size
        letters = [chr(code) for code in chain.letters[best].tolist()]
        every = zip(self.symbols, letters, (slots >= size).tolist(), strict=True)
        return {char: letter.upper() if is_capital else letter for char, letter, is_capital in every}

    def fill(self) -> dict[str, str]:
        """Symbol -> letters, or LOST if these are not sure; where most letters of the words are known."""
        found = dict.fromkeys(self.symbols, LOST)
        known = dict.fromkeys(self.symbols, _NOTHING)
        choices = [*map(chr, self.chain.letters[1:].tolist()), *_LIGATURES, ""]
        have = np.bincount(self.row[self.row >= 0], minlength=self.size)[1 : self.size]
        other = np.zeros(len(choices), np.float32)
        other[: self.size - 1] = _OTHER_GLYPH * (have > 0)
        usual = np.zeros(len(choices), np.float32)
        usual[self.size - 1 : self.size + 4] = _USUAL
        for place in [*range(len(self.symbols[:_MAX_LOST]))] * 2:
            char = self.symbols[place]
            is_small = 5 * self.inside[place] > self.counts[place]
            logs, more, weights = self._words_with(char, choices, known)
            scores = weights @ (logs + more + other * is_small) + usual
            second, first = np.argsort(scores)[-2:].tolist()
            known[char] = choices[first]
            is_capital = not is_small and first < self.size - 1 and have[first] > self.counts[place]
            is_sure = choices[first] != "" and scores[first] - scores[second] >= _SURE
            found[char] = LOST if not is_sure else choices[first].upper() if is_capital else choices[first]
        return found

    def _by_pairs(self) -> Places:
        """The letter of each symbol that is no capital, by pairs of letters; -1 for the others."""
        size = self.size
        pairs = self.chain.pairs
        small = np.flatnonzero((self.inside > (1 - _INITIAL) * self.counts) | (not self.chain.has_case))
        total = size + len(small)
        table = np.full(size + len(self.symbols) + 1, -1)  # its last entry serves letters of other languages
        table[:size] = np.arange(size)
        table[size + small] = np.arange(size, total)
        row = table[self.row]
        both = (row[:-1] >= 0) & (row[1:] >= 0)
        counts = np.bincount((row[:-1] * total + row[1:])[both], minlength=total**2)
        counts = counts.reshape(total, total).astype(np.float32)
        mine = counts.sum(1)[size:, None] + 1
        rarity = np.abs(np.log(mine / mine.sum()) - np.log(self.chain.shares))
        gain = -3 * rarity
        degrees = np.eye(total, size, dtype=np.float32)
        for sharpness in (1.0, *np.geomspace(0.5, 5, 40)):
            new = np.exp(sharpness * (gain - gain.max(1, keepdims=True)))
            new[:, 0] = 0
            for _ in range(6):
                new /= new.sum(1, keepdims=True) + _TINY
                new /= np.maximum(new.sum(0), 1)
            new /= new.sum(1, keepdims=True) + _TINY
            degrees[size:] = 0.2 * degrees[size:] + 0.8 * new
            gain = (counts[size:] @ degrees @ pairs.T + counts[:, size:].T @ degrees @ pairs) / mine - _PRIOR * rarity
        best = np.full(len(self.symbols), -1)
        best[small] = _assign(np.log(degrees[size:] + _TINY))
        return np.where(best > 0, best, -1)

    def _by_triples(self, best: Places) -> Array:
        """log P of the triples around each symbol, were it each letter (symbol, letter); the others as *best*."""
        triples = self.chain.triples
        letters = np.concatenate((np.arange(self.size), best))
        three = self.three
        gain = np.zeros((len(best), self.size), np.float32)
        for place in range(3):
            one, two = (letters[three[other]] for other in range(3) if other != place)
            used = np.flatnonzero((three[place] >= self.size) & (one >= 0) & (two >= 0))
            used = used[np.argsort(three[place, used], kind="stable")]
            one = one[used]
            two = two[used]
            symbols = three[place, used] - self.size
            logs = (triples[:, one, two].T, triples[one, :, two], triples[one, two])[place]
            begins = np.flatnonzero(np.diff(symbols, prepend=-1))
            gain[symbols[begins]] += np.add.reduceat(logs * self.times[used, None], begins)
        return gain

    def _add_words(self, gain: Array, best: Places) -> None:
        """Add to *gain* what words say of the most probable letters of each rare symbol."""
        every = self.chain.letters
        known = {char: chr(every[letter]) for char, letter in zip(self.symbols, best.tolist(), strict=True)}
        for place in np.flatnonzero(self.counts < _SELDOM * self.counts.sum()).tolist():
            choices = np.argsort(-gain[place])[:_CHOICES]
            _, more, weights = self._words_with(self.symbols[place], list(map(chr, every[choices].tolist())), known)
            gain[place, choices] += weights @ more

    def _words_with(self, symbol: str, choices: Sequence[str], known: Mapping[str, str]) -> tuple[Array, Array, Array]:
        """`log_words` of the words that hold the *symbol* (word, choice), were it each of *choices*; and their weights.

        The other symbols are as *known*.
        """
        table = str.maketrans({char: letter for char, letter in known.items() if char != symbol})
        words = [(word.translate(table), count) for word, count in self.words[symbol]]
        tried = [word.replace(symbol, choice) or _NOTHING for word, _ in words for choice in choices]
        logs, more = (each.reshape(len(words), len(choices)) for each in self.chain.log_words(tried))
        return logs, more, np.log1p(np.array([count for _, count in words], np.float32))


def _assign(gain: Array) -> Places:
    """For each row another column, so that the sum of *gain* is large; the rows that have most to lose are first.

    Requires no more rows than columns.
    """
    gain = gain.copy()
    best = np.full(len(gain), -1)
    for _ in range(len(gain)):
        second, first = np.partition(gain, -2, axis=1)[:, -2:].T
        row = np.where(best < 0, first - second, -1).argmax()
        best[row] = gain[row].argmax()
        gain[:, best[row]] = _NEVER
    return best


def script_of(char: str) -> str:
    """The script of a letter, as its name begins with it."""
    return unicodedata.name(char, "").partition(" ")[0]
