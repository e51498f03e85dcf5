"""A web of numbered pages in arrays: what each page would give a crawl, and which pages it links to.

No object stands for a page: its number is the index into every array, and the pages of
a host follow one another.  5 million pages with ten links each take about 400 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.addresses import Addresses
from simulator.addresses import Array as Array
from simulator.measures import Truth
from spiderling.base.link_batch import NONE, TEXT_BLOCK, Link, LinkBatch, gathered
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.site_files import SiteFile

VERDICTS = (
    Reason.KEPT,
    Reason.WRONG_LANGUAGE,
    Reason.BOILERPLATE_ONLY,
    Reason.DUPLICATE,
    Reason.SOFT_NOT_FOUND,
    Reason.BAD_QUALITY,
    Reason.NEAR_DUPLICATE,
    Reason.HTTP_ERROR,
)
CODES = {reason: code for code, reason in enumerate(VERDICTS)}
TEXT_SCORE = 128
"""The least score, of 0 to 255, of a link in a block of running text."""
ERROR_BYTES = 800
"""Bytes of the answer to a request for what is not there (chosen)."""
BYTES_PER_WORD = 7
"""Bytes of kept text that count as a word (chosen)."""
_MIX = 0x9E3779B97F4A7C15
"""2**64 / golden ratio: spreads consecutive numbers over all 64 bits."""
_FLAGS = bytes(TEXT_BLOCK * (score >= TEXT_SCORE) for score in range(256))
"""Score -> flags of the link (base/link_batch.py)."""
_ANCHOR = b"\x14"
"""Characters of a link's text, 20 for each (chosen)."""


@dataclass(slots=True, eq=False)
class Hosts:
    """One entry a host, in the order of their pages."""

    names: Sequence[str]
    first: Array
    """Number of the host's first page; one entry more than hosts, the number of all pages."""
    latency_s: Array
    address: Array
    """A number that stands for an IP address."""
    crawl_delay_s: Array
    """As its robots.txt says; 0: it says nothing."""


@dataclass(slots=True, eq=False)
class Pages:
    """One entry a page."""

    host: Array
    body_bytes: Array
    kept_bytes: Array
    verdict: Array
    """Index into VERDICTS."""
    language: Array
    """Index into the web's languages."""
    sketch: Array
    """Pages with equal sketches say the same; 0: the page has none."""
    badness: Array
    """As in text/quality.py."""
    text_key: Array | None = None
    """Pages with equal keys have the same text, which a crawl keeps once; 0: the text is like no other."""


Links = Callable[[int], tuple[Array, Array]]
"""Page -> the pages that it links to, and the score of the block of each link (0 to 255, TEXT_SCORE on: text)."""


