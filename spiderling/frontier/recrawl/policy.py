"""The policy of a recrawl: what is worth a revisit, and what a revisit teaches; a crawl and the simulator share it.

*Worth*: expected words since the last revisit, times the days of which nothing is known.  Both grow with the wait, so
the index is a rate of words times the square of the wait.  Pages that are revisited by it have intervals in
proportion to the root of 1 / rate, which is the best division of a budget when what is late is worth less; the rate
times the wait alone would leave pages with a low rate for ever.

*Rates*: how often something new comes to stand on pages of a class, and how much.  An event is new text on the page, or
a link that nobody had found before; never changed bytes.  A page's own history is too short to go by (most show less
than one event a month), so pages of a class share one rate on each host.  A host of which little is known is taken to
be like the others: rate = (events + PRIOR) / (days + PRIOR / rate of the class), a gamma distribution's mean (Cho &
Garcia-Molina 2003, *Estimating Frequency of Change*, estimate single pages).

*Dates*: some sitemaps say when the text of a page changed, others when the file was made (18 % in Canel 2023, *The
Importance of Setting the "lastmod" Tag*, Bing Webmaster Blog).  A date is put to the test when the page is revisited.

Pages are given as columns, of any number of hosts, so that thousands are judged in one call.  Times are days since the
recrawl began.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.errors import DamageError

DAY_S = 86_400.0  # seconds of a day of the recrawl
MIN_WORD_DAYS = 300.0
"""New words expected of a revisit, times the days since the last, below which it is left out.  Chosen: in the simulator
300 got about .95 of the words, 5000 about .80."""
HALF_LIFE_DAYS = 30.0
"""Days after which a revisit counts half against a new one (chosen: a month).

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
OLDEST = len(AGES_DAYS)  # the class of pages that are older than all of these; 0 are the youngest
PAGE, HUB, FEED, SITEMAP = range(4)
"""Kinds of what is revisited; a hub is a page that lists new pages.  Only the class of a page changes with its age;
those of the other kinds are OLDEST + kind."""
NEW = OLDEST + SITEMAP + 1
"""The class of what is fetched for the first time.

Each of these first fetches is one event: its words tell what a new link is worth.
"""
CLASSES = NEW + 1
PRIOR_RATE = 1.0
"""Events a day until something is known of a class on any host (chosen, too high by far: so each class is tried)."""
_EVENTS, _DAYS, _WORDS, _LAST = (number * CLASSES for number in range(4))
"""Where the sums of the classes begin, and the times of their last revisits."""
_NUMBERS = 4 * CLASSES

Matrix = NDArray[np.float64]


def _no_sums(kind: str) -> array[float]:
    return array(kind, [0.0]) * _NUMBERS


