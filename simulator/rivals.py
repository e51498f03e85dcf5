"""Strategies that others are compared with, by their import path: ``simulator.rivals.Hard``."""

from __future__ import annotations

from dataclasses import dataclass

from spiderling.frontier.strategies import ByHead
from spiderling.frontier.strategy import DROPPED, USUAL_RANK, LinkingPage, Ranker, Strategy


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
