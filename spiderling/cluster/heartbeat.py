"""What shards publish of themselves each second, and what each makes of it: totals of all, and the end of the crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from spiderling.cluster.claims import ShardTotals
from spiderling.cluster.exchange import AskedRow
from spiderling.jobdir.snapshots import TAKEOVERS

SUMMED = ("words", "documents", "pages", "downloaded_bytes", "revisit_downloaded_bytes", "kept_bytes")
"""Totals that add up over the shards."""
TIME = "time_s"  # that of the crawl is the longest of its shards
POLLS = 3  # polls that must find the same; chosen: two would do, were every status whole
WAIT_MISSING_S = 60.0  # seconds for which idle shards wait for one that does not run; chosen: time enough to start it


class ShardReport(NamedTuple):
    """What a shard publishes of itself."""

    beat: int  # grows with each status
    is_idle: bool  # whether nothing waits in it and nothing is in transit
    sent: int  # messages to others so far
    waiting: Sequence[int]  # the shards that have not taken all of them
    files: Sequence[AskedRow] = ()  # site files that it wants of others


Statuses: TypeAlias = Mapping[int, ShardReport]  # those of the shards that run


class CrawlTotals:
    """What all shards of a crawl have done together, as shard *me* knows it; the crawl's budgets go by that.

    A running shard's own count is authoritative.  Of another one the largest counts that were ever read are used: after
    a kill it may have published a little more than its state kept, which its next start corrects.  So it does no harm
    that Redis loses what was published, that somebody puts back something older, or that the clocks of machines differ.
    """

    def __init__(self, me: int, own: Mapping[str, int], known: ShardTotals) -> None:
        """*own*: the totals of this shard, which may grow; *known*: the former `known`."""
        self.known: ShardTotals = {**known, me: Counter(known.get(me, {}))}
        """What is known of each shard; what was published of this one is behind `to_publish`."""
        self._me = me
        self._own = own
        self._living: Container[int] = known

    def merge(self, found: ShardTotals, living: Container[int]) -> None:
        """Take what was *found* of all shards, of which those *living* run now."""
        for shard, totals in found.items():
            if shard != self._me:
                self.known[shard] = totals if shard in living else totals | self.known.get(shard, Counter())
        self._living = living

    def to_publish(self) -> ShardTotals:
        """What to publish: the totals of this shard, and those of others that do not run: Redis may have lost them."""
        mine = self.known[self._me] = Counter({name: self._own.get(name, 0) for name in (*SUMMED, TIME, TAKEOVERS)})
        dead = {shard: totals for shard, totals in self.known.items() if shard not in self._living}
        return {**dead, self._me: mine}

    def elsewhere(self) -> Counter[str]:
        """What has to be added to the totals of this shard to get those of the crawl."""
        others = [totals for shard, totals in self.known.items() if shard != self._me]
        added = Counter({name: sum(totals[name] for totals in others) for name in SUMMED})
        longest_s = max((totals[TIME] for totals in others), default=0)
        added[TIME] = max(0, longest_s - self._own.get(TIME, 0))
        return added


class Termination:
    """One shard's polls of all: the crawl is over when all that live are idle, and each message between them is taken.

    A status is some moments old when it is read, so one poll proves nothing: a shard may have been given work since.  A
    shard gets work only by a message, and a message changes the number of its sender.  So the crawl is over when three
    polls, each of new statuses of all, find the same numbers.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._found: dict[int, int] = {}
        self._beats: dict[int, int] = {}
        self._polls = 0
        self._quiet_since: float | None = None

    def is_reached(self, living: Statuses, now: float) -> bool:
        """Take the statuses of all that live; returns whether the crawl is over for them."""
        is_quiet = all(one.is_idle and living.keys().isdisjoint(one.waiting) for one in living.values())
        if not living or not is_quiet:
            self._polls = 0
            self._quiet_since = None
            return False
        if self._quiet_since is None:
            self._quiet_since = now
        found = {shard: status.sent for shard, status in living.items()}
        if found != self._found:
            self._polls = 0
            self._beats = {}
        self._found = found
        if all(status.beat != self._beats.get(shard) for shard, status in living.items()):
            self._beats = {shard: status.beat for shard, status in living.items()}
            self._polls += 1
        is_patient = len(living) == self._shards or now - self._quiet_since >= WAIT_MISSING_S
        return is_patient and self._polls >= POLLS
