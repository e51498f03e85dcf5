"""The words of texts as 64-bit hashes, with or without tone marks, which are looked up all at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.language.usual import joined_starts
from spiderling.text.ngrams import Hashes, Places, codepoints

Keys = npt.NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15
_SPACE = 32
_TONE_MARKS = dict.fromkeys(map(ord, "\u0300\u0301\u0302\u0304\u030c"))
_TONED = 0x1F00
"""Code point behind the letters that may have tone marks (Unicode, Latin Extended Additional)."""


class Words(NamedTuple):
    """The words of some texts."""

    texts: Places
    """The text of each word."""
    first: Hashes
    """Its first letter, as it is written."""
    lengths: Places
    """Its number of letters."""
    keys: Keys


@dataclass(frozen=True, slots=True)
class TextWords:
    """Some texts, and their words when these are asked for."""

    chars: Hashes
    starts: Places
    written: Hashes
    """As from `normalised`."""
    _split: dict[bool, Words] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[TextWords]) -> TextWords:
        """All texts of *parts*, of which there is at least one."""
        chars, written = (np.concatenate([getattr(part, name) for part in parts]) for name in ("chars", "written"))
        return cls(chars, joined_starts([part.starts for part in parts]), written)

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

    def keys_in(self, rows: Places) -> tuple[Places, Keys]:
        """Of each word in the texts *rows* its text and its key."""
        words = self.split()
        mine = self._are(rows)[words.texts]
        return words.texts[mine], words.keys[mine]

    def characters_in(self, rows: Places) -> tuple[Places, Keys]:
        """Of each character in the texts *rows* its text and its code point."""
        sizes = np.diff(self.starts)
        texts = np.repeat(np.arange(len(sizes)), sizes)
        mine = self._are(rows)[texts]
        return texts[mine], self.chars[mine].astype(np.uint64)

    def _are(self, rows: Places) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(self.starts) - 1, np.bool_)
        found[rows] = True
        return found


def keys_of(words: Iterable[str], without_tones: bool = False) -> Keys:
    """The keys of *words*, none of which is empty."""
    chars = codepoints(f" {' '.join(words)} ")
    return _words(_toneless(chars)[0] if without_tones else chars)[2]


def _words(chars: Hashes) -> tuple[Places, Places, Keys]:
    """Where each word between spaces begins, its length, and its key: a polynomial of its code points."""
    powers, inverses = _powers(1 << len(chars).bit_length())
    sums = np.zeros(len(chars) + 1, np.uint64)
    np.cumsum(chars * powers[: len(chars)], out=sums[1:])
    spaces = np.flatnonzero(chars == _SPACE)
    lengths = np.diff(spaces) - 1
    long = np.flatnonzero(lengths)
    starts, lengths = spaces[long] + 1, lengths[long]
    keys: Keys = (sums[starts + lengths] - sums[starts]) * inverses[starts]
    return starts, lengths, keys


@lru_cache(maxsize=2)
def _powers(number: int) -> tuple[Keys, Keys]:
    """The first powers of the polynomial's base and of its inverse."""
    inverse = pow(_BASE, -1, 1 << 64)
    powers, inverses = (np.cumprod(np.full(number, factor, np.uint64), dtype=np.uint64) for factor in (_BASE, inverse))
    return powers, inverses


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
