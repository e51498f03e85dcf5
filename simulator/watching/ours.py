"""The policy of a crawl (frontier/watching/policy.py), in the simulator."""

from __future__ import annotations

from math import floor

import numpy as np

from simulator.pages import Array
from simulator.watching.changing import ChangingWeb
from simulator.watching.looking import Look
from spiderling.frontier.watching.policy import AGES_DAYS, Found, Page, Pages, Policy


class Ours:
    """New words a day by host and class, times the square of the wait."""

    def __init__(self, web: ChangingWeb, min_word_days: float = 0.0) -> None:
        """A look is left out if the words expected of it, times the days of which nothing is known, are fewer."""
        self._policy = Policy(min_word_days)
        self._kind = web.urls.kind
        self._site = web.urls.site
        self._found_at = np.full(web.number, -AGES_DAYS[-1])  # what was known before the watch is old
        self._is_announced = np.zeros(web.number, bool)
        self._sites = range(len(web.sites))
        self._day = -1
        self._tables = self._policy.tables(self._sites)

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        if floor(now) > self._day:
            self._day = floor(now)
            self._tables = self._policy.tables(self._sites)  # a crawl reads them anew when it comes to a host
        return self._policy.worth(self._tables, self._pages(urls, now - waits), now)

    def learn(self, look: Look) -> None:
        site = int(self._site[look.url])
        self._found_at[look.found] = look.now
        kind, found_at = int(self._kind[look.url]), float(self._found_at[look.url])
        page = Page(site, kind, found_at, look.now - look.wait, bool(self._is_announced[look.url]))
        self._is_announced[look.url] = False
        if look.is_gone:
            return
        if look.is_first:
            self._policy.learn_first(site, look.words, look.wait, look.now)
            return
        new = look.announced[~self._is_announced[look.announced]]
        self._is_announced[new] = True
        found = Found(look.words, len(look.found), len(new), look.newest_date)
        self._policy.learn(page, found, look.now)

    def _pages(self, urls: Array, last: Array) -> Pages:
        """The columns of *urls*, copied."""
        return Pages(self._site[urls], self._kind[urls], self._found_at[urls], last, self._is_announced[urls])
