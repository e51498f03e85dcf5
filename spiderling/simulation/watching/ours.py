"""The policy of a crawl (frontier/watching/), in the simulator: columns over all URLs in place of one host's."""

from __future__ import annotations

from math import floor

import numpy as np

from spiderling.frontier.watching import rates
from spiderling.frontier.watching.index import STARTS_DAYS, expected_events, since_birth, unknown_since, worth
from spiderling.frontier.watching.lastmod import Announcements
from spiderling.frontier.watching.rates import AGES_DAYS, CLASSES, Rates
from spiderling.simulation.pages import Array
from spiderling.simulation.watching.changing import ChangingWeb, Kind
from spiderling.simulation.watching.looking import Look


class Ours:
    """Rates by host and class, times the square of the wait."""

    def __init__(self, web: ChangingWeb, least_word_days: float = 0.0) -> None:
        """A look is left out if the words expected of it, times the days of which nothing is known, are fewer."""
        self._least_word_days = least_word_days
        self._kind = web.urls.kind
        self._site = web.urls.site
        self._found_at = np.full(web.number, -AGES_DAYS[-1])  # what was known before the watch is old
        self._starts = np.append(STARTS_DAYS, np.zeros(CLASSES - len(STARTS_DAYS)))
        self._is_announced = np.zeros(web.number, bool)
        self._rates = Rates()
        self._announcements = [Announcements() for _ in web.sites]
        self._day = -1
        self._tables()

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        if floor(now) > self._day:
            self._day = floor(now)
            self._tables()
        site = self._site[urls]
        kind = self._classes(urls, now)
        made, trust, recall, is_believed = self._dates(site)
        is_page = self._kind[urls] == Kind.PAGE
        is_announced = self._is_announced[urls] & is_believed
        last = now - waits
        since = unknown_since(last, made, is_page & is_believed & ~is_announced)
        until_now, until_since, until_last = (self._until(urls, at) for at in (now, since, last))
        events = expected_events(until_now - until_since, until_since - until_last, recall, trust, is_announced)
        days = now - since + (1 - recall) * (since - last)
        return worth(events, days, self._words[site, kind], self._least_word_days)

    def learn(self, look: Look) -> None:
        site = int(self._site[look.url])
        self._found_at[look.found] = look.now
        was_announced = bool(self._is_announced[look.url])
        self._is_announced[look.url] = False
        if look.is_gone:
            return
        if look.is_first:
            self._rates.learn(site, rates.NEW, 1, look.words, look.wait, look.now)
            return
        dates = self._announcements[site]
        kind = int(self._classes(np.array([look.url]), look.now)[0])
        new = look.announced[~self._is_announced[look.announced]]
        self._is_announced[new] = True
        events = (look.words > 0) + len(look.found) + dates.trust * dates.is_believed * len(new)
        words = look.words + len(look.found) * self._rates.words(site, rates.NEW)
        if kind == rates.SITEMAP:
            dates.made = max(dates.made, look.newest_date)
            words += (events - len(look.found)) * self._rates.words(site, rates.OLDEST)
        if kind > rates.OLDEST:
            self._rates.learn(site, kind, events, words, look.wait, look.now)
            return
        age = look.now - self._found_at[look.url]
        expected = float(np.diff(self._until(np.array([look.url]), np.array([look.now - look.wait, look.now])))[0])
        dates.learn(was_announced, look.words > 0, expected, look.now - look.wait)
        self._rates.learn_page(site, events, words, age - look.wait, age, look.now)

    def _classes(self, urls: Array, now: Array | float) -> Array:
        """The class of each."""
        ages = now - self._found_at[urls]
        pages = np.digitize(ages, AGES_DAYS)
        classes: Array = np.where(self._kind[urls] == Kind.PAGE, pages, self._kind[urls] + rates.HUB - Kind.HUB)
        return classes

    def _until(self, urls: Array, at: Array | float) -> Array:
        """Events that each would have shown from its birth to the time *at*, as far as differences of this go."""
        kind = self._classes(urls, at)
        since = np.where(self._kind[urls] == Kind.PAGE, self._found_at[urls] + self._starts[kind], 0.0)
        site = self._site[urls]
        events: Array = self._before[site, kind] + self._rate[site, kind] * (at - since)
        return events

    def _tables(self) -> None:
        """What ``worth`` goes by for a day: a crawl reads it anew when it comes to a host."""
        sites = range(len(self._announcements))
        classes = range(CLASSES)
        self._rate = np.array([[self._rates.rate(site, kind) for kind in classes] for site in sites])
        self._before = np.zeros_like(self._rate)
        self._before[:, : rates.OLDEST + 1] = since_birth(self._rate[:, : rates.OLDEST + 1])
        self._words = np.array([[self._rates.words(site, kind) for kind in classes] for site in sites])

    def _dates(self, site: Array) -> tuple[Array, ...]:
        columns = [(one.made, one.trust, one.recall, one.is_believed) for one in self._announcements]
        made, trust, recall, is_believed = (np.array(column)[site] for column in zip(*columns, strict=True))
        return made, trust, recall, is_believed
