"""What a shard makes of what it has heard of the others: files, claims, totals, control, and the end."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping

from spiderling.base.printing import counted
from spiderling.cluster.beat import Heard, Told
from spiderling.cluster.claims import CLAIMED_KEY, TOTALS_KEY, Claim
from spiderling.cluster.crawl_control import CrawlControl
from spiderling.cluster.ending import Ending, Status
from spiderling.cluster.exchange import SENT_BARE, Exchange
from spiderling.cluster.totals import Totals
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.site_files import FileAnswer

logger = logging.getLogger(__name__)

_KEPT_S = 10.0
"""Seconds between two times that the state takes the others' totals.  Chosen: if Redis then loses everything, a budget
may be overrun by what a shard that does not run did in them."""


class Others:
    """The other shards of an open crawl."""

    def __init__(
        self,
        crawl: Crawl,
        exchange: Exchange,
        claim: Claim,
        control: CrawlControl,
        is_idle: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """*is_idle*: whether this shard has nothing to do; *wake* lets its crawl look again for what is due."""
        self.claimed = claim.known
        """Number -> place of each shard that is known to be claimed."""
        self.missing: list[int] = []
        """The shards without which the crawl has ended."""
        self._crawl = crawl
        self._exchange = exchange
        self._totals = Totals(claim.shard, crawl.frontier.ledger.totals, claim.totals)
        self._kept_at = -math.inf
        self._shards = range(claim.map.shards)
        self._ending = Ending(claim.map.shards)
        self._control = control
        self._is_idle = is_idle
        self._wake = wake
        self._counted: Counter[str] = Counter()
        crawl.others_work = True
        crawl.done_elsewhere = self._totals.elsewhere()
        crawl.checkpoint.set_meta(CLAIMED_KEY, claim.known)

    def told(self) -> Told:
        """What to say with the next beat."""
        return Told(self._is_idle(), self.claimed, self._totals.said(), self._control.to_tell)

    def keep_totals(self) -> None:
        """Put what is known of the others' totals into the state."""
        self._crawl.checkpoint.set_meta(TOTALS_KEY, self._totals.known)

    def take(self, heard: Heard, now: float) -> None:
        """Take what was *heard* at the time *now*, by `elapsed_s`."""
        self._count()
        if (claimed := self.claimed | heard.claimed) != self.claimed:
            self.claimed = claimed
            self._crawl.checkpoint.set_meta(CLAIMED_KEY, claimed)
        self._control.hear(heard.control)
        self._take_totals(heard, now)
        self._take_files(heard, now)
        self._look(heard.living, heard.is_over, now)

    def _count(self) -> None:
        """Bring the totals of the crawl up to date; they count from its first start."""
        counts = self._exchange.counts + self._exchange.files.counts
        if number := counts[SENT_BARE] - self._counted[SENT_BARE]:
            logger.warning(
                "%s for hosts of other shards held more than plain values (docs/scrapy.md): there they are fetched "
                "without callback and meta.", counted(number, "request")
            )  # fmt: skip
        for name in counts:
            self._crawl.frontier.ledger.totals[name.replace(" ", "_")] += counts[name] - self._counted[name]
        self._counted = counts

    def _take_totals(self, heard: Heard, now: float) -> None:
        self._totals.hear(heard.totals, heard.living)
        self._crawl.done_elsewhere = self._totals.elsewhere()
        self._crawl.processes = max(1, len(heard.living))
        if now - self._kept_at >= _KEPT_S:
            self._kept_at = now
            self.keep_totals()

    def _take_files(self, heard: Heard, now: float) -> None:
        """Fetch what other shards want, and take the files that this one wanted."""
        crawl = self._crawl
        files = self._exchange.files
        new = files.take_lists(heard.lists)
        answered = [files.answered(number, data) for number, data in heard.files.items()]
        given_up = [(request, FileAnswer()) for request in files.given_up(heard.living, now)]
        for request, distance in new:
            with crawl.errors.changing(request.url):
                crawl.frontier.put_file_request(request, distance, crawl.now())
        for request, answer in filter(None, (*answered, *given_up)):
            with crawl.errors.changing(request.url):
                crawl.frontier.file_answered(request, answer, crawl.now())
        if new or answered or given_up:
            self._wake()

    def _look(self, living: Mapping[int, Status], is_told: bool, now: float) -> None:
        """End the crawl when nobody has anything left to do, or another shard has found that out."""
        is_found = self._ending.look(living, now)
        if self._crawl.others_work and (is_found or (is_told and self._is_idle())):
            self._crawl.others_work = False
            self.missing = [shard for shard in self._shards if is_found and shard not in living]
            self._wake()
