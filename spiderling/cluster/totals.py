"""What all shards of a crawl have done together, as one of them knows it; the crawl's budgets go by it.

The word of a shard that runs holds.  Of another one the largest counts that was ever heard: after a kill it may have
said a little more than its state kept, which its next start corrects.  So it does no harm that Redis loses what was
said there, that somebody puts back something older, or that the clocks of machines differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

SUMMED = ("words", "documents", "pages", "downloaded_bytes", "kept_bytes")
"""Totals that add up over the shards."""
TIME = "time_s"
"""The crawl runs while any shard runs: each counts on from the longest time that it knows of."""

Said = dict[int, Counter[str]]
"""Shard -> its totals; its time is that of the crawl."""


class Totals:
    """The totals of one crawl, as shard *me* knows them."""

    def __init__(self, me: int, own: Mapping[str, int], known: Said) -> None:
        """*own*: the totals of this shard, which may grow; *known*: the former `known`."""
        self.known: Said = {**known, me: Counter(known.get(me, {}))}
        """What is known of each shard; what was said of this one is behind `said`."""
        self._me = me
        self._own = own
        self._counted_s = own.get(TIME, 0)
        self._crawl_s = max(self._counted_s, *(totals[TIME] for totals in self.known.values()))
        self._missing: Said = {}

    def hear(self, found: Said, living: Container[int]) -> None:
        """Take what was *found* of all shards, of which those *living* run now."""
        for shard, totals in found.items():
            if shard != self._me:
                self.known[shard] = totals if shard in living else totals | self.known.get(shard, Counter())
        own_s = self._own.get(TIME, 0)
        grown_s = self._crawl_s + own_s - self._counted_s
        self._counted_s = own_s
        self._crawl_s = max(grown_s, *(totals[TIME] for totals in self.known.values()))
        self._missing = {
            shard: totals
            for shard, totals in self.known.items()
            if shard != self._me and shard not in living and totals != found.get(shard)
        }

    def said(self) -> Said:
        """What to say: the totals of this shard, and those of others that do not run and of whom less was found."""
        own = self._own
        mine = Counter({name: own.get(name, 0) for name in SUMMED})
        mine[TIME] = self._crawl_s + own.get(TIME, 0) - self._counted_s
        self.known[self._me] = mine
        return {**self._missing, self._me: mine}

    def elsewhere(self) -> Counter[str]:
        """What has to be added to the totals of this shard to get those of the crawl."""
        others = Counter(dict.fromkeys(SUMMED, 0))
        for shard, totals in self.known.items():
            if shard != self._me:
                others.update({name: totals[name] for name in SUMMED})
        others[TIME] = max(0, self._crawl_s - self._counted_s)
        return others
