"""Finds near-duplicate paragraphs during the crawl, by onion's rule over all text kept before (Pomikálek 2011, section
5.3; Suchomel & Pomikálek 2012, section 3.2).

A paragraph is a duplicate if more than half of its shingles were seen in documents kept before, or in paragraphs
before it in its own document that are no duplicates.  A document is remembered in the step in which it goes to the
checkpoint, so the filter never holds a document that could be lost; from judgement to that step it is pending.

The seen shingles stand in a Bloom filter in memory.  A shingle takes three bits in each of two 64-bit words of one
line of the processor's cache (a blocked Bloom filter, Putze et al. 2007), so a look-up reads one place of each layer.
Each layer is as large as all before it together.  It is opened from its beginning on, a little with each document: a
shingle's place follows from its hash in such a way (`_place`) that the part of the layer before that has the same
shingles is just full then.  So memory grows by BYTES_PER_SHINGLE for each shingle, without steps.

A paragraph that is shorter than a shingle has no second one to outvote a chance, so it stands under two hashes.

``max_bytes`` bounds all layers together.  Beyond half of it only every fourth shingle of a longer paragraph counts; at
the bound the oldest layer is forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.text.shingles import ODD, Shingles

MAX_SEEN_SHARE = 0.5
"""Share of a paragraph's shingles above which it is a duplicate (Pomikálek 2011: onion's default)."""
FIRST_BYTES = 1 << 23
"""Size of the first layer where there is room (chosen)."""
FULL_BYTES_PER_SHINGLE = 1.7
"""Bytes per shingle of a full layer, which takes one new shingle in 330 for seen (chosen by benchmarks/dedup.py)."""
BYTES_PER_SHINGLE = FULL_BYTES_PER_SHINGLE / log(2)
"""Bytes per shingle of all layers: their last part is not full yet."""
_LARGEST_SHARE = 4
"""``max_bytes`` / the largest layer, so that not much is forgotten at once (chosen)."""
_MIN_SAMPLED = 8
"""Paragraphs with fewer shingles are not sampled, because the sample could miss them all (chosen)."""
_SAMPLE_MASK = np.uint64(6)
"""A shingle is in the sample if these two bits of its hash are zero: one in four (chosen)."""
_MIX = np.uint64(0xD1342543DE82EF95)
_OTHER = np.uint64(0xAEF17502108EF2D9)
"""Odd constants of multiplicative hashing: for the bits in a layer, and for the second hash of a shingle."""
LINE_WORDS = 8
"""Words of a line of the cache."""
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_PARTS = 256
"""Straight parts of the curve in `_place`."""
_CURVE = ((2.0 ** (np.arange(_PARTS + 1) / _PARTS) - 1) * (1 << 32)).astype(np.uint64)
_RISE = np.diff(_CURVE)
_MOST_ROUNDS = 50
"""Rounds in which paragraphs are compared with those before them in their document; chosen: pages take two or three."""

Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Owners = NDArray[np.int64]


class Keys(NamedTuple):
    """What a layer of any size has to know of some hashes."""

    place: Hashes
    """Place in a layer of 2**32 words."""
    apart: Hashes
    """The two words of a line differ in these bits of their places."""
    first: Hashes
    second: Hashes
    """Up to three bits in each of two words."""

    @classmethod
    def of(cls, hashes: Hashes) -> Keys:
        mixed = hashes * _MIX
        bits = _three_bits()
        first = mixed >> np.uint64(48)
        second = (mixed >> _HALF) & np.uint64(0xFFFF)
        apart = (mixed >> np.uint64(29)) & np.uint64(LINE_WORDS - 1)
        return cls(_place(hashes), apart, bits.take(first.view(np.int64)), bits.take(second.view(np.int64)))

    def those(self, which: Flags) -> Keys:
        return Keys(self.place[which], self.apart[which], self.first[which], self.second[which])


@lru_cache(maxsize=1)
def _three_bits() -> Hashes:
    """Words with up to three bits set, by a number of 16 bits."""
    mixed = (np.arange(1, (1 << 16) + 1, dtype=np.uint64) * _OTHER) >> _HALF
    mixed *= _MIX
    bits = [np.uint64(1) << ((mixed >> np.uint64(shift)) & np.uint64(63)) for shift in (58, 52, 46)]
    return np.asarray(bits[0] | bits[1] | bits[2], np.uint64)


def _place(hashes: Hashes) -> Hashes:
    """2**32 * (2**u - 1), where u from 0 to 1 follows from the hash.

    By this curve a place at the end of a layer gets half as many shingles as one at its beginning.
    """
    part = (hashes >> np.uint64(56)).view(np.int64)
    along: Hashes = (hashes >> np.uint64(24)) & _LOW
    along *= _RISE.take(part)
    along >>= _HALF
    along += _CURVE.take(part)
    return along


@dataclass(slots=True)
class Layer:
    """One layer of the filter."""

    words: Hashes
    begin: int = 0
    """Number of shingles of the whole filter, forgotten ones included, at which the layer was begun."""
    at_once: bool = True
    """Whether it was opened as a whole."""
    shingles: int = 0
    """Number of shingles that it was given."""
    documents: int = 0
    number: int = 0
    """Place among all layers of the filter, forgotten ones included."""

    def open_share(self, shingles: int) -> float:
        """The part that is open when the filter has had so many *shingles*."""
        return 1.0 if self.at_once else min(1.0, max(0.0, shingles / self.begin - 1))

    @property
    def end(self) -> int:
        """Number of shingles at which the next layer is begun."""
        per_shingle = BYTES_PER_SHINGLE if self.begin == 0 or not self.at_once else FULL_BYTES_PER_SHINGLE
        return self.begin + int(self.words.nbytes / per_shingle)

    def seen(self, keys: Keys) -> Flags:
        """For each of *keys*, whether it is remembered here."""
        first, second = self._words_of(keys)
        found: Flags = self.words.take(first) & keys.first == keys.first
        found &= self.words.take(second) & keys.second == keys.second
        return found

    def remember(self, keys: Keys) -> None:
        first, second = self._words_of(keys)
        np.bitwise_or.at(self.words, first, keys.first)
        np.bitwise_or.at(self.words, second, keys.second)
        self.shingles += len(keys.place)

    def _words_of(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = (keys.place * np.uint64(len(self.words))) >> _HALF
        return first.view(np.int64), (first ^ keys.apart).view(np.int64)


@dataclass(slots=True)
class ShingleFilter:
    """The seen shingles.

    It may take a new shingle for seen, but never a remembered one for new.
    """

    max_bytes: int
    layers: list[Layer] = field(default_factory=list)
    forgotten: int = 0
    """Number of documents whose shingles were forgotten."""
    shingles: int = 0
    """Number of shingles that were remembered, forgotten ones included."""

    @property
    def documents(self) -> int:
        """Number of documents whose shingles are remembered."""
        return sum(layer.documents for layer in self.layers)

    @property
    def bytes(self) -> int:
        """Bytes of the open parts of all layers; the system gives memory to nothing else."""
        return 8 * sum(map(self.open_words, self.layers))

    def open_words(self, layer: Layer) -> int:
        """Number of words of *layer*, from its first one on, that may not be zero."""
        lines = 1 + int(layer.open_share(self.shingles) * len(layer.words)) // LINE_WORDS
        return min(len(layer.words), lines * LINE_WORDS)

    @property
    def is_sampling(self) -> bool:
        """Whether only every fourth shingle counts."""
        return 2 * self.bytes > self.max_bytes

    def counted(self, found: Shingles) -> Flags:
        """For each of a document's shingles, whether it counts; of longer paragraphs perhaps only a sample."""
        if not self.is_sampling:
            return np.ones(len(found.hashes), np.bool_)
        is_short = np.repeat(found.counts < _MIN_SAMPLED, found.counts)
        counted: Flags = is_short | (found.hashes & _SAMPLE_MASK == 0)
        return counted

    def seen(self, keys: Keys) -> Flags:
        """For each of *keys*, whether it is remembered."""
        found = np.zeros(len(keys.place), np.bool_)
        for layer in self.layers:
            found |= layer.seen(keys)
        return found

    def remember(self, keys: Keys) -> None:
        """Remember *keys*, those of the new shingles of one document that count."""
        newest = self._open_layer()
        newest.documents += 1
        is_new = keys.place < newest.open_share(self.shingles) * 2.0**32
        self.shingles += len(keys.place)
        if is_new.all():
            newest.remember(keys)
        else:
            newest.remember(keys.those(is_new))
            self.layers[-2].remember(keys.those(~is_new))

    def _open_layer(self) -> Layer:
        largest = self.max_bytes // _LARGEST_SHARE
        if not self.layers:
            self.layers.append(Layer(_zeros(min(FIRST_BYTES, largest))))
        newest = self.layers[-1]
        if self.shingles >= newest.end:
            all_bytes = sum(layer.words.nbytes for layer in self.layers)
            words = _zeros(min(all_bytes, largest))
            at_once = words.nbytes < all_bytes
            while self.layers and sum(layer.words.nbytes for layer in self.layers) + words.nbytes > self.max_bytes:
                self.forgotten += self.layers.pop(0).documents
            self.layers.append(Layer(words, newest.end, at_once, number=newest.number + 1))
        return self.layers[-1]


