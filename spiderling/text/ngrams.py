"""Character n-grams as arrays of hashes: all those of a page are looked up at once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

MARKS = "".join(chr(code) for code in range(0x300, 0x11A00) if unicodedata.category(chr(code))[0] == "M")
"""Marks are vowel signs and tones, part of words though \\w leaves them out: without them Hindi is 'ह न द'."""
_NO_LETTERS = re.compile(rf"(?:[\W\d_](?<![{MARKS}]))+")

Array = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]
_SPACE = np.uint32(ord(" "))
_ASCII_LETTERS = bytes(code if chr(code).isalpha() else 32 for code in range(128)).lower() + bytes(128)


def normalise(text: str) -> str:
    """Lower-case words between single spaces; digits and punctuation are spaces."""
    return f" {_NO_LETTERS.sub(' ', text.lower()).strip()} "


def words(text: str) -> list[str]:
    """The words of `normalise`."""
    if text.isascii():
        return text.encode().translate(_ASCII_LETTERS).decode().split()
    return _only_letters(text).tobytes().decode("utf-32-le").split()


def normalised(texts: Sequence[str]) -> tuple[Hashes, Places]:
    """The code points of `normalise` of each text, joined; and where each text begins, and the last one ends."""
    every = f" {'  '.join(texts)} "
    if _is_special(every):
        texts = [text.lower() for text in texts]
        every = f" {'  '.join(texts)} "
    starts = np.cumsum([0, *(len(text) + 2 for text in texts)])
    chars = _lower_letters().take(codepoints(every), mode="clip")
    kept = chars != _SPACE
    kept[1:] |= kept[:-1]  # the first of several spaces in a row
    kept[starts[:-1]] = True  # the space before each text
    sizes = np.add.reduceat(kept, starts[:-1], dtype=np.intp)
    kept[starts[:-1][sizes == 1] + 1] = True  # a text without letters is two spaces
    return chars[kept], np.concatenate(([0], np.cumsum(np.maximum(sizes, 2))))


def _only_letters(text: str) -> Hashes:
    """Code points of *text* in lower case; all that are not letters are spaces."""
    return _lower_letters().take(codepoints(text.lower() if _is_special(text) else text), mode="clip")


def _is_special(text: str) -> bool:
    """Whether it holds a capital whose lower-case letter depends on its place (sigma), or is two (dotted I)."""
    return "\u03a3" in text or "\u0130" in text


@lru_cache(maxsize=1)
def _lower_letters() -> Hashes:
    """For each code point its lower-case letter, or a space; takes half the time of ``str.lower``."""
    letters = ~code_points_of(re.compile(r"[\W\d_]+"))
    letters[[ord(mark) for mark in MARKS]] = True
    lower = codepoints(_every_character().replace("\u0130", "\u03a3").lower())
    return np.where(letters.take(lower), lower, _SPACE)


def code_points_of(pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """Whether each code point is in the class of characters whose runs *pattern* matches."""
    every = _every_character()
    found = np.zeros(len(every), np.bool_)
    for match in pattern.finditer(every):
        found[match.start() : match.end()] = True
    return found


def _every_character() -> str:
    """All characters in the order of their code points; U+FFFF stands for surrogates, which cannot be decoded."""
    every = np.arange(0x110000, dtype="<u4")
    every[0xD800:0xE000] = 0xFFFF
    return every.tobytes().decode("utf-32-le")


def codepoints(text: str) -> Hashes:
    """Code points of *text*; a lone surrogate counts as a question mark."""
    return np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)


def hash_rows(grams: Hashes, size: int) -> Hashes:
    """32-bit hash of each row."""
    return _hash(list(grams.T), len(grams), size)


def windows(chars: Hashes, size: int) -> Hashes:
    """Hash of the n-gram that begins at each character; the text is padded with zeros."""
    padded = np.concatenate((chars, np.zeros(size - 1, np.uint32)))
    return _hash([padded[offset : offset + len(chars)] for offset in range(size)], len(chars), size)


def _hash(columns: Sequence[Hashes], length: int, size: int) -> Hashes:
    value = np.full(length, size * 0x9E3779B1 & 0xFFFFFFFF, np.uint32)
    for column in columns:
        value ^= column
        value *= np.uint32(0x01000193)
        value += np.uint32(0x7F4A7C15)
    value ^= value >> np.uint32(15)
    value *= np.uint32(0x846CA68B)
    value ^= value >> np.uint32(13)
    return value


def crossing(starts: Places, size: int) -> Places:
    """Places of the n-grams that reach into the next text, or over the end."""
    ends = starts[1:, None] - np.arange(1, size)
    places: Places = np.maximum(ends, 0).ravel()
    return places
