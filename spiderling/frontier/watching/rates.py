"""How often something new comes to stand on pages of a class, and how much: pooled by host, and over all hosts.

An event is new text on the page, or a link that nobody had found before; never changed bytes.
A page's own history is too short to go by (most show less than one event a month), so pages of a
class share one rate on each host.  A host of which little is known is taken to be like the others:
rate = (events + PRIOR) / (days + PRIOR / rate of the class), a gamma distribution's mean (Cho & Garcia-Molina
2003, *Estimating Frequency of Change*, estimate single pages).

Times are days since the watch began.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError

HALF_LIFE_DAYS = 30.0
"""Days after which a look counts half against a new one (chosen: a month).

Time alone takes nothing away: a class that is no longer looked at keeps its rate.
"""
PRIOR_EVENTS = 0.5
"""How many events the rate of all hosts is worth for the rate of one (chosen; half an event, as in Jeffreys' prior)."""
PRIOR_WORDS = 100.0
"""Words of an event of which nothing is known yet (chosen).  A host's mean counts those of all hosts as one event."""
AGES_DAYS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Days since a page was found at which its class changes: corrections, comments and replies come soon.

Chosen: at three ages (2, 14 days) the simulated forums gave .57 of their new words in place of .62.
"""
OLDEST = len(AGES_DAYS)
"""The class of pages that are older than all of these; 0 are the youngest."""
HUB, FEED, SITEMAP, NEW = range(OLDEST + 1, OLDEST + 5)
"""A page that lists new pages (earlier looks found links there); and one that is fetched for the first time.

Each of these first fetches is one event: its words tell what a new link is worth.
"""
CLASSES = NEW + 1
_KINDS = range(CLASSES)
PRIOR_RATE = 1.0
"""Events a day until something is known of a class on any host (chosen, too high by far: so each class is tried)."""
_EVENTS, _DAYS, _WORDS, _LAST = (number * CLASSES for number in range(4))
"""Where the sums of the classes begin, and the times of their last looks."""
_NUMBERS = 4 * CLASSES
_FOUR_BYTES, _EIGHT_BYTES = "f", "d"
"""Of a host and of all hosts: only the sums of all grow too large for a single look to count in four bytes."""

Matrix = NDArray[np.float64]
_Numbers: TypeAlias = "array[float]"


class Rates:
    """Events, days and words of all looks, by host and class; 176 bytes a host, and 4 for each id of a host."""

    def __init__(self) -> None:
        self._row = array("i")
        """Of each host, by its id."""
        self._sums: _Numbers = array(_FOUR_BYTES, bytes(4 * _NUMBERS))
        """Rows of _NUMBERS; the first one is of hosts of which nothing is known."""
        self._all: _Numbers = array(_EIGHT_BYTES, bytes(8 * _NUMBERS))

    def sums(self, host: int) -> bytes:
        """All that is known of *host*; 0: of all hosts."""
        if not host:
            return self._all.tobytes()
        begin = self._begin(host)
        return self._sums[begin : begin + _NUMBERS].tobytes()

    def restore(self, host: int, sums: bytes) -> None:
        """Take up what `sums` gave."""
        if not host and len(sums) == 8 * _NUMBERS:
            self._all = array(_EIGHT_BYTES, sums)
        elif host and len(sums) == 4 * _NUMBERS:
            begin = self._made(host)
            self._sums[begin : begin + _NUMBERS] = array(_FOUR_BYTES, sums)
        else:
            raise DamageError(f"the rates of host {host} are damaged: {len(sums)} bytes.")

    def learn(self, host: int, kind: int, events: float, words: float, days: float, now: float) -> None:
        """A look at *now* found *events* with *words* after *days*."""
        for sums, begin in ((self._sums, self._made(host)), (self._all, 0)):
            at = begin + kind
            last = sums[_LAST + at]
            faded = 0.5 ** max(0.0, (now - last) / HALF_LIFE_DAYS)
            sums[_EVENTS + at] = sums[_EVENTS + at] * faded + events
            sums[_DAYS + at] = sums[_DAYS + at] * faded + days
            sums[_WORDS + at] = sums[_WORDS + at] * faded + words
            sums[_LAST + at] = max(last, now)

    def learn_page(self, host: int, events: float, words: float, age_before: float, age: float, now: float) -> float:
        """The same of a page, whose class may have changed since its last look: each gets the share it was due.

        Returns how many events were expected of it.
        """
        parts = days_by_class(age_before, age)
        expected = [days * self.rate(host, kind) for kind, days in parts]
        whole = sum(expected) or 1.0
        for (kind, days), share in zip(parts, expected, strict=True):
            self.learn(host, kind, events * share / whole, words * share / whole, days, now)
        return sum(expected)

    def rate(self, host: int, kind: int) -> float:
        """Events a day on a page of *host*, of the class *kind*."""
        of_all = _rate(self._all, kind, PRIOR_RATE)
        return _rate(self._sums, self._begin(host) + kind, of_all)

    def words(self, host: int, kind: int) -> float:
        """Words of an event there."""
        of_all = _words(self._all, kind, PRIOR_WORDS)
        return _words(self._sums, self._begin(host) + kind, of_all)

    def tables(self, hosts: Sequence[int]) -> tuple[Matrix, Matrix]:
        """`rate` and `words` of each of *hosts*, one row each, and each class."""
        rows = [self._begin(host) // _NUMBERS for host in hosts]
        sums = np.frombuffer(self._sums, np.float32).reshape(-1, _NUMBERS)[rows].astype(np.float64)
        events, days, words, _ = np.split(sums, 4, axis=1)
        of_all = np.array(
            [(_rate(self._all, kind, PRIOR_RATE), _words(self._all, kind, PRIOR_WORDS)) for kind in _KINDS]
        )
        rate = (events + PRIOR_EVENTS) / (days + PRIOR_EVENTS / of_all[:, 0])
        return rate, (words + of_all[:, 1]) / (events + 1)

    def _begin(self, host: int) -> int:
        """Where the row of *host* begins."""
        return self._row[host] * _NUMBERS if host < len(self._row) else 0

    def _made(self, host: int) -> int:
        """The same; it has one from now on."""
        if host >= len(self._row):
            self._row.extend(repeat(0, host + 1 - len(self._row)))
        if not self._row[host]:
            self._row[host] = len(self._sums) // _NUMBERS
            self._sums.extend(repeat(0.0, _NUMBERS))
        return self._row[host] * _NUMBERS


def days_by_class(age_before: float, age: float) -> list[tuple[int, float]]:
    """Classes that a page had from one age to the other, and the days in each."""
    first, last = page_class(age_before), page_class(age)
    ages = (age_before, *AGES_DAYS[first:last], age)
    return [(first + number, after - before) for number, (before, after) in enumerate(pairwise(ages))]


def page_class(age_days: float) -> int:
    """The class of a page that was found *age_days* ago."""
    return bisect_right(AGES_DAYS, age_days)


def _rate(sums: _Numbers, at: int, rate: float) -> float:
    """*rate*: what it is like to be."""
    return (sums[_EVENTS + at] + PRIOR_EVENTS) / (sums[_DAYS + at] + PRIOR_EVENTS / rate)


def _words(sums: _Numbers, at: int, words: float) -> float:
    return (sums[_WORDS + at] + words) / (sums[_EVENTS + at] + 1)
