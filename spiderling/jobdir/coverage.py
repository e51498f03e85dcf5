"""How much of a language's web a crawl has: estimated from lists of pages that were found in other ways.

A list names pages with text in the language, such as a sample of an index of the web, or of a corpus of somebody else.
Of a list that does not follow from the crawl, the share that the crawl has is the share of all such pages that it has
(Lawrence and Giles 1998; Bharat and Broder 1998).  Pages of one host are fetched together, so the interval is that of
a ratio over hosts as clusters (Cochran 1977, 9.2), on the scale of Wilson's (1927).

A list that favours what the crawl favours gives too much.  So of several lists the interval is from the lowest bound
to the highest, and where the interval of one ends before that of another begins, nothing is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling.base.addresses import numbered_entries
from spiderling.base.errors import BadInput
from spiderling.base.option_values import PREFIX
from spiderling.base.reasons import Reason
from spiderling.base.terminal import entries_of
from spiderling.base.urls import PREFIXES, CanonicalUrl, assemble, canonicalize, url_key
from spiderling.frontier.storage.url_log import unpack_ends
from spiderling.jobdir.inspection import AnyCrawl, Inspection

COVERAGES = "coverage"  # key of the estimates in the table ``meta``, by time
_MAX_POINTS = 500  # chosen: an estimate an hour for three weeks
_Z = 1.6449  # quantile of the normal distribution for intervals that hold the truth nine times in ten
_WORDS = re.compile(r"[0-9]{1,9}")  # a page's number of words
_MIN_PAGES = 50  # pages of a list that can be judged, at least; chosen: the interval is at most .25 wide then
_HAD = tuple(reason.value for reason in (Reason.KEPT, Reason.DUPLICATE, Reason.NEAR_DUPLICATE))
"""Ends of pages whose text the crawl has."""
_MIN_HOSTS = 6  # hosts of them, at least; of 5 the interval held the words in 24 of 30 simulated crawls


class Estimate(NamedTuple):
    """The share that the crawl has, and the interval that holds it in nine of ten cases."""

    share: float
    low: float
    high: float


class LookedUp(NamedTuple):
    """One list, by page: whether the crawl has it, its words, its host."""

    name: str
    has: NDArray[np.bool_]
    words: NDArray[np.float64]  # empty: the list does not say
    host: NDArray[np.int64]  # a number for each host
    host_has: NDArray[np.bool_]  # whether the crawl has text of the page's host
    kept_share: float = 1.0  # of its pages that were fetched: a page that was not may hold no text in the language


class Coverage(NamedTuple):
    """What is known of a crawl's coverage; None: nothing."""

    hosts: Estimate | None
    pages: Estimate | None
    words: Estimate | None
    why: str  # why something is not said; empty: all is

    def shares(self) -> dict[str, list[float] | None]:
        """Share, low and high of each kind."""
        kinds = {"hosts": self.hosts, "pages": self.pages, "words": self.words}
        return {what: found and [round(value, 4) for value in found] for what, found in kinds.items()}


class PageList(NamedTuple):
    """A list as its file has it."""

    name: str  # of the file
    pages: dict[str, CanonicalUrl]  # by its URL
    words: dict[str, float]  # URL -> words; empty unless all pages have some


def read_lists(paths: str) -> list[PageList]:
    """The lists in the files *paths*, with commas between: a URL a line, and behind a tab its words.

    Raises BadInput if one cannot be read, or a line names no URL.
    """
    if not (names := entries_of(paths)) and paths:
        raise BadInput(f"{paths!r} names no list of pages; write files with commas between, such as index.txt,old.tsv.")
    return [*map(_read_list, names)]


def _read_list(path: str) -> PageList:
    pages: dict[str, CanonicalUrl] = {}
    spelt: dict[tuple[str, str], str] = {}  # the first of several spellings of an address counts
    words: dict[str, float] = {}
    for number, entry in numbered_entries(path, "the list of pages"):
        url, _, said = entry.partition("\t")
        target = canonicalize(url)
        if target is None or (said and not _WORDS.fullmatch(said)):
            raise BadInput(
                f"line {number} of {path} names no page: {entry[:100]!r}; write a URL a line, in full, and behind a "
                "tab its number of words if it is known."
            )
        url = spelt.setdefault((target.host, target.path), target.url)
        pages[url] = target._replace(url=url)
        if said:
            words[url] = float(said)
    return PageList(Path(path).name, pages, words if len(words) == len(pages) else {})


