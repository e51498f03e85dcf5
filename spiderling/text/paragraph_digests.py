"""Which paragraphs of a page are new: its last version is known by 8-byte digests of its paragraphs.

The digests are exact but for one collision in 10^13 for a page of a thousand paragraphs.  They are kept for each page
apart, so a paragraph counts as new on a page that did not have it, however often other pages have it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import islice

import numpy as np
import xxhash
from numpy.typing import NDArray

MAX_PARAGRAPHS = 65_536
"""Paragraphs of a page that have a digest, in 512 kB (chosen: the longest pages of books have some thousands)."""
_DIGEST = np.dtype("<u8")


def digests_of(texts: Iterable[str]) -> bytes:
    """The digests of the first MAX_PARAGRAPHS of *texts*, which are in normal form (html/normal.py), in their order."""
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


def packed(digests: bytes) -> bytes:
    """*digests*, each once, to be stored."""
    return array("Q", {*array("Q", digests)}).tobytes()  # for one page numpy's ``unique`` takes twice as long
