"""Hashes by which texts are compared: shingles, the sketch of a page, digests of its paragraphs.

*Shingles* are hashes of runs of seven words; near-duplicates share many (onion: Suchomel & Pomikálek 2012, section 2).
A run never crosses the end of a paragraph; a shorter paragraph has one shingle, of all its words.  In text without
spaces between words a shingle is a run of characters, as many as seven words of the script take on average.

The *sketch* is a 64-bit hash of a page's text without numbers and words of its own address.  Calendars, counters and
"not found" pages with status 200 show one text under many addresses; only a date, an id, the address, or the number of
equal lines differs.  Pages that differ in any other long word have different sketches.

*Digests* of 8 bytes tell which paragraphs of a page its last version had: exactly, but for one collision in 10^13 for a
page of a thousand paragraphs.  They are kept for each page apart, so a paragraph counts as new on a page that did not
have it, however often other pages have it.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import xxhash
from numpy.typing import NDArray

from spiderling.text.ngrams import Keys, Places, code_points_of, codepoints, run_hashes

WINDOW = 7  # words of a shingle (Suchomel & Pomikálek 2012)
FORM = 3
"""Number of the way in which shingles are hashed, and kept by corpus/duplicates.py; raised when it changes, so
that no state mixes two of them."""
_BASE = 0x9FB21C651E98DF25
"""Base of the polynomial that is a word's hash: any odd number with bits everywhere."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
"""Odd constants of multiplicative hashing; _MULTIPLIER is 2**64 / golden ratio."""
_SHIFT = np.uint64(32)
ODD = np.uint64(1)
_ALL_BUT_ONE = ~ODD
"""The hash of a paragraph that is shorter than a shingle is odd; those of runs of words in longer ones are even."""
_HAN_KANA = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_BRAHMIC = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
"""Thai, Lao, Burmese and Khmer letters; their words are about three times as long as those of Chinese."""
HAN_KANA = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _HAN_KANA)}]")
_SPACE = 1
_CHARS = {2: 11, 3: 28}  # number of a script in `_kinds` -> characters of seven words; chosen


