"""This process as one shard of a crawl: from its claim to the end of the crawl."""

from __future__ import annotations

import asyncio
import functools
import json
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
from spiderling.cluster.beat import Beats, Others, opened_edition
from spiderling.cluster.claims import BEAT_S, CONTROL_KEY, LEASE_S, MAP_KEY, Claims, keep, read_key
from spiderling.cluster.crawl_control import FIRST, CrawlControl, Edition
from spiderling.cluster.exchange import Exchange, Transport, TransportError
from spiderling.cluster.redis_transport import RedisTransport
from spiderling.cluster.slots import SlotOffice
from spiderling.crawl.crawl import Crawl
from spiderling.crawl.internal_errors import InternalErrors
from spiderling.frontier import Frontier
from spiderling.frontier.storage.protocol import Store
from spiderling.text.steps import choose

logger = logging.getLogger(__name__)

ROUND_S = 0.5
"""Seconds between two rounds.  Chosen: a link waits longer for its message to fill; with 16 shards a round takes Redis
27 us and this process 360 us."""


class PostOffice:
    """Carries the messages of one shard while its crawl runs: one round of the transport after the other.

    Belongs to the event loop.  ``run`` lasts as long as the crawl; a task of it is to be watched.
    """

    away_since: float | None = None
    """Since when the transport fails; None while it works.  No request may start meanwhile: leases cannot be kept."""

    def __init__(
        self,
        exchange: Exchange,
        transport: Transport,
        frontier: Frontier,
        errors: InternalErrors,
        now: Callable[[], float],
        fail: Callable[[JobdirError], None],
        wake: Callable[[], None],
        may_take: Callable[[], bool] = lambda: True,
    ) -> None:
        """*fail* ends the crawl; *wake* lets it look again for what is due.

        While *may_take* says no, messages stay with their senders.
        """
        self._exchange = exchange
        self._transport = transport
        self._frontier = frontier
        self._errors = errors
        self._now = now
        self._fail = fail
        self._wake = wake
        self._may_take = may_take

    async def run(self) -> None:
        """Make rounds until it is cancelled, or the crawl fails."""
        while await self._round():
            await asyncio.sleep(ROUND_S)

    async def _round(self) -> bool:
        """One round; returns whether another one may follow."""
        try:
            answer = await self._transport.exchange(self._exchange.ask(self._now()))
            messages = self._exchange.take_answer(answer)
        except TransportError as error:
            self._note_away(str(error))
            return True
        except JobdirError as error:
            self._fail(error)
            return False
        self._note_back()
        if not self._may_take():
            return True
        for message in messages:
            name = f"message {message.number} of shard {message.sender}"
            frontier = None if name in self._frontier.next_fetch.shunned else self._frontier
            with self._errors.changing(name):
                self._exchange.deliver(message, frontier, self._now())
            if self._errors.is_broken:
                return False
            await asyncio.sleep(0)  # each message takes some milliseconds
        if messages:
            self._wake()
        return True

    def _note_away(self, why: str) -> None:
        if self.away_since is None:
            self.away_since = self._now()
            since = datetime.fromtimestamp(self.away_since).strftime("%H:%M:%S")
            logger.warning(
                "paused: %s, since %s. Nothing is asked for and nothing is lost; it goes on by itself.", why, since
            )

    def _note_back(self) -> None:
        if self.away_since is not None:
            logger.warning("The crawl goes on after %.0f s without Redis.", self._now() - self.away_since)
            self.away_since = None
            self._wake()

    async def close(self) -> None:
        """End the connection."""
        await self._transport.close()


_NUMBER_BITS = 52
"""Of a number that no other process begins with (chosen: each language reads such a number exactly)."""


