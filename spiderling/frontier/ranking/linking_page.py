"""What a strategy knows of the page whose links it ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.ranks import SEED_RANK

if TYPE_CHECKING:
    from spiderling.base.outcome import Outcome
    from spiderling.frontier.hosts.host import Host

_RELEVANT = frozenset({Reason.KEPT, Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.BAD_QUALITY})
"""Ends of pages that were found to be in an accepted language."""


class LinkingPage(NamedTuple):
    """What a strategy knows of the page whose links it ranks."""

    host: Host
    reason: Reason
    """How the page ended."""
    rank: int = SEED_RANK
    """Of the page's own URL."""
    relevant: bool = False
    """Whether it is in an accepted language by the rule of T06, whatever became of it."""
    language: str = ""
    """By that rule; '' for unknown."""
    badness: float = 0.0
    pages: int = 0
    """Judged responses of the whole crawl so far."""

    @classmethod
    def of(cls, host: Host, rank: int, outcome: Outcome, pages: int) -> LinkingPage:
        """The page of *host* that *outcome* tells of, its URL being of *rank*."""
        return cls(host, outcome.reason, rank, outcome.relevant, outcome.page_language, outcome.badness, pages)

    @property
    def is_relevant(self) -> bool:
        """Whether it is in an accepted language."""
        return self.relevant or self.reason in _RELEVANT
