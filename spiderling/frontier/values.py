"""What the frontier gives out: a Fetch to be made, a Report on one that is over."""

from __future__ import annotations

from typing import NamedTuple

from spiderling.base.reasons import Reason
from spiderling.frontier.hosts.host import Host, RobotsRequest


class Fetch(NamedTuple):
    """A request to be made now: of a page, or (``robots`` set) of a robots.txt."""

    id: int
    url: str
    address: str
    """The one address to connect to; judged and charged."""
    host: Host
    payload: bytes | None = None
    robots: RobotsRequest | None = None


class Report(NamedTuple):
    """What became of a reported URL."""

    end: Reason | None
    """None: it waits for another attempt, or had ended before."""
    retired: tuple[Host, ...] = ()

    @property
    def ended(self) -> bool:
        return self.end is not None