class Shard:
    """``begin`` follows when the crawl is open, ``close`` in any case."""

    _refused = ""
    """Why Redis did not do what it was asked for at the last beat; '': it did."""
    _is_told = False
    has_begun = False
    """Whether the spider's own seeds are in."""
    _task: asyncio.Task[None] | None = None
    _others: Others | None = None
    """None until the crawl is open."""

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
        here = Edition(*json.loads(self._claim.control_here or json.dumps(FIRST)))
        there = opened_edition(self._seal, self._claim.control_there) or FIRST
        self.control = CrawlControl(directory, max(here, there))
        """control.yaml of the crawl."""

    def elsewhere(self, store: Store) -> Exchange:
        """The other shards, for the frontier whose state is in *store*."""
        first_file = secrets.randbits(_NUMBER_BITS)
        derive = choose(self.options.compiled).steps.derived
        self._exchange = Exchange(self.number, self.options.shards, self._seal, store, first_file, derive)
        return self._exchange

    def begin(self, crawl: Crawl, wake: Callable[[], None]) -> None:
        """Work for the open *crawl*; *wake* lets it look again for what is due."""
        self._crawl = crawl
        self._wake = wake
        keep(self.directory)
        crawl.checkpoint.set_meta(MAP_KEY, asdict(self._claim.map))
        self.control.keep = functools.partial(crawl.checkpoint.set_meta, CONTROL_KEY)
        self.control.keep(self.control.newest)
        transport = RedisTransport(self.options.cluster, bytes.fromhex(self._claim.map.crawl_id), self.number)
        self._office = PostOffice(
            self._exchange,
            transport,
            crawl.frontier,
            crawl.errors,
            crawl.now,
            crawl.fail,
            wake,
            lambda: not crawl.is_disk_full,
        )
        finds = self._claims.finds
        self._beats = Beats(self.options.cluster, self._claim, self._exchange, finds)
        self._others = Others(crawl, self._exchange, self._claim, self.control, self._is_idle, wake)
        self.slots = SlotOffice(crawl, self._beats.redis, self._claim.keys.slots, finds)
        """The starts that this shard has reserved."""
        self._claims.end_keeping()
        self._held_until = self._claims.held_until
        logger.info("This is shard %d of %d, at Redis %s", self.number, self.options.shards, transport.place)
        self._task = crawl.errors.watched(self._run(self._others), "the exchange with the other shards")

    def may_ask(self) -> bool:
        """Whether a request may start now."""
        return elapsed_s() < self._held_until and self._office.away_since is None

    def trouble(self) -> str:
        """What keeps requests from being made, in words; '': nothing of the shard."""
        if self.may_ask():
            return "slots (Redis grants no start at an address)" if self.slots.is_stuck() else ""
        return "Redis (it does not answer)"

    async def _run(self, others: Others) -> None:
        offices = [asyncio.ensure_future(self._office.run()), asyncio.ensure_future(self.slots.run())]
        try:
            while not any(office.done() for office in offices):
                await self._beat(others)
                await asyncio.wait(offices, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
            for office in offices:
                if office.done():
                    office.result()
        finally:
            for office in offices:
                office.cancel()

    async def _beat(self, others: Others) -> None:
        """Renew the lease, and take what the others say."""
        asked = elapsed_s()
        try:
            if self._refused or self._office.away_since is not None:
                await self._beats.mend_types()
            heard = await self._beats.beat(others.told())
            self._note_refused(self.slots.refused)
        except (RedisError, OSError) as error:  # nothing is asked for without a lease
            self._note_refused(str(error))
            return
        finally:
            self._claims.finds.tell_refused(self._seal)
        if heard is None:
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
        others.take(heard, asked)
        if not was_held:
            self._wake()

    def _note_refused(self, why: str) -> None:
        """Redis does not do what it is asked for, '': it does; told the second time, unless the post office does."""
        if why and why == self._refused and not self._is_told and self._office.away_since is None:
            logger.warning("paused: Redis does not do what it is asked for (%s). Nothing is lost.", why)
        self._is_told = bool(why) and why == self._refused
        self._refused = why

    def _is_idle(self) -> bool:
        return self.has_begun and self._crawl.frontier.is_finished and not self._exchange.has_changes

    async def stop(self) -> None:
        """End the exchange, before the crawl is closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._claims.begin_keeping(self._claim)
            await self._office.close()
            if self._others is not None:
                self._others.keep_totals()
                await self._beats.tell_totals(self._others.told())
            if not self._crawl.others_work:
                await self._beats.tell_end()
            await self._beats.close()

    def close(self) -> None:
        """Free the shard, after the crawl is closed or when it could not be opened."""
        self._claims.give_back(self._claim)
        if self._others is not None and self._others.missing:
            waiting = self._exchange.waiting()
            missing = self._others.missing
            told = ", ".join(f"{shard} ({waiting.get(shard, 0):,} messages wait for it)" for shard in missing)
            logger.warning(
                "The crawl has ended without these shards, which do not run: %s. Nothing is lost: start them, and the "
                "others again.",
                told,
            )
