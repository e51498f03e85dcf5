"""Scores of texts in all languages at once: the log-probabilities of their n-grams are looked up in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.text.ngrams import ORDER, Array, Hashes, Places, crossing, normalised, windows

LOG_UNITS = 512
"""Units of the table for one nat of log-probability; the table holds 16-bit integers."""
MOST = (1 << 15) // ORDER - 1
"""Largest number in the table, so that a sum over ORDER sizes of n-grams does not overflow 16 bits."""


class Scored(NamedTuple):
    """Some texts as letters, with their n-grams and scores."""

    chars: Hashes
    starts: Places
    written: Hashes
    """As from `normalised`."""
    grams: Mapping[int, Hashes]
    """Size -> hash of the n-gram that begins at each character."""
    scores: Array
    """Sum of log-probabilities (text, column of the table)."""


Score = Callable[[Sequence[str], npt.NDArray[np.int16]], Scored]
"""Type of `scored`."""


def scored(texts: Sequence[str], logs: npt.NDArray[np.int16]) -> Scored:
    """The *texts*, at least one, with their scores by *logs*: (hash, column), and a last row of zeros."""
    chars, starts, written = normalised(texts)
    grams = windows(chars, ORDER)
    return Scored(chars, starts, written, grams, _scores(grams, starts, logs))


def nothing(number: int, columns: int) -> Scored:
    """*number* texts without letters, or without *columns*."""
    empty = np.zeros(0, np.uint32)
    starts = np.zeros(number + 1, np.intp)
    return Scored(empty, starts, empty, windows(empty, ORDER), np.zeros((number, columns), np.float32))


def _scores(grams: Mapping[int, Hashes], starts: Places, logs: npt.NDArray[np.int16]) -> Array:
    last = len(logs) - 1
    width = logs.shape[1]
    rows = logs.view(f"V{2 * width}")[:, 0]  # each row as one value, which is copied as a whole
    total = np.zeros((starts[-1], width), np.int16)
    for size, hashes in grams.items():
        places = (hashes & np.uint32(last - 1)).astype(np.intp)
        places[crossing(starts, size)] = last
        total += rows.take(places, mode="clip").view(np.int16).reshape(total.shape)
    sums = np.add.reduceat(total, starts[:-1], axis=0, dtype=np.int32)
    return (sums / np.float32(LOG_UNITS)).astype(np.float32)
