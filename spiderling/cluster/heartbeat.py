"""What a shard publishes in Redis each second, what it reads there (one pipeline for all), and what it makes of that.

It renews the shard's lease, with its status in it, and puts back what Redis may have lost.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from redis.exceptions import RedisError

from spiderling.base.terminal import count_of
from spiderling.cluster.claims import (
    LEASE_S,
    RECORDS_KEY,
    RENEW,
    TOKEN_CHARS,
    Claim,
    ShardTotals,
    open_records,
    seal_map,
    seal_record,
)
from spiderling.cluster.crawl_control import CrawlControl, open_edition
from spiderling.cluster.exchange import SENT_BARE, AskedRow, ShardExchange
from spiderling.cluster.redis_transport import StrangeValues, connect, key_types, mend
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.site_files import FileAnswer

logger = logging.getLogger(__name__)

SUMMED = ("words", "documents", "pages", "downloaded_bytes", "kept_bytes")  # totals that add up over the shards
TIME = "time_s"  # the crawl runs while any shard runs: each counts on from the longest time that it knows of
POLLS = 3  # polls that must find the same; chosen: two would do, were every status whole
WAIT_MISSING_S = 60.0  # seconds for which idle shards wait for one that does not run; chosen: time enough to start it
_FILE_S = 60.0  # seconds for which a site file for another shard is in Redis; chosen: it is read within two seconds
_OVER_S = 60.0  # seconds for which the end is published in Redis; chosen: by then each shard has polled many times
_KEPT_S = 10.0
"""Seconds between two times that the state takes the others' totals.  Chosen: if Redis then loses everything, a budget
may be overrun by what a shard that does not run did in them."""


class ShardReport(NamedTuple):
    """What a shard publishes of itself."""

    beat: int  # grows with each status
    is_idle: bool  # whether nothing waits in it and nothing is in transit
    sent: list[int]  # for each shard, the number of the newest message to it
    taken: list[int]  # for each shard, the number of the last message of it that was taken
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
        self._counted_s = own.get(TIME, 0)
        self._crawl_s = max(self._counted_s, *(totals[TIME] for totals in self.known.values()))
        self._living: Container[int] = known

    def merge(self, found: ShardTotals, living: Container[int]) -> None:
        """Take what was *found* of all shards, of which those *living* run now."""
        for shard, totals in found.items():
            if shard != self._me:
                self.known[shard] = totals if shard in living else totals | self.known.get(shard, Counter())
        own_s = self._own.get(TIME, 0)
        grown_s = self._crawl_s + own_s - self._counted_s
        self._counted_s = own_s
        self._crawl_s = max(grown_s, *(totals[TIME] for totals in self.known.values()))
        self._living = living

    def to_publish(self) -> ShardTotals:
        """What to publish: the totals of this shard, and those of others that do not run: Redis may have lost them."""
        own = self._own
        mine = Counter({name: own.get(name, 0) for name in SUMMED})
        mine[TIME] = self._crawl_s + own.get(TIME, 0) - self._counted_s
        self.known[self._me] = mine
        dead = {shard: totals for shard, totals in self.known.items() if shard not in self._living}
        return {**dead, self._me: mine}

    def elsewhere(self) -> Counter[str]:
        """What has to be added to the totals of this shard to get those of the crawl."""
        others = Counter(dict.fromkeys(SUMMED, 0))
        for shard, totals in self.known.items():
            if shard != self._me:
                others.update({name: totals[name] for name in SUMMED})
        others[TIME] = max(0, self._crawl_s - self._counted_s)
        return others


class Termination:
    """One shard's polls of all: the crawl is over when all that live are idle, and each message between them is taken.

    A status is some moments old when it is read, so one poll proves nothing: a shard may have been given work since.  A
    shard gets work only by a message, and a message changes the numbers of its sender.  So the crawl is over when three
    polls, each of new statuses of all, find the same numbers.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._found: dict[int, tuple[list[int], list[int]]] = {}
        self._beats: dict[int, int] = {}
        self._polls = 0
        self._quiet_since: float | None = None

    def is_reached(self, living: Statuses, now: float) -> bool:
        """Take the statuses of all that live; returns whether the crawl is over for them."""
        if not living or not _is_quiet(living):
            self._polls = 0
            self._quiet_since = None
            return False
        if self._quiet_since is None:
            self._quiet_since = now
        found = {shard: (status.sent, status.taken) for shard, status in living.items()}
        if found != self._found:
            self._polls = 0
            self._beats = {}
        self._found = found
        if all(status.beat != self._beats.get(shard) for shard, status in living.items()):
            self._beats = {shard: status.beat for shard, status in living.items()}
            self._polls += 1
        is_patient = len(living) == self._shards or now - self._quiet_since >= WAIT_MISSING_S
        return is_patient and self._polls >= POLLS