def _zeros(size: int) -> Hashes:
    """Words of *size* bytes, in whole lines of the cache; they take memory when they are first written."""
    return np.zeros(max(1, size // (8 * LINE_WORDS)) * LINE_WORDS, np.uint64)


class Document(NamedTuple):
    """The shingles of a document as the filter knows them."""

    keys: Keys
    """Of each shingle, then once more of those of short paragraphs."""
    is_short: Flags
    """For each shingle, whether it is a whole paragraph of fewer words than others."""

    @classmethod
    def of(cls, hashes: Hashes) -> Document:
        is_short = hashes & ODD == ODD
        short = hashes[is_short]
        return cls(Keys.of(np.concatenate((hashes, (short ^ (short >> _HALF)) * _OTHER))), is_short)

    def seen(self, filter_: ShingleFilter) -> Flags:
        """For each shingle, whether *filter_* remembers it."""
        every = filter_.seen(self.keys)
        found = every[: len(self.is_short)]
        found[self.is_short] &= every[len(self.is_short) :]
        return found

    def part(self, which: Flags) -> Keys:
        """The keys of the shingles that *which* marks."""
        return self.keys.those(np.concatenate((which, which[self.is_short])))


class NearDuplicates:
    """Judges documents one after another; the order of the calls is the order of the corpus."""

    def __init__(self, seen: ShingleFilter) -> None:
        self.filter = seen
        self._pending: dict[Hashable, tuple[Hashes, Keys]] = {}

    def judge(self, key: Hashable, found: Shingles) -> Flags:
        """For each paragraph, whether it is a duplicate; the others' shingles wait under *key* until `settle`."""
        counted = self.filter.counted(found)
        document = Document.of(found.hashes)
        seen = document.seen(self.filter)
        for hashes, _ in self._pending.values():
            seen |= np.isin(found.hashes, hashes)
        owner = np.repeat(np.arange(len(found.counts)), found.counts)
        number = np.bincount(owner[counted], minlength=len(found.counts))
        least = np.asarray(MAX_SEEN_SHARE * number, np.float64)
        duplicate: Flags = np.bincount(owner[counted & seen], minlength=len(found.counts)) > least
        if found.repeats:
            duplicate = _within(found.hashes, owner, seen, counted, least)
        new = counted & ~duplicate[owner]
        self._pending[key] = found.hashes[new], document.part(new)
        return duplicate

    def settle(self, key: Hashable, kept: bool) -> None:
        """End the wait of the document under *key*; remember its shingles if it is *kept* (went to the checkpoint)."""
        waiting = self._pending.pop(key, None)
        if kept and waiting is not None:
            self.filter.remember(waiting[1])


def _within(hashes: Hashes, owner: Owners, seen: Flags, counted: Flags, least: NDArray[np.float64]) -> Flags:
    """For each paragraph, whether it is a duplicate where earlier ones of the document that are none count as well.

    Each round knows the duplicates of the round before, so after round n the first n paragraphs are judged for good.
    """
    order = np.argsort(hashes, kind="stable")
    begins, ends = np.ones((2, len(order)), np.bool_)  # of the places of one hash
    begins[1:] = ends[:-1] = hashes[order][1:] != hashes[order][:-1]
    is_repeated = ~(begins & ends)
    places = order[is_repeated]
    owners = owner[places]
    begins = begins[is_repeated]
    group = np.cumsum(begins) - 1
    duplicate: Flags = np.bincount(owner[counted & seen], minlength=len(least)) > least
    seen = seen.copy()
    before = seen[places]
    for _ in range(_MOST_ROUNDS):
        kept = np.where(duplicate[owners], len(least), owners)
        seen[places] = before | (np.minimum.reduceat(kept, np.flatnonzero(begins))[group] < owners)
        former = duplicate
        duplicate = np.bincount(owner[counted & seen], minlength=len(least)) > least
        if (duplicate == former).all():
            break
    return duplicate
