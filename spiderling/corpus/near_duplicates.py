"""Near-duplicate paragraphs while crawling: onion's rule over all text kept before (Pomikálek 2011, section
5.3; Suchomel & Pomikálek 2012, section 3.2).

A paragraph of which more than half of the shingles were seen in documents kept
before, or in earlier new paragraphs of its own document, is a duplicate.  A document
is remembered in the same step in which it goes to the checkpoint, so the filter never
holds a document that could be lost; between judgement and that step it is `pending`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spiderling.corpus.shingle_filter import ShingleFilter

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from spiderling.corpus.shingle_filter import Hashes
    from spiderling.text.shingles import Shingles

MAX_SEEN_SHARE = 0.5
"""Share of a paragraph's shingles above which it is a duplicate (Pomikálek 2011: onion's default)."""


class NearDuplicates:
    """Judges documents one after another; the order of the calls is the order of the corpus."""

    def __init__(self, seen: ShingleFilter) -> None:
        self.filter = seen
        self._pending: dict[Hashable, Hashes] = {}

    def judge(self, key: Hashable, found: Shingles) -> NDArray[np.bool_]:
        """Which paragraphs are duplicates; the others' shingles wait under *key* until `settle`."""
        counted = self.filter.counted(found)
        seen = self.filter.seen(found.hashes)
        for hashes in self._pending.values():
            seen |= np.isin(found.hashes, hashes)
        owner = np.repeat(np.arange(len(found.counts)), found.counts)
        if found.repeats:
            _see_own(found, seen, counted)
        duplicate = _shares(owner, seen, counted, len(found.counts)) > MAX_SEEN_SHARE
        self._pending[key] = found.hashes[counted & ~duplicate[owner]]
        return duplicate

    def settle(self, key: Hashable, kept: bool) -> None:
        """The document judged under *key* went to the checkpoint (*kept*), or ended otherwise."""
        hashes = self._pending.pop(key, None)
        if kept and hashes is not None:
            self.filter.remember(hashes)


def _see_own(found: Shingles, seen: NDArray[np.bool_], counted: NDArray[np.bool_]) -> None:
    """Mark in *seen* what earlier paragraphs of the same document hold, unless they are duplicates themselves."""
    own: set[int] = set()
    hashes = found.hashes.tolist()
    start = 0
    for count in found.counts.tolist():
        part = hashes[start : start + count]
        here = slice(start, start + count)
        if not own.isdisjoint(part):
            seen[here] |= [hashed in own for hashed in part]
        known = np.count_nonzero(seen[here] & counted[here])
        number = np.count_nonzero(counted[here])
        if known <= MAX_SEEN_SHARE * number:
            own.update(part)
        start += count


def _shares(
    owner: NDArray[np.int64], seen: NDArray[np.bool_], counted: NDArray[np.bool_], paragraphs: int
) -> NDArray[np.float64]:
    """The share of each paragraph's shingles that was seen; 0 for one of which none counts."""
    number = np.bincount(owner[counted], minlength=paragraphs)
    known = np.bincount(owner[counted & seen], minlength=paragraphs)
    return known / np.maximum(number, 1)
