"""What every strategy has: how links are ranked, and which hosts are retired."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

from spiderling.frontier.ranking.linking_page import LinkingPage as LinkingPage
from spiderling.frontier.ranking.new_links import FoundLink, NewLinks

if TYPE_CHECKING:
    from collections import Counter

    from spiderling.base.options import Options
    from spiderling.base.outcome import Outcome
    from spiderling.base.urls import CanonicalUrl
    from spiderling.frontier.hosts.host import Host
    from spiderling.frontier.hosts.yields import YieldAccount


STATE = "strategy"
"""Key under which the store keeps the weights that a strategy learnt."""


DROPPED = -1
"""In place of a rank: the link is refused (``unpromising``), and may be accepted when it is found elsewhere."""


_RANK = 5
"""Of all links where none is better than another."""


Ranker = Callable[[FoundLink], int]
"""A rank, 0 to 9, 0 first; or DROPPED."""


BatchRanker = Callable[[NewLinks], list[int]]
"""The same for links side by side."""


class CrawlView(Protocol):
    """What a strategy may see of its crawl."""

    @property
    def totals(self) -> Counter[str]:
        """Sums over all pages up to now: ``downloaded_bytes``, ``kept_bytes`` and others (lifecycle/ledger.py)."""

    def account_at_hand(self, host_id: int) -> YieldAccount | None:
        """The account of a host that is in memory or new; None for the others."""

    def rank_of_host(self, host_id: int) -> int:
        """The rank of the best URL in the host's queue."""


class Strategy:
    """What the frontier asks; by itself breadth first: links as they were found, hosts as they are due.

    One object serves one crawl.
    """

    retires: ClassVar[bool] = False
    """Whether hosts are retired by yield (SPIDERLING_YIELD_PROFILE), and rich ones keep their places longer."""

    @property
    def power(self) -> float:
        """How strictly better ranks go before others, within a host and among hosts that are due (draws.py)."""
        return math.inf

    haste: int = 0
    """What time is worth: the bytes of so many hosts at work. Who gives too little beside that is held back; 0: nobody.

    A crawl that holds nobody back leaves no request unmade, however little it promises.
    """

    ranks_hosts: ClassVar[bool] = False
    """Whether ``host_rank`` tells hosts apart; without, they take turns."""

    def ranker(self, page: LinkingPage) -> Ranker:
        """How the links of *page* are ranked."""
        return lambda link: _RANK

    def batch_ranker(self, page: LinkingPage) -> BatchRanker:
        """``ranker`` for all links at once: to be overridden where that is faster."""
        rank = self.ranker(page)
        return lambda links: [rank(link) for link in links]

    def begin(self, crawl: CrawlView, options: Options) -> None:
        """The strategy is that of this *crawl* from now on."""

    def learn(self, page: LinkingPage, target: CanonicalUrl, outcome: Outcome) -> None:
        """What came of *target*, the page whose links are ranked next."""

    def state(self) -> dict[str, str]:
        """What was learnt since the last call, for the next checkpoint: entries, in JSON, of the store's ``meta``."""
        return {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take up what ``state`` gave before a restart; damage must not stop the crawl."""

    def host_rank(self, host_id: int, account: YieldAccount, head: int = _RANK) -> int:
        """The rank, 0 to 9, of a host with *account* whose next URL has the rank *head*; no better for a worse one."""
        return 0

    def gives_up(self, host: Host) -> bool:
        """Whether *host* is left alone from now on, asked after each of its pages; it ends as retired."""
        return False

    def is_stale(self, rank: int, pages: int) -> bool:
        """Whether a URL of *rank*, whose turn has come after *pages* of the crawl, ends unfetched (``passed-over``)."""
        return False

    def weight(self, links: int) -> float:
        """What a document with so many links counts in a sample without bias; 0 when the crawl draws none."""
        return 0.0
