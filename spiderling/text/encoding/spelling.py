"""Measures how well bytes, decoded by a codec, spell words of a language.

chared (Pomikálek and Suchomel 2011) keeps byte trigrams of a language for each of its
encodings.  Here the character trigrams of the language model serve all encodings.  Each
candidate decodes the bytes, and gives

    log P(text) = sum of log P(letter | the two before it) + log P of other characters

Candidates can be compared even if they give different numbers of characters, because
each value is the probability of the same bytes.  Conditional probabilities are
interpolated between the orders (Jelinek and Mercer 1980).

Trigrams compare only the few best readings of the bytes.  Single letters find these: a
table holds log P of each byte in each single-byte codec, so one product of the counts of
the bytes with that table judges all of these codecs.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.encoding.labels import MULTI_BYTE, SINGLE_BYTE, STANDARD, seldom_codecs
from spiderling.text.ngrams import Array, Hashes, NgramCounts, Places, codepoints, hash_rows, lower_letters, windows

Kinds = npt.NDArray[np.uint8]

UNSEEN = math.log(1e-7)  # log P of a letter that the language does not have; chosen, as are all below
_SPACE, _ASCII_LOWER, _ASCII_UPPER, _LATIN_LOWER, _LATIN_UPPER, _LOWER, _UPPER, _CASELESS, _EAST_ASIAN = range(9)
_USUAL, _NUMBER, _SELDOM, _ODD, _NEVER = range(9, 14)
_KINDS = 14
_SIGNS = {
    _USUAL: math.log(1 / 50),
    _NUMBER: math.log(1 / 200),
    _SELDOM: math.log(1e-4),
    _ODD: math.log(1e-8),
    _NEVER: math.log(1e-10),
}
"""log P of a non-ASCII character that is no letter, by its kind."""
_LETTERS = {
    _SPACE: 1.8,
    _ASCII_LOWER: 3.0,
    _ASCII_UPPER: 5.5,
    _LATIN_LOWER: 5.0,
    _LATIN_UPPER: 7.5,
    _LOWER: 3.5,
    _UPPER: 6.5,
    _CASELESS: 3.6,
    _EAST_ASIAN: 9.0,
}
"""-log P of a letter in a language of which nothing is known: alphabets have some thirty letters, of which the
accented ones are seldom."""
_CAPITAL_INSIDE = math.log(1 / 1000)  # log P of a capital behind a small letter, one of them not ASCII
_NUMBER_INSIDE = math.log(1 / 200)  # log P of a fraction or a raised digit beside a letter
_TWO_SCRIPTS = math.log(1 / 1000)  # log P of letters of two scripts side by side, in an unknown language
_USUAL_SIGNS = re.compile("[\xa0¡¿«»–—‘’“”„‚‹›…•·§©®°€£¢№\u200c-\u200f\u3000-\u303f\uff00-\uffef]")
_SELDOM_SIGNS = re.compile("[¥±´µ×÷†‡‰′″™]")
_SCRIPT_OF = {_ASCII_LOWER: 1, _ASCII_UPPER: 1, _LATIN_LOWER: 1, _LATIN_UPPER: 1, _LOWER: 2, _UPPER: 2, _CASELESS: 3}
_SMALL = (_ASCII_LOWER, _LATIN_LOWER, _LOWER)
_CAPITAL = (_ASCII_UPPER, _LATIN_UPPER, _UPPER)


def kinds_of(chars: Hashes) -> Kinds:
    """The kind of each code point."""
    return _kinds().take(chars, mode="clip")


def letters_of(chars: Hashes) -> Hashes:
    """The letters among the code points in lower case, spaces for everything else.

    The comma below s and t counts as a cedilla: which of the two a Romanian page has tells nothing about its encoding.
    """
    return _letters().take(chars, mode="clip")


@lru_cache(maxsize=1)
def _letters() -> Hashes:
    chars = np.arange(0x10000, dtype=np.uint32)
    letters = np.where(kinds_of(chars) < _USUAL, lower_letters(chars), np.uint32(ord(" ")))
    letters[[ord(char) for char in "șțȘȚ"]] = [ord(char) for char in "şţşţ"]
    return letters


@lru_cache(maxsize=1)
def _kinds() -> Kinds:
    """The kind of each character of the Basic Multilingual Plane; the last entry serves all others."""
    return np.array([_kind(chr(code)) for code in range(0xFFFF)] + [_ODD], np.uint8)


def _kind(char: str) -> int:
    category = unicodedata.category(char)
    if char < "\x80":
        return {"Ll": _ASCII_LOWER, "Lu": _ASCII_UPPER}.get(category, _SPACE)
    if category[0] in "LM":
        if char >= "\u2e80":
            return _CASELESS if "\ufb1d" <= char < "\uff00" else _EAST_ASIAN
        latin = char < "\u0370" or "\u1e00" <= char < "\u1f00"
        if category == "Ll":
            return _LATIN_LOWER if latin else _LOWER
        if category in ("Lu", "Lt"):
            return _LATIN_UPPER if latin else _UPPER
        return _LATIN_LOWER if latin and category[0] == "L" else _CASELESS
    if category in ("Cc", "Cn", "Co", "Cs") or char == "\ufffd" or (category == "Sk" and char > "\xff"):
        return _NEVER
    if category == "No":
        return _NUMBER
    if _USUAL_SIGNS.match(char):
        return _USUAL
    return _SELDOM if _SELDOM_SIGNS.match(char) else _ODD


def pair_logs(chars: Hashes, starts: Places) -> tuple[Array, Array]:
    """log P of each character of the texts that begin at *starts*: as far as it is no letter of a known language, and
    added to that in a language of which nothing is known."""
    kinds = kinds_of(chars).astype(np.intp)
    pairs = np.concatenate((kinds[:1], kinds[:-1] * _KINDS + kinds[1:]))
    pairs[starts] = 0
    signs, letters = (logs.take(pairs) for logs in _pair_tables())
    return signs, letters


@lru_cache(maxsize=1)
def _pair_tables() -> tuple[Array, Array]:
    """The two values of `pair_logs` for a kind behind another, as one index."""
    signs, letters = np.zeros((2, _KINDS, _KINDS), np.float32)
    for before, kind in product(range(_KINDS), repeat=2):
        signs[before, kind] = _SIGNS.get(kind, 0.0)
        both = {before, kind}
        if _NUMBER in both and both & _LETTERS.keys() - {_SPACE}:
            signs[before, kind] += _NUMBER_INSIDE
        if before in _SMALL and kind in _CAPITAL and both != {_ASCII_LOWER, _ASCII_UPPER}:
            signs[before, kind] += _CAPITAL_INSIDE
        letters[before, kind] = -_LETTERS.get(kind, 0.0)
        if _SCRIPT_OF.get(before, 0) != _SCRIPT_OF.get(kind, 0) and both <= set(_SCRIPT_OF):
            letters[before, kind] += _TWO_SCRIPTS
    return signs.ravel(), letters.ravel()


POOR_GAIN = -1.0  # `gain` below which nothing says that words are in any known language; chosen
SAMPLE_BYTES = 4000  # bytes of the sample: different words with non-ASCII bytes; chosen
_SEARCHED_BYTES = 1_000_000  # bytes of a page that are searched for these words; chosen
_SEARCHED_PLACES = 16_000  # Non-ASCII bytes whose words are looked at: most words occur a few times; chosen
_BITS = 18  # binary logarithm of the number of hashes in a table; chosen
_ORDER = 3  # characters of the longest n-grams: trigrams, as in chared
_TRUST = 0.8  # weight of the longer n-gram in the interpolation; chosen
_UNITS = 1000  # units of a nat in the tables, whose 16 bits take half of the time of floats
_MIN = int(UNSEEN * _UNITS)
_SELDOM_COST = math.log(1e-7)  # log P added for an encoding that the language does not name; chosen, as are all below
_FOREIGN_BYTE_COST = -1.0  # log P added for each non-ASCII byte if the encoding is no relative of a named one
_ELSEWHERE_COST = -5.0  # log P added for an encoding of none of the accepted languages
_ACCENT_LOG = -4.0  # log P of an accent that is a character of its own, as a single letter
_READINGS = 4  # most readings that trigrams compare
_BEHIND = 3.0  # nats for each non-ASCII byte by which single letters may make a reading worse than the best
_DENSE = 0.25  # least share of non-ASCII bytes that another one follows, where characters have several bytes
_SWITCH_LOG = -1.0  # log P of an ASCII word in another language than the page's: pages of all languages have such words
_TWO_SCRIPTS_LOG = -5.0  # log P of a letter of another alphabet behind an ASCII one, while single letters are looked at
_ASCII_LOG = -3.0  # log P of an ASCII letter as a single letter, in a word of any language
_SEPARATORS = bytes(32 if byte < 0x40 and not chr(byte).isdigit() else byte for byte in range(256))
_ASCII = bytes(range(0x80))
_EDGE = np.array([ord(" ")], np.uint32)
_ALONE = (_ORDER - 1) * math.log(1 - _TRUST) * _UNITS
"""Added to log P of a letter whose longer n-grams were never seen, in units."""
_PLACES = {name: place for place, name in enumerate((*SINGLE_BYTE, *MULTI_BYTE))}
_TABLES = {name: codepoints(bytes(range(256)).decode(name, "replace")) for name in SINGLE_BYTE}
_BYTES = np.stack(list(_TABLES.values()))  # code points (single-byte codec, byte)
_IS_ASCII_LETTER = np.array([chr(byte).isalpha() and byte < len(_ASCII) for byte in range(256)])

Logs = npt.NDArray[np.int16]


class Fit(NamedTuple):
    """How well a sample fits one encoding."""

    score: float  # log P of the sample in the language that it fits best
    unknown: float  # log P of the sample, if its words not in ASCII are in a language of which nothing is known
    size: int  # letters of these words


def gain(best: Fit, others: Iterable[Fit]) -> float:
    """Nats for each character by which a known language explains the bytes better than an unknown one would."""
    return (best.score - max(other.unknown for other in others)) / best.size


def telling_words(body: bytes) -> bytes:
    """The words of *body* with non-ASCII bytes, each once, joined; the others are the same in every encoding.

    ASCII characters below "@", but digits, divide them; in legacy encodings these bytes are part of no other character.
    A word that is repeated, as on every button, is no further evidence.
    """
    text = body[:_SEARCHED_BYTES].translate(_SEPARATORS)
    data = np.frombuffer(text, np.uint8)
    spaces = np.concatenate(([-1], np.flatnonzero(data == _EDGE[0]), [len(data)]))
    places = np.searchsorted(spaces, np.flatnonzero(data >= len(_ASCII))[:_SEARCHED_PLACES])
    places = places[np.flatnonzero(np.diff(places, prepend=0))]  # each word once
    spans = zip((spaces[places - 1] + 1).tolist(), spaces[places].tolist(), strict=True)
    return b" ".join(dict.fromkeys(text[begin:end] for begin, end in spans))[:SAMPLE_BYTES]


_Reading = tuple[float, list[str]]
"""What some codecs make of the sample: the score, and these codecs."""


class Spelling:
    """The letter sequences of some languages, and the codecs in use for each (as Python names them)."""

    def __init__(self, languages: Iterable[tuple[NgramCounts, Collection[str]]]) -> None:
        self._languages = tuple(languages)
        self.codecs = tuple(dict.fromkeys(codec for _, codecs in self._languages for codec in codecs))
        """The codecs of all the languages, each once."""

    def fits(self, body: bytes, labels: Sequence[str] = (), accepted: Sequence[str] = ()) -> dict[str, Fit]:
        """How well *body* fits the codecs *labels* and the most probable others; empty without a non-ASCII byte."""
        sample = telling_words(body)
        if not sample:
            return {}
        high = len(sample.translate(None, _ASCII))
        labels = [name for name in labels if name in _PLACES]
        costs = self._costs(high, labels, accepted)
        named = {*labels, *accepted, *self.codecs}
        readings = self._by_bytes(sample, costs, named)
        inside = np.frombuffer(sample, np.uint8) >= len(_ASCII)
        # characters of several bytes are possible where many non-ASCII bytes stand side by side
        possible = named if int((inside[1:] & inside[:-1]).sum()) >= _DENSE * high else labels
        several = (name for name in MULTI_BYTE if name in possible)
        readings += [(self._by_letters(sample, name, costs), [name]) for name in several]
        readings.sort(key=lambda reading: -reading[0])
        least = readings[0][0] - _BEHIND * high
        chosen = [
            codecs
            for place, (score, codecs) in enumerate(readings)
            if (place < _READINGS and score >= least) or not set(labels).isdisjoint(codecs)
        ]
        return self._compare(sample, chosen, costs)

    @cached_property
    def _logs(self) -> Logs:
        """log P (hash of an n-gram, language), in units; built at first use, because most pages are in UTF-8."""
        logs = np.empty((1 << _BITS, len(self._languages)), np.int16)
        for column, (ngrams, _) in enumerate(self._languages):
            logs[:, column] = np.rint(np.maximum(_table(ngrams), UNSEEN) * _UNITS)
        return logs

    @cached_property
    def _letters(self) -> tuple[npt.NDArray[np.uint16], Logs]:
        """For each code point its row, and by row log P (letter, language), in units.

        Single letters have no hashes: where two met, a letter of another language would pass for a usual one.
        """
        tables = [_counts(ngrams, 1) for ngrams, _ in self._languages]
        every = np.unique(np.concatenate([letters for letters, _ in tables]))
        rows = np.zeros(1 << 16, np.uint16)
        rows[every] = np.arange(1, len(every) + 1)
        logs = np.full((len(every) + 1, len(tables)), _MIN, np.int16)
        for column, (letters, numbers) in enumerate(tables):
            shares = np.log(numbers / numbers.sum())
            logs[rows.take(letters[:, 0]), column] = np.maximum(shares, UNSEEN) * _UNITS
        return rows, logs

    @cached_property
    def _byte_logs(self) -> Array:
        """log P of single letters (byte, single-byte codec and language)."""
        logs: Array = self._letter_logs(_BYTES.T.ravel()).reshape(256, -1)
        return logs

    @cached_property
    def _other_scripts(self) -> npt.NDArray[np.bool_]:
        """Whether each byte is a letter that is not Latin (byte, single-byte codec)."""
        kinds = kinds_of(_BYTES.T)
        return (kinds >= _LOWER) & (kinds <= _CASELESS)

    @cached_property
    def _uses(self) -> Array:
        """Of each codec in each language: whether it is not named, and whether it is no relative of one that is."""
        relatives = [seldom_codecs(tuple(codecs)) for _, codecs in self._languages]
        uses = [
            [(name not in codecs, name not in codecs and name not in near) for name in _PLACES]
            for (_, codecs), near in zip(self._languages, relatives, strict=True)
        ]
        return np.asarray(np.array(uses, np.float32).T)

    def _costs(self, high: int, labels: Sequence[str], accepted: Sequence[str]) -> Array:
        """log P (codec, language) of a text with *high* non-ASCII bytes being in that encoding."""
        unnamed, foreign = self._uses
        costs: Array = unnamed * np.float32(_SELDOM_COST) + foreign * np.float32(_FOREIGN_BYTE_COST * high)
        costs[[place for name, place in _PLACES.items() if name not in accepted]] += np.float32(_ELSEWHERE_COST)
        places = [_PLACES[name] for name in labels]
        costs[places] = foreign[places] * np.float32(_SELDOM_COST)
        return costs

    def _by_bytes(self, sample: bytes, costs: Array, named: Collection[str]) -> list[_Reading]:
        """What the single-byte codecs make of the sample, by single letters."""
        data = np.frombuffer(sample, np.uint8)
        counts = np.bincount(data, minlength=256)
        present = np.flatnonzero(counts)
        sums = counts[present].astype(np.float32) @ self._byte_logs[present]
        in_latin = data[1:][_IS_ASCII_LETTER[data[:-1]]]
        others = np.bincount(in_latin, minlength=256) @ self._other_scripts * _TWO_SCRIPTS_LOG
        scores = (sums.reshape(len(SINGLE_BYTE), -1) + costs[: len(SINGLE_BYTE)]).max(1) + others
        found: dict[bytes, _Reading] = {}
        for name, score, chars in zip(SINGLE_BYTE, scores.tolist(), _BYTES.take(present, 1), strict=True):
            if name in named or name in STANDARD:
                best, codecs = found.get(chars.tobytes(), (score, []))
                found[chars.tobytes()] = max(best, score), [*codecs, name]
        return list(found.values())

    def _by_letters(self, sample: bytes, codec: str, costs: Array) -> float:
        """log P of what *codec* makes of the sample, by single letters."""
        chars, numbers = np.unique(codepoints(sample.decode(codec, "replace")), return_counts=True)
        return float((numbers.astype(np.float32) @ self._letter_logs(chars) + costs[_PLACES[codec]]).max())

    def _letter_logs(self, chars: Hashes) -> Array:
        """log P (character, language) of single characters."""
        rows, logs = self._letters
        letters = letters_of(chars)
        found = logs.take(rows.take(letters), 0) / np.float32(_UNITS)
        found = np.where((chars - 0x300 < 0x70)[:, None], np.maximum(found, np.float32(_ACCENT_LOG)), found)
        found[(letters < len(_ASCII)) & (letters != _EDGE[0])] = _ASCII_LOG
        signs = np.zeros(_KINDS, np.float32)
        signs[list(_SIGNS)] = list(_SIGNS.values())
        return np.asarray(found + signs.take(kinds_of(chars))[:, None], np.float32)

    def _compare(self, sample: bytes, chosen: Sequence[Sequence[str]], costs: Array) -> dict[str, Fit]:
        """By codec, how well its reading fits, by trigrams; *chosen*: the codecs of each reading."""
        readings = [_read(sample, codecs[0]) for codecs in chosen]
        chars = np.concatenate([part for reading in readings for part in (_EDGE, reading, _EDGE)])
        sizes = np.array([len(reading) + 2 for reading in readings])
        starts = np.cumsum(sizes) - sizes
        signs, plain = pair_logs(chars, starts)
        letters = letters_of(chars)
        kept = letters != _EDGE[0]
        kept[1:] |= kept[:-1]  # the first of several spaces in a row
        kept[starts] = True
        begins = np.cumsum(kept)[starts] - 1
        letters = letters[kept]
        logs = self._trigram_logs(letters)
        logs[begins] = logs[np.minimum(begins + 1, len(logs) - 1)] = 0  # which have not two letters before them
        # a word ends with its space; the space before the first word of each reading is an empty word
        words = np.concatenate(([0], np.flatnonzero(letters == _EDGE[0])[:-1] + 1))
        firsts = np.searchsorted(words, begins)
        known = np.add.reduceat(logs, words, axis=0, dtype=np.int32) / np.float32(_UNITS)
        unknown = np.add.reduceat(plain[kept], words)
        in_ascii = np.maximum.reduceat(letters, words) < len(_ASCII)
        unknown[in_ascii] = known[in_ascii].max(1) + np.float32(_SWITCH_LOG)
        known[in_ascii] = np.maximum(known[in_ascii], unknown[in_ascii, None])
        sizes = np.add.reduceat(np.where(in_ascii, 0, np.diff(words, append=len(letters))), firsts)
        own = np.add.reduceat(signs, starts)
        sums = np.add.reduceat(known, firsts, axis=0)
        others = np.add.reduceat(unknown, firsts) + own
        return {
            codec: Fit(float((row + costs[_PLACES[codec]]).max() + sign), float(other), max(1, int(size)))
            for codecs, row, sign, other, size in zip(chosen, sums, own, others, sizes, strict=True)
            for codec in codecs
        }

    def _trigram_logs(self, letters: Hashes) -> Logs:
        """log P (letter, language) of each letter after the two before it, in units."""
        width = self._logs.shape[1]
        table = self._logs.view(f"V{2 * width}")[:, 0]  # each row as one value, which is copied as a whole
        hashes = windows(letters, 3)
        places = (hashes[size] & np.uint32(len(table) - 1) for size in (2, 3))
        pairs, triples = (table.take(place).view(np.int16).reshape(-1, width) for place in places)
        rows, singles = self._letters
        single = singles.take(rows.take(letters), 0)
        logs: Logs = np.maximum(single + np.int16(_ALONE), np.int16(_MIN))
        np.maximum(logs[1:], pairs[:-1], out=logs[1:])
        np.maximum(logs[2:], triples[:-2], out=logs[2:])
        logs[single == _MIN] = _MIN  # hashes that meet make no word of a foreign letter
        return logs


def _read(sample: bytes, codec: str) -> Hashes:
    """The code points that *codec* makes of the sample."""
    if codec in _TABLES and codec != "cp1258":
        return _TABLES[codec].take(np.frombuffer(sample, np.uint8))
    # windows-1258 has accents as characters of their own
    return codepoints(unicodedata.normalize("NFC", sample.decode(codec, "replace")))


def _counts(ngrams: NgramCounts, size: int) -> tuple[Hashes, Array]:
    """The n-grams of *size*, in letters as `letters_of` has them, with their counts."""
    grams, numbers = ngrams.sizes.get(size, (np.zeros((0, size), np.uint32), np.zeros(0, np.uint32)))
    folded = letters_of(grams)
    if np.array_equal(folded, grams):
        return grams, numbers.astype(np.float32)
    grams, places = np.unique(folded, axis=0, return_inverse=True)
    return grams, np.bincount(places.ravel(), numbers).astype(np.float32)


def _table(ngrams: NgramCounts) -> Array:
    """By hash of an n-gram, log P of its last letter after the others; -inf for n-grams that were never seen.

    The value of a shorter n-gram is for text whose longer n-gram was never seen, and lower for that reason.
    """
    shares, counts, logs = (np.zeros(1 << _BITS, np.float32) for _ in range(3))
    mask = np.uint32(len(logs) - 1)
    for size in range(1, _ORDER + 1):
        grams, numbers = _counts(ngrams, size)
        own = hash_rows(grams, size) & mask
        np.add.at(counts, own, numbers)
        if size == 1:
            found = numbers / numbers.sum()
        else:
            before = np.maximum(counts[hash_rows(grams[:, :-1], size - 1) & mask], numbers)
            found = _TRUST * numbers / before + (1 - _TRUST) * shares[hash_rows(grams[:, 1:], size - 1) & mask]
        shares[own] = found
        logs[own] = found * (1 - _TRUST) ** (_ORDER - size)
    with np.errstate(divide="ignore"):
        return np.log(logs)
