"""Crawls of four real shards that are killed, stopped and cut off at random, compared with one unsharded crawl.

A campaign is one crawl with its faults, both drawn from its seed.  When the faults are over, all shards run to the end
together.  Then the pages that ended, the documents, the books of each shard and the starts at hosts and addresses are
looked at.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import re
import shutil
import signal
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import xxhash
from conftest import Crawl, Running, page, serving
from needs import may_sniff
from redis_server import RedisServer
from relay import Relay
from shiftedclock import shifted_by
from synlog import Syn, SynLog

from spiderling.base.errors import JobdirError
from spiderling.base.urls import owner_of
from spiderling.frontier.storage.url_log import unpack_ends
from spiderling.jobdir.snapshots import take_over
from spiderling.jobdir.state_reader import connected
from webs.messages import Request
from webs.server import AccessLog, Connection, Server, bind_all
from webs.web import FixedWeb, Web, WebResponse, plain, redirect

NETWORK = "127.91.0.0/16"
ADDRESSES = 20
LATE_S = 0.4
"""Seconds that every eighth page takes."""
_BELOW = 4
"""Links of a page to others; each page is linked from one alone, so that a lost link is a lost page."""
_ARRIVAL_S = 0.02
"""By how much an arrival may seem to be sooner than it was: Linux counts it in ticks of up to 10 ms."""


def names(hosts: int) -> list[str]:
    return [f"s{number}.test" for number in range(hosts)]


def shard_web(hosts: int, pages: int) -> FixedWeb:
    """*hosts* of *pages* pages each, all of which can be reached from those at ``/``."""
    every = names(hosts)
    places = {host: f"127.91.1.{1 + number % ADDRESSES}" for number, host in enumerate(every)}
    return FixedWeb({host: _site(every, number, pages) for number, host in enumerate(every)}, places)


def _site(every: Sequence[str], number: int, pages: int) -> dict[str, WebResponse]:
    host = every[number]
    site = {"/robots.txt": plain("User-agent: *\nDisallow: /private")}
    for n in range(pages):
        drawn = xxhash.xxh3_64_intdigest(f"{number} {n}".encode())
        ours = n * len(every) + number
        below = range(_BELOW * ours + 1, min(_BELOW * ours + 1 + _BELOW, pages * len(every)))
        links = [f"http://{every[at % len(every)]}/{at // len(every)}" for at in below]
        answer = page(f"{host} {n}", *links, "/gone", "/private", f"/moved{n % 3}")
        site[f"/{n}"] = replace(answer, delay_s=LATE_S) if drawn % 8 == 0 else answer
    site["/"] = page(f"{host} index", f"http://{every[0]}/0")
    site |= {f"/moved{n}": redirect(f"http://{every[(number * 7 + n) % len(every)]}/gone") for n in range(3)}
    return site


# -- who asked, and when


class Asked(NamedTuple):
    """A request as the server saw it."""

    time_s: float
    """When its head arrived, by ``time.monotonic()``."""
    address: str
    port: int
    """That of the client."""
    host: str
    path: str


class Watching(Server):
    """A server that also notes from which port it was asked."""

    def __init__(self, web: Web) -> None:
        super().__init__(web, AccessLog(None, keep=True))
        self.asked: list[Asked] = []

    async def start(self, port: int) -> None:
        sockets = bind_all(sorted(set(self.web.hosts().values())), port)
        self.port = sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        self._listeners = [await loop.create_server(lambda: _Known(self), sock=one, backlog=1024) for one in sockets]


class _Known(Connection):
    _server: Watching

    def _ended(self, request: Request, response: WebResponse, now: float, sent: int) -> None:
        port = self._transport.get_extra_info("peername", ("", 0))[1]
        self._server.asked.append(Asked(now, self._address, port, request.host, request.path))
        super()._ended(request, response, now, sent)


@asynccontextmanager
async def watching(web: Web) -> AsyncIterator[Watching]:
    """Serve *web*; to be given to ``serving``."""
    server = Watching(web)
    await server.start(0)
    try:
        yield server
    finally:
        await server.stop()


def starts(asked: Iterable[Asked], packets: Iterable[Syn]) -> list[Asked]:
    """The requests *asked* with the times of the packets that opened their connections, by the kernel.

    Those without a packet are left out; packets are of the wall clock, and no port comes twice within a second.
    """
    ahead = time.time() - time.monotonic()
    opened: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for packet in sorted(packets):
        opened[packet.address, packet.source_port].append(packet.time_s - ahead)
    found = []
    for one in asked:
        times = opened[one.address, one.port]
        at = bisect_left(times, one.time_s + _ARRIVAL_S) - 1
        if at >= 0:
            found.append(one._replace(time_s=times[at]))
    return found


def too_close(
    asked: Iterable[Asked], key: Callable[[Asked], Any], interval_s: float, tolerance_s: float
) -> list[tuple[float, Asked, Asked]]:
    """(By how much, one, next) of each two requests of one *key* that are closer than *interval_s*."""
    groups: defaultdict[Any, list[Asked]] = defaultdict(list)
    for one in sorted(asked):
        groups[key(one)].append(one)
    return [
        (interval_s - (second.time_s - first.time_s), first, second)
        for group in groups.values()
        for first, second in pairwise(group)
        if second.time_s - first.time_s < interval_s - tolerance_s
    ]


def pages(asked: Iterable[Asked]) -> list[Asked]:
    """The requests for pages, in order."""
    return sorted(one for one in asked if one.path != "/robots.txt")


def needed(asked: Iterable[Asked]) -> Counter[tuple[str, str]]:
    return Counter((one.host, one.path) for one in pages(asked))


SHARDS = 4
HOST_INTERVAL_S = 0.4
IP_INTERVAL_S = 0.06
LEASE_S = 2.0
SOON = {
    "cluster.claims.BEAT_S": 0.2,
    "frontier.intervals.MAX_PAUSE_S": 1,  # a shard whose clock was set back waits no longer than the longest pause
    "frontier.intervals.MAX_SLOWDOWN_S": 1,
    "cluster.claims.LEASE_S": LEASE_S,
    "cluster.claims.POLL_S": 0.6,
    "cluster.heartbeat.WAIT_MISSING_S": 5.0,
    "cluster.exchange.MAX_AGE_S": 0.3,
    "cluster.exchange.RESEND_S": 1.0,
    "cluster.shard.ROUND_S": 0.1,
    "cluster.redis_transport.TIMEOUT_S": 1.0,
    "cluster.shard.BEAT_S": 0.2,
    "cluster.shard.LEASE_S": LEASE_S,
    "cluster.slots.HORIZON_S": 2.0,
    "extensions.lifecycle.PAUSE_S": 3.0,
    "jobdir.snapshots.SHARE": -1000,  # snapshots are always due, though this web is small
}
"""Nothing but time is spared by these; how long a slot is open, and what of it stays unused, is as always."""
SETTINGS = {
    "ALLOW_NETWORKS": NETWORK,
    "HOST_INTERVAL_S": HOST_INTERVAL_S,
    "IP_INTERVAL_S": IP_INTERVAL_S,
    "TRAPS": "pages=0,copies=0,mirror=0",
    "LOGSTATS_INTERVAL": 5,
}
TAKEOVER_S = 1.0
CLOCKS_S = (-60.0, 0.0, 60.0)
"""By how much the clock of a process is ahead, each with the same chance."""
KINDS = (
    "kill", "kill", "kill all", "kill in start-up", "clock", "redis killed", "redis killed", "flushed", "flushed",
    "stopped", "stopped", "stopped past its lease", "redis stopped", "cut off", "swallowed", "slow", "lease lost",
    "disk lost", "disk lost", "disk lost", "disk lost",
)  # fmt: skip
"""Drawn from with the same chance."""
GAP_S = (0.2, 1.6)
"""Between two faults."""
TOLERANCE_S = 0.002
_PATIENCE_S = 120.0
_ALLOWED = (
    "another process runs shard",  # its lease was stolen
    "is in use by process",  # it is stopped, or ends, and its lease has run out
    "is taken over only where it is not",  # it was taken over by command meanwhile
    "cannot be used",  # Redis was away for longer than a process that begins waits
)
"""Errors with which a process may end; then it is started again."""


@dataclass
class Outcome:
    """What a campaign showed."""

    seed: int
    hosts: int
    pages: int
    requests: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    twice: int = 0
    """Ends and documents that two have, and requests that were made again though that was recorded."""
    imbalance: int = 0
    ip_violations: int = 0
    host_violations: int = 0
    starts: int = 0
    """Whose times are known."""
    fetched_again: int = 0
    """After a kill, since it was not yet recorded."""
    lost_again: int = 0
    """Of these those that came after the last snapshot of a disk that was lost."""
    oldest_again_s: float = 0.0
    """Of these the longest time between the first request and the end of the process."""
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Campaign:
    """One crawl of SHARDS processes, its Redis, and what happens to them."""

    def __init__(self, directory: Path, server: Watching, seed: int, faults: int, first: int) -> None:
        """*first*: how many processes run until the crawl ends for the first time; the others join later."""
        self.rng = random.Random(seed)
        self.kinds: Counter[str] = Counter()
        self.deaths: list[tuple[float, int | None]] = []
        """(Time, shard) of each end of a process; None: it was none yet."""
        self.lost: list[tuple[float, int, set[str]]] = []
        """(Time, shard, URLs that have ended by its last snapshot) of each disk that was lost."""
        self.wrong: list[str] = []
        self.directory = directory
        self._server = server
        self._most = faults
        self._first = first
        self._running: dict[int, Running] = {}
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = 0
        self._is_well = True
        """Whether Redis is there."""

    @contextmanager
    def opened(self) -> Iterator[Campaign]:
        with ExitStack() as stack:
            self._redis = RedisServer()
            stack.callback(self._redis.close)
            self._relays = [stack.enter_context(Relay(self._redis.socket)) for _ in range(SHARDS)]
            self._crawls = [
                Crawl(self.directory / f"from{place}" / "cs", self._server, CLUSTER=relay.url, SHARDS=SHARDS,
                      SNAPSHOTS=self.directory / "snapshots", TAKEOVER_S=TAKEOVER_S, CONSTANTS=SOON, **SETTINGS)
                for place, relay in enumerate(self._relays)
            ]  # fmt: skip
            for crawl in self._crawls:
                crawl.settings["JOBDIR"] = self.directory / "cs"
                crawl.directory.parent.mkdir(parents=True)
            (self.directory / "snapshots").mkdir()
            stack.callback(self._end)
            yield self

    # -- processes

    def _end(self) -> None:
        for running in self._running.values():
            running.process.kill()

    def _start(self, place: int) -> None:
        clock = shifted_by(self.rng.choice(CLOCKS_S))
        self._running[place] = self._crawls[place].start(_seeds(self._server), **clock)

    def _ended(self, place: int) -> None:
        """Take note of the end of a process that has ended."""
        running = self._running.pop(place)
        running.process.wait()
        output = running.output()
        self.deaths.append((time.monotonic(), shard_of(output)))
        errors = [line for line in output.splitlines() if " ERROR: " in line or " CRITICAL: " in line]
        unknown = [line for line in errors if not any(allowed in line for allowed in _ALLOWED)]
        if unknown or "Traceback" in output:
            self.wrong.append(f"{self._crawls[place].directory}: {unknown[:1] or 'Traceback'}")

    def _kill(self, place: int, pause_s: float) -> None:
        if place in self._running:
            self._running[place].process.kill()
            self._ended(place)
            self._at(pause_s, lambda: self._start_again(place))

    def _start_again(self, place: int) -> None:
        if place not in self._running:
            self._start(place)

    def _signal(self, place: int, number: int) -> None:
        if place in self._running:
            self._running[place].process.send_signal(number)

    def _at(self, after_s: float, action: Callable[[], object]) -> None:
        self._serial += 1
        heapq.heappush(self._later, (time.monotonic() + after_s, self._serial, action))

    def _work(self, seconds: float) -> None:
        """Do what is due in the next *seconds*, and start again what has ended by itself."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            while self._later and self._later[0][0] <= now:
                heapq.heappop(self._later)[2]()
            for place in list(self._running):
                if self._running[place].process.poll() is not None:
                    self._ended(place)
                    self._at(1.0, lambda place=place: self._start_again(place))  # type: ignore[misc]
            time.sleep(0.01)

    # -- faults

    def _fault(self, kind: str) -> None:
        rng = self.rng
        place = rng.choice(list(self._running) or [0])
        if kind in ("kill", "clock"):
            self._kill(place, rng.uniform(0, 1.5))
        elif kind == "kill all":
            for each in list(self._running):
                self._kill(each, rng.uniform(0, 1.5))
        elif kind == "kill in start-up":
            self._kill(place, 0.0)
            self._at(rng.uniform(0.2, 3.0), lambda: self._kill(place, 0.0))
        elif kind.startswith("stopped"):
            self._signal(place, signal.SIGSTOP)
            long = (LEASE_S + 0.5, LEASE_S + 3.0) if kind == "stopped past its lease" else (0.05, LEASE_S - 0.5)
            self._at(rng.uniform(*long), lambda: self._signal(place, signal.SIGCONT))
        elif kind in ("cut off", "swallowed", "slow"):
            relay = self._relays[place]
            relay.state = {"cut off": "cut", "swallowed": "hole", "slow": "slow"}[kind]
            self._at(rng.uniform(0.3, 4.0), lambda: setattr(relay, "state", "open"))
        elif kind == "lease lost":
            self._steal(place)
        elif kind == "disk lost":
            if not self._lose_disk(place):
                return
        else:
            self._fault_of_redis(kind)
        self.kinds[kind] += 1

    def _fault_of_redis(self, kind: str) -> None:
        redis = self._redis
        if kind == "redis killed":
            redis.kill()
            self._until_well(self.rng.uniform(0.1, 3.0), redis.start)
        elif kind == "flushed":
            redis.command("FLUSHALL")
        else:
            redis.pause(True)
            self._until_well(self.rng.uniform(0.2, 3.0), lambda: redis.pause(False))

    def _lose_disk(self, place: int) -> bool:
        """A shard is killed and its directory is gone; it is taken over by command, or by the next process itself."""
        shard = shard_of(self._running[place].output()) if place in self._running else None
        name = f"shard-{shard or 0:02}"
        state = self.directory / "snapshots/cs" / name / "state/frontier.sqlite"
        if shard is None or not state.exists():
            return False
        self._kill(place, self.rng.uniform(0, 1.5))
        self.lost.append((self.deaths[-1][0], shard, _ended(state)))
        shutil.rmtree(self.directory / "cs" / name)
        if self.rng.random() < 0.5:
            with suppress(JobdirError):  # a process does so at that moment
                take_over(state.parents[1], self.directory / "cs" / name, time.time())
        return True

    def _steal(self, place: int) -> None:
        """Another process holds the lease of a shard, for as long as a lease lasts."""
        shard = shard_of(self._running[place].output()) if place in self._running else None
        if shard is None:
            return
        lease = next((name for name in self._redis.names() if name.endswith(f":lease:{shard}")), None)
        if lease is not None:
            self._redis.command("SET", lease, "x" * 32, "PX", str(int(LEASE_S * 1000)))

    def _until_well(self, after_s: float, action: Callable[[], object]) -> None:
        """Redis is away, until *action* brings it back."""
        self._is_well = False

        def back() -> None:
            action()
            self._is_well = True

        self._at(after_s, back)

    def _is_possible(self, kind: str) -> bool:
        is_of_redis = kind in ("flushed", "lease lost") or kind.startswith("redis")
        return self._is_well or not is_of_redis

    # -- the whole

    def run(self) -> None:
        """The faults, then rest."""
        for place in range(self._first):
            self._start(place)
        if self._first < SHARDS:
            self._until_the_first_end()
        while self.kinds.total() < self._most and not self._is_over():
            self._work(self.rng.uniform(*GAP_S))
            possible = [kind for kind in KINDS if self._is_possible(kind)]
            self._fault(self.rng.choice(possible))
        self._rest()

    def _until_the_first_end(self) -> None:
        """Until all processes have ended, for want of a shard that never started."""
        self.kinds["a shard missing for a whole crawl"] += 1
        deadline = time.monotonic() + _PATIENCE_S
        ended = 0
        told = 0
        while ended < self._first and time.monotonic() < deadline:
            place = next((each for each, one in self._running.items() if one.process.poll() is not None), None)
            if place is None:
                time.sleep(0.05)
                continue
            told += "without these shards" in self._running[place].output()  # by those that found out themselves
            self._ended(place)
            ended += 1
        if ended < self._first or not told:
            self.wrong.append(f"without one shard {ended} ended, and {told} said so")
        for place in range(SHARDS):
            self._start_again(place)

    def _is_over(self) -> bool:
        """Whether nothing was asked for in the last seconds, since there is nothing left."""
        outputs = [running.output() for running in self._running.values()]
        return any(" is finished" in output and "without these" not in output for output in outputs)

    def _rest(self) -> None:
        """No more faults: until all shards have ended together."""
        while self._later:
            heapq.heappop(self._later)[2]()
        for relay in self._relays:
            relay.state = "open"
        for _ in range(3):
            for place in range(SHARDS):
                self._start_again(place)
                self._signal(place, signal.SIGCONT)
            if self._ends_well():
                return
        self.wrong.append("the crawl did not end with all shards")

    def _ends_well(self) -> bool:
        deadline = time.monotonic() + _PATIENCE_S
        is_well = True
        for place, running in list(self._running.items()):
            while running.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if running.process.poll() is None:
                self.wrong.append(f"{self._crawls[place].directory}: no end: {running.output()[-600:]}")
                running.process.kill()
            output = running.output()
            is_well = is_well and " is finished" in output and "without these shards" not in output
            self._ended(place)
        return is_well


