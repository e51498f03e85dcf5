"""Webs made by chance with the statistics that were published of real ones, up to millions of pages.

Languages, top-level domains and the locality of links are those of the Thai web of Tamura,
Somboonviwat & Kitsuregawa 2006 (Tables 2 and 3); the yield of hosts that of a crawl of .pt
(Suchomel & Pomikálek 2012, Table 1); what the block of a link tells of its target that of
Schäfer, Barbaresi & Bildhauer 2014 (Table 3).  Host sizes and the links that a page gets
follow power laws.  Everything is determined by the recipe, seed included; links are
made when they are asked for, a block of pages at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.addresses import Addresses
from simulator.linking import Linking
from simulator.pages import CODES, ERROR_BYTES, Array, Hosts, Pages, PageWeb, sketches
from spiderling.base.errors import BadInput
from spiderling.base.reasons import Reason

TABLE_1 = (
    (31024 - 29580, 1181.56 - 705.07, 0.00005),
    (29580 - 28710, 705.07 - 619.44, 0.00014),
    (28710 - 27460, 619.44 - 513.86, 0.00028),
    (27460 - 25956, 513.86 - 407.30, 0.00056),
    (25956 - 24380, 407.30 - 307.27, 0.0012),
    (24380 - 22325, 307.27 - 214.18, 0.0023),
    (22325 - 19463, 214.18 - 142.38, 0.0047),
    (19463 - 15624, 142.38 - 85.69, 0.0090),
    (15624 - 11277, 85.69 - 45.05, 0.0175),
    (11277 - 7003, 45.05 - 18.61, 0.035),
    (7003 - 3577, 18.61 - 5.45, 0.070),
    (3577 - 1346, 5.45 - 1.76, 0.141),
    (1346 - 313, 1.76 - 0.21, 0.284),
    (313, 0.21, 0.476),
    (51645 - 31024, 1288.87 - 1181.56, 0.0),
)
"""Suchomel & Pomikálek 2012, Table 1, between two thresholds each: domains, GB downloaded, yield rate.

The last row holds the domains without text.
"""
WANTED_TLDS = ((0.345, "th"), (0.53, "com"), (0.041, "net"), (0.05, "org"), (0.034, "jp"))
"""Share of the pages in the wanted language by top-level domain (Tamura et al. 2006, Table 2)."""
OTHER_TLDS = (
    (0.045, "th"),
    (0.454, "com"),
    (0.065, "net"),
    (0.065, "org"),
    (0.125, "jp"),
    (0.076, "de"),
    (0.17, "ru"),
)
"""Share of the pages in other languages by top-level domain (the same table)."""
LANGUAGES = ("th", "en", "ja", "de", "")
"""Of the pages; the first is the wanted one, the last stands for all others."""
OTHER_SHARES = (0.178, 0.02, 0.014, 0.666)
"""Shares of the pages in LANGUAGES but the first."""
SAME_SERVER = 0.841
"""Share of the links of a wanted page to its own server that lead to wanted pages."""
_FEW = 0.003
"""Share of wanted pages on the other hosts of a ``pure`` web (chosen; hardly anything depends on it)."""
SECTIONS = ("", "clanky/", "zbozi/", "forum/", "kalendar/2024-05/")
_TRAP = 4
"""Place of the calendar in SECTIONS."""
_GOLDEN = 0.6180339887498949
"""The golden ratio: its multiples, modulo 1, are spread evenly."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a web is made of; the defaults are those of the Thai web."""

    title: str = "thai"
    pages: int = 100_000
    seed: int = 1
    wanted_share: float = 0.122
    """Share of pages in the wanted language."""
    pure: bool = False
    """True: of a host's pages either about SAME_SERVER are wanted or hardly any; False: any share."""
    yields: str = "typical"
    """Yield rates of hosts: ``typical`` of crawls in one language (.05), or ``table-1``."""
    mean_host_pages: float = 21.0
    size_exponent: float = 1.1
    """The share of hosts with more than n pages falls like n to the minus this (``typical``)."""
    size_spread: float = 1.0
    """Standard deviation of the logarithms of the sizes of hosts of one row of the table (``table-1``)."""
    largest: float = 0.02
    """Share of the pages that one host may have."""
    seed_hosts: int = 3
    links: float = 10.0
    """Mean number of links on a page."""
    one_address: float = 0.0
    """Share of the hosts that stand on one address, as the names of a blog service do."""
    trap_share: float = 0.01
    """Share of the hosts that have a calendar without end, or say the same on every page."""
    duplicate_share: float = 0.05
    error_share: float = 0.02

    def __post_init__(self) -> None:
        if not (100 <= self.pages <= 20_000_000 and 0 < self.wanted_share <= 1 and 3 <= self.links <= 200):
            raise BadInput(
                f"a generated web has 100 to 20,000,000 pages and 3 to 200 links a page, some of them wanted; "
                f"not {self.pages}, {self.links}, {self.wanted_share}."
            )


