"""What kinds of characters bytes become when a codec decodes them, and how probable the kinds are in running text."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import Array, Hashes, Places, lower_letters

Kinds = npt.NDArray[np.uint8]

UNSEEN = math.log(1e-7)
"""log P of a letter that the language does not have; chosen, as are all below."""
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
_CAPITAL_INSIDE = math.log(1 / 1000)
"""log P of a capital behind a small letter, one of them not ASCII."""
_NUMBER_INSIDE = math.log(1 / 200)
"""log P of a fraction or a raised digit beside a letter."""
_TWO_SCRIPTS = math.log(1 / 1000)
"""log P of letters of two scripts side by side, in a language of which nothing is known."""
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


def is_other_script(chars: Hashes) -> npt.NDArray[np.bool_]:
    """Whether each character is a letter that is not Latin."""
    kinds = kinds_of(chars)
    return (kinds >= _LOWER) & (kinds <= _CASELESS)


def sign_logs(chars: Hashes) -> Array:
    """log P of each character in a known language, as far as it is no letter."""
    logs = np.zeros(_KINDS, np.float32)
    logs[list(_SIGNS)] = list(_SIGNS.values())
    return np.asarray(logs.take(kinds_of(chars)))


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
