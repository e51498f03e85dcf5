"""Policies that know by which means the web was drawn, though not what was drawn.

They are yardsticks: a crawl can learn these means, and never better than from its revisits.  They are no
upper bound either, as they divide the budget by the same kind of index.
"""

from __future__ import annotations

import numpy as np

from simulator.pages import Array
from simulator.recrawl.changing import ChangingWeb, Kind, Lastmod
from simulator.recrawl.revisits import Revisit
from simulator.recrawl.webs import TEASERS


class Greedy:
    """Expected new words since the last revisit."""

    def __init__(self, web: ChangingWeb) -> None:
        self._web = web
        truths = web.truths
        sites = len(truths)
        self._words, self._edit_words = (np.array([getattr(one, name) for one in truths]) for name in _WORDS)
        self._edits = np.concatenate([one.edits for one in truths])
        self._steady = np.concatenate([one.steady_edits_per_day for one in truths])
        self._delay = np.array([one.edit_delay_days for one in truths])[web.urls.site]
        rate = np.array([one.articles_per_day for one in truths])
        deep = np.array([one.deep_share for one in truths])
        self._deep_rate = rate * deep
        self._pages = np.bincount(web.urls.site[(web.urls.kind == Kind.PAGE) & (web.urls.born < 0)], minlength=sites)
        self._rates = np.zeros((sites, max(len(one.section_shares) for one in truths)))
        for number, one in enumerate(truths):
            self._rates[number, : len(one.section_shares)] = rate[number] * (1 - deep[number]) * one.section_shares
        self._listed_until = np.zeros_like(self._rates)
        """Of each site and section: when all articles that hubs and feeds listed were known."""
        self._has_gap = np.zeros(self._rates.shape, bool)
        """More were published than the front page or feed could show: only the section's hub may know them."""
        self._map_made = np.zeros(sites)
        """When the newest sitemap was made that was revisited."""
        is_true = np.array([site.lastmod is Lastmod.TRUE for site in web.sites])
        has_map = np.bincount(web.urls.site[web.urls.kind == Kind.SITEMAP], minlength=sites) > 0
        self._is_true = is_true & has_map
        self._is_announced = np.zeros(web.number, bool)

    def worth(self, urls: Array, waits: Array, now: float) -> Array:
        kind = self._web.urls.kind[urls]
        site = self._web.urls.site[urls]
        is_page, is_map = kind == Kind.PAGE, kind == Kind.SITEMAP
        is_list = ~is_page & ~is_map
        words = np.zeros(len(urls))
        days = waits.copy()
        edited = self._edited(urls[is_page], waits[is_page], now)
        deep = self._deep_rate[site[is_page]] / self._pages[site[is_page]] * waits[is_page]
        words[is_page] = edited + deep * self._words[site[is_page]]
        words[is_list], days[is_list] = self._listed(urls[is_list], now)
        announced = np.zeros(len(self._words))
        np.add.at(announced, site[is_page], edited)
        words[is_map] = self._in_sitemap(site[is_map], announced, now)
        worth = self._index(words, days)
        # lists of a site overlap: one of them at a time
        best = np.zeros(len(self._words))
        np.maximum.at(best, site[~is_page], worth[~is_page])
        worth[~is_page & (worth < best[site])] = 0
        return worth

    def learn(self, revisit: Revisit) -> None:
        url = revisit.url
        site = self._web.urls.site[url]
        kind = self._web.urls.kind[url]
        self._is_announced[url] = False
        self._is_announced[revisit.announced] = True
        if kind == Kind.SITEMAP:
            self._map_made[site] = self._web.site(url).sitemap_made(revisit.now)
            self._listed_until[site] = np.maximum(self._listed_until[site], self._map_made[site])
        elif kind != Kind.PAGE:
            self._know(
                site, int(self._web.urls.section[url]), len(revisit.found) < self._web.urls.items[url], revisit.now
            )
        elif self._web.sites[site].has_teasers and not revisit.is_gone and len(revisit.found) < TEASERS:
            self._know(site, -1, True, revisit.now)

    def _know(self, site: int, section: int, is_all: bool, now: float) -> None:
        """Articles of a section (-1: all) were seen; *is_all*: fewer were new than were shown."""
        if section >= 0:
            self._listed_until[site, section] = now
            self._has_gap[site, section] = False
        elif is_all:
            self._listed_until[site, ~self._has_gap[site]] = now
        else:
            self._has_gap[site] = True

    def _index(self, words: Array, days: Array) -> Array:
        return words

    def _edited(self, pages: Array, waits: Array, now: float) -> Array:
        """Words that edits have added."""
        site = self._web.urls.site[pages]
        last = now - waits
        is_true = self._is_true[site]
        since = np.where(is_true, np.maximum(last, self._map_made[site]), last)
        born = self._web.urls.born[pages]
        before, after = (np.exp(-np.maximum(at - born, 0) / self._delay[pages]) for at in (since, now))
        edits = self._edits[pages] * (before - after) + self._steady[pages] * (now - since)
        words: Array = np.where(self._is_announced[pages] & is_true, 1.0, edits) * self._edit_words[site]
        return words

    def _listed(self, lists: Array, now: float) -> tuple[Array, Array]:
        """Words of articles that hubs and feeds list and nobody has found, and the days for which these have waited."""
        site = self._web.urls.site[lists]
        section = self._web.urls.section[lists]
        unknown = self._rates * (now - self._listed_until)
        is_front = section < 0
        number = np.where(is_front, unknown.sum(1)[site], unknown[site, section])
        rate = np.where(is_front, self._rates.sum(1)[site], self._rates[site, section])
        words = np.minimum(number, self._web.urls.items[lists]) * self._words[site]
        return words, number / np.maximum(rate, 1e-9)

    def _in_sitemap(self, site: Array, announced: Array, now: float) -> Array:
        """Words that the sitemap leads to, if it was made anew; *announced* words it leads to by its dates."""
        made = np.array([self._web.sites[one].sitemap_made(now) for one in site.tolist()])
        listed = (self._rates[site] * np.maximum(0, made[:, None] - self._listed_until[site])).sum(1)
        deep = self._deep_rate[site] * np.maximum(0, made - self._map_made[site])
        words = (listed + deep) * self._words[site] + announced[site] * self._is_true[site]
        is_new: Array = np.where(made > self._map_made[site], words, 0)
        return is_new


class Squared(Greedy):
    """The same times the days for which they have waited."""

    def _index(self, words: Array, days: Array) -> Array:
        return words * days


_WORDS = ("words", "edit_words")
