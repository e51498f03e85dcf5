"""Which look is worth most: expected events since the last look, times the days that they have waited.

Both grow with the wait, so the index is a rate times the square of the wait.  Pages that are looked at by it
have intervals in proportion to the root of 1 / rate, which is the best division of a budget when what is
late is worth less; the rate times the wait alone would leave pages with a low rate for ever.

The functions take columns, of the pages of one host in a crawl.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]


def unknown_days(now: float, last: Column, made: Column, recall: Column, is_quiet: NDArray[np.bool_]) -> Column:
    """Days of which nothing is known since the *last* look at each page.

    *is_quiet*: believed dates, of which the newest is *made*, do not announce it.  Then it is known to have
    changed in none of the days before, but for the share that such dates miss.
    """
    days: Column = np.where(
        is_quiet & (made > last), (now - made) + (1 - recall) * (np.maximum(made, last) - last), now - last
    )
    return days


def expected_events(rate: Column, days: Column, trust: Column, is_announced: NDArray[np.bool_]) -> Column:
    """Events in *days*; one that is announced by believed dates is at least as sure as these are trusted."""
    events = rate * days
    expected: Column = np.where(is_announced, np.maximum(events, trust), events)
    return expected


def worth(events: Column, days: Column, words: Column | None = None, least_words: float = 0.0) -> Column:
    """The index of each look; 0 where less than *least_words* are expected (*words* an event)."""
    index = events * days
    if words is None or not least_words:
        return index
    worthwhile: Column = np.where(events * words >= least_words, index, 0.0)
    return worthwhile
