"""What any policy has to beat: the two simplest ones, and the rule of a crawler for news."""

from __future__ import annotations

import numpy as np

from simulator.pages import Array
from simulator.recrawl.changing import ChangingWeb, Kind
from simulator.recrawl.revisits import Revisit

PRIOR_EVENTS = 0.5
"""Events that each URL is taken to have shown before the recrawl (chosen)."""
PRIOR_DAYS = 10.0
"""Days in which it showed them (chosen: an event in 20 days)."""


class Uniform:
    """Every URL in turn."""

    def __init__(self, web: ChangingWeb) -> None:
        """It needs to know nothing of *web*."""

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        return waits

    def learn(self, revisit: Revisit) -> None:
        """Nothing."""


class Proportional:
    """Revisits in proportion to each URL's own rate of events, estimated from the revisits of it.

    An event is new words or a new link.  Cho & Garcia-Molina 2003 (*Effective Page Refresh Policies for Web
    Crawlers*) discuss this policy, and show that it is not the best one for the freshness of copies.
    """

    def __init__(self, web: ChangingWeb) -> None:
        self._events = np.full(web.number, PRIOR_EVENTS)
        self._days = np.full(web.number, PRIOR_DAYS)

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        worth: Array = self._events[urls] / self._days[urls] * waits
        return worth

    def learn(self, revisit: Revisit) -> None:
        if not revisit.is_first:
            self._events[revisit.url] += not revisit.is_useless
            self._days[revisit.url] += revisit.wait


class FeedsAndHubs:
    """Only feeds and hubs, at intervals that grow by half without an event and shrink by a fifth with one.

    The rule of StormCrawler's AdaptiveScheduler as the crawler of Common Crawl's news (commoncrawl/news-crawl) uses
    it, with an event in place of changed bytes.  What the pages themselves gain stays unknown.
    """

    SHORTEST_DAYS = 1.5 / 24
    LONGEST_DAYS = 90.0
    LONGER = 1.5
    SHORTER = 0.8

    def __init__(self, web: ChangingWeb) -> None:
        self._is_list = (web.urls.kind == Kind.HUB) | (web.urls.kind == Kind.FEED)
        self._interval = np.random.default_rng(1).uniform(0.5, 1.5, web.number)  # not all at once

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        overdue = waits - self._interval[urls]
        worth: Array = np.where(self._is_list[urls] & (overdue >= 0), overdue + 1e-9, 0.0)
        return worth

    def learn(self, revisit: Revisit) -> None:
        if not revisit.is_first:
            factor = self.LONGER if revisit.is_useless else self.SHORTER
            self._interval[revisit.url] = np.clip(
                self._interval[revisit.url] * factor, self.SHORTEST_DAYS, self.LONGEST_DAYS
            )
