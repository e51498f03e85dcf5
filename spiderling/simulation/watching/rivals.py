"""The two simplest policies, which any other has to beat."""

from __future__ import annotations

import numpy as np

from spiderling.simulation.pages import Array
from spiderling.simulation.watching.changing import ChangingWeb
from spiderling.simulation.watching.looking import Look

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