def look_up(crawl: AnyCrawl, listed: PageList) -> tuple[LookedUp, list[str]]:
    """What *crawl* has of the pages *listed*, and those that it has not; what it fetched and did not keep is left out.

    http and https, and a leading ``www.``, make no difference.  Raises BadInput for a crawl that keeps no trail.
    """
    if crawl.options.trail == "off":
        raise BadInput(f"{crawl.directory} does not note how its URLs ended ({PREFIX}TRAIL=off), which coverage needs.")
    had: dict[str, bool] = {}  # URL of each page that was fetched
    giving: set[str] = set()
    for part in crawl.parts:
        known, gives = _hosts_of(part, {page.host for page in listed.pages.values()})
        giving |= gives
        keys = {key: page.url for page in listed.pages.values() if page.host in known for key in _keys(known, page)}
        for url, is_had in _ends_of(part, keys):
            had[url] = is_had or had.get(url, False)
    judged = [page for url, page in listed.pages.items() if had.get(url, True)]
    numbers = {host: number for number, host in enumerate(dict.fromkeys(page.host for page in judged))}
    looked_up = LookedUp(
        listed.name,
        np.array([page.url in had for page in judged], bool),
        np.array([listed.words[page.url] for page in judged] if listed.words else [], float),
        np.array([numbers[page.host] for page in judged], np.int64),
        np.array([page.host in giving for page in judged], bool),
        (sum(had.values()) + 1) / (len(had) + 1),
    )
    return looked_up, [page.url for page in judged if page.url not in had]


def _keys(ids: Mapping[str, int], page: CanonicalUrl) -> set[int]:
    """The keys of a *page* in all spellings of its address."""
    spellings = (assemble(prefix, page.host, page.path).url for prefix in range(len(PREFIXES)))
    return {url_key(ids[page.host], url) for url in (page.url, *spellings)}


def _hosts_of(part: Inspection, wanted: set[str]) -> tuple[dict[str, int], set[str]]:
    """Of the hosts *wanted*: name -> id of those that are known, and the names of those that gave text."""
    known = {}
    gives = set()
    for host, name, documents in part.cursor("SELECT id, name, documents FROM host"):
        if name in wanted:
            known[name] = host
            if documents:
                gives.add(name)
    return known, gives


def _ends_of(part: Inspection, wanted: Mapping[int, str]) -> Iterator[tuple[str, bool]]:
    """URL, and whether its text was had, for each end of those *wanted*, by their keys, that had an answer."""
    keys = np.array(sorted(wanted), np.int64)
    for batch, packed in part.cursor("SELECT batch, keys FROM ended ORDER BY batch"):
        if np.isin(np.frombuffer(packed, np.int64), keys).any():
            (ends,) = part.cursor("SELECT ends FROM ended WHERE batch = ?", batch).fetchone()
            for end in unpack_ends(packed, ends):
                if end.key in wanted and (end.reason in _HAD or end.status):
                    yield wanted[end.key], end.reason in _HAD


def coverage_of(crawl: AnyCrawl, lists: Sequence[PageList]) -> Coverage:
    """The coverage of *crawl*, of shards that of all, by *lists*."""
    return estimate([look_up(crawl, pages)[0] for pages in lists])


def with_point(points: Sequence[dict[str, Any]], now: float, coverage: Coverage) -> list[dict[str, Any]]:
    """The noted *points* and the newest; when there are _MAX_POINTS, each second one goes."""
    kept = points if len(points) < _MAX_POINTS else points[1::2]
    return [*kept, {"time": now, **coverage.shares()}]


def in_words(shares: Mapping[str, Any]) -> str:
    """The *shares* of a point; '' if there are none."""
    told = [(what, shares[what]) for what in ("words", "pages", "hosts") if shares.get(what)]
    return ", ".join(
        f"{share:.0%} of the {what} ({100 * low:.0f} to {100 * high:.0f})" for what, (share, low, high) in told
    )