RECIPES = {
    "thai": Recipe(),
    "thai-pure": Recipe("thai-pure", pure=True, largest=0.002),
    "pt": Recipe("pt", wanted_share=1.0, yields="table-1", mean_host_pages=80, seed_hosts=30),
    "w12": Recipe(
        "w12", wanted_share=1.0, yields="table-1", mean_host_pages=830, size_spread=0.3, largest=0.2, seed_hosts=30
    ),
    "scarce": Recipe("scarce", wanted_share=0.02, seed_hosts=475, mean_host_pages=15),
    "many-hosts": Recipe("many-hosts", mean_host_pages=3, seed_hosts=475),
    "one-address": Recipe("one-address", mean_host_pages=4, one_address=0.8, seed_hosts=30),
}
"""The webs that strategies are compared on; ``scarce`` begins with as many hosts as the crawl of Tajik of 2012."""


def generate(recipe: Recipe) -> PageWeb:
    """The web of *recipe*; the same one for equal recipes."""
    rng = np.random.default_rng([recipe.seed, 1])
    sizes, rates = _sizes(recipe, rng)
    first = np.concatenate(([0], np.cumsum(sizes)))
    shares = _wanted_shares(recipe, sizes, rng)
    hosts = _hosts(first, shares, rng)
    if recipe.one_address:
        together = np.random.default_rng([recipe.seed, 4]).random(len(sizes)) < recipe.one_address
        hosts.address[together] = len(sizes)  # no other host has it
    section, pages = _pages(recipe, first, shares, rates, rng)
    linking = Linking(recipe.seed, recipe.links, first, pages, hosts.address, _seed_order(recipe, shares, rates, rng))
    seeds = first[linking.order[: recipe.seed_hosts]].tolist()
    addresses = Addresses(hosts.names, first, pages.host, section, SECTIONS)
    return PageWeb(
        recipe.title, hosts, pages, linking.links, LANGUAGES, seeds, addresses.url, addresses.find, addresses
    )


# -- hosts


def _sizes(recipe: Recipe, rng: np.random.Generator) -> tuple[Array, Array]:
    """Pages and yield rate of each host, in random order."""
    number = max(10, int(recipe.pages / recipe.mean_host_pages))
    even = (np.arange(number) + 0.5) / number
    if recipe.yields == "table-1":
        counts, gigabytes, rates = (np.array(column) for column in zip(*TABLE_1, strict=True))
        kind = np.searchsorted(np.cumsum(counts) / counts.sum(), even)
        sizes = (gigabytes / counts)[kind] * rng.lognormal(0, recipe.size_spread, number)
        rate = rates[kind]
    else:
        sizes = even ** (-1 / recipe.size_exponent)
        rate = 0.05 * rng.lognormal(-0.3, 0.8, number)
    for _ in range(20):
        sizes = np.minimum(sizes * recipe.pages / sizes.sum(), recipe.pages * recipe.largest)
    whole = np.maximum(1, np.floor(sizes).astype(np.int64))
    whole[np.argmax(whole)] += max(0, recipe.pages - int(whole.sum()))
    order = rng.permutation(number)
    return whole[order], np.minimum(rate, 0.6)[order]


