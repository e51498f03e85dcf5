"""This process as one shard of a crawl: from its claim to the end of the crawl."""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from redis.exceptions import RedisError

from spiderling.base.errors import JobdirError
from spiderling.base.machine import elapsed_s
from spiderling.base.options import Options
from spiderling.cluster.claims import BEAT_S, CONTROL_KEY, LEASE_S, MAP_KEY, Claims, read_key
from spiderling.cluster.crawl_control import CrawlControl
from spiderling.cluster.exchange import ShardExchange, TransportError
from spiderling.cluster.heartbeat import Heartbeat
from spiderling.cluster.redis_transport import RedisTransport, end_tasks
from spiderling.cluster.slots import SlotRequests
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.text.steps import choose

logger = logging.getLogger(__name__)

ROUND_S = 0.5
"""Seconds between two rounds.  Chosen: a link waits longer for its message to fill; with 16 shards a round takes Redis
27 us and this process 360 us."""


_NUMBER_BITS = 52  # of a number that no other process begins with; chosen: each language reads such a number exactly


class Rounds:
    """Carries the messages of one shard while its crawl runs: one round of the transport after the other.

    Belongs to the event loop.  ``run`` lasts as long as the crawl; a task of it is to be watched.
    """

    away_since: float | None = None
    """Since when the transport fails; None while it works.  No request may start meanwhile: leases cannot be kept."""

    def __init__(
        self, exchange: ShardExchange, transport: RedisTransport, crawl: Crawl, wake: Callable[[], None]
    ) -> None:
        """*wake* lets the *crawl* look again for what is due."""
        self._exchange = exchange
        self._transport = transport
        self._crawl = crawl
        self._wake = wake

    async def run(self) -> None:
        """Make rounds until it is cancelled, or the crawl fails."""
        while await self._round():
            await asyncio.sleep(ROUND_S)

    async def _round(self) -> bool:
        """One round; returns whether another one may follow."""
        crawl = self._crawl
        try:
            answer = await self._transport.exchange(self._exchange.ask(crawl.now()))
            messages = self._exchange.take_answer(answer)
        except TransportError as error:
            self._note_away(str(error))
            return True
        except JobdirError as error:
            crawl.fail(error)
            return False
        self._note_back()
        if crawl.is_disk_full:  # messages stay with their senders
            return True
        for message in messages:
            name = f"message {message.number} of shard {message.sender}"
            frontier = None if name in crawl.frontier.next_fetch.shunned else crawl.frontier
            with crawl.errors.changing(name):
                self._exchange.deliver(message, frontier, crawl.now())
            if crawl.errors.is_broken:
                return False
            await asyncio.sleep(0)  # each message takes some milliseconds
        if messages:
            self._wake()
        return True

    def _note_away(self, why: str) -> None:
        if self.away_since is None:
            self.away_since = self._crawl.now()
            since = datetime.fromtimestamp(self.away_since).strftime("%H:%M:%S")
            logger.warning(
                "paused: %s, since %s. Nothing is asked for and nothing is lost; it goes on by itself.", why, since
            )

    def _note_back(self) -> None:
        if self.away_since is not None:
            logger.warning("The crawl goes on after %.0f s without Redis.", self._crawl.now() - self.away_since)
            self.away_since = None
            self._wake()

    async def close(self) -> None:
        await self._transport.close()


