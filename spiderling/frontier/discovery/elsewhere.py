"""What the frontier needs of the other shards of its crawl, if there are any: it gives them what it does not own."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spiderling.base.link_batch import LinkBatch
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.hosts.host import RobotsRequest
from spiderling.frontier.ranking.strategy import LinkingPage
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import Changes, State


class Elsewhere(Protocol):
    """The other shards; `spiderling.cluster.exchange.Exchange` is one.

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
