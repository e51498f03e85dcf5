"""Shingles: hashes of runs of seven words; near-duplicates share many (onion: Suchomel & Pomikálek 2012, section 2).

A run never crosses the end of a paragraph; a shorter paragraph has one shingle, of all
its words.  In text without spaces between words a shingle is a run of characters, as many
as seven words of the script take on average.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

WINDOW = 7
"""Words of a shingle (Suchomel & Pomikálek 2012)."""
_MEMO_WORDS = 200_000
"""Words whose hashes are remembered; chosen."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
"""Odd constants of multiplicative hashing; _MULTIPLIER is 2**64 / golden ratio."""
_SHIFT = np.uint64(32)
HAN_KANA = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_BRAHMIC = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Thai, Lao, Burmese and Khmer letters; their words are about three times as long as those of Chinese."""
_UNSPACED = re.compile(f"{HAN_KANA.pattern}|{_BRAHMIC.pattern}")
_CHARS = {HAN_KANA: 11, _BRAHMIC: 28}
"""Script -> characters of seven words; chosen."""


class _WordHashes(dict[str, int]):
    """Word -> hash; remembers the first _MEMO_WORDS words, among them the frequent ones."""

    def __missing__(self, word: str) -> int:
        hashed = xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"))
        if len(self) < _MEMO_WORDS:
            self[word] = hashed
        return hashed


_hash_of = _WordHashes().__getitem__


class Shingles(NamedTuple):
    """The shingles of several paragraphs, in their order."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    """Number of shingles of each paragraph; 0 for one without a word."""
    repeats: bool = True
    """Whether a shingle may occur more than once."""


NO_SHINGLES = Shingles(np.zeros(0, np.uint64), np.zeros(0, np.uint32))


def shingles(paragraphs: Sequence[str], window: int = WINDOW) -> Shingles:
    """The shingles of *paragraphs*: 64-bit hashes of *window* words, the same in every process."""
    tokens = [_tokens(paragraph, window) for paragraph in paragraphs]
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    total = int(lengths.sum())
    if not total:
        return Shingles(NO_SHINGLES.hashes, np.zeros(len(tokens), np.uint32))
    words = np.fromiter(map(_hash_of, chain.from_iterable(tokens)), np.uint64, total)
    # zeros fill short paragraphs up to one full window
    counts = np.where(lengths > 0, np.maximum(lengths - window + 1, 1), 0)
    padded = np.where(lengths > 0, np.maximum(lengths, window), 0)
    starts = np.cumsum(padded) - padded
    places = np.arange(total) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    filled = np.zeros(int(padded.sum()), np.uint64)
    filled[places] = words
    windows = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    hashes = _combined(filled, windows, window)
    ordered = np.sort(hashes)
    return Shingles(hashes, counts.astype(np.uint32), bool((ordered[1:] == ordered[:-1]).any()))


def _combined(words: NDArray[np.uint64], windows: NDArray[np.int64], size: int) -> NDArray[np.uint64]:
    """The hash of the *size* words that begin at each of *windows*; it depends on their order."""
    runs = words[: len(words) - size + 1].copy()
    for offset in range(1, size):
        runs *= _MULTIPLIER
        runs += words[offset : len(words) - size + 1 + offset]
    hashes: NDArray[np.uint64] = runs[windows]
    for _ in range(2):  # now every bit of a hash depends on every bit of every word
        hashes ^= hashes >> _SHIFT
        hashes *= _MIX
    hashes ^= hashes >> _SHIFT
    return hashes


def _tokens(paragraph: str, window: int) -> Sequence[str]:
    """The words; in unspaced text, overlapping runs of characters, so that *window* of them span _CHARS."""
    words = paragraph.split()
    if paragraph.isascii() or not _UNSPACED.search(paragraph):
        return words
    text = "".join(words)
    for script, chars in _CHARS.items():
        if 2 * len(script.findall(text)) > len(text):
            size = max(1, chars * window // WINDOW - window + 1)
            return [text[start : start + size] for start in range(max(1, len(text) - size + 1))]
    return words
