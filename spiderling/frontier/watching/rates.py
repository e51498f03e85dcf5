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
from itertools import pairwise

from spiderling.base.errors import DamageError

HALF_LIFE_DAYS = 30.0
"""Days after which a look counts half against a new one (chosen: a month).

Time alone takes nothing away: a class that is no longer looked at keeps its rate.
"""
_MOST_HALF_LIVES = 1000.0
"""Half-lives since the watch began from which looks weigh alike (chosen: 2 ** 1000 is a double, and so are sums)."""
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
PRIOR_RATE = 1.0
"""Events a day until something is known of a class on any host (chosen, too high by far: so each class is tried)."""
_EVENTS, _DAYS, _WORDS, _WEIGHT = (number * CLASSES for number in range(4))
"""Where the sums of the classes begin, and the weights of their last looks."""


class Rates:
    """Events, days and words of all looks, by host and class; 352 bytes a host."""

    def __init__(self) -> None:
        self._hosts: dict[int, array[float]] = {}
        self._all = _sums()

    def knows(self, host: int) -> bool:
        """Whether *host* has sums of its own."""
        return host in self._hosts

    def sums(self, host: int) -> bytes:
        """All that is known of *host*, which is known; 0: of all hosts."""
        return (self._hosts[host] if host else self._all).tobytes()

    def restore(self, host: int, sums: bytes) -> None:
        """Take up what `sums` gave."""
        known = array("d", sums)
        if len(known) != 4 * CLASSES:
            raise DamageError(f"the rates of host {host} are damaged: {len(known)} numbers.")
        if host:
            self._hosts[host] = known
        else:
            self._all = known

    def learn(self, host: int, kind: int, events: float, words: float, days: float, now: float) -> None:
        """A look at *now* found *events* with *words* after *days*."""
        # newer looks weigh more, which ages all older ones without touching them
        weight = _weight(now)
        for sums in (self._hosts.setdefault(host, _sums()), self._all):
            sums[_EVENTS + kind] += weight * events
            sums[_DAYS + kind] += weight * days
            sums[_WORDS + kind] += weight * words
            sums[_WEIGHT + kind] = weight

    def learn_page(self, host: int, events: float, words: float, age_before: float, age: float, now: float) -> None:
        """The same of a page, whose class may have changed since its last look: each gets the share it was due."""
        parts = days_by_class(age_before, age)
        expected = [days * self.rate(host, kind) for kind, days in parts]
        whole = sum(expected) or 1.0
        for (kind, days), share in zip(parts, expected, strict=True):
            self.learn(host, kind, events * share / whole, words * share / whole, days, now)

    def rate(self, host: int, kind: int) -> float:
        """Events a day on a page of *host*, of the class *kind*."""
        rate = _rate(self._all, kind, PRIOR_RATE)
        sums = self._hosts.get(host)
        return rate if sums is None else _rate(sums, kind, rate)

    def words(self, host: int, kind: int) -> float:
        """Words of an event there."""
        words = _words(self._all, kind, PRIOR_WORDS)
        sums = self._hosts.get(host)
        return words if sums is None else _words(sums, kind, words)


def days_by_class(age_before: float, age: float) -> list[tuple[int, float]]:
    """Classes that a page had from one age to the other, and the days in each."""
    first, last = page_class(age_before), page_class(age)
    ages = (age_before, *AGES_DAYS[first:last], age)
    return [(first + number, after - before) for number, (before, after) in enumerate(pairwise(ages))]


def page_class(age_days: float) -> int:
    """The class of a page that was found *age_days* ago."""
    return bisect_right(AGES_DAYS, age_days)


def _sums() -> array[float]:
    return array("d", bytes(8 * 4 * CLASSES))


def _weight(now: float) -> float:
    """Of a look.  A double holds the weights of 80 years; later looks weigh alike, as in a trial with short days."""
    return float(2.0 ** min(now / HALF_LIFE_DAYS, _MOST_HALF_LIVES))


def _rate(sums: array[float], kind: int, rate: float) -> float:
    prior = PRIOR_EVENTS * max(1.0, sums[_WEIGHT + kind])
    return (sums[_EVENTS + kind] + prior) / (sums[_DAYS + kind] + prior / rate)


def _words(sums: array[float], kind: int, words: float) -> float:
    prior = max(1.0, sums[_WEIGHT + kind])
    return (sums[_WORDS + kind] + prior * words) / (sums[_EVENTS + kind] + prior)