def _wanted_shares(recipe: Recipe, sizes: Array, rng: np.random.Generator) -> Array:
    """Share of wanted pages on each host: its mean over all pages is the recipe's, over wanted pages SAME_SERVER.

    A beta distribution meets both means, and so do two kinds of hosts (``pure``); the paper does not say which is
    true.  The quantiles are given to the hosts in 50 ways, and the way that comes nearest to the means is taken.
    """
    mean = recipe.wanted_share
    if mean == 1:
        return np.ones(len(sizes))
    if recipe.pure:
        high = (mean * SAME_SERVER - _FEW**2) / (mean - _FEW) - _FEW
        quantiles = np.where(np.linspace(0, 1, 200_000) < (mean - _FEW) / (high - _FEW), high, _FEW)
    else:
        spread = mean * (1 - mean) / (mean * SAME_SERVER - mean * mean) - 1
        quantiles = np.sort(rng.beta(mean * spread, (1 - mean) * spread, 200_000))
    place = np.argsort(np.argsort(-sizes))
    weight = sizes / sizes.sum()
    best = np.zeros(len(sizes))
    least = np.inf
    for start in rng.random(50):
        shares = quantiles[((start + place * _GOLDEN) % 1 * len(quantiles)).astype(np.int64)]
        error = abs(weight @ shares - mean) / mean + abs(weight @ shares**2 / max(weight @ shares, 1e-9) - SAME_SERVER)
        if error < least:
            best = shares
            least = error
    return best


def _hosts(first: Array, shares: Array, rng: np.random.Generator) -> Hosts:
    number = len(shares)
    is_wanted = shares > 0.5
    sizes = np.diff(first)
    tlds = np.where(is_wanted, _drawn(WANTED_TLDS, sizes, is_wanted), _drawn(OTHER_TLDS, sizes, ~is_wanted))
    names = [f"web{host:x}.{tld}" for host, tld in enumerate(tlds.tolist())]
    address = (number / 3 * rng.random(number) ** 1.5).astype(np.int64)
    delay = np.where(rng.random(number) < 0.02, rng.integers(6, 30, number), 0)
    return Hosts(names, first, 0.4 * rng.lognormal(0, 0.8, number), address, delay)


def _drawn(shares: tuple[tuple[float, str], ...], sizes: Array, which: Array) -> Array:
    """A top-level domain for each host; by the pages of the hosts of *which*, domains have the *shares*."""
    order = np.argsort(-np.where(which, sizes, 0), kind="stable")
    place = np.empty(len(sizes))
    place[order] = np.arange(len(sizes)) * _GOLDEN % 1
    edges = np.cumsum([share for share, _ in shares])
    names = np.array([name for _, name in shares])
    drawn: Array = names[np.minimum(np.searchsorted(edges / edges[-1], place), len(names) - 1)]
    return drawn


def _seed_order(recipe: Recipe, shares: Array, rates: Array, rng: np.random.Generator) -> Array:
    """All hosts, the oldest first; the first ones are the seeds, which have wanted pages and text."""
    order = rng.permutation(len(shares))
    good = (shares[order] > 0.5) & (rates[order] > 0)
    is_seed = good & (np.cumsum(good) <= recipe.seed_hosts)
    return np.concatenate((order[is_seed], order[~is_seed]))


# -- pages


