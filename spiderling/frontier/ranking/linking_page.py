"""What a strategy knows of the page whose links it ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.ranks import SEED_RANK
from spiderling.frontier.hosts.yields import YieldAccount

if TYPE_CHECKING:
    from spiderling.base.outcome import Outcome
    from spiderling.frontier.hosts.host import Host

_RELEVANT = frozenset({Reason.KEPT, Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.BAD_QUALITY})
"""Reasons of pages that are in an accepted language."""


@dataclass(frozen=True, slots=True)
class FarHost:
    """Stands for the host of a page that another shard has read; only its distance is known."""

    distance: int
    name: str = ""
    id: int = -1
    """No host of this shard has it."""
    account: YieldAccount = field(default_factory=YieldAccount, compare=False)
    documents: int = 0


LinkingHost: TypeAlias = "Host | FarHost"


class LinkingPage(NamedTuple):
    """The page whose links are ranked."""

    host: LinkingHost
    reason: Reason
    """How the page ended."""
    rank: int = SEED_RANK
    """The rank of the page's own URL."""
    relevant: bool = False
    """Whether it is in an accepted language by the rule of Somboonviwat et al. 2006, however it ended."""
    language: str = ""
    """Its language by that rule; '' if unknown."""
    badness: float = 0.0
    pages: int = 0
    """Judged responses of the whole crawl so far."""

    @classmethod
    def of(cls, host: Host, rank: int, outcome: Outcome, pages: int) -> LinkingPage:
        """The page of *host* with this *outcome*, whose URL has the rank *rank*."""
        return cls(host, outcome.reason, rank, outcome.relevant, outcome.page_language, outcome.badness, pages)

    @property
    def is_relevant(self) -> bool:
        """Whether it is in an accepted language."""
        return self.relevant or self.reason in _RELEVANT
