"""The keys of a crawl in Redis, what may stand in each, and what becomes of anything else.

    spiderling:LANG:NAME:map       the shard map, which also stands in the state of each shard
    spiderling:CRAWL:claimed       number -> machine and JOBDIR of the shard, for ever
    spiderling:CRAWL:lease:N       who runs shard N now, and its status; it runs out by itself
    spiderling:CRAWL:files:N       the site files that shard N wants of others (site_files.py)
    spiderling:CRAWL:file:N:NUMBER one of them
    spiderling:CRAWL:totals        number -> what the shard has done (totals.py)
    spiderling:CRAWL:control       the text of control.yaml (crawl_control.py)
    spiderling:CRAWL:slots         address -> when other shards may start there (slots.py)
    spiderling:CRAWL:over          for a minute after the end
    spiderling:CRAWL:N             the receipt of shard N (redis_transport.py)
    spiderling:CRAWL:N:M           the messages from shard N to shard M

Redis may lose them all: shards that run put back what they know.  So whatever else is found there counts as lost, and
one line tells it.  All but the slots bear a code of authenticity (envelope.py).  Redis itself computes the slots, and a
key that it is given is no secret; what cannot be a slot is cut down, and no slot replaces a shard's own intervals.
"""

from __future__ import annotations

import logging
import math
from typing import Any, NamedTuple

from spiderling.base.clock import elapsed_s
from spiderling.cluster.envelope import Kind, Seal

logger = logging.getLogger(__name__)

_TOLD_S = 600.0
"""Seconds in which the same find is told once (chosen)."""
_MEND = """local thrown = {}
for at, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= ARGV[at] then
    redis.call('DEL', key)
    thrown[#thrown + 1] = key
  end
end
return thrown"""
"""Arguments: the type of each key.  Throws away those of another type, and answers with their names."""
_NAMES = {
    Kind.MESSAGE: "the messages of shard {0.sender} to shard {0.receiver}",
    Kind.RECEIPT: "the receipt of shard {0.sender}",
    Kind.STATUS: "the lease of shard {0.sender}",
    Kind.END: "the end of the crawl",
    Kind.FILES: "the files that shard {0.sender} wants",
    Kind.FILE: "a file for shard {0.receiver}",
    Kind.TOTALS: "the totals of shard {0.sender}",
    Kind.CONTROL: "control.yaml",
    Kind.CLAIM: "the directory of shard {0.sender}",
    Kind.MAP: "the map of the shards",
}


class Keys(NamedTuple):
    """Names in Redis."""

    map: str
    crawl_id: str

    @property
    def claimed(self) -> str:
        return f"spiderling:{self.crawl_id}:claimed"

    @property
    def totals(self) -> str:
        return f"spiderling:{self.crawl_id}:totals"

    @property
    def control(self) -> str:
        return f"spiderling:{self.crawl_id}:control"

    @property
    def slots(self) -> str:
        return f"spiderling:{self.crawl_id}:slots"

    @property
    def over(self) -> str:
        return f"spiderling:{self.crawl_id}:over"

    def files(self, shard: int) -> str:
        """The files that *shard* wants."""
        return f"spiderling:{self.crawl_id}:files:{shard}"

    def file(self, shard: int, number: int) -> str:
        """The file that *shard* wants by that *number*."""
        return f"spiderling:{self.crawl_id}:file:{shard}:{number}"

    def lease(self, shard: int) -> str:
        """The lease of *shard*."""
        return f"spiderling:{self.crawl_id}:lease:{shard}"

    def receipt(self, shard: int) -> str:
        """The receipt of *shard*."""
        return f"spiderling:{self.crawl_id}:{shard}"

    def stream(self, sender: int, receiver: int) -> str:
        """The messages of one shard to another."""
        return f"spiderling:{self.crawl_id}:{sender}:{receiver}"

    def kinds(self, me: int, shards: int) -> dict[str, str]:
        """Each key that shard *me* of so many uses -> its type in Redis; but for single files, which are strings."""
        hashes = dict.fromkeys((self.claimed, self.totals), "hash")
        strings = [self.map, self.control, self.over]
        streams = []
        for shard in range(shards):
            strings += [self.lease(shard), self.files(shard), self.receipt(shard)]
            streams += [self.stream(me, shard), self.stream(shard, me)] if shard != me else []
        return {self.slots: "zset", **hashes, **dict.fromkeys(strings, "string"), **dict.fromkeys(streams, "stream")}


class Finds:
    """Tells what a Redis held that no shard of this crawl can have written."""

    def __init__(self, server: str) -> None:
        """*server*: its address, as people may see it."""
        self._server = server
        self._told: dict[str, float] = {}

    def tell(self, what: str) -> None:
        """It stood in the place of *what*, and counts as lost; told once in a while."""
        now = elapsed_s()
        if now - self._told.get(what, -math.inf) >= _TOLD_S:
            self._told[what] = now
            logger.warning(
                "Redis at %s held something else in the place of %s: it is thrown away, and nothing is lost by that. "
                "Who else writes to that Redis?", self._server, what
            )  # fmt: skip

    def tell_refused(self, seal: Seal) -> None:
        """Tell what *seal* has refused since the last call."""
        for place in seal.refused:
            self.tell(_NAMES[place.kind].format(place))
        seal.refused.clear()


def mend(redis: Any, kinds: dict[str, str]) -> Any:
    """Throw away each of the keys in *kinds* that has another type there; returns what eval of *redis* does: names."""
    return redis.eval(_MEND, len(kinds), *kinds, *kinds.values())
