"""Finds near-duplicate paragraphs during the crawl, by onion's rule over all text kept before (Pomikálek 2011, section
5.3; Suchomel & Pomikálek 2012, section 3.2).

A paragraph is a duplicate if more than half of its shingles were seen in documents kept before, or in paragraphs
before it in its own document that are no duplicates.  A document is remembered in the step in which it goes to the
checkpoint, so the filter never holds a document that could be lost; from judgement to that step it is pending.

The seen shingles stand in a Bloom filter in memory.  A shingle takes five bits of one 64-bit word (a blocked Bloom
filter, Putze et al. 2007), so a look-up reads one place of each layer.  A full layer is never written again, and a new
one of four times its size takes over.  ``max_bytes`` bounds all layers together.  Beyond half of it only every fourth
shingle of a longer paragraph counts; at the bound the oldest layer is forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spiderling.text.shingles import Shingles

MAX_SEEN_SHARE = 0.5
"""Share of a paragraph's shingles above which it is a duplicate (Pomikálek 2011: onion's default)."""
FIRST_BYTES = 1 << 20
"""Size of the first layer (chosen)."""
BYTES_PER_SHINGLE = 2.5
"""Bytes per shingle of a full layer, which takes one new shingle in 450 for seen (chosen by benchmarks/dedup.py)."""
_LARGEST_SHARE = 4
"""``max_bytes`` / the largest layer, so that not much is forgotten at once (chosen)."""
_MIN_SAMPLED = 8
"""Paragraphs with fewer shingles are not sampled, because the sample could miss them all (chosen)."""
_SAMPLE_SHIFT = np.uint64(30)
_SAMPLE_MASK = np.uint64(3)
"""A shingle is in the sample if these two bits of its hash are zero: one in four (chosen)."""

Hashes = NDArray[np.uint64]


@dataclass(slots=True)
class Layer:
    """One layer of the filter; its number of words is a power of two."""

    words: Hashes
    shingles: int = 0
    documents: int = 0
    number: int = 0
    """Place among all layers of the filter, forgotten ones included."""

    @property
    def is_full(self) -> bool:
        return self.shingles * BYTES_PER_SHINGLE >= self.words.nbytes

    def places(self, hashes: Hashes) -> NDArray[np.int64]:
        bits = len(self.words).bit_length() - 1
        places: NDArray[np.int64] = (hashes >> np.uint64(64 - bits)).astype(np.int64)
        return places


@dataclass(slots=True)
class ShingleFilter:
    """The seen shingles.

    It may take a new shingle for seen, but never a remembered one for new.
    """

    max_bytes: int
    layers: list[Layer] = field(default_factory=list)
    forgotten: int = 0
    """Number of documents whose shingles were forgotten."""

    @property
    def documents(self) -> int:
        """Number of documents whose shingles are remembered."""
        return sum(layer.documents for layer in self.layers)

    @property
    def bytes(self) -> int:
        return sum(layer.words.nbytes for layer in self.layers)

    @property
    def is_sampling(self) -> bool:
        """Whether only every fourth shingle counts."""
        return 2 * self.bytes > self.max_bytes

    def counted(self, found: Shingles) -> NDArray[np.bool_]:
        """For each of a document's shingles, whether it counts; of longer paragraphs perhaps only a sample."""
        if not self.is_sampling:
            return np.ones(len(found.hashes), np.bool_)
        is_short = np.repeat(found.counts < _MIN_SAMPLED, found.counts)
        counted: NDArray[np.bool_] = is_short | ((found.hashes >> _SAMPLE_SHIFT) & _SAMPLE_MASK == 0)
        return counted

    def seen(self, hashes: Hashes) -> NDArray[np.bool_]:
        """For each of *hashes*, whether it is remembered."""
        found = np.zeros(len(hashes), np.bool_)
        masks = _masks(hashes)
        for layer in self.layers:
            found |= layer.words[layer.places(hashes)] & masks == masks
        return found

    def remember(self, hashes: Hashes) -> None:
        """Remember *hashes*, the new shingles of one document that count."""
        layer = self._open_layer()
        np.bitwise_or.at(layer.words, layer.places(hashes), _masks(hashes))
        layer.shingles += len(hashes)
        layer.documents += 1

    def _open_layer(self) -> Layer:
        if self.layers and not self.layers[-1].is_full:
            return self.layers[-1]
        largest = max(FIRST_BYTES, self.max_bytes // _LARGEST_SHARE)
        size = min(4 * self.layers[-1].words.nbytes if self.layers else FIRST_BYTES, largest)
        words = 1 << (max(size, 8) // 8).bit_length() - 1
        number = self.layers[-1].number + 1 if self.layers else 0
        while self.layers and self.bytes + 8 * words > self.max_bytes:
            self.forgotten += self.layers.pop(0).documents
        self.layers.append(Layer(np.zeros(words, np.uint64), number=number))
        return self.layers[-1]


def _masks(hashes: Hashes) -> Hashes:
    """For each hash a word with up to five bits set, chosen by its low 30 bits."""
    masks = np.zeros(len(hashes), np.uint64)
    for shift in range(0, 30, 6):
        masks |= np.uint64(1) << ((hashes >> np.uint64(shift)) & np.uint64(63))
    return masks


class NearDuplicates:
    """Judges documents one after another; the order of the calls is the order of the corpus."""

    def __init__(self, seen: ShingleFilter) -> None:
        self.filter = seen
        self._pending: dict[Hashable, Hashes] = {}

    def judge(self, key: Hashable, found: Shingles) -> NDArray[np.bool_]:
        """For each paragraph, whether it is a duplicate; the others' shingles wait under *key* until `settle`."""
        counted = self.filter.counted(found)
        seen = self.filter.seen(found.hashes)
        for hashes in self._pending.values():
            seen |= np.isin(found.hashes, hashes)
        owner = np.repeat(np.arange(len(found.counts)), found.counts)
        if found.repeats:
            _see_own(found, seen, counted)
        number = np.bincount(owner[counted], minlength=len(found.counts))
        duplicate = np.bincount(owner[counted & seen], minlength=len(found.counts)) > MAX_SEEN_SHARE * number
        self._pending[key] = found.hashes[counted & ~duplicate[owner]]
        return duplicate

    def settle(self, key: Hashable, kept: bool) -> None:
        """End the wait of the document under *key*; remember its shingles if it is *kept* (went to the checkpoint)."""
        hashes = self._pending.pop(key, None)
        if kept and hashes is not None:
            self.filter.remember(hashes)


def _see_own(found: Shingles, seen: NDArray[np.bool_], counted: NDArray[np.bool_]) -> None:
    """Mark in *seen* the shingles of earlier paragraphs of the document that are no duplicates."""
    own: set[int] = set()
    hashes = found.hashes.tolist()
    for start, end in pairwise([0, *np.cumsum(found.counts).tolist()]):
        here = slice(start, end)
        if not own.isdisjoint(hashes[here]):
            seen[here] |= [hashed in own for hashed in hashes[here]]
        if np.count_nonzero(seen[here] & counted[here]) <= MAX_SEEN_SHARE * np.count_nonzero(counted[here]):
            own.update(hashes[here])