class ChangeRates:
    """Events, days and words of all revisits, by host and class; some 350 bytes a host."""

    def __init__(self) -> None:
        self._of: defaultdict[int, array[float]] = defaultdict(partial(_no_sums, "f"))
        self._all = _no_sums("d")  # in four bytes, a single revisit would no longer count

    def sums(self, host: int) -> bytes:
        """All that is known of *host*; 0: of all hosts."""
        return (self._of[host] if host else self._all).tobytes()

    def restore(self, host: int, sums: bytes) -> None:
        """Take up what `sums` gave."""
        numbers = array("f" if host else "d", sums)
        if len(numbers) != _NUMBERS:
            raise ValueError(f"{len(numbers)} numbers")
        if host:
            self._of[host] = numbers
        else:
            self._all = numbers

    def learn(self, host: int, kind: int, events: float, words: float, days: float, now: float) -> None:
        """A revisit of *now* found *events* with *words* after *days*."""
        for sums in (self._of[host], self._all):
            last = sums[_LAST + kind]
            faded = 0.5 ** max(0.0, (now - last) / HALF_LIFE_DAYS)
            sums[_EVENTS + kind] = sums[_EVENTS + kind] * faded + events
            sums[_DAYS + kind] = sums[_DAYS + kind] * faded + days
            sums[_WORDS + kind] = sums[_WORDS + kind] * faded + words
            sums[_LAST + kind] = max(last, now)

    def learn_page(self, host: int, events: float, words: float, age_before: float, age: float, now: float) -> float:
        """The same of a page, whose class may have changed since its last revisit: each gets the share it was due.

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
        return float(self.tables([host])[0][0, kind])

    def words(self, host: int, kind: int) -> float:
        """Words of an event there."""
        return float(self.tables([host])[1][0, kind])

    def tables(self, hosts: Sequence[int]) -> tuple[Matrix, Matrix]:
        """`rate` and `words` of each of *hosts*, one row each, and each class."""
        sums = b"".join([self._of.get(host, _NO_SUMS) for host in hosts])
        of_all = _means(np.array(self._all), PRIOR_RATE, PRIOR_WORDS)
        return _means(np.frombuffer(sums, np.float32).reshape(-1, _NUMBERS).astype(np.float64), *of_all)


_NO_SUMS = _no_sums("f")


def _means(sums: Matrix, rate: Matrix | float, words: Matrix | float) -> tuple[Matrix, Matrix]:
    """Rate and words of each class by the *sums*; *rate*, *words*: what they are like to be."""
    events, days, of_words, _ = np.split(sums, 4, axis=-1)
    return (events + PRIOR_EVENTS) / (days + PRIOR_EVENTS / rate), (of_words + words) / (events + 1)


def days_by_class(age_before: float, age: float) -> list[tuple[int, float]]:
    """Classes that a page had from one age to the other, and the days in each."""
    first, last = page_class(age_before), page_class(age)
    ages = (age_before, *AGES_DAYS[first:last], age)
    return [(first + number, after - before) for number, (before, after) in enumerate(pairwise(ages))]


def page_class(age_days: float) -> int:
    return bisect_right(AGES_DAYS, age_days)


BELIEVED = 0.5  # trust above which dates count (chosen: more often right than wrong)
SURPRISE_EVENTS = 0.2
"""Expected events below which a page tells truth from luck: one that changes daily is announced rightly by any date."""


@dataclass(slots=True)
class Announcements:
    """What became of a host's announcements; chosen to begin with: two of three are right, half are foretold."""

    right: float = 2.0
    wrong: float = 1.0
    foretold: float = 1.0
    missed: float = 1.0
    made: float = float("-inf")  # the newest date that a sitemap gave to a page

    @property
    def trust(self) -> float:
        """Share of the announced pages that have something new."""
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        """Share of the pages with something new that are announced."""
        return self.foretold / (self.foretold + self.missed)

    @property
    def is_believed(self) -> bool:
        return self.trust > BELIEVED

    def learn(self, was_announced: bool, has_new_text: bool, expected_events: float, last: float) -> None:
        """A page was revisited, before that at *last*, of which *expected_events* were expected without dates."""
        if was_announced and expected_events < SURPRISE_EVENTS:
            self.right += has_new_text
            self.wrong += not has_new_text
        if has_new_text and self.made > last:
            self.foretold += was_announced
            self.missed += not was_announced


Column = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
STARTS_DAYS = np.array((0.0, *AGES_DAYS))  # age at which each class of pages begins
_STARTS = np.append(STARTS_DAYS, np.zeros(CLASSES - len(STARTS_DAYS)))


class Pages(NamedTuple):
    """Columns of what is recrawled; times are days since the recrawl began."""

    row: Integers  # the row of its host in Tables
    kind: Integers
    found_at: Column
    last: Column  # when it was last looked at, or first fetched
    is_announced: Flags  # a date says that it has changed since


class RevisitCandidate(NamedTuple):
    """One of them."""

    host: int
    kind: int
    found_at: float
    last: float
    is_announced: bool


class Tables(NamedTuple):
    """What is known of some hosts, for a while: a row for each, a column for each class."""

    hosts: Sequence[int]
    rate: Column
    before: Column  # events of a page until the class begins
    words: Column  # of an event


class RevisitResult(NamedTuple):
    """What a revisit gave."""

    words: int = 0  # new words on the page
    links: int = 0  # links that nobody had found before
    announced: int = 0  # known pages that a sitemap or a feed says have changed
    newest_date: float = float("-inf")  # the newest date that it gives to a page


