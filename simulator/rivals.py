"""Strategies that others are compared with, by their import path: ``simulator.rivals.Lswc:s=3,t=5``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spiderling.frontier.hosts import LAST_RANK
from spiderling.frontier.strategies import ByHead, parameter
from spiderling.frontier.strategy import DROPPED, USUAL_RANK, LinkingPage, Ranker, Strategy

if TYPE_CHECKING:
    from spiderling.base.options import Options
    from spiderling.base.outcome import Outcome
    from spiderling.base.urls import CanonicalUrl
    from spiderling.frontier.hosts import Host, YieldAccount
    from spiderling.frontier.strategy import CrawlView

_RELEVANT = "relevant server:"  # keys in the store's ``meta``, with an id behind it, of the relevant servers of `Lswc`


@dataclass
class Hard(Strategy):
    """Hard focused: links of irrelevant pages are dropped (Somboonviwat et al. 2006)."""

    def ranker(self, page: LinkingPage) -> Ranker:
        rank = USUAL_RANK if page.is_relevant else DROPPED
        return lambda link: rank


@dataclass
class Soft(ByHead):
    """Soft focused: links of relevant pages first (Somboonviwat et al. 2006)."""

    def ranker(self, page: LinkingPage) -> Ranker:
        rank = USUAL_RANK - 1 if page.is_relevant else USUAL_RANK + 1
        return lambda link: rank


@dataclass
class Lswc(ByHead):
    """Language specific crawling (Somboonviwat et al. 2006, section 3), with its thresholds S and T.

    Servers that gave text or a relevant page go first.  Links of relevant pages have the rank 1 within their server and
    2 to others.  Links at distance d have the rank d + 2; on an English page that was found on a relevant one, d + 1.
    The distance is the number of links from a URL's latest relevant ancestor, 1 if it was found on a relevant page.
    """

    s: int = 1  # downloads after which a server that gave no relevant page is retired
    t: int = parameter(1, most=LAST_RANK - 2)  # the longest distance that is not dropped

    def ranker(self, page: LinkingPage) -> Ranker:
        name = page.host.name
        if page.is_relevant:
            return lambda link: 1 if link.target.host == name else 2
        distance = self.distance(page.rank) + 1
        bonus = distance == 2 and page.language == "en"
        rank = DROPPED if distance > self.t else min(distance + 2 - bonus, LAST_RANK)
        return lambda link: rank

    @staticmethod
    def distance(rank: int) -> int:
        """The distance of a URL with this *rank*."""
        return 1 if rank <= 2 else max(2, rank - 2)

    def begin(self, crawl: CrawlView, options: Options) -> None:
        self._relevant: set[int] = set()  # ids of relevant servers
        self._new: list[int] = []  # those that the store does not know

    def learn(self, page: LinkingPage, target: CanonicalUrl, outcome: Outcome) -> None:
        if page.is_relevant and page.host.id not in self._relevant:
            self._relevant.add(page.host.id)
            self._new.append(page.host.id)

    def state(self) -> dict[str, str]:
        new, self._new = self._new, []
        return {f"{_RELEVANT}{host_id}": "true" for host_id in new}

    def restore(self, meta: Mapping[str, str]) -> None:
        self._relevant = {int(key.removeprefix(_RELEVANT)) for key in meta if key.startswith(_RELEVANT)}

    def host_rank(self, host_id: int, account: YieldAccount, head: int = USUAL_RANK) -> int:
        return 0 if account.kept_bytes or host_id in self._relevant else head

    def gives_up(self, host: Host) -> bool:
        return host.account.pages >= self.s and not (host.documents or host.id in self._relevant)
