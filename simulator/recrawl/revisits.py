"""Simulated days of recrawling: what a policy gets out of a changing web for a daily budget of requests.

One revisit is one request, at a page, hub, feed or sitemap.  A page that was never fetched comes
first, as in a crawl; the rest of the budget goes where the policy says.  What counts is new
words, and how long they waited; changed bytes count for nothing.

Not simulated: politeness, hosts that die or block, further pages of a hub, weekdays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from simulator.pages import Array
from simulator.recrawl.changing import NO_URLS, ChangingWeb, Kind

SLOTS = 4
"""Decisions a day: every six hours (chosen: with twelve no policy gets more words, and each costs as much)."""
WARM_DAYS = 10
"""First days, which are not counted: policies learn there (chosen)."""
WEEK_DAYS = 7


class Revisit(NamedTuple):
    """What one request gave: all that a policy gets to know."""

    url: int
    now: float
    """Days since the recrawl began."""
    wait: float
    """Days since the revisit before, or since the URL was found."""
    is_first: bool
    """The page was never fetched before."""
    words: int
    """New words on the page."""
    found: Array
    """Pages it links to that nobody had found before."""
    announced: Array
    """Fetched pages that have changed since the last revisit of them, as a sitemap says."""
    is_gone: bool
    is_unchanged: bool
    """Answered with 304."""
    newest_date: float = float("-inf")
    """The newest that a sitemap gives to a page."""

    @property
    def is_useless(self) -> bool:
        """Neither new words nor a new link; what a sitemap says of old pages is not yet worth anything."""
        return not self.words and not len(self.found)


class Policy(Protocol):
    """Decides which known URLs are revisited."""

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        """Of a revisit of each of *urls*, last asked for *waits* days ago: highest first, 0 or less not at all."""

    def learn(self, revisit: Revisit) -> None:
        """Take in what a revisit gave, also the first one at a page."""


MakePolicy = Callable[[ChangingWeb], Policy]
"""A crawl knows the columns ``kind`` and ``site``; only an oracle reads more of the web."""


class Result(NamedTuple):
    """Sums of one run, from WARM_DAYS on."""

    words: int
    """New words that were fetched and published in that time."""
    words_in_week: int
    """Those of them that were fetched within WEEK_DAYS of being published."""
    requests: int
    useless: int
    """Requests that gave neither new words nor a new link."""
    unchanged: int
    """Requests answered with 304."""
    requests_by_day: tuple[int, ...]
    """Of all days, the first ones among them."""


class Recrawl:
    """What is known of *web* when its old pages have all been fetched, and how a revisit changes that."""

    def __init__(self, web: ChangingWeb) -> None:
        self.new: deque[int] = deque()
        """Pages that were found and never fetched, in the order in which they were found."""
        self._web = web
        # a crawl did not fetch its pages site by site: in such an order Uniform got up to a quarter of the words less,
        # as the hubs of a site are all looked at on one day, and then not again for weeks
        self._order = np.random.default_rng(0).permutation(web.number)
        self._is_known = web.urls.born < 0
        self._is_fetched = self._is_known.copy()
        self._is_gone = np.zeros(web.number, bool)
        self._last = np.zeros(web.number)
        self._taken = (self._is_known & (web.urls.kind == Kind.PAGE)).astype(np.int64)
        self._words = 0
        self._words_in_week = 0
        self._useless = 0
        self._unchanged = 0
        self._by_day: list[int] = [0] * web.days

    def fetched(self) -> Array:
        """URLs that were fetched and are not gone, in a drawn order."""
        fetched: Array = self._order[(self._is_fetched & ~self._is_gone)[self._order]]
        return fetched

    def waits(self, urls: Array, now: float) -> Array:
        """Days since the last revisit of each."""
        waits: Array = now - self._last[urls]
        return waits

    def revisit(self, url: int, now: float) -> Revisit:
        """One request."""
        revisit = self._gone(url, now) if self._web.urls.dies[url] <= now else self._answer(url, now)
        self._is_fetched[url] = True
        self._is_gone[url] = revisit.is_gone
        self._last[url] = now
        self._by_day[int(np.ceil(now)) - 1] += 1
        if now > WARM_DAYS:
            self._useless += revisit.is_useless
            self._unchanged += revisit.is_unchanged
        return revisit

    def result(self) -> Result:
        counted = sum(self._by_day[WARM_DAYS:])
        sums = (self._words, self._words_in_week, counted, self._useless, self._unchanged)
        return Result(*sums, tuple(self._by_day))

    def _gone(self, url: int, now: float) -> Revisit:
        wait = now - self._last[url]
        return Revisit(url, now, wait, not self._is_fetched[url], 0, NO_URLS, NO_URLS, True, False)

    def _answer(self, url: int, now: float) -> Revisit:
        last = self._last[url]
        is_first = not self._is_fetched[url]
        links = np.unique(self._web.links(url, now))
        found = links[~self._is_known[links]]
        self._is_known[found] = True
        self._last[found] = now
        self.new.extend(found.tolist())
        dated, dates = self._web.lastmod(url, now)
        is_announced = self._is_fetched[dated] & ~self._is_gone[dated] & (dates > self._last[dated])
        is_unchanged = not is_first and self._web.answers_304(url, last, now)
        words = self._take_words(url, now)
        newest = dates.max(initial=-np.inf)
        return Revisit(url, now, now - last, is_first, words, found, dated[is_announced], False, is_unchanged, newest)

    def _take_words(self, url: int, now: float) -> int:
        times = self._web.added_at[url]
        span = slice(self._taken[url], bisect_right(times, now))
        self._taken[url] = span.stop
        new = list(zip(times[span], self._web.added_words[url][span], strict=True))
        self._words += sum(words for at, words in new if at >= WARM_DAYS)
        self._words_in_week += sum(words for at, words in new if at >= WARM_DAYS and now - at <= WEEK_DAYS)
        return sum(words for _, words in new)


def recrawl(web: ChangingWeb, make_policy: MakePolicy, share: float) -> Result:
    """Days of recrawling with *share* of the live URLs as requests a day; what is not spent in a slot is lost."""
    policy = make_policy(web)
    state = Recrawl(web)
    allowed = 0.0
    for slot in range(web.days * SLOTS):
        day, part = divmod(slot, SLOTS)
        now = day + (part + 1) / SLOTS
        allowed += share * web.live(day) / SLOTS
        number = int(allowed)
        allowed -= number
        chosen = [state.new.popleft() for _ in range(min(number, len(state.new)))]
        chosen += _best(policy, state, now, number - len(chosen))
        for url in chosen:
            policy.learn(state.revisit(url, now))
    return state.result()


def _best(policy: Policy, state: Recrawl, now: float, number: int) -> list[int]:
    """The *number* URLs that are worth most."""
    urls = state.fetched()
    worth = policy.worth(urls, state.waits(urls, now), now)
    order = np.argsort(-worth, kind="stable")[:number]  # stable: equals stay in drawn order, not site by site
    best: list[int] = urls[order[worth[order] > 0]].tolist()
    return best


def daily_recrawl(web: ChangingWeb) -> Result:
    """All known URLs at the end of each day, and then all that was found there: the reference for shares of words."""
    state = Recrawl(web)
    for day in range(1, web.days + 1):
        for url in state.fetched().tolist():
            state.revisit(url, day)
        while state.new:
            state.revisit(state.new.popleft(), day)
    return state.result()
