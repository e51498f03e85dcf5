"""A web that changes: what each URL of it shows at any time.

Times are days since the recrawl began; what happened before is negative.  No object stands for a
URL: its number is the index into every column.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from math import floor
from typing import NamedTuple

import numpy as np

from simulator.pages import Array
from simulator.recrawl.webs import SITEMAP_EVERY_DAYS, TEASERS

NO_URLS: Array = np.empty(0, np.int64)


class Kind(IntEnum):
    """What a URL is."""

    PAGE = 0
    HUB = 1
    FEED = 2
    SITEMAP = 3


class Lastmod(IntEnum):
    """What the dates of a sitemap say."""

    NONE = 0
    TRUE = 1
    """When the text of the page changed last."""
    LYING = 2
    """When the sitemap was made, for every page."""


@dataclass(slots=True, eq=False)
class Listing:
    """URLs in the order of their times; a URL may stand there more than once."""

    times: list[float]
    urls: Array

    @classmethod
    def of(cls, times: Array, urls: Array) -> Listing:
        order = np.argsort(times, kind="stable")
        return cls(times[order].tolist(), urls[order])

    def until(self, now: float) -> Array:
        return self.urls[: bisect_right(self.times, now)]

    def newest(self, number: int, now: float) -> Array:
        end = bisect_right(self.times, now)
        return self.urls[max(0, end - number) : end]

    def has_new(self, since: float, now: float) -> bool:
        """Whether anything came after *since*, up to *now*."""
        return bisect_right(self.times, now) > bisect_right(self.times, since)


NOTHING = Listing([], NO_URLS)


@dataclass(slots=True, eq=False)
class Site:
    """What the URLs of a site share."""

    articles: Listing
    """Those that hubs and feeds list, by their births."""
    sections: list[Listing]
    """The same for each section."""
    has_teasers: bool
    """True: each page shows the newest articles."""
    validators: dict[Kind, bool]
    """Whether URLs of a kind answer 304 while they have not changed."""
    in_sitemap: Listing
    """Articles that the sitemap lists, by their births."""
    edits: Listing
    """Their edits."""
    lastmod: Lastmod
    sitemap_phase: float
    """When the sitemap is made first, and from then on each SITEMAP_EVERY_DAYS."""

    def sitemap_made(self, now: float) -> float:
        """When the sitemap that stands there *now* was made."""
        return floor((now - self.sitemap_phase) / SITEMAP_EVERY_DAYS) * SITEMAP_EVERY_DAYS + self.sitemap_phase


class Urls(NamedTuple):
    """One entry a URL in each column; those of a site follow one another."""

    kind: Array
    site: Array
    born: Array
    dies: Array
    section: Array
    """Of the site; -1: all of them."""
    items: Array
    """Articles that a hub or feed lists at most."""


class Truth(NamedTuple):
    """The means by which a site was drawn: no crawl knows them, an oracle does."""

    articles_per_day: float
    section_shares: Array
    """Of these articles, by section."""
    deep_share: float
    """Of them, those that one old page links to."""
    words: float
    """Of an article."""
    edit_words: float
    """Of an edit."""
    edits: Array
    """Of each URL, in all, after its birth; 0 for what is no page."""
    edit_delay_days: float
    """From an article to each of these edits."""
    steady_edits_per_day: Array
    """Of each URL, besides these."""


@dataclass(slots=True, eq=False)
class ChangingWeb:
    """All that will happen, so that every policy meets the same web."""

    days: int
    """Nothing happens later."""
    urls: Urls
    sites: list[Site]
    added_at: list[list[float]]
    """For each URL: when text came to stand there.  An article's first time is its birth, the others are edits."""
    added_words: list[list[int]]
    """The new words of each of these times."""
    children: dict[int, Listing]
    """Old page -> the articles that only this page links to."""
    truths: list[Truth]
    """Of each site."""

    @property
    def number(self) -> int:
        """Of all URLs that are there at any time."""
        return len(self.urls.kind)

    def live(self, now: float) -> int:
        """URLs that are there."""
        return int(((self.urls.born <= now) & (self.urls.dies > now)).sum())

    def published(self, since: float) -> int:
        """New words that come to stand from *since* on; those that die within a day among them."""
        texts = zip(self.added_at, self.added_words, strict=True)
        return sum(words for at, added in texts for time, words in zip(at, added, strict=True) if time >= since)

    def site(self, url: int) -> Site:
        return self.sites[int(self.urls.site[url])]

    def links(self, url: int, now: float) -> Array:
        """Articles that *url* links to or lists."""
        site = self.site(url)
        kind = self.urls.kind[url]
        if kind == Kind.PAGE:
            shown = site.articles.newest(TEASERS * site.has_teasers, now)
            links: Array = np.concatenate((self.children.get(url, NOTHING).until(now), shown))
            return links
        if kind == Kind.SITEMAP:
            return site.in_sitemap.until(site.sitemap_made(now))
        return self._listed(url, site).newest(int(self.urls.items[url]), now)

    def lastmod(self, url: int, now: float) -> tuple[Array, Array]:
        """Articles to which *url* gives a date, and these dates; none, unless it is a sitemap that has them."""
        site = self.site(url)
        if self.urls.kind[url] != Kind.SITEMAP or site.lastmod is Lastmod.NONE:
            return NO_URLS, np.empty(0)
        made = site.sitemap_made(now)
        listed = site.in_sitemap.until(made)
        if site.lastmod is Lastmod.LYING:
            return listed, np.full(len(listed), made)
        edited = site.edits.until(made)
        dates = self.urls.born.copy()
        np.maximum.at(dates, edited, site.edits.times[: len(edited)])
        return listed, dates[listed]

    def answers_304(self, url: int, since: float, now: float) -> bool:
        """Whether it says that no byte has changed after *since*: teasers count, unlike in ``added_at``."""
        site = self.site(url)
        kind = Kind(self.urls.kind[url])
        return site.validators[kind] and not self._has_changed(url, kind, site, since, now)

    def _has_changed(self, url: int, kind: Kind, site: Site, since: float, now: float) -> bool:
        if kind is Kind.SITEMAP:
            return site.sitemap_made(now) > since
        if kind is not Kind.PAGE:
            return self._listed(url, site).has_new(since, now)
        times = self.added_at[url]
        return (
            bisect_right(times, now) > bisect_right(times, since)
            or self.children.get(url, NOTHING).has_new(since, now)
            or (site.has_teasers and site.articles.has_new(since, now))
        )

    def _listed(self, url: int, site: Site) -> Listing:
        section = int(self.urls.section[url])
        return site.articles if section < 0 else site.sections[section]