class Shard:
    """``begin`` follows when the crawl is open, ``close`` in any case."""

    _refused = ""  # why Redis did not do what it was asked for at the last beat; '': it did
    _has_warned = False
    has_begun = False  # whether the spider's own seeds are in
    _tasks: tuple[asyncio.Task[None], ...] = ()
    _heartbeat: Heartbeat | None = None  # none until the crawl is open

    def __init__(self, options: Options, directory: Path) -> None:
        """Claim a shard of the crawl in JOBDIR *directory*; raises NoFreeShard, BadInput or JobdirError."""
        self._claims = Claims(options, directory)  # it also reads the address, without which no key is of use
        key = read_key(options.cluster_key_file, options.cluster)
        self._claim = self._claims.claim(key)
        self._claims.begin_keeping(self._claim)
        self.number = self._claim.shard
        self.directory = self._claim.directory
        self.options = replace(options, durability="full")
        """Those of its crawl: what it says to have taken, its sender forgets for good."""
        self._seal = self._claim.seal
        self._held_until = 0.0
        self.control = CrawlControl(directory, self._claim.control)  # control.yaml of the crawl

    def elsewhere(self, store: SqliteStore) -> ShardExchange:
        """The other shards, for the frontier whose state is in *store*."""
        first_file = secrets.randbits(_NUMBER_BITS)
        derive = choose(self.options.compiled).steps.derived
        self._exchange = ShardExchange(self.number, self.options.shards, self._seal, store, first_file, derive)
        return self._exchange

    def begin(self, crawl: Crawl, wake: Callable[[], None]) -> None:
        """Work for the open *crawl*; *wake* lets it look again for what is due."""
        self._crawl = crawl
        self._wake = wake
        crawl.checkpoint.set_meta(MAP_KEY, asdict(self._claim.map))
        self.control.keep = functools.partial(crawl.checkpoint.set_meta, CONTROL_KEY)
        self.control.keep(self.control.newest)
        transport = RedisTransport(self.options.cluster, bytes.fromhex(self._claim.map.crawl_id), self.number)
        self._rounds = Rounds(self._exchange, transport, crawl, wake)
        strange = self._claims.strange
        heartbeat = Heartbeat(crawl, self._exchange, self._claim, self.control, strange, self._is_idle, wake)
        self._heartbeat = heartbeat
        self.slots = SlotRequests(crawl, heartbeat.redis, self._seal.key("slots"), strange)
        """The starts that this shard has reserved."""
        self._claims.end_keeping()
        self._held_until = self._claims.held_until
        logger.info("This is shard %d of %d, at Redis %s", self.number, self.options.shards, transport.place)
        parts = asyncio.ensure_future(self._rounds.run()), asyncio.ensure_future(self.slots.run())
        beats = crawl.errors.watch_task(self._run(heartbeat, parts), "the exchange with the other shards")
        self._tasks = beats, *parts

    def may_ask(self) -> bool:
        """Whether a request may start now."""
        return elapsed_s() < self._held_until and self._rounds.away_since is None

    def trouble(self) -> str:
        """What keeps requests from being made, in words; '': nothing of the shard."""
        if self.may_ask():
            return "slots (Redis grants no start at an address)" if self.slots.is_stuck() else ""
        return "Redis (it does not answer)"

    async def _run(self, heartbeat: Heartbeat, parts: tuple[asyncio.Task[None], ...]) -> None:
        """Beat until one of the *parts* ends; raises what that has raised."""
        try:
            while not any(part.done() for part in parts):
                await self._beat(heartbeat)
                await asyncio.wait(parts, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                if part.done():
                    part.result()
        finally:
            for part in parts:
                part.cancel()

    async def _beat(self, heartbeat: Heartbeat) -> None:
        """Renew the lease, and take what the others publish."""
        asked = elapsed_s()
        try:
            if self._refused or self._rounds.away_since is not None:
                await heartbeat.mend_types()
            is_ours = await heartbeat.beat(asked)
            self._note_refused(self.slots.refused)
        except (RedisError, OSError) as error:  # nothing is asked for without a lease
            self._note_refused(str(error))
            return
        finally:
            self._claims.strange.report_refused(self._seal)
        if not is_ours:
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
        if not was_held:
            self._wake()

    def _note_refused(self, why: str) -> None:
        """Redis does not do what it is asked for, '': it does; logged the second time, unless the rounds do."""
        if why and why == self._refused and not self._has_warned and self._rounds.away_since is None:
            logger.warning("paused: Redis does not do what it is asked for (%s). Nothing is lost.", why)
        self._has_warned = bool(why) and why == self._refused
        self._refused = why

    def _is_idle(self) -> bool:
        return self.has_begun and self._crawl.frontier.is_finished and not self._exchange.has_changes

    async def stop(self) -> None:
        """End the exchange, before the crawl is closed."""
        if self._tasks:
            await end_tasks(*self._tasks)
            self._claims.begin_keeping(self._claim)
            await self._rounds.close()
            if self._heartbeat is not None:
                await self._heartbeat.close()

    def close(self) -> None:
        """Free the shard, after the crawl is closed or when it could not be opened."""
        self._claims.give_back(self._claim)
        if self._heartbeat is not None and self._heartbeat.missing:
            waiting = self._exchange.waiting()
            missing = self._heartbeat.missing
            named = ", ".join(f"{shard} ({waiting.get(shard, 0):,} messages wait for it)" for shard in missing)
            logger.warning(
                "The crawl has ended without these shards, which do not run: %s. Nothing is lost: start them, and the "
                "others again.",
                named,
            )
