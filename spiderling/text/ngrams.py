"""Character n-grams as arrays: hashed, and looked up a whole page at a time."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import numpy.typing as npt

# vowel signs and tones are marks, which \w leaves out: without them Hindi is "ह न द"
_MARKS = "".join(chr(code) for code in range(0x300, 0x11A00) if unicodedata.category(chr(code))[0] == "M")
_BETWEEN_WORDS = re.compile(rf"(?:[\W\d_](?<![{_MARKS}]))+")

Array = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint32]


def normalise(text: str) -> str:
    """Lower-case words between single spaces; digits and punctuation are spaces."""
    return f" {_BETWEEN_WORDS.sub(' ', text.lower()).strip()} "


def codepoints(text: str) -> Hashes:
    """Code points of *text*; a lone surrogate counts as a question mark."""
    return np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)


def hash_rows(grams: Hashes, size: int) -> Hashes:
    """32-bit hash of each row."""
    value = np.full(len(grams), size * 0x9E3779B1 & 0xFFFFFFFF, np.uint32)
    for column in range(size):
        value = _mix(value, grams[:, column])
    return _finish(value)


def _mix(value: Hashes, char: Hashes) -> Hashes:
    mixed: Hashes = (value ^ char) * np.uint32(0x01000193) + np.uint32(0x7F4A7C15)
    return mixed


def _finish(value: Hashes) -> Hashes:
    value = (value ^ (value >> np.uint32(15))) * np.uint32(0x846CA68B)
    finished: Hashes = value ^ (value >> np.uint32(13))
    return finished


def windows(chars: Hashes, size: int) -> Hashes:
    """Hash of the n-gram that begins at each character; those over the end are of the zero padding."""
    value = np.full(len(chars), size * 0x9E3779B1 & 0xFFFFFFFF, np.uint32)
    padded = np.concatenate((chars, np.zeros(size - 1, np.uint32)))
    for offset in range(size):
        value = _mix(value, padded[offset : offset + len(chars)])
    return _finish(value)


def inside_texts(starts: npt.NDArray[np.intp], length: int, size: int) -> npt.NDArray[np.bool_]:
    """Which n-grams do not cross from one text into the next."""
    inside = np.ones(length, np.bool_)
    for offset in range(1, size):
        inside[np.maximum(starts[1:] - offset, 0)] = False
    return inside