class Shingles(NamedTuple):
    """The shingles of several paragraphs, in their order."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.uint32]  # number of shingles of each paragraph; 0 for one without a word
    repeats: bool = True  # whether a shingle may occur more than once


NO_SHINGLES = Shingles(np.zeros(0, np.uint64), np.zeros(0, np.uint32))


def shingles(paragraphs: Sequence[str], window: int = WINDOW) -> Shingles:
    """The shingles of *paragraphs*: 64-bit hashes of *window* words, the same in every process."""
    words, lengths = _words(paragraphs, window)
    total = len(words)
    if not total:
        return Shingles(NO_SHINGLES.hashes, np.zeros(len(lengths), np.uint32))
    # zeros fill short paragraphs up to one full window
    counts = np.where(lengths > 0, np.maximum(lengths - window + 1, 1), 0)
    padded = np.where(lengths > 0, np.maximum(lengths, window), 0)
    starts = np.cumsum(padded) - padded
    places = np.arange(total) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    filled = np.zeros(int(padded.sum()), np.uint64)
    filled[places] = words
    windows = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    hashes = _combine(filled, windows, window) & _ALL_BUT_ONE
    hashes[(np.cumsum(counts) - 1)[(lengths > 0) & (lengths < window)]] |= ODD
    ordered = np.sort(hashes)
    return Shingles(hashes, counts.astype(np.uint32), bool((ordered[1:] == ordered[:-1]).any()))


def _words(paragraphs: Sequence[str], window: int) -> tuple[Keys, Places]:
    """The hashes of the words of all *paragraphs*, and how many each has."""
    text = "\n".join(["", *paragraphs, ""])  # white space at both ends
    chars = codepoints(text)
    kinds = _kinds().take(chars)
    # every other edge between white space and the rest begins a word
    edges = np.flatnonzero((kinds[1:] == _SPACE) != (kinds[:-1] == _SPACE)) + 1
    begins, ends = edges[0::2], edges[1::2]
    borders = np.cumsum([1, *[len(paragraph) + 1 for paragraph in paragraphs]])
    firsts = np.searchsorted(begins, borders)
    hashes = _hashes(chars, begins, ends)
    lengths = np.diff(firsts)
    if kinds.max(initial=0) <= _SPACE:
        return hashes, lengths
    parts = [hashes[first : first + length] for first, length in zip(firsts, lengths, strict=False)]
    for number, runs in _runs(chars, kinds, borders, window):
        parts[number] = runs
    return np.concatenate(parts), np.fromiter(map(len, parts), np.int64, len(parts))


def _runs(
    chars: NDArray[np.uint32], kinds: NDArray[np.uint8], borders: Places, window: int
) -> Iterator[tuple[int, Keys]]:
    """(number, hashes) of each paragraph in text without spaces.

    In place of words it has overlapping runs of characters, so that *window* of them span _CHARS.
    """
    for number, (begin, end) in enumerate(pairwise(borders.tolist())):
        own = kinds[begin:end]
        letters = own != _SPACE
        for script, span in _CHARS.items():
            if 2 * np.count_nonzero(own == script) > np.count_nonzero(letters):
                text = chars[begin:end][letters]
                size = max(1, span * window // WINDOW - window + 1)
                begins = np.arange(max(1, len(text) - size + 1))
                yield number, _hashes(text, begins, np.minimum(begins + size, len(text)))
                break


def _hashes(chars: NDArray[np.uint32], begins: Places, ends: Places) -> Keys:
    """The hash of the characters from each of *begins* to each of *ends*."""
    hashes = run_hashes(chars.astype(np.uint64) + np.uint64(1), begins, ends, _BASE)
    hashes ^= hashes >> _SHIFT  # the sum of several hashes must not be that of other words
    hashes *= _MIX
    hashes ^= hashes >> _SHIFT
    return hashes


def _combine(words: NDArray[np.uint64], windows: NDArray[np.int64], size: int) -> NDArray[np.uint64]:
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


@lru_cache(maxsize=1)
def _kinds() -> NDArray[np.uint8]:
    """For each code point _SPACE, a script of _CHARS, or 0."""
    kinds = np.zeros(sys.maxunicode + 1, np.uint8)
    kinds[[code for code in range(_HAN_KANA[0][0]) if chr(code).isspace()]] = _SPACE
    for script, ranges in zip(_CHARS, (_HAN_KANA, _BRAHMIC), strict=True):
        for first, last in ranges:
            kinds[first : last + 1] = script
    return kinds


MIN_CHARS = 40  # letters in long words that a page needs to have a sketch; chosen
_WORD = re.compile(r"[^\W\d_]{4,}")  # a long word: shorter ones of an address occur in any text
SHORT_WORDS = 12  # most long words of a line that may be a heading or note with the page's address in it; chosen


LongWords = Callable[[Iterable[str], "set[str]"], str]


def long_words(texts: Iterable[str], own: set[str]) -> str:
    """The letters of the long words of a page, each of whose paragraphs *texts* counts once.

    They are in lower case.  The *own* words of its address are left out in short lines.
    """
    text = _foreign("\n".join(dict.fromkeys(texts)).lower(), own)
    # the matches of _WORD, joined; with arrays this is several times as fast as with the expression
    chars = codepoints(f"{text}   ")
    letters = _letters().take(chars, mode="clip")
    begins = letters[:-3] & letters[1:-2] & letters[2:-1] & letters[3:]  # four letters in a row
    inside = np.zeros_like(letters)
    for offset in range(4):
        inside[offset : offset + len(begins)] |= begins
    return chars.compress(inside).tobytes().decode("utf-32-le")


def sketch(texts: Iterable[str], url: str, words: LongWords = long_words) -> int:
    """The sketch of a page at *url* with the paragraphs *texts*, boilerplate included; 0 below MIN_CHARS."""
    own = set(_WORD.findall(f"{url} {unquote(url)}".lower()))  # pages print their address quoted or unquoted
    joined = words(texts, own)
    return int(xxhash.xxh3_64_intdigest(joined.encode())) if len(joined) >= MIN_CHARS else 0


def _foreign(text: str, own: set[str]) -> str:
    """*text* without the *own* words of the address in its short lines."""
    parts = []
    done = 0
    for begin in sorted({begin for word in own for begin in _lines_with(word, text)}):
        end = _end(text, begin)
        words = _WORD.findall(text, begin, end)
        if len(words) <= SHORT_WORDS:
            parts += [text[done:begin], " ".join([word for word in words if word not in own])]
            done = end
    return "".join([*parts, text[done:]])


def _lines_with(word: str, text: str) -> Iterator[int]:
    """Beginnings of the lines that hold *word*."""
    place = text.find(word)
    while place >= 0:
        yield text.rfind("\n", 0, place) + 1
        place = text.find(word, _end(text, place))


def _end(text: str, place: int) -> int:
    """End of the line that holds *place*."""
    end = text.find("\n", place)
    return len(text) if end < 0 else end


@lru_cache(maxsize=1)
def _letters() -> npt.NDArray[np.bool_]:
    return ~code_points_of(re.compile(r"[\W\d_]+"))


MAX_PARAGRAPHS = 65_536  # paragraphs of a page with a digest, 512 kB (chosen: the longest books have some thousands)
_DIGEST = np.dtype("<u8")


def digests_of(texts: Iterable[str]) -> bytes:
    """The digests of the first MAX_PARAGRAPHS of *texts*, which are in normal form (html/blocks.py), in their order."""
    first = islice(texts, MAX_PARAGRAPHS)
    values = [xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace")) for text in first]
    return np.array(values, _DIGEST).tobytes()


def known_again(digests: bytes, known: bytes, paragraphs: int) -> NDArray[np.bool_]:
    """For each of *paragraphs* whether *known*, digests of the last version, have it; *digests* are those of the page.

    A paragraph behind the last digest counts as known: it may have been there, and nothing is to be kept twice.
    """
    found = np.ones(paragraphs, np.bool_)
    ours = np.frombuffer(digests, _DIGEST)[:paragraphs]
    found[: len(ours)] = np.isin(ours, np.frombuffer(known, _DIGEST))
    return found


def pack(digests: bytes) -> bytes:
    """*digests*, each once, to be stored."""
    return array("Q", {*array("Q", digests)}).tobytes()  # for one page numpy's ``unique`` takes twice as long
