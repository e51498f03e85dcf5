"""What a shard says in Redis with each beat, what it reads there (one pipeline for all), and what it makes of that.

A beat renews the shard's lease, with its status in it, and puts back what Redis may have lost.
"""

from __future__ import annotations

import json
import logging
import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from spiderling.base.terminal import counted
from spiderling.cluster.claims import (
    CLAIMED_KEY,
    LEASE_S,
    RENEW,
    TOKEN_CHARS,
    TOTALS_KEY,
    Claim,
    opened_claims,
    sealed_claim,
    sealed_map,
)
from spiderling.cluster.content import Kind, Place, Refused, Seal
from spiderling.cluster.crawl_control import CrawlControl, Edition
from spiderling.cluster.exchange import SENT_BARE, Exchange
from spiderling.cluster.redis_transport import Finds, connected, mend
from spiderling.cluster.totals import Ending, Said, Status, Totals
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.site_files import FileAnswer

_FILE_S = 60.0
"""Seconds for which a site file for another shard stands in Redis (chosen: it is read with the next beat)."""
_END = Place(Kind.END, 0)
_CONTROL = Place(Kind.CONTROL, 0)
_OVER_S = 60.0
"""Seconds for which the end is told in Redis; chosen: by then each shard has looked many times."""


class Told(NamedTuple):
    """What a shard says with a beat."""

    is_idle: bool
    """Whether it has nothing to do."""
    claimed: dict[str, str]
    """As in `Heard`; Redis may have lost it."""
    totals: Said
    """As `Totals` says them."""
    control: Edition | None
    """Of control.yaml, if Redis has not this one."""


class Heard(NamedTuple):
    """What Redis answered to a beat."""

    claimed: dict[str, str]
    """Number -> place of each shard that is claimed."""
    living: dict[int, Status]
    """The statuses of the shards that hold a lease."""
    totals: Said
    """The totals of all shards, as far as they stand there."""
    control: Edition | None
    """The text of control.yaml that stands there; None: none that can be believed."""
    is_over: bool
    """Whether another shard has found that the crawl is over."""
    lists: dict[int, bytes]
    """Shard -> which site files it wants of others."""
    files: dict[int, bytes]
    """Number -> answer, for those that this shard wanted."""