def _pages(recipe: Recipe, first: Array, shares: Array, rates: Array, rng: np.random.Generator) -> tuple[Array, Pages]:
    """Section of each page, and what a crawl would find there."""
    sizes = np.diff(first)
    number = int(first[-1])
    host = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    trap = rng.random(len(sizes)) < recipe.trap_share
    trap[sizes < 30] = False
    section, chance = _sections(sizes, host, rates, trap, rng)
    front = np.zeros(number, bool)
    front[first[:-1]] = True
    section[front] = 0
    chance[front] = 0.0
    wanted = rng.random(number) < np.where(front, shares[host] > 0.5, shares[host])
    foreign = rng.choice(np.arange(1, 5), len(sizes), p=np.array(OTHER_SHARES) / sum(OTHER_SHARES))
    copies = trap[host] & (host % 2 == 0) & ~front
    draw = rng.random(number)
    verdict = np.where(
        wanted,
        np.where(rng.random(number) < chance, CODES[Reason.KEPT], CODES[Reason.BOILERPLATE_ONLY]),
        CODES[Reason.WRONG_LANGUAGE],
    ).astype(np.uint8)
    kept = verdict == CODES[Reason.KEPT]
    verdict[kept & (draw < recipe.duplicate_share)] = CODES[Reason.DUPLICATE]
    verdict[copies & wanted] = CODES[Reason.SOFT_NOT_FOUND]
    verdict[~front & (draw > 1 - recipe.error_share)] = CODES[Reason.HTTP_ERROR]
    kept = verdict == CODES[Reason.KEPT]
    body = (30_000 * rng.lognormal(-0.2, 0.4, len(sizes))[host] * rng.lognormal(-0.12, 0.5, number)).astype(np.int32)
    body[verdict == CODES[Reason.HTTP_ERROR]] = ERROR_BYTES
    gained = _kept_bytes(host, body, kept, rates, rng)
    sketch = sketches(np.arange(number))
    sketch[(section == _TRAP) & ~copies] = 0
    sketch[copies] = sketches(first[:-1])[host[copies]]
    language = np.where(wanted, 0, foreign[host]).astype(np.uint8)
    is_good = rng.random(number) < np.where(kept, 0.75, 0.3)
    badness = np.where(wanted, np.where(is_good, 10, 60) * rng.random(number), 60 + 60 * rng.random(number))
    return section, Pages(host, body, gained, verdict, language, sketch, badness)


def _sections(sizes: Array, host: Array, rates: Array, trap: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Section of each page, and the chance that a page in the wanted language has text to keep.

    Each section of a host has a chance of its own.  Every twelfth host is a shop whose forum holds nearly all text.
    """
    number = len(sizes)
    share = rng.dirichlet((2.0, 2.0, 1.0), number)
    quality = rng.lognormal(0, 0.9, (number, 3))
    shop = rng.random(number) < 1 / 12
    share[shop] = (0.1, 0.75, 0.15)
    quality[shop] = (0.3, 0.02, 6.0)
    mean = np.minimum(np.clip(rates**0.35, 0.03, 0.9), rates / 0.02)  # a kept page is text for a fiftieth at least
    quality *= (mean / (quality * share).sum(1))[:, None]
    quality = np.minimum(quality, 0.97)
    quality[trap] = 0
    edge = np.cumsum(share, 1)[host]
    within = (rng.random(len(host))[:, None] > edge[:, :2]).sum(1)
    section = (within + 1).astype(np.uint8)
    section[trap[host] & (host % 2 == 1)] = _TRAP
    chance: Array = quality[host, within]
    return section, chance


def _kept_bytes(host: Array, body: Array, kept: Array, rates: Array, rng: np.random.Generator) -> Array:
    """Bytes kept of each page, so that each host has about its yield rate where all of its pages are wanted."""
    number = len(rates)
    part = rng.lognormal(-0.12, 0.5, len(host)) * kept
    all_bytes = np.bincount(host, body, number)
    of_kept = np.bincount(host, body * part, number)
    factor = np.minimum(rates * all_bytes / np.maximum(of_kept, 1), 0.6)
    bytes_kept: Array = np.minimum(body * part * factor[host], body * 0.9).astype(np.int32)
    return bytes_kept
