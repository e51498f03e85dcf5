"""Draws a web that changes: articles, edits, deaths, hubs, feeds, sitemaps, teasers, all before the first revisit."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from simulator.pages import Array
from simulator.recrawl import webs
from simulator.recrawl.changing import ChangingWeb, Kind, Lastmod, Listing, Site, Truth, Urls
from simulator.recrawl.webs import PLANS, Plan, SiteKind, plan_of

DAYS = 60
"""Days that a recrawl is simulated (chosen: enough for most kinds of pages to change)."""
YEAR_DAYS = 365


def make_web(name: str, seed: int, days: int = DAYS) -> ChangingWeb:
    """The web *name* (webs.py), the same one for the same seed; raises BadInput for an unknown name."""
    return draw(plan_of(name), np.random.default_rng([seed, list(PLANS).index(name)]), days)


def draw(plan: Plan, rng: np.random.Generator, days: int = DAYS) -> ChangingWeb:
    """A web of the sites of *plan*."""
    drawing = _Drawing(rng, days)
    for kind in (kind for kind, number in plan for _ in range(number)):
        drawing.add(kind)
    return drawing.web()


class _Edits(NamedTuple):
    """Edits of the pages of a site."""

    pages: Array
    """Which page each is of, by their order on the site."""
    times: Array
    """In order for each page."""
    mean: Array
    """Of each page: edits to be expected in all after its birth."""
    steady: Array
    """Of each page: edits a day besides."""


class _Drawing:
    """A web to which one site after another is added."""

    def __init__(self, rng: np.random.Generator, days: int) -> None:
        self._rng = rng
        self._days = days
        self._sites: list[Site] = []
        self._urls: list[Urls] = []
        """Columns of each site."""
        self._added_at: list[list[float]] = []
        self._added_words: list[list[int]] = []
        self._children: dict[int, Listing] = {}
        self._truths: list[Truth] = []

    def web(self) -> ChangingWeb:
        urls = Urls(*map(np.concatenate, zip(*self._urls, strict=True)))
        texts = (self._added_at, self._added_words)
        return ChangingWeb(self._days, urls, self._sites, *texts, self._children, self._truths)

    def add(self, kind: SiteKind) -> None:
        """A site: its articles, then what lists them."""
        rng = self._rng
        rate = min(webs.HIGHEST_RATE, kind.articles_per_day * rng.lognormal(0, webs.RATE_SPREAD))
        born = _births(rate, kind.archive_days, self._days, rng)
        number = len(born)
        urls = len(self._added_at) + np.arange(number)
        dies = np.maximum(born, 0) + rng.exponential(YEAR_DAYS, number) / max(kind.deaths_per_year, 1e-9)
        shares = rng.dirichlet(np.full(kind.sections, webs.SECTIONS_SHAPE))
        section = rng.choice(kind.sections, number, p=shares)
        parent = _parents(kind, born, rng)
        for page in np.unique(parent[parent >= 0]).tolist():
            self._children[int(urls[page])] = Listing.of(born[parent == page], urls[parent == page])
        edits = _edits(kind, born, np.minimum(dies, self._days), self._days, rng)
        words = self._add_texts(kind, born, edits)
        lists = _lists(kind, rng)
        self._added_at += [[] for _ in lists]
        self._added_words += [[] for _ in lists]
        kinds, sections, items = np.array([(Kind.PAGE, one, 0) for one in section.tolist()] + lists).T
        always = np.full(len(lists), np.inf)
        site = np.full(number + len(lists), len(self._sites))
        self._urls.append(Urls(kinds, site, np.append(born, -always), np.append(dies, always), sections, items))
        listed = [(parent < 0) & (section == one) for one in range(kind.sections)]
        covered = rng.random(number) < webs.SITEMAP_COVER
        said = covered[edits.pages]
        validates = bool(rng.random() < webs.VALIDATOR_SHARE)
        feed_validates = bool(rng.random() < webs.FEED_VALIDATOR_SHARE)
        self._sites.append(
            Site(
                articles=Listing.of(born[parent < 0], urls[parent < 0]),
                sections=[Listing.of(born[where], urls[where]) for where in listed],
                has_teasers=bool(rng.random() < kind.teaser_share),
                # a sitemap is a file on disk, which servers answer for by themselves
                validators={
                    Kind.PAGE: validates,
                    Kind.HUB: validates,
                    Kind.FEED: feed_validates,
                    Kind.SITEMAP: True,
                },
                in_sitemap=Listing.of(born[covered], urls[covered]),
                edits=Listing.of(edits.times[said], urls[edits.pages[said]]),
                lastmod=_lastmod(rng),
                sitemap_phase=rng.random() * webs.SITEMAP_EVERY_DAYS,
            )
        )
        edit_words = kind.edit_words * _mean_of_lognormal(webs.EDIT_WORDS_SPREAD)
        of_lists = np.zeros(len(lists))
        tendencies = (np.append(edits.mean, of_lists), kind.edit_delay_days, np.append(edits.steady, of_lists))
        self._truths.append(Truth(rate, shares, kind.deep_share, words, edit_words, *tendencies))

    def _add_texts(self, kind: SiteKind, born: Array, edits: _Edits) -> float:
        """What stands on each page of a site, and what its edits add; gives the mean words of an article."""
        rng = self._rng
        median = kind.words * rng.lognormal(0, webs.SITE_WORDS_SPREAD)
        words = _whole(median * rng.lognormal(0, webs.WORDS_SPREAD, len(born)))
        more = _whole(kind.edit_words * rng.lognormal(0, webs.EDIT_WORDS_SPREAD, len(edits.times)))
        edges = np.searchsorted(edits.pages, np.arange(len(born) + 1))
        for page, (start, end) in enumerate(pairwise(edges)):
            self._added_at.append([float(born[page]), *edits.times[start:end].tolist()])
            self._added_words.append([int(words[page]), *more[start:end].tolist()])
        return float(median * _mean_of_lognormal(webs.WORDS_SPREAD))


def _births(rate: float, archive_days: float, days: int, rng: np.random.Generator) -> Array:
    """When the articles of a site are published, in order; those before the recrawl are known when it begins."""
    known = int(np.clip(rng.poisson(rate * archive_days), webs.FEWEST_PAGES, webs.MAX_PAGES))
    old = -archive_days * rng.random(known)
    new = days * rng.random(rng.poisson(rate * days))
    births: Array = np.sort(np.concatenate((old, new)))
    return births


def _parents(kind: SiteKind, born: Array, rng: np.random.Generator) -> Array:
    """For each article the older one that alone links to it, by their order on the site; -1: hubs and feeds list it."""
    order = np.arange(len(born))
    is_deep = (born > 0) & (rng.random(len(born)) < kind.deep_share)
    parents: Array = np.where(is_deep, rng.integers(0, np.maximum(order, 1)), -1)
    return parents


def _edits(kind: SiteKind, born: Array, until: Array, days: int, rng: np.random.Generator) -> _Edits:
    """Edits within the recrawl and before *until*."""
    number = len(born)
    begin = np.maximum(born, 0)
    mean = kind.edits * rng.gamma(webs.EDITS_SHAPE, 1 / webs.EDITS_SHAPE, number)
    few = rng.poisson(mean)
    rate = kind.steady_edits_per_day * rng.gamma(webs.STEADY_SHAPE, 1 / webs.STEADY_SHAPE, number)
    steady = rate * (rng.random(number) < kind.steady_share)
    many = rng.poisson(steady * (days - begin))
    soon = born.repeat(few) + rng.exponential(kind.edit_delay_days, int(few.sum()))
    later = begin.repeat(many) + (days - begin).repeat(many) * rng.random(int(many.sum()))
    pages = np.append(np.arange(number).repeat(few), np.arange(number).repeat(many))
    at = np.append(soon, later)
    order = np.lexsort((at, pages))
    order = order[(at > begin[pages])[order] & (at < until[pages])[order]]
    return _Edits(pages[order], at[order], mean, steady)


def _mean_of_lognormal(spread: float) -> float:
    """Of a variable whose median is 1."""
    return float(np.exp(spread * spread / 2))


def _whole(words: Array) -> Array:
    whole: Array = np.maximum(1, words).astype(np.int64)
    return whole


def _lists(kind: SiteKind, rng: np.random.Generator) -> list[tuple[Kind, int, int]]:
    """What lists the articles of a site: kind of URL, section or -1, and the most items."""
    found = [(Kind.HUB, -1, kind.front_links)]
    found += [(Kind.HUB, section, kind.section_links) for section in range(kind.sections)]
    if rng.random() < kind.feed_share:
        items, shares = zip(*webs.FEED_ITEMS, strict=True)
        found.append((Kind.FEED, -1, int(rng.choice(items, p=shares))))
    if rng.random() < webs.SITEMAP_SHARE:
        found.append((Kind.SITEMAP, -1, 0))
    return found


def _lastmod(rng: np.random.Generator) -> Lastmod:
    if rng.random() >= webs.LASTMOD_SHARE:
        return Lastmod.NONE
    return Lastmod.TRUE if rng.random() < webs.TRUE_LASTMOD_SHARE else Lastmod.LYING