class RecrawlPolicy:
    """New words a day by host and class, times the square of the wait; dates count where they have been right."""

    def __init__(self, min_word_days: float = 0.0) -> None:
        """A revisit is left out if the words expected of it, times the days of which nothing is known, are fewer."""
        self.min_word_days = min_word_days  # word-days below which no revisit is planned
        self.rates = ChangeRates()
        self.dates: dict[int, Announcements] = {}  # what became of the announcements of each host that has made any

    def tables(self, hosts: Sequence[int]) -> Tables:
        rate, words = self.rates.tables(hosts)
        before = np.zeros_like(rate)
        np.cumsum(rate[:, :OLDEST] * np.diff(STARTS_DAYS), axis=-1, out=before[:, 1 : OLDEST + 1])
        return Tables(hosts, rate, before, words)

    def worth(self, tables: Tables, pages: Pages, now: float) -> Column:
        """The index of a revisit of each of *pages*; 0: it is not worth its request.

        Nothing is known of a page since its last revisit; but if dates are believed and do not announce it, it has
        hardly changed until the newest of them: what they miss is expected besides.  One that is announced has an event
        at least as surely as the dates are trusted.

        The stop by ``min_word_days`` divides requests like the index.  One by the words alone asks in proportion to
        the rate: on the blogs, forums, docs and offices of the simulator it got .86 of the words for 2 % of the
        requests (seeds 0 and 1), where this one got .92 (seed 0).
        """
        made, trust, recall = self._dates(tables.hosts, pages.row)
        is_believed = trust > BELIEVED
        is_announced = pages.is_announced & is_believed
        is_quiet = (pages.kind == PAGE) & is_believed & ~is_announced
        since = np.where(is_quiet, np.maximum(made, pages.last), pages.last)
        until_now, until_last = (_until(tables, pages, at) for at in (now, pages.last))
        until_since = _until(tables, pages, since) if is_quiet.any() else until_last
        events = until_now - until_since + (1 - recall) * (until_since - until_last)
        events = np.where(is_announced, np.maximum(events, trust), events)
        days = now - since + (1 - recall) * (since - pages.last)
        index = events * days * tables.words[pages.row, classes(pages, now)]
        return np.where(index >= self.min_word_days, index, 0.0)

    def learn(self, page: RevisitCandidate, found: RevisitResult, now: float) -> None:
        """A revisit of *now* at *page*, as it was before, has *found* something or nothing."""
        host = page.host
        dates = self.dates.get(host, Announcements())
        events = (found.words > 0) + found.links + dates.trust * dates.is_believed * found.announced
        words = found.words + found.links * self.rates.words(host, NEW)
        if page.kind == PAGE:
            age_before, age = page.last - page.found_at, now - page.found_at
            expected = self.rates.learn_page(host, events, words, age_before, age, now)
            dates.learn(page.is_announced, found.words > 0, expected, page.last)
        else:
            if page.kind in (FEED, SITEMAP):
                dates.made = max(dates.made, found.newest_date)
                words += (events - found.links) * self.rates.words(host, OLDEST)
            self.rates.learn(host, page.kind + OLDEST, events, words, now - page.last, now)
        self._put_dates(host, dates)

    def _put_dates(self, host: int, dates: Announcements) -> None:
        """What became of the announcements of *host*; most hosts make none."""
        if dates != _NONE:
            self.dates[host] = dates

    def _dates(self, hosts: Sequence[int], row: Integers) -> tuple[Column, ...]:
        known = [self.dates.get(host, _NONE) for host in hosts]
        columns = [(one.made, one.trust, one.recall) for one in known]
        made, trust, recall = (np.array(column)[row] for column in zip(*columns, strict=True))
        return made, trust, recall

    # -- rows of the table ``rate``; the row 0 is of all hosts

    def pack(self, host: int) -> bytes:
        """What was learnt of *host*, as its row."""
        dates = array("d", astuple(self.dates.get(host, _NONE))).tobytes() if host else b""
        return zlib.compress(dates + self.rates.sums(host))

    def restore(self, host: int, row: bytes) -> None:
        """Take up the row of *host*; raises DamageError for what ``pack`` cannot have made."""
        try:
            data = zlib.decompress(row)
            begin = _DATES_BYTES if host else 0
            if host:
                self._put_dates(host, Announcements(*array("d", data[:begin])))
            self.rates.restore(host, data[begin:])
        except (zlib.error, ValueError, TypeError) as error:
            raise DamageError(f"the rates of host {host} are damaged: {error}.") from None


_NONE = Announcements()
_DATES_BYTES = 8 * len(astuple(_NONE))


def classes(pages: Pages, at: Column | float) -> Integers:
    """The class of each at the time *at*."""
    by_age = np.digitize(at - pages.found_at, AGES_DAYS)
    return np.where(pages.kind == PAGE, by_age, pages.kind + OLDEST)


def _until(tables: Tables, pages: Pages, at: Column | float) -> Column:
    """Events that each would have shown from its birth to the time *at*, as far as differences of this go."""
    kind = classes(pages, at)
    since = np.where(pages.kind == PAGE, pages.found_at + _STARTS[kind], 0.0)
    return tables.before[pages.row, kind] + tables.rate[pages.row, kind] * (at - since)
