"""What any policy has to beat: the two simplest ones, and the rule of a crawler for news."""

from __future__ import annotations

import numpy as np

from simulator.pages import Array
from simulator.watching.changing import ChangingWeb, Kind
from simulator.watching.looking import Look

PRIOR_EVENTS = 0.5
"""Events that each URL is taken to have shown before the watch (chosen)."""
PRIOR_DAYS = 10.0
"""Days in which it showed them (chosen: an event in 20 days)."""


class Uniform:
    """Every URL in turn."""

    def __init__(self, web: ChangingWeb) -> None:
        """It needs to know nothing of *web*."""

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        return waits

    def learn(self, look: Look) -> None:
        """Nothing."""


class Proportional:
    """Looks in proportion to each URL's own rate of events, estimated from the looks at it.

    An event is new words or a new link.  Cho & Garcia-Molina 2003 (*Effective Page Refresh Policies for Web
    Crawlers*) discuss this policy, and show that it is not the best one for the freshness of copies.
    """

    def __init__(self, web: ChangingWeb) -> None:
        self._events = np.full(web.number, PRIOR_EVENTS)
        self._days = np.full(web.number, PRIOR_DAYS)

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        worth: Array = self._events[urls] / self._days[urls] * waits
        return worth

    def learn(self, look: Look) -> None:
        if not look.is_first:
            self._events[look.url] += not look.is_useless
            self._days[look.url] += look.wait


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

    def learn(self, look: Look) -> None:
        if not look.is_first:
            factor = self.LONGER if look.is_useless else self.SHORTER
            self._interval[look.url] = np.clip(self._interval[look.url] * factor, self.SHORTEST_DAYS, self.LONGEST_DAYS)
