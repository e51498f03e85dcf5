"""The base of all strategies: what the frontier asks of them."""

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


DROPPED = -1
"""Instead of a rank: the link is refused (``unpromising``); the URL may be accepted when it is found elsewhere."""
USUAL_RANK = 5
"""The rank of all links where none is better than another."""
Ranker = Callable[[FoundLink], int]
"""Returns the rank of a link, 0 (best) to 9, or DROPPED."""
BatchRanker = Callable[[NewLinks], list[int]]
"""Returns the rank of each link, or DROPPED."""


class CrawlView(Protocol):
    """What a strategy sees of its crawl."""

    @property
    def totals(self) -> Counter[str]:
        """Sums over all pages so far: ``downloaded_bytes``, ``kept_bytes`` and others (lifecycle/ledger.py)."""

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

    reopens: ClassVar[bool] = False
    """Whether retired hosts that gave text are reopened when nothing else is left."""

    @property
    def power(self) -> float:
        """How strictly better ranks are preferred, within a host and among hosts that are due (draws.py)."""
        return math.inf

    thrift: float = 0.0
    """Factor on the bar below which hosts are asked more seldom (scheduling/throttle.py); 0: none is."""

    ranks_hosts: ClassVar[bool] = False
    """Whether ``host_rank`` orders hosts; if not, they take turns."""

    def ranker(self, page: LinkingPage) -> Ranker:
        """The function that ranks the links of *page*."""
        return lambda link: USUAL_RANK

    def batch_ranker(self, page: LinkingPage) -> BatchRanker:
        """``ranker`` for all links at once; override it where that is faster."""
        rank = self.ranker(page)
        return lambda links: [rank(link) for link in links]

    def what_is_read(self, page: LinkingPage) -> LinkingPage:
        """*page* with usual values for what ``ranker`` does not read; pages that are alike then share a message."""
        return page

    def begin(self, crawl: CrawlView, options: Options) -> None:
        """Called once, before all others: the crawl begins."""

    def learn(self, page: LinkingPage, target: CanonicalUrl, outcome: Outcome) -> None:
        """*outcome* is how *target* ended; it is the page whose links are ranked next."""

    def state(self) -> dict[str, str]:
        """Entries of the store's ``meta``, in JSON, with what was learnt since the last call."""
        return {}

    def restore(self, meta: Mapping[str, str]) -> None:
        """After a restart: restore what ``state`` returned; damage must not stop the crawl."""

    def host_rank(self, host_id: int, account: YieldAccount, head: int = USUAL_RANK) -> int:
        """The rank, 0 to 9, of a host with *account* whose next URL has the rank *head*.

        It must not become better when *head* becomes worse.
        """
        return 0

    def gives_up(self, host: Host) -> bool:
        """Whether *host* is retired now; asked after each of its pages."""
        return False

    def foreign_pages(self, host: Host) -> int:
        """Pages in other languages of a host that gave none in a wanted one; 0 for any other host."""
        return 0

    def is_stale(self, rank: int, pages: int) -> bool:
        """Whether a URL of *rank* ends as ``passed-over`` when its turn comes after *pages* pages of the crawl."""
        return False

    def weight(self, links: int) -> float:
        """Sampling weight of a document of a page with *links* links; 0: the crawl draws no sample."""
        return 0.0