@dataclass(slots=True, eq=False)
class PageWeb:
    """An ``AnswerWeb`` (replay.py) made of arrays."""

    title: str
    hosts: Hosts
    pages: Pages
    links: Links
    languages: Sequence[str]
    """The first is the one that is wanted."""
    seeds: Sequence[int]
    """Pages to begin with."""
    url: Callable[[int], str]
    find: Callable[[str], int]
    """URL -> page, or -1."""
    addresses: Addresses | None = None
    """Those of the pages, if links are to be batched fast."""
    cues: Callable[[int], Array] | None = None
    """Page -> for each link the characters of its text, and what hreflang says; None: not known, or all alike."""
    _latency_s: list[float] = field(init=False)
    _host: dict[str, int] = field(init=False)
    _views: tuple[memoryview, ...] = field(init=False)

    def __post_init__(self) -> None:
        pages = self.pages
        # a memoryview gives Python's own numbers, five times as fast as an array
        columns = (pages.body_bytes, pages.kept_bytes, pages.verdict, pages.language, pages.sketch, pages.badness)
        self._views = tuple(np.ascontiguousarray(column).data for column in columns)
        self._host = {name: number for number, name in enumerate(self.hosts.names)}
        self._latency_s = self.hosts.latency_s.tolist()

    @property
    def truth(self) -> Truth:
        """The sums over all pages."""
        kept = self.new_kept_bytes
        return Truth(len(kept), int(self.relevant.sum()), int((kept // BYTES_PER_WORD).sum()), int(kept.sum()))

    @property
    def new_kept_bytes(self) -> Array:
        """For each page: the bytes kept of it, 0 if an earlier page has the same text."""
        kept = self.pages.kept_bytes
        keys = self.pages.text_key
        if keys is not None:
            keys = np.where(kept > 0, keys, 0)  # the same text may have ended otherwise, as a soft 404
            first = np.isin(np.arange(len(kept)), np.unique(keys, return_index=True)[1])
            kept = np.where(first | (keys == 0), kept, 0)
        return kept

    @property
    def relevant(self) -> Array:
        """For each page: whether it is in the wanted language."""
        relevant: Array = (self.pages.language == 0) & (self.pages.verdict != CODES[Reason.HTTP_ERROR])
        return relevant

    def seed_urls(self) -> list[str]:
        return [self.url(page) for page in self.seeds]

    def address(self, name: str) -> str:
        number = int(self.hosts.address[self._host.get(name, 0)])
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def latency_s(self, url: str) -> float:
        return self._latency_s[self._host.get(url.split("/", 3)[2], 0)]

    def site_file(self, url: str) -> tuple[int, bytes, str | None]:
        """A robots.txt where the host has one; no site has another file."""
        delay = self.hosts.crawl_delay_s[self._host.get(url.split("/", 3)[2], 0)]
        if delay and url.endswith(SiteFile.ROBOTS.value):
            return 200, b"User-agent: *\nCrawl-delay: %g\n" % delay, None
        return 404, bytes(ERROR_BYTES), None

    def outcome(self, url_id: int, url: str) -> Outcome:
        page = self.find(url)
        if page < 0:
            return Outcome(url_id, url, Reason.HTTP_ERROR, 404, body_bytes=ERROR_BYTES)
        body, kept, verdict, language, sketch, badness = self._views
        keys = self.pages.text_key
        reason = VERDICTS[verdict[page]]
        failed = reason is Reason.HTTP_ERROR
        return Outcome(
            url_id,
            url,
            reason,
            404 if failed else 200,
            body_bytes=body[page],
            kept_bytes=kept[page],
            words=kept[page] // BYTES_PER_WORD,
            language=self.languages[0] if reason is Reason.KEPT else None,
            page_language=self.languages[language[page]],
            relevant=not (failed or language[page]),
            badness=badness[page],
            sketch=sketch[page],
            text_key=0 if keys is None else int(keys[page]),
            links=NONE if failed else self._links_of(page),
        )

    def _links_of(self, page: int) -> LinkBatch:
        targets, scores = self.links(page)
        columns = scores.tobytes()
        if self.addresses is None:
            cues = self.cues(page).tolist() if self.cues else [(0, 0)] * len(columns)
            return gathered(
                Link(self.url(target), score >= TEXT_SCORE, score / 255, anchor, said=said)
                for target, score, (anchor, said) in zip(targets.tolist(), columns, cues, strict=True)
            )
        none = bytes(len(columns))
        *wide, depths = self.addresses.columns(targets)
        cues = none, none, depths, columns.translate(_FLAGS), columns, _ANCHOR * len(columns)
        return LinkBatch._make((*wide, *cues, (), 0, b""))


def sketches(pages: Array) -> Array:
    """A sketch of its own for each of *pages*."""
    mixed: Array = (pages.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX)
    return mixed


def stored_links(starts: Array, targets: Array, scores: Array) -> Links:
    """Links in memory: those of page ``n`` stand from ``starts[n]`` to ``starts[n + 1]``."""

    def links(page: int) -> tuple[Array, Array]:
        span = slice(starts[page], starts[page + 1])
        return targets[span], scores[span]

    return links
