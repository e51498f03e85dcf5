"""The base of all strategies: what the frontier asks of them, and what they know of pages and links."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import FOREIGN, WANTED, WORDS, LinkBatch, derived
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, assemble, words_of_name
from spiderling.frontier.hosts import RANKS, SEED_RANK, YieldAccount

if TYPE_CHECKING:
    from collections import Counter

    from spiderling.base.options import Options
    from spiderling.base.outcome import Outcome
    from spiderling.frontier.hosts import Host


def chance(seed: int) -> Callable[[], float]:
    """Numbers from 0 up to 1, the same ones with the same seed."""
    return random.Random(seed).random  # noqa: S311 - nothing secret


class Draw:
    """Called with the ranks in which hosts or URLs wait, it returns one of them, the same ones with the same seed.

    Better ranks are likelier.  After HeidiX (Schäfer et al. 2014, section 5), whose ranked queues are popped with a
    probability inversely proportional to their rank.  Here it is 1 / (rank + 1) ** power: power 1 is the paper's, 0
    makes all ranks alike, infinity serves the best one.
    """

    def __init__(self, power: float, seed: int) -> None:
        self._weights = [] if math.isinf(power) else [(rank + 1) ** -power for rank in range(RANKS)]
        self._random = chance(seed)

    def __call__(self, ranks: Sequence[int]) -> int:
        """One of *ranks*, which ascend and are not empty."""
        if len(ranks) == 1 or not self._weights:
            return ranks[0]
        weights = self._weights
        at = self._random() * math.fsum(weights[rank] for rank in ranks)
        for rank in ranks:
            at -= weights[rank]
            if at < 0:
                return rank
        return ranks[-1]


_RELEVANT = frozenset({Reason.KEPT, Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.BAD_QUALITY})
"""Reasons of pages that are in an accepted language."""


@dataclass(frozen=True, slots=True)
class FarHost:
    """Stands for the host of a page that another shard has read; only its distance is known."""

    distance: int
    name: str = ""
    id: int = -1  # no host of this shard has it
    account: YieldAccount = field(default_factory=YieldAccount, compare=False)
    documents: int = 0


LinkingHost: TypeAlias = "Host | FarHost"


class LinkingPage(NamedTuple):
    """The page whose links are ranked."""

    host: LinkingHost
    reason: Reason  # how the page ended
    rank: int = SEED_RANK  # the rank of the page's own URL
    relevant: bool = False
    """Whether it is in an accepted language by the rule of Somboonviwat et al. 2006, however it ended."""
    language: str = ""  # its language by that rule; '' if unknown
    badness: float = 0.0

    @classmethod
    def of(cls, host: Host, rank: int, outcome: Outcome) -> LinkingPage:
        """The page of *host* with this *outcome*, whose URL has the rank *rank*."""
        return cls(host, outcome.reason, rank, outcome.relevant, outcome.page_language, outcome.badness)

    @property
    def is_relevant(self) -> bool:
        """Whether it is in an accepted language."""
        return self.relevant or self.reason in _RELEVANT


_BLOCKS = np.where(np.arange(256) / 255 >= 0.5, 1.0, -1.0)  # score of a link's block -> ``Cues.block``
_SAID = np.array([bool(flags & WANTED) - bool(flags & FOREIGN) for flags in range(256)])
"""Flags of a link -> ``Cues.said``."""


class FoundLink(NamedTuple):
    """A link to a URL that was not known."""

    target: CanonicalUrl
    host_id: int  # id of the target's host; 0 if the host is new
    text_block: bool  # whether it is in a block of running text
    score: float = 0.0  # the probability that it is, 0 to 1


class NewLinks:
    """The links of a batch that may be admitted; iterating yields each as a FoundLink."""

    def __init__(self, batch: LinkBatch, places: Sequence[int], ids: Sequence[int]) -> None:
        """*places*: indices of the links in *batch*; *ids*: of the batch's hosts, 0 for new ones."""
        self._batch = batch
        self._ids = ids
        self.places = places
        self.numbers = array("H", batch.of_host)  # the index of each link's host, for all links of the batch
        self.digests = array("Q", batch.hashes)  # the hash of each link's URL, for all links of the batch
        self.lines = batch.paths.split(b"\n")  # the path of each link, for all links of the batch

    @classmethod
    def of(cls, link: FoundLink) -> NewLinks:
        """*link* alone."""
        target = link.target
        path = target.path.encode("utf-8", "surrogatepass")
        of_url = derived([target.url], [target.path], [path], [words_of_name(target.name)])[:3]
        score = round(255 * link.score) or 255 * link.text_block
        of_block = bytes([link.text_block]), bytes([score]), bytes(1)
        of_path = bytes(1), bytes(1), bytes(1)
        batch = LinkBatch((target.host,), path, bytes(2), *of_url, *of_path, *of_block)
        return cls(batch, [0], [link.host_id])

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[FoundLink]:
        batch = self._batch
        numbers = self.numbers
        for at in self.places:
            target = assemble(batch.prefixes[at], batch.hosts[numbers[at]], self.lines[at].decode("ascii"))
            yield FoundLink(target, self._ids[numbers[at]], *batch.block(at))

    def parts(self) -> list[tuple[int, int]]:
        """For each link the id of its host and the section of its path."""
        ids = self._ids
        numbers = self.numbers
        sections = array("I", self._batch.sections)
        return [(ids[numbers[at]], sections[at]) for at in self.places]

    def columns(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint16]]:
        """``block`` and ``said`` of Cues, and the words of the URL, as columns with an entry for each link."""
        batch = self._batch
        places = np.array(self.places)
        blocks = _BLOCKS.take(np.frombuffer(batch.scores, np.uint8).take(places))
        said = _SAID.take(np.frombuffer(batch.flags, np.uint8).take(places))
        return blocks, said, np.frombuffer(batch.words, np.uint16).reshape(-1, WORDS).take(places, 0)


