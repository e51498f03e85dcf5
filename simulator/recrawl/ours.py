"""The policy of a crawl (frontier/recrawl/policy.py), in the simulator."""

from __future__ import annotations

from math import floor

import numpy as np

from simulator.pages import Array
from simulator.recrawl.changing import ChangingWeb
from simulator.recrawl.revisits import Revisit
from spiderling.frontier.recrawl.policy import AGES_DAYS, NEW, Pages, RecrawlPolicy, RevisitCandidate, RevisitResult


class Ours:
    """New words a day by host and class, times the square of the wait."""

    def __init__(self, web: ChangingWeb, min_word_days: float = 0.0) -> None:
        """A revisit is left out if the words expected of it, times the days of which nothing is known, are fewer."""
        self._policy = RecrawlPolicy(min_word_days)
        self._kind = web.urls.kind
        self._site = web.urls.site
        self._found_at = np.full(web.number, -AGES_DAYS[-1])  # what was known before the recrawl is old
        self._is_announced = np.zeros(web.number, bool)
        self._sites = range(len(web.sites))
        self._day = -1
        self._tables = self._policy.tables(self._sites)

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        if floor(now) > self._day:
            self._day = floor(now)
            self._tables = self._policy.tables(self._sites)  # a crawl reads them anew when it comes to a host
        return self._policy.worth(self._tables, self._pages(urls, now - waits), now)

    def learn(self, revisit: Revisit) -> None:
        site = int(self._site[revisit.url])
        self._found_at[revisit.found] = revisit.now
        kind, found_at = int(self._kind[revisit.url]), float(self._found_at[revisit.url])
        page = RevisitCandidate(site, kind, found_at, revisit.now - revisit.wait, bool(self._is_announced[revisit.url]))
        self._is_announced[revisit.url] = False
        if revisit.is_gone:
            return
        if revisit.is_first:
            self._policy.rates.learn(site, NEW, 1, revisit.words, revisit.wait, revisit.now)
            return
        new = revisit.announced[~self._is_announced[revisit.announced]]
        self._is_announced[new] = True
        found = RevisitResult(revisit.words, len(revisit.found), len(new), revisit.newest_date)
        self._policy.learn(page, found, revisit.now)

    def _pages(self, urls: Array, last: Array) -> Pages:
        """The columns of *urls*, copied."""
        return Pages(self._site[urls], self._kind[urls], self._found_at[urls], last, self._is_announced[urls])
