"""The policy of a watch: what is worth a look, and what a look teaches; a crawl and the simulator share it.

Pages are given as columns, of any number of hosts, so that thousands are judged in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiderling.frontier.watching import rates
from spiderling.frontier.watching.index import (
    STARTS_DAYS,
    Column,
    Flags,
    Integers,
    expected_events,
    since_birth,
    unknown_since,
    worth,
)
from spiderling.frontier.watching.lastmod import BELIEVED, Announcements
from spiderling.frontier.watching.rates import AGES_DAYS, CLASSES, OLDEST, Rates

PAGE, HUB, FEED, SITEMAP = range(4)
"""Kinds of what is watched.  Only the class of a page changes with its age."""
_STARTS = np.append(STARTS_DAYS, np.zeros(CLASSES - len(STARTS_DAYS)))


class Pages(NamedTuple):
    """Columns of what is watched; times are days since the watch began."""

    row: Integers
    """The row of its host in Tables."""
    kind: Integers
    found_at: Column
    last: Column
    """When it was last looked at, or first fetched."""
    is_announced: Flags
    """A date says that it has changed since."""


class Page(NamedTuple):
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
    before: Column
    """Events of a page until the class begins."""
    words: Column
    """Of an event."""


class Found(NamedTuple):
    """What a look gave."""

    words: int = 0
    """New words on the page."""
    links: int = 0
    """Links that nobody had found before."""
    announced: int = 0
    """Known pages that a sitemap or a feed says have changed."""
    newest_date: float = float("-inf")
    """The newest date that it gives to a page."""


class Policy:
    """New words a day by host and class, times the square of the wait; dates count where they have been right."""

    def __init__(self, least_word_days: float = 0.0) -> None:
        """A look is left out if the words expected of it, times the days of which nothing is known, are fewer."""
        self.least_word_days = least_word_days
        """Word-days below which no look is planned."""
        self.rates = Rates()
        self.dates: dict[int, Announcements] = {}
        """What became of the announcements of each host that has made any."""

    def tables(self, hosts: Sequence[int]) -> Tables:
        """What is known now of *hosts*."""
        rate, words = self.rates.tables(hosts)
        before = np.zeros_like(rate)
        before[:, : OLDEST + 1] = since_birth(rate[:, : OLDEST + 1])
        return Tables(hosts, rate, before, words)

    def worth(self, tables: Tables, pages: Pages, now: float) -> Column:
        """The index of a look at each of *pages*; 0: it is not worth its request."""
        made, trust, recall = self._dates(tables.hosts, pages.row)
        is_believed = trust > BELIEVED
        is_announced = pages.is_announced & is_believed
        is_quiet = (pages.kind == PAGE) & is_believed & ~is_announced
        since = unknown_since(pages.last, made, is_quiet)
        until_now, until_last = (_until(tables, pages, at) for at in (now, pages.last))
        until_since = _until(tables, pages, since) if is_quiet.any() else until_last
        events = expected_events(until_now - until_since, until_since - until_last, recall, trust, is_announced)
        days = now - since + (1 - recall) * (since - pages.last)
        words = tables.words[pages.row, classes(pages, now)]
        return worth(events, days, words, self.least_word_days)

    def learn_first(self, host: int, words: int, wait: float, now: float) -> None:
        """A page of *host* was fetched for the first time, *wait* days after it was found."""
        self.rates.learn(host, rates.NEW, 1, words, wait, now)

    def learn(self, page: Page, found: Found, now: float) -> None:
        """A look at *now* at *page*, as it was before, has *found* something or nothing."""
        host = page.host
        dates = self.dates.get(host, Announcements())
        events = (found.words > 0) + found.links + dates.trust * dates.is_believed * found.announced
        words = found.words + found.links * self.rates.words(host, rates.NEW)
        if page.kind == PAGE:
            age_before, age = page.last - page.found_at, now - page.found_at
            expected = self.rates.learn_page(host, events, words, age_before, age, now)
            dates.learn(page.is_announced, found.words > 0, expected, page.last)
        else:
            if page.kind in (FEED, SITEMAP):
                dates.made = max(dates.made, found.newest_date)
                words += (events - found.links) * self.rates.words(host, OLDEST)
            self.rates.learn(host, page.kind + OLDEST, events, words, now - page.last, now)
        self.put_dates(host, dates)

    def put_dates(self, host: int, dates: Announcements) -> None:
        """What became of the announcements of *host*; most hosts make none."""
        if dates != _NONE:
            self.dates[host] = dates

    def _dates(self, hosts: Sequence[int], row: Integers) -> tuple[Column, ...]:
        known = [self.dates.get(host, _NONE) for host in hosts]
        columns = [(one.made, one.trust, one.recall) for one in known]
        made, trust, recall = (np.array(column)[row] for column in zip(*columns, strict=True))
        return made, trust, recall


_NONE = Announcements()


def classes(pages: Pages, at: Column | float) -> Integers:
    """The class of each at the time *at*."""
    by_age = np.digitize(at - pages.found_at, AGES_DAYS)
    of_kind: Integers = np.where(pages.kind == PAGE, by_age, pages.kind + OLDEST)
    return of_kind


def _until(tables: Tables, pages: Pages, at: Column | float) -> Column:
    """Events that each would have shown from its birth to the time *at*, as far as differences of this go."""
    kind = classes(pages, at)
    since = np.where(pages.kind == PAGE, pages.found_at + _STARTS[kind], 0.0)
    events: Column = tables.before[pages.row, kind] + tables.rate[pages.row, kind] * (at - since)
    return events
