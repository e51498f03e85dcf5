"""What a shard publishes in Redis each second, what it reads there (one pipeline for all), and what it makes of that.

It renews the shard's lease, with its status in it, and puts back what Redis may have lost.
"""

from __future__ import annotations

import json
import logging
import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from redis.exceptions import RedisError

from spiderling.base.terminal import counted
from spiderling.cluster.claims import (
    CLAIMED_KEY,
    LEASE_S,
    RENEW,
    TOKEN_CHARS,
    TOTALS_KEY,
    Claim,
    open_claims,
    seal_claim,
    seal_map,
)
from spiderling.cluster.content import Kind, Place, Refused
from spiderling.cluster.crawl_control import CrawlControl, open_edition, seal_edition
from spiderling.cluster.exchange import SENT_BARE, Exchange
from spiderling.cluster.redis_transport import StrangeValues, connected, mend
from spiderling.cluster.totals import ShardTotals, Status, Termination, Totals
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.site_files import FileAnswer

logger = logging.getLogger(__name__)

_FILE_S = 60.0  # seconds for which a site file for another shard is in Redis; chosen: it is read within two seconds
_OVER_S = 60.0  # seconds for which the end is published in Redis; chosen: by then each shard has looked many times
_END = Place(Kind.END, 0)
_KEPT_S = 10.0
"""Seconds between two times that the state takes the others' totals.  Chosen: if Redis then loses everything, a budget
may be overrun by what a shard that does not run did in them."""


