"""What the parts of a frontier share: Core, which holds those that a Part needs, the door's answers, other shards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import LinkBatch
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.frontier.admission import Admission, Mention
from spiderling.frontier.hosts import Host, RobotsRequest
from spiderling.frontier.recrawl.recrawl import Recrawl, Revisit
from spiderling.frontier.robots import Robots
from spiderling.frontier.schedule import Schedule
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import Changes, State
from spiderling.frontier.strategy import LinkingPage, Strategy
from spiderling.frontier.url_states import UrlStates


@dataclass(frozen=True, slots=True)
class Core:
    """Holds the parts that nearly every other part needs."""

    options: Options
    strategy: Strategy
    url_states: UrlStates
    admission: Admission
    robots: Robots
    schedule: Schedule
    recrawl: Recrawl
    elsewhere: Elsewhere | None = None  # the other shards of the crawl, if there are any

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
        self._recrawl = core.recrawl


class Fetch(NamedTuple):
    """A request to be made now: for a page, or for a file of a site if ``robots`` is set."""

    id: int
    url: str
    address: str  # the one address to connect to; it is allowed, and its interval has begun
    host: Host
    payload: bytes | None = None
    robots: RobotsRequest | None = None
    name: str = ""  # the host name in ``url``
    revisit: Revisit | None = None  # what is known of a page that is revisited
    cookies: bytes = b""  # the value of the header Cookie; empty: none is sent
    keeps_open: bool = False  # whether another file of the origin may be asked for next, over the same connection
    goes_on: bool = False
    """Whether a visit goes on by it: over the same connection, before the interval of its host is over."""


class Report(NamedTuple):
    """What became of a reported URL."""

    end: Reason | None  # None: it waits for another attempt, or had ended before
    retired: Host | None = None  # its host, if that was retired by it


class Elsewhere(Protocol):
    """The other shards, which get what this one does not own; `spiderling.cluster.exchange.ShardExchange` is one.

    What was given away since the last ``drain`` is in the changes that ``drain`` returns, so it is durable together
    with the page on which it was found.
    """

    def owns(self, host: str) -> bool:
        """Whether this shard owns the host record's name *host*."""

    def keep_own(self, page: LinkingPage, links: LinkBatch) -> NDArray[np.int64] | None:
        """Take those in the columns of *links*, of *page*, that lead to hosts of other shards.

        Returns the places of the rest; None if that is all.
        """

    def give(self, mention: Mention) -> None:
        """Take a URL of a host of another shard."""

    def tell_kept(self, digests: Iterable[int], paragraphs: NDArray[np.uint64]) -> None:
        """Take the digests of a document that was kept, and of its new paragraphs; others keep neither again."""

    def tell_visit(self, host: int, page: int) -> None:
        """Take the keys of a page (`Visit.keys`), for the others' ``Frontier.put_visits``."""

    def ask_file(self, request: RobotsRequest, distance: int) -> None:
        """Have a site file fetched by the shard that owns its host; ``Frontier.file_answered`` gets the answer.

        *distance*: that of the host which wants it.
        """

    def answer_file(self, request: RobotsRequest, answer: FileAnswer) -> None:
        """Take the *answer* to the *request* of another shard (``Frontier.put_file_request``)."""

    @property
    def has_changes(self) -> bool:
        """Whether ``drain`` would add anything."""

    def drain(self, changes: Changes, now: float) -> Changes:
        """*changes* with the messages to other shards, and with the numbers of those that were taken in."""

    def restore(self, state: State) -> None:
        """Take up what was committed."""

    def committed(self) -> None:
        """The store has committed what ``drain`` returned last."""
