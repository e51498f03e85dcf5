"""What a link and a host are worth: the sum of estimators, each with its weight.

The idea is that of HeidiX' FocusedWalker (Schäfer et al. 2014, section 5), a container of pluggable estimators.  From
that paper are host yield, quality of the linking page, block of the link, and the language guessed from the URL.  The
others are our own.  The sum is a log-odds, whose probability is the yield rate that the link's page promises.  Compared
with the yield rate of the hosts that gave text, it makes the rank.  Two models of languages are asked, at the end: of
hosts by their pages so far, and of URLs by their words.
"""

from __future__ import annotations

import base64
import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spiderling.base.files import frame_packer, zstd
from spiderling.base.reasons import Reason
from spiderling.base.urls import OF_NAME, WORD_BITS, name_of, section_of, word_hash, words_of_name, words_of_path
from spiderling.frontier.hosts import LAST_RANK, STEP

if TYPE_CHECKING:
    from spiderling.frontier.hosts import YieldAccount
    from spiderling.frontier.strategy import CrawlView, LinkingPage, NewLinks

_WORST_BADNESS = 40.0  # badness from which on a page counts as the worst (chosen)
BADNESS_STEP = _WORST_BADNESS / 10
"""Pages whose badness differs by less than this may count as alike: it moves the quality by .1 (chosen)."""
Signal: TypeAlias = Any  # a number, or an array of numbers


@dataclass(slots=True)
class Cues:
    """What is known of a link before its URL is fetched."""

    same_host: Signal = False
    quality: Signal = 0.0  # ``page_quality`` of the linking page
    block: Signal = 0.0
    """1 in running text, else -1: the likelier case is taken as certain, as in Schäfer et al. 2014, Table 3."""
    host: Signal = 0.0  # yield rate of the target's host compared with the whole crawl's, -1 to 1
    trust: Signal = 0.0  # how much is known of the target's host, 0 (nothing) to 1
    language: Signal = 0.0
    """Share of the target host's pages in a wanted language compared with the whole crawl's, -1 to 1."""
    section: Signal = 0.0
    """Yield rate of the target's section (first part of the path) compared with its host's, -1 to 1."""
    url: Signal = 0.0
    """The language guessed from the words of the URL, -1 to 1; the name of a known host counts less (UrlWords)."""
    said: Signal = 0  # the language by hreflang: 1 a wanted one, -1 another one, 0 not given


def page_quality(reason: Reason, badness: float) -> float:
    """Quality of a page, by how it ended: -1 in another language, 0 to 1 with text, by its function words; else 0."""
    if reason is Reason.KEPT:
        return 1.0 - min(badness / _WORST_BADNESS, 1.0)
    return -1.0 if reason is Reason.WRONG_LANGUAGE else 0.0


ESTIMATORS: dict[str, tuple[Callable[[Cues], Signal], float]] = {
    "host": (lambda cues: cues.host * cues.trust, 3.0),
    "language": (lambda cues: cues.language, 2.0),
    "section": (lambda cues: cues.section, 1.5),
    "page-inside": (lambda cues: cues.quality * cues.same_host, 0.7),
    "page-outside": (lambda cues: cues.quality * (1.0 - cues.trust) * (1.0 - cues.same_host), 1.5),
    "block": (lambda cues: cues.block, 0.8),
    "url": (lambda cues: cues.url, 1.5),
    "hreflang": (lambda cues: cues.said, 1.0),
}
"""Name -> estimator, and its weight in log-odds (chosen).

An estimator returns -1 to 1, and 0 if it knows nothing.  It has no branches, since it works on arrays, which have an
entry for each link of a page.
"""
WEIGHTS = {name: weight for name, (_, weight) in ESTIMATORS.items()}
USUAL_RATE = 0.03  # yield rate that a crawl is taken to have before it has downloaded anything (chosen)
_BIAS = math.log(USUAL_RATE / (1 - USUAL_RATE))
"""The log-odds of `USUAL_RATE`, from which the estimators raise or lower a link."""
EVIDENCE_BYTES = 200_000
"""Downloaded bytes, of a crawl, a host or a section, whose yield rate counts as much as what was expected of it
(measured in the simulator): some eight pages."""
_LEAST_RATE = 1e-6  # a yield rate that counts as none, where a logarithm is taken (chosen)
SECTIONS = 50_000  # sections that are remembered (chosen); the one that came first is forgotten first
_CERTAIN = 3.0  # log-odds, or logarithm of the ratio of two rates, that counts as certainty, 1 or -1 (chosen)
_STEP = math.log(STEP)
_BEST = 3 * _STEP
"""The logarithm of (the least yield rate that a link of rank 1 promises / that of fruitful hosts) (chosen)."""
_MIN = np.array([math.exp(_STEP * (rank - 1) - _BEST) for rank in range(1, LAST_RANK)])
"""For each rank from 1 on: the yield rate of fruitful hosts / the lowest that is expected of a link of that rank."""
_SECTION = Struct("=3d")  # a section: ``section`` of Cues, kept and downloaded bytes
_NOTHING = bytes(_SECTION.size)