def _seeds(server: Watching) -> str:
    return " ".join(f"http://{host}/" for host in list(server.web.hosts())[:3])


def shard_of(output: str) -> int | None:
    """The shard that the process with this *output* is."""
    found = re.search(r"This is shard (\d+) of", output)
    return int(found[1]) if found else None


# -- what is compared


def campaign(directory: Path, seed: int, hosts: int, number: int, faults: int) -> Outcome:
    """Run the campaign of *seed* on a web of *hosts* times *number* pages; scratch files go into *directory*."""
    began = time.monotonic()
    outcome = Outcome(seed, hosts, number)
    with serving(shard_web(hosts, number), watching) as server, ExitStack() as stack:
        alone = Crawl(directory / "alone", server, **SETTINGS)
        if alone.run(_seeds(server)).code:
            outcome.wrong.append("the crawl without shards failed")
        before = len(server.asked)
        log = stack.enter_context(SynLog()) if may_sniff() else None
        first = SHARDS - 1 if seed % 5 == 0 else SHARDS
        with Campaign(directory, server, seed, faults, first).opened() as run:
            run.run()
        time.sleep(0.2)
        asked = server.asked[before:]
        outcome.requests = len(asked)
        outcome.faults = dict(run.kinds)
        outcome.wrong += run.wrong
        _compare(outcome, alone, directory / "cs", server)
        _look_twice(outcome, pages(asked), needed(server.asked[:before]), run)
        _look_at_intervals(outcome, asked, log)
    outcome.seconds = round(time.monotonic() - began, 1)
    if not (outcome.lost or outcome.twice or outcome.imbalance or outcome.wrong):
        shutil.rmtree(directory)
    return outcome