class Heartbeat:
    """One shard's part in what all shards of an open crawl know of each other."""

    def __init__(
        self,
        crawl: Crawl,
        exchange: Exchange,
        claim: Claim,
        control: CrawlControl,
        strange: StrangeValues,
        is_idle: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """*is_idle*: whether this shard has nothing to do; *wake* lets its crawl look again for what is due."""
        self.redis: Any = connected(crawl.options.cluster)
        self.missing: list[int] = []  # the shards without which the crawl has ended
        self._claimed = claim.known  # number -> place of each shard that is known to be claimed
        self._crawl = crawl
        self._exchange = exchange
        self._claim = claim
        self._seal = claim.seal
        self._shards = range(claim.map.shards)
        self._control = control
        self._strange = strange
        self._is_idle = is_idle
        self._wake = wake
        self._totals = Totals(claim.shard, crawl.frontier.ledger.totals, claim.totals)
        self._totals_kept_at = -math.inf
        self._termination = Termination(claim.map.shards)
        self._counted: Counter[str] = Counter()
        self._number = 0
        self._strange_lease = b""  # what was found in the place of this shard's lease, and may be replaced
        self._has_listed = False  # whether a list of site files is in Redis
        crawl.others_work = True
        crawl.done_elsewhere = self._totals.elsewhere()
        crawl.checkpoint.set_meta(CLAIMED_KEY, claim.known)

    # -- out and in

    async def beat(self, now: float) -> bool:
        """Publish and read at the time *now*, by `elapsed_s`; returns False if another process holds the lease.

        Raises RedisError or OSError.
        """
        keys = self._claim.keys
        shard = self._claim.shard
        token = self._claim.token
        pipeline = self.redis.pipeline(transaction=False)
        renewed = self._status(token), int(LEASE_S * 1000), self._strange_lease
        pipeline.eval(RENEW, 1, keys.of("lease", shard), token, *renewed)
        pipeline.set(keys.map, seal_map(self._claim.map, self._seal), nx=True)
        for number, place in self._claimed.items():
            pipeline.hsetnx(keys.of("claimed"), number, seal_claim(self._seal, number, place))
        pipeline.hset(keys.of("totals"), mapping=self._sealed_totals())
        if self._control.to_publish is not None:
            pipeline.set(keys.of("control"), seal_edition(self._seal, self._control.to_publish))
        wanted = self._ask_for_files(pipeline)
        pipeline.get(keys.map)
        pipeline.hgetall(keys.of("claimed"))
        pipeline.mget([keys.of("lease", other) for other in self._shards])
        pipeline.hgetall(keys.of("totals"))
        pipeline.get(keys.of("control"))
        pipeline.get(keys.of("over"))
        lists = [keys.of("files", other) for other in self._shards]
        pipeline.mget([*lists, *(keys.of("file", shard, number) for number in wanted)])
        holder, *_, map_, claimed, leases, totals, control, over, files = await pipeline.execute()
        if holder is not None and self._is_of_a_process(holder):
            return False
        claims, strange = open_claims(self._seal, claimed)
        is_over = over is not None and self._is_end(over)
        await self._mend(map_, strange, over is not None and not is_over)
        living = {other: status for other, lease in enumerate(leases) if (status := self._opened(other, lease))}
        self._count()
        if not claims.items() <= self._claimed.items():
            self._claimed |= claims
            self._crawl.checkpoint.set_meta(CLAIMED_KEY, self._claimed)
        self._control.merge(open_edition(self._seal, control))
        self._take_totals(self._opened_totals(totals), living, now)
        self._take_files(files, wanted, living, now)
        self._look(living, is_over, now)
        return True

    def _is_of_a_process(self, lease: bytes) -> bool:
        """Whether another process holds the *lease*; if anybody else wrote it, the next beat replaces it."""
        try:
            self._seal.open(Place(Kind.STATUS, self._claim.shard), lease)
        except Refused as error:
            self._strange_lease = lease
            raise RedisError("the lease of this shard was overwritten") from error
        return True

    async def _mend(self, map_: bytes, claims: list[bytes], is_end_strange: bool) -> None:
        """Replace a *map_* that is not this crawl's, and throw away those *claims* and a strange end."""
        keys = self._claim.keys
        if map_ != (ours := seal_map(self._claim.map, self._seal)):
            self._strange.report(keys.map)
            await self.redis.set(keys.map, ours)
        if claims:
            self._strange.report(keys.of("claimed"))
            await self.redis.hdel(keys.of("claimed"), *claims)
        if is_end_strange:
            await self.redis.delete(keys.of("over"))

    async def mend_types(self) -> None:
        """Throw away each key that has a type which the crawl does not give it.  Raises RedisError or OSError."""
        types = self._claim.keys.types(self._claim.shard, len(self._shards))
        for thrown in await mend(self.redis, types):
            self._strange.report(thrown.decode())

    def _ask_for_files(self, pipeline: Any) -> list[int]:
        """Publish which files this shard wants, and those that others wanted; returns the numbers of the former."""
        keys = self._claim.keys
        files = self._exchange.files
        wanted = list(files.wanted())
        if wanted or self._has_listed:
            pipeline.set(keys.of("files", self._claim.shard), files.listed(), px=int(LEASE_S * 1000))
        self._has_listed = bool(wanted)
        for (shard, number), answer in files.answers().items():
            pipeline.set(keys.of("file", shard, number), answer, px=int(_FILE_S * 1000))
        return wanted

    def _status(self, token: bytes) -> bytes:
        self._number += 1
        status = Status(self._number, self._is_idle(), self._exchange.sent(), self._exchange.taken())
        return self._seal.seal(Place(Kind.STATUS, self._claim.shard), token + status.to_bytes())

    def _opened(self, shard: int, lease: bytes | None) -> Status | None:
        """The status in *lease*; None if nobody holds it, or it has none that can be believed."""
        if lease is None:
            return None
        try:
            found = self._seal.open(Place(Kind.STATUS, shard), lease)[TOKEN_CHARS:]
            return Status.from_bytes(found) if found else None  # its crawl is being opened
        except (Refused, ValueError, TypeError):
            self._exchange.counts["statuses refused"] += 1
            return None

    def _sealed_totals(self) -> dict[int, bytes]:
        return {
            shard: self._seal.seal(Place(Kind.TOTALS, shard), json.dumps(totals).encode())
            for shard, totals in self._totals.to_publish().items()
        }

    def _opened_totals(self, found: Mapping[bytes, bytes]) -> ShardTotals:
        """The totals *found*, but those that cannot be believed."""
        opened: ShardTotals = {}
        for name, data in found.items():
            with suppress(Refused, ValueError, TypeError, AttributeError, struct.error):
                shard = int(name)
                totals = json.loads(self._seal.open(Place(Kind.TOTALS, shard), data))
                opened[shard] = Counter({total: int(number) for total, number in totals.items()})
        return opened

    def _is_end(self, data: bytes) -> bool:
        with suppress(Refused):
            return self._seal.open(_END, data) == b""
        return False

    # -- what is made of it

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

    def _take_totals(self, totals: ShardTotals, living: Mapping[int, Status], now: float) -> None:
        self._totals.merge(totals, living)
        self._crawl.done_elsewhere = self._totals.elsewhere()
        self._crawl.processes = max(1, len(living))
        if now - self._totals_kept_at >= _KEPT_S:
            self._totals_kept_at = now
            self._keep_totals()

    def _keep_totals(self) -> None:
        """Put what is known of the others' totals into the state."""
        self._crawl.checkpoint.set_meta(TOTALS_KEY, self._totals.known)

    def _take_files(
        self, found: list[bytes | None], wanted: list[int], living: Mapping[int, Status], now: float
    ) -> None:
        """Fetch what other shards want, and take the files *wanted*; *found*: the list of each shard, then these."""
        crawl = self._crawl
        files = self._exchange.files
        lists = dict(enumerate(found[: len(self._shards)]))
        del lists[self._claim.shard]
        answers = zip(wanted, found[len(self._shards) :], strict=True)
        new = files.take_lists({other: data for other, data in lists.items() if data is not None})
        answered = [files.answered(number, data) for number, data in answers if data is not None]
        given_up = [(request, FileAnswer()) for request in files.given_up(living, now)]
        for request, distance in new:
            with crawl.errors.changing(request.url):
                crawl.frontier.put_file_request(request, distance, crawl.now())
        for request, answer in filter(None, (*answered, *given_up)):
            with crawl.errors.changing(request.url):
                crawl.frontier.file_answered(request, answer, crawl.now())
        if new or answered or given_up:
            self._wake()

    def _look(self, living: Mapping[int, Status], is_published: bool, now: float) -> None:
        """End the crawl when nobody has anything left to do, or another shard has found that out."""
        is_found = self._termination.is_reached(living, now)
        if self._crawl.others_work and (is_found or (is_published and self._is_idle())):
            self._crawl.others_work = False
            self.missing = [shard for shard in self._shards if is_found and shard not in living]
            self._wake()

    async def close(self) -> None:
        """Publish, if Redis takes it, what no beat will: the totals, and the end of the crawl; end the connection."""
        keys = self._claim.keys
        self._keep_totals()
        with suppress(RedisError, OSError):
            await self.redis.hset(keys.of("totals"), mapping=self._sealed_totals())
            if not self._crawl.others_work:
                await self.redis.set(keys.of("over"), self._seal.seal(_END, b""), px=int(_OVER_S * 1000))
        await self.redis.aclose()