_KEY = "learnt"  # the key of the snapshot in the store's ``meta``; the keys of the lines have a number behind it
LINES = 128  # batches from one snapshot to the next; chosen: a restart reads the lines in well under a second


class Note(NamedTuple):
    """What one page gave."""

    host_id: int
    section: int  # ``section_of`` its path (base/urls.py)
    rate: float  # the yield rate of its host, above 0
    kept_bytes: int
    body_bytes: int
    is_wanted: bool | None  # whether it is in a wanted language; None: nobody knows
    words: list[int]  # the words of its URL (base/urls.py); empty if the language is not known


class Worth:
    """The estimators with their weights, and what they look at.

    What a crawl has learnt is kept as a log in ``meta``: a line of notes a batch, which is much shorter than the tables
    that it changes, and a snapshot of the tables every LINES.  A restart reads the snapshot and then the later lines in
    order, which gives the tables as they were at the last commit.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        crawl: CrawlView,
        languages: Iterable[str] = (),
        top_level_domains: Iterable[str] = (),
    ) -> None:
        """*weights*: in log-odds; an estimator without a weight is switched off.

        *languages*: codes of the wanted ones; a URL that has one as a word, or that is under one of
        *top_level_domains*, is guessed to be in a wanted language.
        """
        self._crawl = crawl
        self._estimators = [(weights[name], of) for name, (of, _) in ESTIMATORS.items() if weights.get(name)]
        self._words = UrlWords(languages, top_level_domains)
        self._languages = HostLanguages()
        self._sections: dict[int, bytes] = {}
        self._fruitful = [0, 0]
        self._note_fruitful()
        self._line: list[Note] = []  # notes of the next batch
        self._number = 0  # the number of the last batch that had notes

    # -- yield rates, and the ranks of hosts

    @property
    def usual(self) -> float:
        """The yield rate of the crawl so far."""
        totals = self._crawl.totals
        kept = totals["kept_bytes"] + USUAL_RATE * EVIDENCE_BYTES
        return max(1e-4, min(0.5, kept / (totals["downloaded_bytes"] + EVIDENCE_BYTES)))

    def _note_fruitful(self) -> None:
        """Compute what all ranks are compared with, which changes with the notes of fruitful hosts only."""
        kept, downloaded = self._fruitful
        given = (kept + USUAL_RATE * EVIDENCE_BYTES) / (downloaded + EVIDENCE_BYTES)
        self.fruitful = max(1e-4, min(0.5, given))
        """The yield rate so far of the hosts that gave text; ranks compare with it.

        That of the whole crawl falls while many poor hosts are tried, until all links seem rich.
        """

    def host_rank(self, host_id: int, account: YieldAccount, head: int) -> int:
        """The rank of a host by what it gave, with what its next link, of the rank *head*, promises as evidence."""
        fruitful = self.fruitful
        promised = fruitful * math.exp(_BEST - _STEP * (head - 1.5) + _CERTAIN * self._of_language(host_id))
        given = (account.kept_bytes + EVIDENCE_BYTES * promised) / (account.downloaded_bytes + EVIDENCE_BYTES)
        beside = math.log(max(given, _LEAST_RATE) / fruitful)
        return max(1, min(LAST_RANK, 1 + math.ceil((_BEST - beside) / _STEP)))

    # -- links

    def ranks(self, page: LinkingPage, links: NewLinks) -> list[int]:
        """The ranks of *links*, which are those of *page*."""
        keys = links.parts()
        hosts: dict[int, tuple[float, ...]] = {}
        usual = self.usual
        for host_id, _ in keys:
            if host_id not in hosts:
                worth, trust = self._of_host(host_id, usual)
                hosts[host_id] = host_id == page.host.id, worth, trust, self._of_language(host_id)
        cues = Cues(quality=page_quality(page.reason, page.badness))
        cues.same_host, cues.host, cues.trust, cues.language = np.array([hosts[host_id] for host_id, _ in keys]).T
        told = b"".join([self._sections.get(host_id << 32 | section, _NOTHING) for host_id, section in keys])
        cues.section = np.frombuffer(told).reshape(-1, 3)[:, 0]
        cues.block, cues.said, words = links.columns()
        cues.url = self._words.guesses(words, 1.0 - cues.trust)
        odds = sum([weight * estimator(cues) for weight, estimator in self._estimators], _BIAS)
        fruitful = self.fruitful
        ranks: list[int] = (_MIN.searchsorted(fruitful + fruitful * np.exp(-odds)) + 1).tolist()
        return ranks

    def _of_host(self, host_id: int, usual: float) -> tuple[float, float]:
        """``Cues.host`` and ``Cues.trust`` of a host."""
        account = self._crawl.account_at_hand(host_id) if host_id else None
        if account is None:
            rank = self._crawl.rank_of_host(host_id) if host_id else 5
            return (5 - max(rank, 1)) / 4, 0.5 if host_id else 0.0
        weight = account.downloaded_bytes + EVIDENCE_BYTES
        given = (account.kept_bytes + EVIDENCE_BYTES * usual) / weight
        return _compare(given, usual), account.downloaded_bytes / weight

    def _of_language(self, host_id: int) -> float:
        """``Cues.language`` of a host; 0 if no page of it was read."""
        expected = self._languages.expected(host_id)
        return 0.0 if expected is None else _compare(expected, self._languages.mean)

    def is_foreign(self, host_id: int) -> bool:
        """See ``HostLanguages.is_foreign``."""
        return self._languages.is_foreign(host_id)

    # -- learning

    def learn(self, page: LinkingPage, path: str, body_bytes: int, kept_bytes: int) -> None:
        """Learn from what the page at *path* gave."""
        host = page.host
        rate = max(host.account.rate, _LEAST_RATE)
        is_wanted = True if page.is_relevant else False if _is_foreign(page) else None
        line = path.encode("utf-8", "surrogatepass")
        words = [] if is_wanted is None else [*words_of_name(name_of("http://" + host.name)), *words_of_path(line)]
        note = Note(host.id, section_of(line), rate, kept_bytes, body_bytes, is_wanted, words)
        self._take(note)
        self._line.append(note)

    def _take(self, note: Note) -> None:
        """Count what a page gave."""
        key = note.host_id << 32 | note.section
        _, kept, downloaded = _SECTION.unpack(self._sections.get(key, _NOTHING))
        given = kept + note.kept_bytes, downloaded + note.body_bytes
        if note.rate > _LEAST_RATE:
            self._fruitful = [self._fruitful[0] + note.kept_bytes, self._fruitful[1] + note.body_bytes]
            self._note_fruitful()
        expected = (given[0] + EVIDENCE_BYTES * note.rate) / (given[1] + EVIDENCE_BYTES)
        self._sections[key] = _SECTION.pack(_compare(expected, note.rate), *given)
        if len(self._sections) > SECTIONS:
            del self._sections[next(iter(self._sections))]
        if note.is_wanted is not None:
            self._languages.count_page(note.host_id, note.is_wanted)
            self._words.count_page(note.words, note.is_wanted)

    def columns(self) -> list[bytes]:
        """All tables, packed for the store."""
        return [
            array("Q", self._fruitful).tobytes(),
            array("Q", self._sections).tobytes(),
            b"".join(self._sections.values()),
            *self._languages.columns(),
            *self._words.columns(),
        ]

    def _fill(self, columns: Sequence[bytes]) -> None:
        """Restore what ``columns`` returned."""
        self._fruitful = array("Q", columns[0]).tolist()[:2]  # a state of an earlier version holds more sums
        self._note_fruitful()
        size = _SECTION.size
        packed = columns[2]
        self._sections = {key: packed[at * size : (at + 1) * size] for at, key in enumerate(array("Q", columns[1]))}
        self._languages.fill(columns[3:5])
        self._words.fill(columns[-3:])  # and one more column before these

    def state(self) -> dict[str, str]:
        """Entries of ``meta``, in JSON, with what was learnt since the last call."""
        if not self._line:
            return {}
        self._number += 1
        entries = {f"{_KEY}:{self._number % LINES}": json.dumps([self._number, self._line])}
        if self._number % LINES == 0:
            pack = frame_packer(level=1)  # one serves one thread at a time
            packed = [base64.b64encode(pack(column)).decode("ascii") for column in self.columns()]
            entries[_KEY] = json.dumps([self._number, packed])
        self._line = []
        return entries

    def restore(self, meta: Mapping[str, str]) -> None:
        """Restore what ``state`` returned."""
        if _KEY in meta:
            self._number, packed = json.loads(meta[_KEY])
            self._fill([zstd.decompress(base64.b64decode(column)) for column in packed])
        lines = [json.loads(meta.get(f"{_KEY}:{place}", "[0, []]")) for place in range(LINES)]
        for number, notes in sorted(line for line in lines if line[0] > self._number):
            for note in notes:
                self._take(Note(*note))
            self._number = number


def _is_foreign(page: LinkingPage) -> bool:
    """Whether a page that is not relevant is known to be in another language; it may have no text to keep."""
    return page.reason is Reason.WRONG_LANGUAGE or (page.reason is Reason.BOILERPLATE_ONLY and page.language != "")


def _compare(rate: float, usual: float) -> float:
    """How *rate* compares with *usual*, from -1 (a twentieth of it or less) to 1 (twenty times or more)."""
    return max(-1.0, min(1.0, math.log(max(rate, _LEAST_RATE) / usual) / _CERTAIN))


MAX_HOSTS = 50_000  # hosts that are remembered (chosen); the one that came first is forgotten first
_PRIOR_PAGES = 0.3
"""Weight of the crawl's mean in what is expected of a host, in pages.