def _compare(outcome: Outcome, alone: Crawl, crawl: Path, server: Watching) -> None:
    expected = Counter(alone.ended().items())
    documents = Counter(alone.digests().items())
    found: Counter[Any] = Counter()
    kept: Counter[Any] = Counter()
    for place in sorted(crawl.glob("shard-*")):
        shard = Crawl(place, server)
        state = shard.state()
        found += Counter(shard.ended().items())
        kept += Counter((one.url, one.digest) for one in shard.documents())
        waiting = sum(not parked for _, parked in state.urls)
        outcome.imbalance += abs(state.counts["discovered"] - sum(state.ends.values()) - waiting)
        if waiting:
            outcome.wrong.append(f"{place.name}: {waiting} URLs wait: {state.urls[:3]}")
        strangers = {url.split("/")[2] for url, _ in shard.ended().items()} - {
            host for host in server.web.hosts() if owner_of(host, SHARDS) == int(place.name[-2:])
        }
        if strangers:
            outcome.wrong.append(f"{place.name}: ends of hosts that it does not own: {sorted(strangers)[:3]}")
    missing = expected - found
    outcome.lost = missing.total() + (documents - kept).total()
    more = found - expected
    outcome.twice = more.total() + (kept - documents).total()
    if missing or more:
        outcome.wrong.append(f"ends missing {list(missing)[:3]}, too many {list(more)[:3]}")


