"""This process as one shard of a crawl: from its claim to the end of the crawl."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from spiderling.base.errors import JobdirError
from spiderling.base.machine import elapsed_s
from spiderling.base.options import Options
from spiderling.base.terminal import count_of
from spiderling.cluster.claims import (
    BEAT_S,
    LEASE_S,
    MAP_KEY,
    RECORDS_KEY,
    RENEW,
    TOKEN_CHARS,
    Claim,
    open_records,
    read_key,
    seal_map,
    seal_record,
)
from spiderling.cluster.exchange import SENT_BARE, AskedRow, ShardExchange, TransportError
from spiderling.cluster.heartbeat import CrawlTotals, ShardReport, Statuses, Termination
from spiderling.cluster.redis_transport import RedisTransport, connect, end_tasks, key_types, mend
from spiderling.cluster.slots import SlotRequests
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.site_files import FileAnswer
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.snapshots import TAKEOVERS
from spiderling.text.steps import choose

logger = logging.getLogger(__name__)

ROUND_S = 0.5  # seconds between two rounds; chosen: a link waits longer for its message to fill
HURRIED = 250
"""Shards up to which rounds and beats come as often as that; those of more come more seldom, by as much.  Chosen: a
thousand then take Redis less than a fifth of a core while they have nothing to do (benchmarks/cluster.py)."""
READ_A_S = 32
"""Shards of which each reads in a second what all publish.  Chosen: so the cost grows with the shards, not with their
square, and a thousand are read in 30 s, before a site file of theirs is given up (exchange.py)."""

_FILE_S = 60.0  # seconds for which a site file for another shard is in Redis; chosen: it is read within two seconds
_OVER_S = 60.0  # seconds for which the end is published in Redis; chosen: by then each shard has polled many times
_KEPT_S = 10.0
"""Seconds between two times that the state takes the others' totals.  Chosen: if Redis then loses everything, a budget
may be overrun by what a shard that does not run did in them."""
_NUMBER_BITS = 52  # of a number that no other process begins with; chosen: each language reads such a number exactly


def pace(shards: int) -> float:
    """By how much longer each of so many *shards* waits between two rounds, and between two beats."""
    return max(1.0, shards / HURRIED)


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
            await asyncio.sleep(ROUND_S * pace(self._exchange.shards))

    async def _round(self) -> bool:
        """One round; returns whether another one may follow."""
        crawl = self._crawl
        outgoing = self._exchange.outgoing(crawl.now())
        takes = not crawl.is_disk_full  # else messages stay in the inbox
        try:
            inbox, full = await self._transport.exchange(outgoing, takes)
            self._exchange.refused(full)
            messages = self._exchange.take(inbox, crawl.now())
        except TransportError as error:
            self._exchange.refused(outgoing)
            self._note_away(str(error))
            return True
        except JobdirError as error:
            crawl.fail(error)
            return False
        self._note_back()
        for message in messages:
            name = f"message {message.number} of shard {message.sender}"
            frontier = None if name in crawl.frontier.next_fetch.shunned else crawl.frontier
            with crawl.errors.changing(name):
                self._exchange.deliver(message, frontier, crawl.now(), crawl.learn)
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


class _Named(logging.Formatter):
    """The lines of another formatter behind a *name*."""

    def __init__(self, name: str, other: logging.Formatter) -> None:
        super().__init__()
        self._name = name
        self._other = other

    def format(self, record: logging.LogRecord) -> str:
        return self._name + self._other.format(record)


def _name_lines(name: str) -> None:
    """Put *name* before each line for people, beside which those of other shards may stand; crawl.log has none yet."""
    for handler in logging.getLogger().handlers:
        if handler.formatter is not None:
            handler.setFormatter(_Named(name, handler.formatter))


class Shard:
    """``begin`` follows when the crawl is open, ``close`` in any case.

    Each second it publishes in Redis what it knows of itself, reads what the others publish (one pipeline for all; of
    many shards more seldom), and takes that in.  So it renews its lease, which holds its status, and puts back what
    Redis may have lost.
    """

    _refused = ""  # why Redis did not do what it was asked for at the last beat; '': it did
    _has_warned = False
    has_begun = False  # whether the spider's own seeds are in
    _tasks: tuple[asyncio.Task[None], ...] = ()
    _missing: tuple[int, ...] = ()  # the shards without which the crawl has ended

    def __init__(self, options: Options, directory: Path) -> None:
        """Claim a shard of the crawl in JOBDIR *directory*; raises NoFreeShard, BadInput or JobdirError."""
        self._claim = Claim(options, directory)  # it also reads the address, without which no key is of use
        self._claim.take(read_key(options.cluster_key_file, options.cluster))
        self._claim.begin_keeping()
        self._claim.open_snapshot()
        self.number = self._claim.shard
        _name_lines(f"shard {self.number}: ")
        self.directory = self._claim.directory
        self.options = replace(options, durability="full")
        """Those of its crawl: what it says to have taken, its sender forgets for good."""
        self.control = directory / "control.yaml"  # one for all shards here
        self._seal = self._claim.seal
        self._strange = self._claim.strange
        self._shards = range(options.shards)
        self._places = self._claim.places
        self._held_until = 0.0
        self._kept_at = -math.inf  # when the state took the others' totals
        self._termination = Termination(options.shards)
        self._counted: Counter[str] = Counter()
        self._beats = 0
        self._living: Statuses = {}  # as they were read last
        self._lost: dict[int, bytes] = {}  # shard that does not run -> its record, which Redis has lost

    def elsewhere(self, store: SqliteStore) -> ShardExchange:
        """The other shards, for the frontier whose state is in *store*."""
        first_file = secrets.randbits(_NUMBER_BITS)
        derive = choose(self.options.compiled).steps.derived
        self._exchange = ShardExchange(self.number, self.options.shards, self._seal, store, first_file, derive)
        return self._exchange

    def begin(self, crawl: Crawl, wake: Callable[[], None]) -> None:
        """Work for the open *crawl*; *wake* lets it look again for what is due."""
        crawl.checkpoint.set_meta(MAP_KEY, asdict(self._claim.map))  # first: without it a state counts as half divided
        self._crawl = crawl
        self._wake = wake
        if (snapshots := crawl.snapshots) is not None:
            self._exchange.kept = lambda: snapshots.received
        self._note_lost()
        self._totals = CrawlTotals(self.number, crawl.frontier.ledger.totals, self._claim.totals)
        crawl.others_work = True
        crawl.done_elsewhere = self._totals.elsewhere()
        self._bytes_elsewhere = crawl.done_elsewhere["downloaded_bytes"]  # when others were last read
        crawl.frontier.others_answered(crawl.now())  # if not, it will soon be known
        self._keep_records()
        self._transport = transport = RedisTransport(
            self.options.cluster, bytes.fromhex(self._claim.map.crawl_id), self.number
        )
        self._rounds = Rounds(self._exchange, transport, crawl, wake)
        self._redis: Any = connect(self.options.cluster)
        self.slots = SlotRequests(crawl, self._redis, self._seal.key("slots"), self._strange)
        """The starts that this shard has reserved."""
        self._claim.end_keeping()
        self._held_until = self._claim.held_until
        logger.info("This is shard %d of %d, at Redis %s", self.number, self.options.shards, self._transport.place)
        parts = asyncio.ensure_future(self._rounds.run()), asyncio.ensure_future(self.slots.run())
        beats = crawl.errors.watch_task(self._run(parts), "the exchange with the other shards")
        self._tasks = beats, *parts

    def _note_lost(self) -> None:
        """Say what this shard had done since the snapshot that it goes on from, by what Redis and others know."""
        known = self._claim.totals.get(self.number, Counter())
        own = self._crawl.frontier.ledger.totals
        if known[TAKEOVERS] < own[TAKEOVERS]:
            pages, kept = (max(0, known[name] - own[name]) for name in ("pages", "documents"))
            self._crawl.note_event(
                f"{count_of(pages, 'page')} and {count_of(kept, 'document')} since its snapshot are fetched again"
            )

    def may_ask(self) -> bool:
        return elapsed_s() < self._held_until and self._rounds.away_since is None

    def trouble(self) -> str:
        """What keeps requests from being made, in words; '': nothing of the shard."""
        if self.may_ask():
            return "slots (Redis grants no start at an address)" if self.slots.is_stuck() else ""
        return "Redis (it does not answer)"

    async def _run(self, parts: tuple[asyncio.Task[None], ...]) -> None:
        """Beat until one of the *parts* ends; raises what that has raised."""
        pause_s = BEAT_S * pace(len(self._shards))
        try:
            while not any(part.done() for part in parts):
                await self._renew()
                await asyncio.wait(parts, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                if part.done():
                    part.result()
        finally:
            for part in parts:
                part.cancel()

    async def _renew(self) -> None:
        """Renew the lease, and take what the others publish."""
        asked = elapsed_s()
        try:
            if self._refused or self._rounds.away_since is not None:
                await self._mend_types()
            is_ours = await self._beat(asked)
            self._note_refused(self.slots.refused)
        except (RedisError, OSError) as error:  # nothing is asked for without a lease
            self._note_refused(str(error))
            return
        if not is_ours:
            self._held_until = 0.0
            self._crawl.fail(
                JobdirError(
                    f"another process runs shard {self.number} of this crawl: its directory was copied, or it was "
                    "taken over while this process stood still. Only one of them can go on, the other one."
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

    async def _beat(self, now: float) -> bool:
        """Publish and read at the time *now*, by `elapsed_s`; returns False if another process holds the lease.

        Raises RedisError or OSError.
        """
        key = self._seal.key
        shards = len(self._shards)
        wanted = self._exchange.files.wanted()
        pipeline = self._redis.pipeline(transaction=False)
        self._publish(pipeline, wanted)
        pipeline.mget([key("over"), *(key("file", self.number, number) for number, *_ in wanted)])
        holder, map_, *_, (over, *answers) = await pipeline.execute()
        if holder is not None:
            if self._seal.open(f"lease:{self.number}", holder) is not None:
                return False
            # nobody of the crawl can have taken it meanwhile: what stands there keeps them out
            lease = self._seal.seal(f"lease:{self.number}", self._claim.token)
            await self._redis.set(key("lease", self.number), lease, px=int(LEASE_S * 1000))
            raise RedisError("the lease of this shard was overwritten")
        if map_ not in (None, seal_map(self._claim.map, self._seal)):
            self._strange.report(self._claim.map_key)
        self._count()
        is_over = self._seal.open("over", over) == b""
        if over is not None and not is_over:
            await self._redis.delete(key("over"))
        if (self._beats + self.number) % max(1, int(shards / READ_A_S / pace(shards))) == 0:
            await self._read_others(now)
        self._take_files(dict(zip([number for number, *_ in wanted], answers, strict=True)), now)
        self._poll(is_over, now)
        return True

    def _publish(self, pipeline: Any, wanted: list[AskedRow]) -> None:
        seal = self._seal
        token = self._claim.token
        place = f"lease:{self.number}"
        self._beats += 1
        waiting = list(self._exchange.waiting())
        status = json.dumps(ShardReport(self._beats, self._is_idle(), self._exchange.sent, waiting, wanted))
        pipeline.eval(RENEW, 1, seal.key(place), token, seal.seal(place, token + status.encode()), int(LEASE_S * 1000))
        pipeline.set(self._claim.map_key, seal_map(self._claim.map, seal), get=True)
        own = seal_record(seal, self.number, self._places[self.number], self._totals.to_publish()[self.number])
        pipeline.hset(seal.key("shards"), mapping={**self._lost, self.number: own})
        for place, answer in self._exchange.files.answers().items():
            pipeline.set(seal.key(place), answer, px=int(_FILE_S * 1000))

    async def _mend_types(self) -> None:
        """Throw away each key that has a type which the crawl does not give it.  Raises RedisError or OSError."""
        types = key_types(self._seal, self._claim.map_key, len(self._shards))
        for thrown in await mend(self._redis, types):
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

    async def _read_others(self, now: float) -> None:
        """Take what all shards publish, and throw away what nobody of the crawl wrote."""
        seal = self._seal
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.hgetall(seal.key("shards"))
        pipeline.mget([seal.key("lease", other) for other in self._shards])
        records, leases = await pipeline.execute()
        self._living = living = {
            other: status for other, lease in enumerate(leases) if (status := self._status_in(other, lease))
        }
        places, totals, strange = open_records(seal, records)
        if strange:
            await self._redis.hdel(seal.key("shards"), *strange)
        self._totals.merge(totals, living)
        self._crawl.done_elsewhere = self._totals.elsewhere()
        self._crawl.processes = max(1, len(living))
        self._note_answers()
        # who has claimed a shard and not begun may give it back: it must not be put back then
        places = {shard: place for shard, place in places.items() if totals[shard]}
        is_new = not places.items() <= self._places.items()
        self._places |= places
        known = self._totals.to_publish()
        self._lost = {
            shard: seal_record(seal, shard, place, known.get(shard, {}))
            for shard, place in self._places.items()
            if shard not in living and totals.get(shard) != known.get(shard, Counter())
        }
        if is_new or now - self._kept_at >= _KEPT_S:
            self._kept_at = now
            self._keep_records()

    def _note_answers(self) -> None:
        """Let the frontier know that other shards get answers, or would if they had anything to ask for."""
        received = self._crawl.done_elsewhere["downloaded_bytes"]  # not pages: sites may refuse all of theirs
        others = [status for other, status in self._living.items() if other != self.number]
        if received > self._bytes_elsewhere or (received and others and all(one.is_idle for one in others)):
            self._crawl.frontier.others_answered(self._crawl.now())
        self._bytes_elsewhere = received

    def _keep_records(self) -> None:
        """Put what is known of all shards into the state."""
        known = self._totals.known
        records = {shard: (place, known.get(shard, Counter())) for shard, place in self._places.items()}
        self._crawl.checkpoint.set_meta(RECORDS_KEY, records)

    def _take_files(self, answers: Mapping[int, bytes | None], now: float) -> None:
        """Fetch what other shards want, and take the *answers* to what this one does, by their numbers."""
        crawl = self._crawl
        files = self._exchange.files
        others = {other: status.files for other, status in self._living.items() if other != self.number}
        new = files.take_wanted(others)
        answered = [files.take_answer(number, data) for number, data in answers.items() if data is not None]
        given_up = [(request, FileAnswer()) for request in files.give_up(self._living, now)]
        for request, distance in new:
            with crawl.errors.changing(request.url):
                crawl.frontier.put_file_request(request, distance, crawl.now())
        for request, answer in filter(None, (*answered, *given_up)):
            with crawl.errors.changing(request.url):
                crawl.frontier.file_answered(request, answer, crawl.now())
        if new or answered or given_up:
            self._wake()

    def _poll(self, is_published: bool, now: float) -> None:
        """End the crawl when nobody has anything left to do, or another shard has found that out."""
        is_found = self._termination.is_reached(self._living, now)
        if self._crawl.others_work and (is_found or (is_published and self._is_idle())):
            self._crawl.others_work = False
            self._missing = tuple(shard for shard in self._shards if is_found and shard not in self._living)
            self._wake()

    async def stop(self) -> None:
        """End the exchange, before the crawl is closed; publish, if Redis takes it, what no beat will."""
        if not self._tasks:
            return
        await end_tasks(*self._tasks)
        self._claim.begin_keeping()
        await self._transport.close()
        key = self._seal.key
        own = self._totals.to_publish()[self.number]
        self._keep_records()
        with suppress(RedisError, OSError):
            record = seal_record(self._seal, self.number, self._places[self.number], own)
            await self._redis.hset(key("shards"), self.number, record)
            if not self._crawl.others_work:
                await self._redis.set(key("over"), self._seal.seal("over", b""), px=int(_OVER_S * 1000))
        await self._redis.aclose()

    def close(self) -> None:
        """Free the shard, after the crawl is closed or when it could not be opened."""
        self._claim.give_back()
        if self._missing:
            waiting = self._exchange.waiting()
            logger.warning(
                "The crawl has ended without these shards, which do not run: %s. Nothing is lost: start them, and the "
                "others again.",
                ", ".join(f"{shard} ({waiting.get(shard, 0):,} messages wait for it)" for shard in self._missing),
            )
