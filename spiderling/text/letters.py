"""Mends documents whose fonts have wrong characters for their letters, or none, by what the language spells.

A PDF draws glyphs, and a table of each font says which characters they are.  Where that table is damaged

- some glyphs have no character (*lost*); pdf.py gives each of them a letter of SYMBOLS;
- all characters are the same number of places off (*shifted*);
- the letters are exchanged (*permuted*).

A shift is found by trying.  The others are simple substitution ciphers, with few unknown symbols or with many.  First
each symbol is all letters to some degree, so that the pairs of letters are as probable as can be in the language; the
degrees are made sharper from round to round (graduated assignment, Gold and Rangarajan 1996).  Then each symbol gets
the letter, and the case, that triples of letters and whole words make the most probable, one for each symbol.

Text in which words of a known language are read is never changed, but for its SYMBOLS.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from spiderling.text.documents import SYMBOL, SYMBOLS, ConvertedDocument
from spiderling.text.encoding.mending import LOST, MAX_BAD_SHARE
from spiderling.text.html.blocks import normal_form
from spiderling.text.language import MIN_CHARS, LanguageModels
from spiderling.text.ngrams import ORDER, Array, Places, codepoints, lower_letters
from spiderling.text.words import LanguageModel

_SYMBOL = re.compile(SYMBOL)
_NONSENSE = 0.15  # known share below which a text may be damaged; chosen, as are those below
_MIN_NONSENSE = 600  # least characters of such texts in which a shift or permutation is sought
_MIN_KNOWN = 0.8  # least known share of mended text
_MAX_CHARS = 20_000  # characters from which a substitution is found
_MAX_CHARACTERS = 500  # different characters of a text in which a shift is sought
_MAX_SHIFT = 1500  # places among all characters that are tried
_STEPS = np.array([-3, -2, -1, 1, 2, 3])[:, None]  # places among the characters of a text that are tried
_FEW_SPACES = 0.08  # share of spaces below which a text may have other characters for them
_ONE_SCRIPT = 0.9  # share of letters in the script of the language, from which others are not exchanged with them
_BMP = 1 << 16  # characters of the Basic Multilingual Plane
_MAX_LETTERS = 120  # letters of a language at most: syllables and ideographs are too many
_RARE = 3e-5  # share below which a character is no letter of the language
_FOREIGN = -14.0  # log P of a character of another script
_SIGN = -7.0  # log P of a sign in ASCII
_SPACE = -1.9  # log P of a space
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
        usual = (counts >= _RARE * counts.sum()) & (grams[:, 0] != ord(" ")) & (grams[:, 0] < _BMP)
        if np.isin(commas, grams[usual]).any():  # Romanian, where many wrote the cedillas of Turkish
            usual &= ~np.isin(grams[:, 0], cedillas)
        self.letters = np.concatenate((np.array([ord(" ")], np.uint32), grams[usual, 0]))
        """Their code points."""
        self.places = np.full(_BMP, -1)  # code point -> letter; -1 for none of this language
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
        self.script = _script(chr(self.letters[1 + self.shares[1:].argmax()]))
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
        logs[row < 0] = _FOREIGN
        keys = self._key(four)
        found = np.minimum(np.searchsorted(self._quadruples[0], keys), len(self._quadruples[0]) - 1)
        seen = np.where(self._quadruples[0][found] == keys, self._quadruples[1][found], 0)
        seen = seen * np.exp(-logs[3:]) + _SMOOTHING
        longer[3:] = np.where(keys < 0, 0, np.log(seen / (self._triples[tuple(four[:3])] + _SMOOTHING)))
        longer[ends[:-1] + 1] = longer[ends[:-1] + 2] = 0  # before which the word has no three letters
        spelled, longer = (np.add.reduceat(each[1:], ends[:-1]) for each in (logs, longer))
        listed = np.array([self._words.get(word, -np.inf) for word in words], np.float32)
        return spelled, np.logaddexp(listed, spelled + longer + np.float32(np.log(1 - _LISTED))) - spelled


class _Cipher:
    """The words of damaged texts, in which the symbols *unknown* stand for letters."""

    def __init__(self, texts: Sequence[str], chain: LetterChain, unknown: set[str]) -> None:
        self.chain = chain
        asked = codepoints("".join(char for char in unknown if ord(char) < _BMP))
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


class Mended(NamedTuple):
    """What became of a document."""

    document: ConvertedDocument | None  # None if too many letters are lost
    how: str = ""  # what was mended: 'lost', 'shifted' or 'permuted'


def mend(document: ConvertedDocument, models: LanguageModels, accepted: Sequence[str]) -> Mended:
    """The *document* with its letters.

    A shift or permutation is sought in the *accepted* languages, lost letters in the language of the rest.
    """
    texts = [block.text for block in document.blocks]
    symbols = any(map(_SYMBOL.search, texts))
    shares = [] if symbols or not models.models else _known_shares(texts, models)
    nonsense = [text for text, share in zip(texts, shares, strict=False) if share < _NONSENSE and len(text) > MIN_CHARS]
    if not symbols and sum(map(len, nonsense)) < _MIN_NONSENSE:
        return Mended(document)
    best = max(_readings(nonsense or texts, models, accepted), key=itemgetter(0), default=_UNREAD)
    if best.share < _MIN_KNOWN and not symbols:
        return Mended(document)
    if best.share >= _MIN_KNOWN:
        after = [text.translate(best.table) for text in texts]
        if shares:  # texts in another font may be whole
            each = zip(texts, after, shares, _known_shares(after, models), strict=True)
            after = [new if share >= before else old for old, new, before, share in each]
        texts = after
    texts = [_SYMBOL.sub(LOST, text) for text in texts]
    if sum(text.count(LOST) for text in texts) > MAX_BAD_SHARE * sum(map(len, texts)):
        return Mended(None)
    blocks = [block._replace(text=normal_form(text)) for block, text in zip(document.blocks, texts, strict=True)]
    return Mended(replace(document, blocks=blocks), best.how if best.share >= _MIN_KNOWN else "")


def _known_shares(texts: Sequence[str], models: LanguageModels) -> list[float]:
    """The known share of each of *texts* in the language nearest to it."""
    guesses = models.identify(texts)
    nearest = [guesses.codes[place] for place in guesses.scores.argmax(1).tolist()]
    return guesses.known_shares(nearest, range(len(texts)))


class _Reading(NamedTuple):
    """A way to read damaged texts."""

    share: float  # known share of what is read
    how: str
    table: dict[int, str]  # for `str.translate`


_UNREAD = _Reading(0.0, "", {})


def _readings(texts: Sequence[str], models: LanguageModels, accepted: Sequence[str]) -> Iterator[_Reading]:
    """Ways to read damaged *texts*."""

    def reading(how: str, table: dict[int, str]) -> _Reading:
        read = [_SYMBOL.sub(" ", text.translate(table)) for text in texts]
        return _Reading(models.identify(read).known_share(code), how, table)

    guesses = models.identify([_SYMBOL.sub(" ", text) for text in texts])
    nearest = guesses.nearest()
    is_nonsense = nearest is None or guesses.known_share(nearest) < _NONSENSE
    for code in accepted if is_nonsense or nearest is None else [nearest]:
        chain = _chain(models, code)
        if chain is None:
            continue
        shift = reading("shifted", _shift(texts, chain)) if is_nonsense else _UNREAD
        if shift.share >= _MIN_KNOWN:
            yield shift
        else:
            shift = _UNREAD
        left = [text.translate(shift.table) for text in texts] if shift.table else texts
        symbols = set(_SYMBOL.findall("".join(left)))
        if symbols:
            yield reading("lost", {**shift.table, **str.maketrans(_Cipher(left, chain, symbols).fill())})
        elif not shift.table:
            letters = Counter(filter(str.isalpha, "".join(texts)))
            unknown = {char for char in letters if _script(char) == chain.script}
            if sum(letters[char] for char in unknown) < _ONE_SCRIPT * letters.total():
                unknown = set(letters)
            yield reading("permuted", str.maketrans(_Cipher(texts, chain, unknown).solve()))


def _script(char: str) -> str:
    """The script of a letter, as its name begins with it."""
    return unicodedata.name(char, "").partition(" ")[0]


def _shift(texts: Sequence[str], chain: LetterChain) -> dict[int, str]:
    """The table by which all characters but spaces are the same number of places off.

    Places among all characters, among those of the texts, or among these in the order in which they occur first, as
    some programs number glyphs.
    """
    counts = Counter("".join(texts))
    if len(counts) > _MAX_CHARACTERS:
        return {}
    codes = {char: ord(char) - SYMBOLS[0] if ord(char) in SYMBOLS else ord(char) for char in counts}
    mine = np.array([codes[char] for char in counts if char != " "])
    numbers = np.array([counts[char] for char in counts if char != " "])
    letters = chain.places.take(lower_letters(np.arange(_BMP, dtype=np.uint32)))
    logs = np.where(letters > 0, np.log(chain.shares)[letters], _FOREIGN)
    for signs in (slice(0x21, 0x7F), slice(0xA1, 0xC0), slice(0x2010, 0x2027)):
        logs[signs] = np.maximum(logs[signs], _SIGN)
    logs[0x20] = _SPACE if counts[" "] < _FEW_SPACES * counts.total() else 2 * _FOREIGN
    shifts = np.arange(-_MAX_SHIFT, _MAX_SHIFT)[:, None]
    tried = [np.clip(mine + shifts, 0, len(logs) - 1)]
    given = list(codes.values())
    for order in (given, sorted(given), mine.tolist(), sorted(mine.tolist())):
        places = np.array([order.index(code) for code in mine.tolist()])
        tried.append(np.array(order)[(places + _STEPS) % len(order)])
    every = np.concatenate(tried)
    best = every[(logs.take(every, mode="clip") @ numbers).argmax()].tolist()
    olds = [ord(char) for char in counts if char != " "]
    return {old: chr(new) for old, new in zip(olds, best, strict=True) if new >= 0x20}


_CHAINS: dict[str, tuple[LanguageModel, LetterChain | None]] = {}
"""The last chain of each language, with its model."""


def _chain(models: LanguageModels, code: str) -> LetterChain | None:
    """The letters of the language; None if these are too many."""
    model = models[code]
    if code not in _CHAINS or _CHAINS[code][0] is not model:
        fits = model.ngrams.letters <= _MAX_LETTERS and ORDER in model.ngrams.sizes
        _CHAINS[code] = model, LetterChain(model) if fits else None
    return _CHAINS[code][1]