class Beats:
    """The beats of one shard."""

    def __init__(self, url: str, claim: Claim, exchange: Exchange, finds: Finds) -> None:
        """*url*: that of Redis; raises BadInput."""
        self.redis: Any = connected(url)
        self._claim = claim
        self._shards = range(claim.map.shards)
        self._seal = claim.seal
        self._exchange = exchange
        self._finds = finds
        self._number = 0
        self._strange_lease = b""
        """What was found in the place of this shard's lease, and may be replaced."""
        self._has_listed = False
        """Whether a list of site files stands in Redis."""

    async def beat(self, told: Told) -> Heard | None:
        """Beat once; None if another process holds the lease.  Raises RedisError or OSError."""
        keys = self._claim.keys
        shard = self._claim.shard
        token = self._claim.token
        pipeline = self.redis.pipeline(transaction=False)
        renewed = self._status(token, told.is_idle), int(LEASE_S * 1000), self._strange_lease
        pipeline.eval(RENEW, 1, keys.lease(shard), token, *renewed)
        pipeline.set(keys.map, sealed_map(self._claim.map, self._seal), nx=True)
        for number, place in told.claimed.items():
            pipeline.hsetnx(keys.claimed, number, sealed_claim(self._seal, number, place))
        pipeline.hset(keys.totals, mapping=self._sealed_totals(told))
        if told.control is not None:
            pipeline.set(keys.control, sealed_edition(self._seal, told.control))
        wanted = self._ask_for_files(pipeline)
        pipeline.get(keys.map)
        pipeline.hgetall(keys.claimed)
        pipeline.mget([keys.lease(other) for other in self._shards])
        pipeline.hgetall(keys.totals)
        pipeline.get(keys.control)
        pipeline.get(keys.over)
        pipeline.mget([*map(keys.files, self._shards), *(keys.file(shard, number) for number in wanted)])
        other, *_, map_, claimed, leases, totals, control, over, files = await pipeline.execute()
        if other is not None and self._is_of_a_process(other):
            return None
        claims, strange = opened_claims(self._seal, claimed)
        is_over = over is not None and self._is_end(over)
        await self._mend(map_, strange, over is not None and not is_over)
        lists = dict(zip(self._shards, files, strict=False))
        lists.pop(shard)
        found = dict(zip(wanted, files[len(self._shards) :], strict=True))
        return Heard(
            claimed=claims,
            living={other: status for other, lease in enumerate(leases) if (status := self._opened(other, lease))},
            totals=self._totals(totals),
            control=opened_edition(self._seal, control),
            is_over=is_over,
            lists={other: data for other, data in lists.items() if data is not None},
            files={number: data for number, data in found.items() if data is not None},
        )

    def _is_of_a_process(self, lease: bytes) -> bool:
        """Whether another process holds the *lease*; if anybody else wrote it, the next beat replaces it."""
        try:
            self._seal.opened(Place(Kind.STATUS, self._claim.shard), lease)
        except Refused as error:
            self._strange_lease = lease
            raise RedisError("the lease of this shard was overwritten") from error
        return True

    async def _mend(self, map_: bytes, claims: list[bytes], is_end_strange: bool) -> None:
        """Replace a *map_* that is not this crawl's, and throw away those *claims* and a strange end."""
        keys = self._claim.keys
        if map_ != (ours := sealed_map(self._claim.map, self._seal)):
            self._finds.tell(keys.map)
            await self.redis.set(keys.map, ours)
        if claims:
            self._finds.tell(keys.claimed)
            await self.redis.hdel(keys.claimed, *claims)
        if is_end_strange:
            await self.redis.delete(keys.over)

    async def mend_types(self) -> None:
        """Throw away each key that has a type which the crawl does not give it.  Raises RedisError or OSError."""
        kinds = self._claim.keys.kinds(self._claim.shard, len(self._shards))
        for thrown in await mend(self.redis, kinds):
            self._finds.tell(thrown.decode())

    def _ask_for_files(self, pipeline: Any) -> list[int]:
        """Say which files this shard wants, and those that others wanted; returns the numbers of the former."""
        keys = self._claim.keys
        files = self._exchange.files
        wanted = list(files.wanted())
        if wanted or self._has_listed:
            pipeline.set(keys.files(self._claim.shard), files.listed(), px=int(LEASE_S * 1000))
        self._has_listed = bool(wanted)
        for (shard, number), answer in files.answers().items():
            pipeline.set(keys.file(shard, number), answer, px=int(_FILE_S * 1000))
        return wanted

    def _status(self, token: bytes, is_idle: bool) -> bytes:
        self._number += 1
        status = Status(self._number, is_idle, self._exchange.sent(), self._exchange.taken())
        return self._seal.sealed(Place(Kind.STATUS, self._claim.shard), token + status.to_bytes())

    def _opened(self, shard: int, lease: bytes | None) -> Status | None:
        """The status in *lease*; None if nobody holds it, or it says none that can be believed."""
        if lease is None:
            return None
        try:
            said = self._seal.opened(Place(Kind.STATUS, shard), lease)[TOKEN_CHARS:]
            return Status.from_bytes(said) if said else None  # its crawl is being opened
        except (Refused, ValueError, TypeError):
            self._exchange.counts["statuses refused"] += 1
            return None

    def _sealed_totals(self, told: Told) -> dict[int, bytes]:
        return {
            shard: self._seal.sealed(Place(Kind.TOTALS, shard), json.dumps(totals).encode())
            for shard, totals in told.totals.items()
        }

    def _totals(self, found: dict[bytes, bytes]) -> Said:
        """The totals *found*, but those that cannot be believed."""
        totals: Said = {}
        for name, data in found.items():
            with suppress(Refused, ValueError, TypeError, AttributeError, struct.error):
                shard = int(name)
                said = json.loads(self._seal.opened(Place(Kind.TOTALS, shard), data))
                totals[shard] = Counter({total: int(number) for total, number in said.items()})
        return totals

    def _is_end(self, data: bytes) -> bool:
        with suppress(Refused):
            return self._seal.opened(_END, data) == b""
        return False

    async def tell_totals(self, told: Told) -> None:
        """Say what this shard has done, which no beat will, if Redis can be told."""
        with suppress(RedisError, OSError):
            await self.redis.hset(self._claim.keys.totals, mapping=self._sealed_totals(told))

    async def tell_end(self) -> None:
        """Tell all other shards that the crawl is over, if Redis can be told."""
        with suppress(RedisError, OSError):
            await self.redis.set(self._claim.keys.over, self._seal.sealed(_END, b""), px=int(_OVER_S * 1000))

    async def close(self) -> None:
        """End the connection."""
        await self.redis.aclose()


def sealed_edition(seal: Seal, edition: Edition) -> bytes:
    """*edition* as it stands in Redis."""
    return seal.sealed(_CONTROL, json.dumps(edition).encode())


def opened_edition(seal: Seal, data: bytes | None) -> Edition | None:
    """The edition in *data*; None if it holds none that can be believed."""
    with suppress(Refused, ValueError, TypeError):
        if data is not None:
            number, text = json.loads(seal.opened(_CONTROL, data))
            return Edition(int(number), str(text))
    return None


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