def _ended(state: Path) -> set[str]:
    """The URLs that have ended by the *state*."""
    with closing(connected(state)) as connection:
        rows = connection.execute("SELECT keys, ends FROM ended").fetchall()
    return {end.url for keys, ends in rows for end in unpack_ends(keys, ends)}


def _look_twice(outcome: Outcome, asked: list[Asked], expected: Counter[tuple[str, str]], run: Campaign) -> None:
    """Each request that repeats one must come after the end of the process that made the first.

    With a lost disk, that may have been long before; but the last snapshot must not say how it ended.
    """
    last: dict[tuple[str, str], list[float]] = {}
    for one in asked:
        times = last.setdefault((one.host, one.path), [])
        if len(times) >= expected[one.host, one.path]:
            owner = owner_of(one.host, SHARDS)
            since = times[-1]
            between = [end for end, shard in run.deaths if shard == owner and since - 1 <= end <= one.time_s]
            lost = [end for end, shard, ended in run.lost
                    if shard == owner and since - 1 <= end <= one.time_s
                    and f"http://{one.host}{one.path}" not in ended]  # fmt: skip
            outcome.lost_again += bool(lost)
            if lost or not {*between} <= {end for end, *_ in run.lost}:
                outcome.fetched_again += 1
                outcome.oldest_again_s = max(outcome.oldest_again_s, round(min(between) - since, 2))
            else:
                outcome.twice += 1
                outcome.wrong.append(f"asked twice: {one.host}{one.path}, {one.time_s - since:.2f} s later")
        times.append(one.time_s)


def _look_at_intervals(outcome: Outcome, asked: list[Asked], log: SynLog | None) -> None:
    if log is not None:
        asked = starts(asked, log.seen)
    outcome.starts = len(asked)
    tolerance_s = TOLERANCE_S if log is not None else 0.025
    by_ip = too_close(asked, lambda one: one.address, IP_INTERVAL_S, tolerance_s)
    by_host = too_close(asked, lambda one: one.host, HOST_INTERVAL_S, tolerance_s)
    outcome.ip_violations = len(by_ip)
    outcome.host_violations = len(by_host)
    for name, found in (("address", by_ip), ("host", by_host)):
        outcome.wrong += [
            f"{name}: {first.host}{first.path} and {second.host}{second.path} too close by {short_s * 1000:.0f} ms"
            for short_s, first, second in found[:5]
        ]