def estimate(lists: Sequence[LookedUp]) -> Coverage:
    """The coverage by *lists*, of which at least one is long enough; else none, and the reason."""
    sizes = [(len(one.has), len(np.unique(one.host))) for one in lists]
    usable = [
        one for one, (pages, hosts) in zip(lists, sizes, strict=True) if pages >= _MIN_PAGES and hosts >= _MIN_HOSTS
    ]
    if not usable:
        told = [
            f"{one.name} has {pages} pages of {hosts} hosts" for one, (pages, hosts) in zip(lists, sizes, strict=True)
        ]
        return Coverage(None, None, None, f"{'; '.join(told)}: {_MIN_PAGES} of {_MIN_HOSTS} hosts are needed")
    found = {
        "hosts": [_hosts(one) for one in usable],
        "pages": [_ratio(one.has, _weights(one, one.has), one.host) for one in usable],
        "words": [_ratio(one.has, _weights(one, one.has) * one.words, one.host) for one in usable if one.words.any()],
    }
    if disagreeing := [_shares(what, ratios) for what, ratios in found.items() if not _overlap(ratios)]:
        return Coverage(None, None, None, f"the lists disagree about {', '.join(disagreeing)}")
    why = "" if found["words"] else "no list says how many words its pages have"
    return Coverage(_joined(found["hosts"]), _joined(found["pages"]), _joined(found["words"]), why)


def _shares(what: str, ratios: Sequence[_Ratio]) -> str:
    return f"the {what} ({min(ratios).share:.0%} and {max(ratios).share:.0%})"


def _overlap(ratios: Sequence[_Ratio]) -> bool:
    intervals = [_interval(ratio) for ratio in ratios]
    return not ratios or max(one.low for one in intervals) <= min(one.high for one in intervals)


def _joined(ratios: Sequence[_Ratio]) -> Estimate | None:
    """What all lists together say."""
    if not ratios:
        return None
    intervals = [_interval(ratio) for ratio in ratios]
    share = np.average([one.share for one in ratios], weights=[_effective(one) for one in ratios])
    return Estimate(float(share), min(one.low for one in intervals), max(one.high for one in intervals))


class _Ratio(NamedTuple):
    share: float
    variance: float
    most: float  # independent pages, or hosts, that it can count for at most
    clusters: int  # hosts


def _weights(one: LookedUp, has: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What the crawl has counts whole, all else by the share that is likely to hold text."""
    return np.where(has, 1.0, one.kept_share)


def _ratio(has: NDArray[np.bool_], weight: NDArray[np.float64], host: NDArray[np.int64]) -> _Ratio:
    """The share of *weight* that is had, and its variance with hosts as clusters."""
    total = weight.sum()
    share = float((weight * has).sum() / total)
    residuals = np.bincount(np.unique(host, return_inverse=True)[1], weight * (has - share))
    clusters = len(residuals)
    variance = clusters / (clusters - 1) * float((residuals**2).sum()) / total**2
    return _Ratio(share, variance, float(total**2 / (weight**2).sum()), clusters)


def _hosts(one: LookedUp) -> _Ratio:
    """The share of the hosts with text that the crawl has some text of.

    A list of pages names large hosts sooner.  Hosts that it names once stand for those that it does not name, of which
    there are f1 (f1 - 1) / 2 (f2 + 1) (Chao 1984, corrected for bias).
    """
    _, first, pages = np.unique(one.host, return_index=True, return_counts=True)
    has = one.host_has[first]
    once = pages == 1
    unseen = once.sum() * (once.sum() - 1) / 2 / ((pages == 2).sum() + 1)
    weight = np.where(once, 1 + unseen / max(1, once.sum()), 1.0) * _weights(one, has)
    total = weight.sum()
    share = float((weight * has).sum() / total)
    most = float(total**2 / (weight**2).sum())
    return _Ratio(share, share * (1 - share) / most, most, len(has))


def _effective(one: _Ratio) -> float:
    """How many independent pages would tell as much."""
    spread = one.share * (1 - one.share)
    return max(1.0, min(one.most, spread / one.variance if one.variance else one.most))


def _interval(one: _Ratio) -> Estimate:
    """Wilson's, with the quantile of Student's t for as many clusters, to the second term of its expansion."""
    n = _effective(one)
    quantile = _Z + (_Z**3 + _Z) / 4 / (one.clusters - 1)
    middle = one.share + quantile**2 / 2 / n
    half = quantile * math.sqrt(one.share * (1 - one.share) / n + quantile**2 / 4 / n**2)
    scale = 1 + quantile**2 / n
    return Estimate(one.share, max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale))