DROPPED = -1
"""Instead of a rank: the link is refused (``unpromising``); the URL may be accepted when it is found elsewhere."""
USUAL_RANK = 5  # the rank of all links where none is better than another
Ranker = Callable[[FoundLink], int]  # returns the rank of a link, 0 (best) to 9, or DROPPED
BatchRanker = Callable[[NewLinks], list[int]]  # returns the rank of each link, or DROPPED


class CrawlView(Protocol):
    """What a strategy sees of its crawl."""

    @property
    def totals(self) -> Counter[str]:
        """Sums over all pages so far: ``downloaded_bytes``, ``kept_bytes`` and others (frontier/url_states.py)."""

    def account_at_hand(self, host_id: int) -> YieldAccount | None:
        """The account of a host that is in memory or new; None for the others."""

    def rank_of_host(self, host_id: int) -> int:
        """The rank of the host, as ``Strategy.host_rank`` computed it last."""


class Strategy:
    """Decides the order of a crawl.  The base itself is breadth first: links in the order in which they were found,
    hosts as they are due.  One object serves one crawl.
    """

    retires: ClassVar[bool] = False
    """Whether hosts are retired by yield (SPIDERLING_YIELD_PROFILE), and rich ones keep their places longer."""

    reopens: ClassVar[bool] = False  # whether retired hosts that gave text are reopened when nothing else is left

    @property
    def power(self) -> float:
        """How strictly better ranks are preferred, within a host and among hosts that are due (``Draw``)."""
        return math.inf

    thrift: float = 0.0  # factor on the bar below which hosts are asked more seldom (throttle.py); 0: none is

    ranks_hosts: ClassVar[bool] = False  # whether ``host_rank`` orders hosts; if not, they take turns

    def ranker(self, page: LinkingPage) -> Ranker:
        """The function that ranks the links of *page*."""
        return lambda link: USUAL_RANK

    def batch_ranker(self, page: LinkingPage) -> BatchRanker:
        """``ranker`` for all links at once; override it where that is faster."""
        rank = self.ranker(page)
        return lambda links: [rank(link) for link in links]

    def what_is_read(self, page: LinkingPage) -> LinkingPage:
        """*page* with defaults in the fields that ``ranker`` does not read, so that more pages share a message."""
        return page

    def begin(self, crawl: CrawlView, options: Options) -> None:
        """Called once, before all others: the crawl begins."""

    def learn(self, page: LinkingPage, target: CanonicalUrl, outcome: Outcome) -> None:
        """*outcome* is how *target* ended; it is the page whose links are ranked next."""

    def state(self) -> dict[str, str]:
        """Entries of the store's ``meta``, in JSON, with what was learnt since the last call."""
        return {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """After a restart: restore what ``state`` returned."""

    def host_rank(self, host_id: int, account: YieldAccount, head: int = USUAL_RANK) -> int:
        """The rank, 0 to 9, of a host with *account* whose next URL has the rank *head*.

        It must not become better when *head* becomes worse.
        """
        return 0

    def gives_up(self, host: Host) -> bool:
        """Whether *host* is retired now; asked after each of its pages."""
        return False

    def is_foreign(self, host: Host) -> bool:
        """Whether *host* gave pages in other languages alone."""
        return False

    def weight(self, links: int) -> float:
        """Sampling weight of a document of a page with *links* links; 0: the crawl draws no sample."""
        return 0.0