From the Thai web (Somboonviwat et al. 2006): 84 % of the links of a wanted page to its own server lead to wanted
pages, and 12 % of all pages are wanted.  So two pages of one host differ .23 times as often as any two pages.
"""


class HostLanguages:
    """How likely a host's next page is in a wanted language, by its pages so far and by how much hosts differ.

    The model (empirical Bayes): hosts' shares of wanted pages have a beta distribution with the crawl's mean m.  The
    share to be expected of a host is then (wanted + s * m) / (pages + s): the mean counts like s pages, `_PRIOR_PAGES`.
    """

    def __init__(self) -> None:
        self._hosts: dict[int, list[int]] = {}
        self._pages = [1, 1]
        self.mean = 0.5  # the share of wanted pages in the whole crawl

    def count_page(self, host_id: int, is_wanted: bool) -> None:
        """Count a page of the host."""
        seen = self._hosts.setdefault(host_id, [0, 0])
        seen[not is_wanted] += 1
        self._pages[not is_wanted] += 1
        self.mean = self._pages[0] / sum(self._pages)
        if len(self._hosts) > MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]

    def expected(self, host_id: int) -> float | None:
        """The share of wanted pages to be expected of a host; None if no page of it was read."""
        seen = self._hosts.get(host_id)
        if seen is None:
            return None
        return (seen[0] + _PRIOR_PAGES * self.mean) / (seen[0] + seen[1] + _PRIOR_PAGES)

    def is_foreign(self, host_id: int) -> bool:
        """Whether the host gave pages in other languages and none in a wanted one."""
        wanted, others = self._hosts.get(host_id, (0, 0))
        return others > 0 == wanted

    def columns(self) -> list[bytes]:
        """All counts, packed for the store."""
        pages = chain(self._pages, chain.from_iterable(self._hosts.values()))
        return [array("Q", self._hosts).tobytes(), array("Q", pages).tobytes()]

    def fill(self, columns: Sequence[bytes]) -> None:
        """Restore what ``columns`` returned."""
        hosts, pages = (array("Q", column) for column in columns)
        counts = list(map(list, zip(pages[::2], pages[1::2], strict=True)))
        self._pages = counts.pop(0)
        self.mean = self._pages[0] / sum(self._pages)
        self._hosts = dict(zip(hosts, counts, strict=True))


_PRIOR = 8  # weight of a word that is known at the start, in pages (chosen)


class UrlWords:
    """Guesses whether a page is in a wanted language, from the words of its URL alone.

    The features are those of Baykan, Henzinger & Weber 2008: the words of host and path.  There is no training
    beforehand: words are counted during the crawl over the pages that it has read, in tables of fixed size (1.5 MB).
    At the start the top-level domains and codes of the languages are known.
    """

    def __init__(self, languages: Iterable[str], top_level_domains: Iterable[str]) -> None:
        """*languages*: codes of the wanted ones."""
        self._good = array("f", bytes(4 << WORD_BITS))  # for each word, pages in a wanted language
        self._bad = array("f", bytes(4 << WORD_BITS))  # for each word, other pages
        self._odds = array("d", bytes(16 << WORD_BITS))
        """For each word two numbers: its log-odds, and how well they are known, 0 to 1."""
        self._columns = np.frombuffer(self._odds, np.complex128)
        self._pages = [1.0, 1.0]
        wanted = {*(f"/{code}" for code in languages), *(f".{name}" for name in top_level_domains)}
        for word in wanted:
            self._count(self._good, word_hash(word), _PRIOR)
        if wanted:
            for code in ("en", "de", "fr", "es", "ru", "ja", "zh", "pt", "it"):
                if f"/{code}" not in wanted:
                    self._count(self._bad, word_hash(f"/{code}"), _PRIOR)

    def _count(self, table: array[float], place: int, pages: float) -> None:
        table[place] += pages
        one = self._good[place]
        other = self._bad[place]
        if one + other >= 2.0:
            self._odds[2 * place] = math.log((one + 0.5) / (other + 0.5))
            self._odds[2 * place + 1] = 1.0 - 1.0 / (one + other)

    def count_page(self, words: Iterable[int], is_wanted: bool) -> None:
        """Count a page whose URL has these *words*."""
        table = self._good if is_wanted else self._bad
        self._pages[not is_wanted] += 1
        for place in words:
            if place:
                self._count(table, place, 1.0)

    def columns(self) -> list[bytes]:
        """All counts, packed for the store."""
        return [self._good.tobytes(), self._bad.tobytes(), array("d", self._pages).tobytes()]

    def fill(self, columns: Sequence[bytes]) -> None:
        """Restore what ``columns`` returned."""
        self._good = array("f", columns[0])
        self._bad = array("f", columns[1])
        self._pages = array("d", columns[2]).tolist()
        for place in np.flatnonzero(np.array(self._good) + np.array(self._bad)).tolist():
            self._count(self._good, place, 0.0)

    def guesses(self, words: NDArray[np.uint16], doubts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The languages guessed of URLs, each from -1 (not wanted) to 1; each row of *words* has the words of one.

        A guess is the sum of the words' log-odds.  *doubts*, 0 to 1, are the weights of the words of the hosts' names:
        a known host tells more than its name, but its paths may still lead to several languages.
        """
        found = self._columns.take(words)
        sums = np.add.reduce(found[:, :OF_NAME], 1) * doubts + np.add.reduce(found[:, OF_NAME:], 1)
        odds = sums.real + math.log(self._pages[1] / self._pages[0]) * sums.imag
        guesses: NDArray[np.float64] = np.minimum(np.maximum(odds / _CERTAIN, -1.0), 1.0)
        return guesses
