"""A web of numbered pages in arrays: what each page would give a crawl, and which pages it links to.

No object stands for a page: its number is the index into every array, and the pages of
a host follow one another.  5 million pages with ten links each take about 400 MB.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spiderling.items import Outcome
from spiderling.linkbatch import NONE, TEXT_BLOCK, WORDS, Link, LinkBatch, gathered
from spiderling.reasons import Reason
from spiderling.simulation.measures import Truth
from spiderling.urls import url_hash
from spiderling.wordhashes import section_of, words_of_name, words_of_path

Array = NDArray[Any]
VERDICTS = (
    Reason.KEPT, Reason.WRONG_LANGUAGE, Reason.BOILERPLATE_ONLY, Reason.DUPLICATE, Reason.SOFT_NOT_FOUND,
    Reason.BAD_QUALITY, Reason.NEAR_DUPLICATE, Reason.HTTP_ERROR,
)  # fmt: skip
CODES = {reason: code for code, reason in enumerate(VERDICTS)}
TEXT_SCORE = 128
"""The least score, of 0 to 255, of a link in a block of running text."""
BYTES_PER_WORD = 7
_MIX = 0x9E3779B97F4A7C15
_FLAGS = bytes(TEXT_BLOCK * (score >= TEXT_SCORE) for score in range(256))
_ANCHOR = b"\x14"


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
    """0: none; pages with the same one say the same."""
    badness: Array
    """As in text/badness.py."""


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
    path: Callable[[int], bytes] | None = None
    """Page -> its path, where each URL is ``http://``, the host's name and this; links are batched faster then."""
    anchors: Callable[[int], Array] | None = None
    """Page -> characters of the text of each link; None: not known, or all alike."""
    _latency_s: list[float] = field(init=False)
    _host: dict[str, int] = field(init=False)
    _views: tuple[memoryview, ...] = field(init=False)
    _hashes: Array = field(init=False)
    _sections: Array = field(init=False)
    _words: Array = field(init=False)
    _depths: Array = field(init=False)
    """What a batch says of each URL, worked out when it is first linked to."""

    def __post_init__(self) -> None:
        pages = self.pages
        # a memoryview gives Python's own numbers, five times as fast as an array
        columns = (pages.body_bytes, pages.kept_bytes, pages.verdict, pages.language, pages.sketch, pages.badness)
        self._views = tuple(np.ascontiguousarray(column).data for column in columns)
        number = len(pages.host)
        self._hashes, self._sections = np.zeros(number, np.uint64), np.zeros(number, np.uint32)
        self._words, self._depths = np.zeros((number, WORDS), np.uint16), np.zeros(number, np.uint8)
        self._host = {name: number for number, name in enumerate(self.hosts.names)}
        self._latency_s = self.hosts.latency_s.tolist()

    @property
    def truth(self) -> Truth:
        """All that there is to be found."""
        kept = self.pages.kept_bytes
        return Truth(len(kept), int(self.relevant.sum()), int((kept // BYTES_PER_WORD).sum()), int(kept.sum()))

    @property
    def relevant(self) -> Array:
        """Whether each page is in the wanted language."""
        relevant: Array = (self.pages.language == 0) & (self.pages.verdict != CODES[Reason.HTTP_ERROR])
        return relevant

    def seed_urls(self) -> list[str]:
        return [self.url(page) for page in self.seeds]

    def address(self, name: str) -> str:
        number = int(self.hosts.address[self._host.get(name, 0)])
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def latency_s(self, url: str) -> float:
        return self._latency_s[self._host.get(url.split("/", 3)[2], 0)]

    def robots(self, url: str) -> tuple[int, bytes, str | None]:
        delay = self.hosts.crawl_delay_s[self._host.get(url.split("/", 3)[2], 0)]
        return (200, b"User-agent: *\nCrawl-delay: %g\n" % delay, None) if delay else (404, b"", None)

    def outcome(self, url_id: int, url: str) -> Outcome:
        page = self.find(url)
        if page < 0:
            return Outcome(url_id, url, Reason.HTTP_ERROR, 404, body_bytes=500)
        body, kept, verdict, language, sketch, badness = self._views
        reason = VERDICTS[verdict[page]]
        failed = reason is Reason.HTTP_ERROR
        return Outcome(
            url_id, url, reason, 404 if failed else 200,
            body_bytes=body[page], kept_bytes=kept[page], words=kept[page] // BYTES_PER_WORD,
            language=self.languages[0] if reason is Reason.KEPT else None,
            page_language=self.languages[language[page]], relevant=not (failed or language[page]),
            badness=badness[page], sketch=sketch[page], links=NONE if failed else self._links_of(page),
        )  # fmt: skip

    def _links_of(self, page: int) -> LinkBatch:
        targets, scores = self.links(page)
        pages, columns = targets.tolist(), scores.tobytes()
        if self.path is None:
            anchors = self.anchors(page).tolist() if self.anchors else [0] * len(pages)
            return gathered(
                Link(self.url(target), score >= TEXT_SCORE, score / 255, anchor)
                for target, score, anchor in zip(pages, columns, anchors, strict=True)
            )
        numbers, hosts = self.pages.host.take(targets).tolist(), self.hosts.names
        places: dict[int, int] = {}
        of_host = array("H", [places.setdefault(host, len(places)) for host in numbers])
        depths = self._depths.take(targets)
        if 0 in (form := depths.tobytes()):
            self._note(targets[depths == 0].tolist())
            form = self._depths.take(targets).tobytes()
        wide = (column.take(targets, 0).tobytes() for column in (self._hashes, self._sections, self._words))
        none = bytes(len(pages))
        head = tuple([hosts[host] for host in places]), b"\n".join(map(self.path, pages)), of_host.tobytes()
        return LinkBatch._make(
            (*head, *wide, none, none, form, columns.translate(_FLAGS), columns, _ANCHOR * len(pages), (), 0)
        )

    def _note(self, pages: list[int]) -> None:
        """Fill the rows of *pages*."""
        assert self.path is not None
        for page in pages:
            path = self.path(page)
            words = (*words_of_name(self.hosts.names[self.pages.host[page]]), *words_of_path(path))
            self._hashes[page], self._sections[page] = url_hash(self.url(page)), section_of(path)
            self._words[page], self._depths[page] = words, path.count(b"/")


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
