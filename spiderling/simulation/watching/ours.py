"""The policy of a crawl (frontier/watching/), in the simulator: columns over all URLs in place of one host's."""

from __future__ import annotations

from math import floor

import numpy as np

from spiderling.frontier.watching import rates
from spiderling.frontier.watching.index import expected_events, unknown_days, worth
from spiderling.frontier.watching.lastmod import Announcements
from spiderling.frontier.watching.rates import AGES_DAYS, PRIOR_RATES, Rates, page_class
from spiderling.simulation.pages import Array
from spiderling.simulation.watching.changing import ChangingWeb, Kind
from spiderling.simulation.watching.looking import Look

CLASSES = {Kind.HUB: rates.HUB, Kind.FEED: rates.FEED, Kind.SITEMAP: rates.SITEMAP}


class Ours:
    """Rates by host and class, times the square of the wait."""

    def __init__(self, web: ChangingWeb, least_words: float = 0.0) -> None:
        """A look of which less than *least_words* are expected is left out."""
        self._least_words = least_words
        self._kind = web.urls.kind
        self._site = web.urls.site
        self._found_at = np.full(web.number, -np.inf)
        self._is_announced = np.zeros(web.number, bool)
        self._rates = Rates()
        self._announcements = [Announcements() for _ in web.sites]
        self._day = -1
        self._tables(0.0)

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        if floor(now) > self._day:
            self._day = floor(now)
            self._tables(now)
        site = self._site[urls]
        kind = self._classes(urls, now)
        made, trust, recall, is_believed = self._dates(site)
        is_page = self._kind[urls] == Kind.PAGE
        is_announced = self._is_announced[urls] & is_believed
        days = unknown_days(now, now - waits, made, recall, is_page & is_believed & ~is_announced)
        events = expected_events(self._rate[site, kind], days, trust, is_announced)
        return worth(events, days, self._words[site, kind], self._least_words)

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
        kind = self._class_of(look)
        new = look.announced[~self._is_announced[look.announced]]
        self._is_announced[new] = True
        events = (look.words > 0) + len(look.found) + dates.trust * dates.is_believed * len(new)
        words = look.words + len(look.found) * self._rates.words(site, rates.NEW, look.now)
        if kind == rates.SITEMAP:
            dates.made = max(dates.made, look.newest_date)
            words += (events - len(look.found)) * self._rates.words(site, rates.OLDEST, look.now)
        elif kind <= rates.OLDEST:
            expected = self._rates.rate(site, kind, look.now) * look.wait
            dates.learn(was_announced, look.words > 0, expected, look.now - look.wait)
        self._rates.learn(site, kind, events, words, look.wait, look.now)

    def _class_of(self, look: Look) -> int:
        kind = Kind(self._kind[look.url])
        return page_class(look.now - self._found_at[look.url]) if kind is Kind.PAGE else CLASSES[kind]

    def _classes(self, urls: Array, now: float) -> Array:
        """The same of many."""
        ages = now - self._found_at[urls]
        pages = np.digitize(ages, AGES_DAYS)
        classes: Array = np.where(self._kind[urls] == Kind.PAGE, pages, self._kind[urls] + rates.HUB - Kind.HUB)
        return classes

    def _tables(self, now: float) -> None:
        """What ``worth`` goes by for a day: a crawl reads it anew when it comes to a host."""
        sites = range(len(self._announcements))
        classes = range(len(PRIOR_RATES))
        self._rate = np.array([[self._rates.rate(site, kind, now) for kind in classes] for site in sites])
        self._words = np.array([[self._rates.words(site, kind, now) for kind in classes] for site in sites])

    def _dates(self, site: Array) -> tuple[Array, ...]:
        columns = [(one.made, one.trust, one.recall, one.is_believed) for one in self._announcements]
        made, trust, recall, is_believed = (np.array(column)[site] for column in zip(*columns, strict=True))
        return made, trust, recall, is_believed
