"""What the parts of a frontier share: Core, which holds those that a Part needs; Fetch and Report, which it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.frontier.chain_cookies import ChainCookies
from spiderling.frontier.discovery.admission import Admission, Mention
from spiderling.frontier.discovery.elsewhere import Elsewhere
from spiderling.frontier.hosts.host import Host, RobotsRequest
from spiderling.frontier.lifecycle.url_states import UrlStates
from spiderling.frontier.ranking.strategy import Strategy
from spiderling.frontier.robots import Robots
from spiderling.frontier.scheduling.schedule import Schedule
from spiderling.frontier.watching.planning import Look
from spiderling.frontier.watching.watch import Watch


@dataclass(frozen=True, slots=True)
class Core:
    """Holds the parts that nearly every other part needs."""

    options: Options
    strategy: Strategy
    url_states: UrlStates
    admission: Admission
    robots: Robots
    schedule: Schedule
    watch: Watch
    cookies: ChainCookies
    elsewhere: Elsewhere | None = None
    """The other shards of the crawl, if there are any."""

    def is_elsewhere(self, host: str) -> bool:
        """Whether another shard owns the host record's name *host*."""
        return self.elsewhere is not None and not self.elsewhere.owns(host)

    def put(self, mention: Mention, now: float) -> Reason | None:
        """Accept a single URL and wake its host, or give it to its shard; returns why it was refused, or None."""
        if self.elsewhere is not None and not self.elsewhere.owns(mention.target.host):
            self.elsewhere.give(mention)
            return None
        accepted = self.admission.accept(mention)
        if isinstance(accepted, Reason):
            return accepted
        self.schedule.wake(accepted, now, mention.rank)
        return None


class Part:
    """A part that works with nearly all others."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._options = core.options
        self._strategy = core.strategy
        self._url_states = core.url_states
        self._admission = core.admission
        self._robots = core.robots
        self._schedule = core.schedule
        self._watch = core.watch


class Fetch(NamedTuple):
    """A request to be made now: for a page, or for a file of a site if ``robots`` is set."""

    id: int
    url: str
    address: str
    """The one address to connect to; it is allowed, and its interval has begun."""
    host: Host
    payload: bytes | None = None
    robots: RobotsRequest | None = None
    name: str = ""
    """The host name in ``url``."""
    look: Look | None = None
    """What is known of a page that is looked at again."""
    cookies: bytes = b""
    """The value of the header Cookie; empty: none is sent."""
    keeps_open: bool = False
    """Whether another file of the origin may be asked for next, over the same connection."""
    goes_on: bool = False
    """Whether a visit goes on by it: over the same connection, before the interval of its host is over."""


class Report(NamedTuple):
    """What became of a reported URL."""

    end: Reason | None
    """None: it waits for another attempt, or had ended before."""
    retired: tuple[Host, ...] = ()