def _is_quiet(living: Statuses) -> bool:
    return all(status.is_idle for status in living.values()) and all(
        mine.sent[other] == theirs.taken[shard]
        for shard, mine in living.items()
        for other, theirs in living.items()
        if shard != other
    )


class Heartbeat:
    """One shard's part in what all shards of an open crawl know of each other."""

    def __init__(
        self,
        crawl: Crawl,
        exchange: ShardExchange,
        claim: Claim,
        control: CrawlControl,
        strange: StrangeValues,
        is_idle: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """*is_idle*: whether this shard has nothing to do; *wake* lets its crawl look again for what is due."""
        self.redis: Any = connect(crawl.options.cluster)
        self.missing: list[int] = []  # the shards without which the crawl has ended
        self._places = claim.places
        self._crawl = crawl
        self._exchange = exchange
        self._claim = claim
        self._seal = claim.seal
        self._shards = range(claim.map.shards)
        self._control = control
        self._strange = strange
        self._is_idle = is_idle
        self._wake = wake
        self._totals = CrawlTotals(claim.shard, crawl.frontier.ledger.totals, claim.totals)
        self._kept_at = -math.inf
        self._termination = Termination(claim.map.shards)
        self._counted: Counter[str] = Counter()
        self._number = 0
        crawl.others_work = True
        crawl.done_elsewhere = self._totals.elsewhere()
        self._keep_records()

    async def beat(self, now: float) -> bool:
        """Publish and read at the time *now*, by `elapsed_s`; returns False if another process holds the lease.

        Raises RedisError or OSError.
        """
        key = self._seal.key
        wanted = self._exchange.files.wanted()
        pipeline = self.redis.pipeline(transaction=False)
        self._publish(pipeline, wanted)
        pipeline.hgetall(key("shards"))
        pipeline.mget([key("lease", other) for other in self._shards])
        files = [key("file", self._claim.shard, number) for number, *_ in wanted]
        pipeline.mget([key("control"), key("over"), *files])
        holder, map_, *_, records, leases, (control, over, *answers) = await pipeline.execute()
        if holder is not None:
            if self._seal.open(f"lease:{self._claim.shard}", holder) is not None:
                return False
            await self.redis.delete(key("lease", self._claim.shard))
            raise RedisError("the lease of this shard was overwritten")
        if map_ not in (None, seal_map(self._claim.map, self._seal)):
            self._strange.report(self._claim.map_key)
        living = {other: status for other, lease in enumerate(leases) if (status := self._status_in(other, lease))}
        self._count()
        self._control.merge(open_edition(self._seal, control))
        await self._take_records(records, living, now)
        self._take_files(dict(zip([number for number, *_ in wanted], answers, strict=True)), living, now)
        self._poll(living, self._seal.open("over", over) == b"", now)
        return True

    def _publish(self, pipeline: Any, wanted: list[AskedRow]) -> None:
        seal = self._seal
        token = self._claim.token
        place = f"lease:{self._claim.shard}"
        self._number += 1
        sent, taken = self._exchange.sent(), self._exchange.taken()
        status = json.dumps(ShardReport(self._number, self._is_idle(), sent, taken, wanted))
        pipeline.eval(RENEW, 1, seal.key(place), token, seal.seal(place, token + status.encode()), int(LEASE_S * 1000))
        pipeline.set(self._claim.map_key, seal_map(self._claim.map, seal), get=True)
        published = self._totals.to_publish()
        for shard, where in self._places.items():
            record = seal_record(seal, shard, where, self._totals.known.get(shard, {}))
            (pipeline.hset if shard in published else pipeline.hsetnx)(seal.key("shards"), shard, record)
        if edition := self._control.to_publish:
            pipeline.set(seal.key("control"), seal.seal_json("control", edition))
        for place, answer in self._exchange.files.answers().items():
            pipeline.set(seal.key(place), answer, px=int(_FILE_S * 1000))

    async def mend_types(self) -> None:
        """Throw away each key that has a type which the crawl does not give it.  Raises RedisError or OSError."""
        types = key_types(self._seal, self._claim.map_key, self._claim.shard, len(self._shards))
        for thrown in await mend(self.redis, types):
            self._strange.report(thrown.decode())

    def _status_in(self, shard: int, lease: bytes | None) -> ShardReport | None:
        """The status in the *lease* of *shard*; None if nobody holds it, or it has none that can be believed."""
        found = (self._seal.open(f"lease:{shard}", lease) or b"")[TOKEN_CHARS:]
        with suppress(ValueError, TypeError):
            return ShardReport(*json.loads(found)) if found else None  # none: its crawl is being opened
        return None

    def _count(self) -> None:
        """Bring the totals of the crawl up to date; they count from its first start."""
        counts = self._exchange.counts + self._exchange.files.counts
        if number := counts[SENT_BARE] - self._counted[SENT_BARE]:
            logger.warning(
                "%s for hosts of other shards held more than plain values (docs/scrapy.md): there they are fetched "
                "without callback and meta.", count_of(number, "request")
            )  # fmt: skip
        for name in counts:
            self._crawl.frontier.ledger.totals[name.replace(" ", "_")] += counts[name] - self._counted[name]
        self._counted = counts

    async def _take_records(self, found: Mapping[bytes, bytes], living: Statuses, now: float) -> None:
        """Take what was *found* of all shards, and throw away what nobody of the crawl wrote."""
        places, totals, strange = open_records(self._seal, found)
        if strange:
            await self.redis.hdel(self._seal.key("shards"), *strange)
        self._totals.merge(totals, living)
        self._crawl.done_elsewhere = self._totals.elsewhere()
        self._crawl.processes = max(1, len(living))
        is_new = not places.items() <= self._places.items()
        self._places |= places
        if is_new or now - self._kept_at >= _KEPT_S:
            self._kept_at = now
            self._keep_records()

    def _keep_records(self) -> None:
        """Put what is known of all shards into the state."""
        known = {shard: (place, self._totals.known.get(shard, {})) for shard, place in self._places.items()}
        self._crawl.checkpoint.set_meta(RECORDS_KEY, known)

    def _take_files(self, answers: Mapping[int, bytes | None], living: Statuses, now: float) -> None:
        """Fetch what other shards want, and take the *answers* to what this one does, by their numbers."""
        crawl = self._crawl
        files = self._exchange.files
        others = {other: status.files for other, status in living.items() if other != self._claim.shard}
        new = files.take_wanted(others)
        answered = [files.take_answer(number, data) for number, data in answers.items() if data is not None]
        given_up = [(request, FileAnswer()) for request in files.give_up(living, now)]
        for request, distance in new:
            with crawl.errors.changing(request.url):
                crawl.frontier.put_file_request(request, distance, crawl.now())
        for request, answer in filter(None, (*answered, *given_up)):
            with crawl.errors.changing(request.url):
                crawl.frontier.file_answered(request, answer, crawl.now())
        if new or answered or given_up:
            self._wake()

    def _poll(self, living: Statuses, is_published: bool, now: float) -> None:
        """End the crawl when nobody has anything left to do, or another shard has found that out."""
        is_found = self._termination.is_reached(living, now)
        if self._crawl.others_work and (is_found or (is_published and self._is_idle())):
            self._crawl.others_work = False
            self.missing = [shard for shard in self._shards if is_found and shard not in living]
            self._wake()

    async def close(self) -> None:
        """Publish, if Redis takes it, what no beat will: the totals, and the end of the crawl; end the connection."""
        key = self._seal.key
        me = self._claim.shard
        own = self._totals.to_publish()[me]
        self._keep_records()
        with suppress(RedisError, OSError):
            await self.redis.hset(key("shards"), me, seal_record(self._seal, me, self._places[me], own))
            if not self._crawl.others_work:
                await self.redis.set(key("over"), self._seal.seal("over", b""), px=int(_OVER_S * 1000))
        await self.redis.aclose()
