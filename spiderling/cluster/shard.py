"""This process as one shard of a crawl: from its claim to the end of the crawl."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from spiderling.base.clock import elapsed_s
from spiderling.base.errors import JobdirError
from spiderling.base.options import Options
from spiderling.cluster.claims import BEAT_S, CLAIMED_KEY, LEASE_S, MAP_KEY, RENEW, TOKEN_CHARS, Claims
from spiderling.cluster.ending import Ending, Status
from spiderling.cluster.envelope import Kind, Place, Refused, Seal
from spiderling.cluster.exchange import Exchange
from spiderling.cluster.key_file import read_key
from spiderling.cluster.post_office import PostOffice
from spiderling.cluster.redis_connection import connected
from spiderling.cluster.redis_transport import RedisTransport
from spiderling.cluster.slots import SlotOffice
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.protocol import Store

logger = logging.getLogger(__name__)

_MOST_TOLD = 3
"""Receivers that the progress line tells, those who have let their messages wait longest first (chosen)."""
_NUMBER_BITS = 52
"""Of a number that no other process begins with (chosen: each language reads such a number exactly)."""
_FILE_S = 60.0
"""Seconds for which a site file for another shard stands in Redis (chosen: it is read with the next beat)."""
_END = Place(Kind.END, 0)
_OVER_S = 60.0
"""Seconds for which the end is told in Redis; chosen: by then each shard has looked many times."""


class Shard:
    """``begin`` follows when the crawl is open, ``close`` in any case."""

    has_begun = False
    """Whether the spider's own seeds are in."""

    def __init__(self, options: Options, directory: Path) -> None:
        """Claim a shard of the crawl in JOBDIR *directory*; raises NoFreeShard, BadInput or JobdirError."""
        key = read_key(options.cluster_key_file, options.cluster)
        self._claims = Claims(options, directory)
        self._claim = self._claims.claim()
        self._claims.begin_keeping(self._claim)
        self.number = self._claim.shard
        self.directory = self._claim.directory
        self.options = replace(options, durability="full")
        """Those of its crawl: what it says to have taken, its sender forgets for good."""
        self._seal = Seal(bytes.fromhex(self._claim.map.crawl_id), key)
        self._ending = Ending(options.shards)
        self._held_until = 0.0
        self._counted: Counter[str] = Counter()
        self._beat = 0
        self._known = self._claim.known
        self._missing: list[int] = []
        self._strangers: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._has_listed = False
        """Whether a list of site files stands in Redis."""
        self._redis: Any = None

    def elsewhere(self, store: Store) -> Exchange:
        """The other shards, for the frontier whose state is in *store*."""
        first_file = secrets.randbits(_NUMBER_BITS)
        self._exchange = Exchange(self.number, self.options.shards, self._seal, store, first_file)
        return self._exchange

    def begin(self, crawl: Crawl, wake: Callable[[], None]) -> None:
        """Work for the open *crawl*; *wake* lets it look again for what is due."""
        self._crawl = crawl
        self._wake = wake
        crawl.others_work = True
        crawl.checkpoint.set_meta(MAP_KEY, asdict(self._claim.map))
        crawl.checkpoint.set_meta(CLAIMED_KEY, self._known)
        transport = RedisTransport(self.options.cluster, bytes.fromhex(self._claim.map.crawl_id), self.number)
        self._office = PostOffice(
            self._exchange, transport, crawl.frontier, crawl.errors, crawl.clock.now, crawl.fail, wake
        )
        self._redis = connected(self.options.cluster)
        self.slots = SlotOffice(crawl, self._redis, self._claim.keys.slots)
        """The starts that this shard has reserved."""
        self._claims.end_keeping()
        self._held_until = self._claims.held_until
        logger.info("This is shard %d of %d, at Redis %s", self.number, self.options.shards, transport.place)
        self._task = crawl.errors.watched(self._run(), "the exchange with the other shards")

    def may_ask(self) -> bool:
        """Whether a request may start now."""
        return elapsed_s() < self._held_until and self._office.away_since is None

    def standing(self) -> str:
        """What waits for other shards, and for how long, as part of a sentence."""
        waiting = self._exchange.waiting()
        if not waiting:
            return ""
        now = self._crawl.clock.now()
        ages = sorted(((now - since, shard) for shard, since in self._exchange.oldest().items()), reverse=True)
        told = ", ".join(f"{waiting[shard]:,} for shard {shard} ({age:.0f} s)" for age, shard in ages[:_MOST_TOLD])
        return f"messages wait: {told}"

    async def _run(self) -> None:
        offices = [asyncio.ensure_future(self._office.run()), asyncio.ensure_future(self.slots.run())]
        try:
            while not any(office.done() for office in offices):
                await self._renew()
                await asyncio.wait(offices, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
            for office in offices:
                if office.done():
                    office.result()
        finally:
            for office in offices:
                office.cancel()

    async def _renew(self) -> None:
        """Renew the lease, put back what Redis may have lost, and look at the others."""
        asked = elapsed_s()
        keys = self._claim.keys
        pipeline = self._redis.pipeline(transaction=False)
        lease_ms = int(LEASE_S * 1000)
        token = self._claim.token
        pipeline.eval(RENEW, 1, keys.lease(self.number), token, token + self._status(), lease_ms)
        pipeline.set(keys.map, self._claim.map.to_json(), nx=True)
        for number, place in self._known.items():
            pipeline.hsetnx(keys.claimed, number, place)
        wanted = self._ask_for_files(pipeline)
        pipeline.hgetall(keys.claimed)
        pipeline.mget([keys.lease(shard) for shard in range(self.options.shards)])
        pipeline.get(keys.over)
        lists = [keys.files(shard) for shard in range(self.options.shards)]
        pipeline.mget([*lists, *(keys.file(self.number, number) for number in wanted)])
        try:
            is_held, *_, claimed, leases, over, files = await pipeline.execute()
        except (RedisError, OSError):  # the post office says so, and nothing is asked for without a lease
            return
        if not is_held:
            self._held_until = 0.0
            self._crawl.fail(
                JobdirError(
                    f"another process runs shard {self.number} of this crawl: its directory was copied. Only one of "
                    "them can go on."
                )
            )
            return
        was_held = self._held_until > asked
        if not was_held:
            self.slots.forget()
        self._held_until = asked + LEASE_S
        self._count()
        self._note_claimed({number.decode(): place.decode() for number, place in claimed.items()})
        living = {shard: status for shard, lease in enumerate(leases) if (status := self._opened(shard, lease))}
        self._take_files(files[: len(lists)], dict(zip(wanted, files[len(lists) :], strict=True)), living, asked)
        self._look(living, over is not None and self._is_end(over), asked)
        if not was_held:
            self._wake()

    def _ask_for_files(self, pipeline: Any) -> list[int]:
        """Say which files this shard wants, and those that others wanted; returns the numbers of the former."""
        keys = self._claim.keys
        files = self._exchange.files
        wanted = list(files.wanted())
        if wanted or self._has_listed:
            pipeline.set(keys.files(self.number), files.listed(), px=int(LEASE_S * 1000))
        self._has_listed = bool(wanted)
        for (shard, number), answer in files.answers().items():
            pipeline.set(keys.file(shard, number), answer, px=int(_FILE_S * 1000))
        return wanted

    def _take_files(
        self, lists: list[bytes | None], found: dict[int, bytes | None], living: dict[int, Status], now: float
    ) -> None:
        """Fetch what other shards want, and take the files *found*."""
        crawl = self._crawl
        files = self._exchange.files
        listed = {shard: data for shard, data in enumerate(lists) if data is not None and shard != self.number}
        new = files.take_lists(listed)
        answered = [files.answered(number, data) for number, data in found.items() if data is not None]
        given_up = [(request, FileAnswer()) for request in files.given_up(living, now)]
        for request, distance in new:
            with crawl.errors.changing(request.url):
                crawl.frontier.put_file_request(request, distance, crawl.clock.now())
        for request, answer in filter(None, (*answered, *given_up)):
            with crawl.errors.changing(request.url):
                crawl.frontier.file_answered(request, answer, crawl.clock.now())
        if new or answered or given_up:
            self._wake()

    def _count(self) -> None:
        """Bring the totals of the crawl up to date; they count from its first start."""
        counts = self._exchange.counts + self._exchange.files.counts
        for name in counts:
            self._crawl.frontier.ledger.totals[name.replace(" ", "_")] += counts[name] - self._counted[name]
        self._counted = counts

    def _note_claimed(self, claimed: dict[str, str]) -> None:
        if claimed != self._known:
            self._known = claimed
            self._crawl.checkpoint.set_meta(CLAIMED_KEY, claimed)

    def _look(self, living: dict[int, Status], is_told: bool, now: float) -> None:
        """End the crawl when nobody has anything left to do, or another shard has found that out."""
        is_found = self._ending.look(living, now)
        if self._crawl.others_work and (is_found or (is_told and self._is_idle())):
            self._crawl.others_work = False
            self._missing = [shard for shard in range(self.options.shards) if is_found and shard not in living]
            self._wake()

    def _is_idle(self) -> bool:
        return self.has_begun and self._crawl.frontier.is_finished and not self._exchange.has_changes

    def _status(self) -> bytes:
        self._beat += 1
        status = Status(self._beat, self._is_idle(), self._exchange.sent(), self._exchange.taken())
        return self._seal.sealed(Place(Kind.STATUS, self.number), status.to_bytes())

    def _opened(self, shard: int, lease: bytes | None) -> Status | None:
        """The status in *lease*; None if nobody holds it, or it says none that can be believed."""
        if lease is None or len(lease) == TOKEN_CHARS:  # its crawl is being opened
            return None
        try:
            return Status.from_bytes(self._seal.opened(Place(Kind.STATUS, shard), lease[TOKEN_CHARS:]))
        except (Refused, ValueError, TypeError):
            self._exchange.counts["statuses refused"] += 1
            if shard not in self._strangers:
                self._strangers.add(shard)
                logger.warning(
                    "Shard %d has another key than this one, and nothing that it sends is taken: give all of them the "
                    "same file with SPIDERLING_CLUSTER_KEY_FILE.",
                    shard,
                )
            return None

    def _is_end(self, data: bytes) -> bool:
        with suppress(Refused):
            return self._seal.opened(_END, data) == b""
        return False

    async def stop(self) -> None:
        """End the exchange, before the crawl is closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._claims.begin_keeping(self._claim)
            await self._office.close()
            if not self._crawl.others_work:
                with suppress(RedisError, OSError):
                    end = self._seal.sealed(_END, b"")
                    await self._redis.set(self._claim.keys.over, end, px=int(_OVER_S * 1000))
            await self._redis.aclose()

    def close(self) -> None:
        """Free the shard, after the crawl is closed or when it could not be opened."""
        self._claims.give_back(self._claim)
        if self._missing:
            waiting = self._exchange.waiting()
            told = ", ".join(f"{shard} ({waiting.get(shard, 0):,} messages wait for it)" for shard in self._missing)
            logger.warning(
                "The crawl has ended without these shards, which do not run: %s. Nothing is lost: start them, and the "
                "others again.",
                told,
            )
