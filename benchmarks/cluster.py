"""Crawls of shards: whether faults lose anything or do it twice, and what shards cost.

    python -m benchmarks.cluster [--quick] [--only faults|costs|idle|crawls] [--faults 150] [--seed 1] [--log FILE]

Faults: campaigns of cluster_faults.py, each drawn from its own seed, until there were so many faults.  --log keeps each
campaign's outcome as a line of JSON; a campaign whose seed stands there is not run again.  Costs: those of a link
between shards and of a reserved start.  Idle: what shards that have nothing to do cost Redis.  Crawls: CPU a page as
one process, one shard, two shards.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import uvloop
from redis_server import RedisServer

from benchmarks.cluster_faults import Outcome, campaign
from benchmarks.common import METER, ROOT, result, served, table
from benchmarks.frontier import Web
from benchmarks.webs import LinkedWeb
from spiderling.base.link_batch import Link, LinkBatch, gathered
from spiderling.base.machine import raise_descriptor_limit
from spiderling.base.reasons import Reason
from spiderling.base.urls import owner_of
from spiderling.cluster.claims import ShardMap
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import ShardExchange
from spiderling.cluster.heartbeat import CrawlTotals, Termination
from spiderling.cluster.launcher import with_parent
from spiderling.cluster.redis_transport import RedisTransport, Script, StrangeValues, connect
from spiderling.cluster.shard import ROUND_S, Shard, pace
from spiderling.cluster.slots import BEGIN, RESERVE, Reservations
from spiderling.frontier.hosts import SEED_RANK
from spiderling.frontier.intervals import SlotRequest
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import FarHost, LinkingPage
from spiderling.text.steps import choose

SHARDS = 16
PAGES_PER_S = 100
"""Of each shard; chosen: less than one process gets out of two cores (results.md, crawl.py)."""
_MAX_TAIL_S = 30
STAGES = ("split", "gather and pack", "outbox", "send", "take")
SLOTS = (1, 5, 15, 30, 100)
"""Starts reserved in one call."""
_CALLS = 400
IDLE = (16, 100, 256, 1000)
"""Shards that have nothing to do."""
_ALONE_S = 3.0
"""For which it is seen what a Redis with all connections takes while nobody calls it."""


_KINDS = (
    # share of the links, distance, reason, in an accepted language, badness
    (0.159, 1, Reason.KEPT, True, 0.0), (0.158, 0, Reason.KEPT, True, 0.0), (0.130, 0, Reason.KEPT, True, 4.0),
    (0.132, 1, Reason.WRONG_LANGUAGE, False, 0.0), (0.112, 1, Reason.KEPT, True, 4.0),
    (0.056, 1, Reason.BOILERPLATE_ONLY, True, 0.0), (0.050, 0, Reason.WRONG_LANGUAGE, False, 0.0),
    (0.049, 0, Reason.BOILERPLATE_ONLY, True, 0.0), (0.042, 1, Reason.BOILERPLATE_ONLY, False, 0.0),
    (0.025, 2, Reason.WRONG_LANGUAGE, False, 0.0), (0.021, 1, Reason.KEPT, True, 8.0),
    (0.020, 0, Reason.KEPT, True, 8.0), (0.014, 0, Reason.BAD_QUALITY, True, 0.0),
    (0.010, 1, Reason.BAD_QUALITY, True, 0.0), (0.010, 2, Reason.BOILERPLATE_ONLY, False, 0.0),
    (0.003, 0, Reason.BOILERPLATE_ONLY, False, 0.0), (0.002, 2, Reason.KEPT, True, 0.0),
    (0.002, 0, Reason.KEPT, True, 12.0), (0.001, 1, Reason.KEPT, True, 12.0),
    (0.001, 0, Reason.NEAR_DUPLICATE, True, 0.0), (0.001, 3, Reason.BOILERPLATE_ONLY, False, 0.0),
    (0.001, 2, Reason.KEPT, True, 4.0), (0.001, 3, Reason.WRONG_LANGUAGE, False, 0.0),
)  # fmt: skip
"""What the strategy `spiderling` reads of pages whose links go to other shards.  Measured: the 16,343 links that four
shards sent each other in two minutes on the synthetic web (2,000 hosts, lang=cs)."""
_PAGES = [LinkingPage(FarHost(distance), reason, SEED_RANK, relevant, "", badness)
          for _, distance, reason, relevant, badness in _KINDS]  # fmt: skip
_SHARES = [share for share, *_ in _KINDS]


class _Nothing:
    """A frontier that makes nothing of its links."""

    def __init__(self) -> None:
        self.calls = 0

    def put_links(self, *_: object) -> None:
        """The same without shards."""
        self.calls += 1

    def put_visits(self, *_: object) -> None:
        """These shards tell each other of no texts."""


def pages(number: int, seed: int = 1) -> list[tuple[int, LinkingPage, LinkBatch]]:
    """(Shard, page, its links): as many pages for each of SHARDS shards; the workers have looked up the owners."""
    rng = random.Random(seed)
    web = Web(seed)
    found = []
    for at in range(number * SHARDS):
        source = rng.randrange(100 + at)
        while len(web.pages) <= source:
            web.pages.append(0)
        links = gathered(map(Link, web.links(source, at * 15)), SHARDS)
        (page,) = rng.choices(_PAGES, _SHARES)
        found.append((owner_of(f"www.host{source}.cz", SHARDS), page, links))
    return found


class Clocked:
    """Processor time by stage."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def link_costs(seconds: int) -> dict[str, float]:
    """Costs of a link over *seconds* of virtual time."""
    found = pages(PAGES_PER_S * seconds)
    gc.collect()
    gc.freeze()  # the pages are no part of what is measured
    gc.set_threshold(3000, *gc.get_threshold()[1:])  # as in a crawl
    server = RedisServer()
    try:
        with tempfile.TemporaryDirectory() as directory:
            return asyncio.run(_exchanged(found, seconds, server, Path(directory)))
    finally:
        server.close()


async def _exchanged(
    found: list[tuple[int, LinkingPage, LinkBatch]], seconds: int, server: RedisServer, directory: Path
) -> dict[str, float]:
    clocked = Clocked()
    frontier = _Nothing()
    stores = [SqliteStore(directory / f"{me}.sqlite") for me in range(SHARDS)]
    seal = Seal(bytes(16), b"k" * 32)
    derive = choose().steps.derived
    shards = [ShardExchange(me, SHARDS, seal, stores[me], derive=derive) for me in range(SHARDS)]
    offices = [RedisTransport(server.url, bytes(16), me) for me in range(SHARDS)]
    redis_s = 0.0
    sent_bytes = 0
    for second in range(seconds + _MAX_TAIL_S):
        if second > seconds and not any(shard.waiting() for shard in shards):
            break
        now = 1000.0 + second
        for owner, page, links in found[second * PAGES_PER_S * SHARDS : (second + 1) * PAGES_PER_S * SHARDS]:
            with clocked.stage("split"):
                shards[owner].keep_own(page, links)
        for me, shard in enumerate(shards):
            with clocked.stage("gather and pack"):
                changes = shard.drain(Changes(), now)
            commits = [("outbox", changes), ("a commit alone", Changes())]
            for stage, written in commits if second % 2 else commits[::-1]:
                with clocked.stage(stage):
                    stores[me].commit(written)
            shard.committed()
        before = cpu_of(server)
        for turn in range(round(1 / ROUND_S)):
            for shard, office in zip(shards, offices, strict=True):
                with clocked.stage("send"):
                    outgoing = shard.outgoing(now + turn * ROUND_S)
                    inbox, full = await office.exchange(outgoing)
                    shard.refused(full)
                    messages = shard.take(inbox, now + turn * ROUND_S)
                sent_bytes += sum(map(len, outgoing.values()))
                with clocked.stage("take"):
                    for message in messages:
                        shard.deliver(message, frontier, now, frontier.put_visits)  # type: ignore[arg-type]
        redis_s += cpu_of(server) - before
    assert not any(shard.waiting() for shard in shards), "all has arrived"
    for office in offices:
        await office.close()
    links = sum(shard.counts["links sent"] for shard in shards)
    assert links == sum(shard.counts["links taken"] for shard in shards)
    clocked.seconds["outbox"] -= clocked.seconds["a commit alone"]
    us = {stage: 1e6 * clocked.seconds[stage] / links for stage in STAGES}
    messages = sum(shard.counts["messages taken"] for shard in shards)
    return {
        "split_us_per_page": 1e6 * clocked.seconds["split"] / len(found),
        **{f"{stage}, us a link": value for stage, value in us.items() if stage != "split"},
        "us_per_link": sum(value for stage, value in us.items() if stage != "split"),
        "redis_us_per_link": 1e6 * redis_s / links,
        "bytes_per_link": sent_bytes / links,
        "links_per_page": links / len(found),
        "links_per_message": links / messages,
        "links_per_call": links / frontier.calls,
    }


def cpu_of(server: RedisServer) -> float:
    """Processor seconds of a Redis, by itself."""
    told = dict(line.split(":", 1) for line in server.command("INFO", "cpu").decode().split("\r\n") if ":" in line)
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


def idle_cores(shards: int, seconds: int) -> float:
    """Cores of Redis that *shards* take which have nothing to do, over *seconds* of virtual time."""
    raise_descriptor_limit()
    server = RedisServer()
    try:
        return uvloop.run(_idled(server, shards, seconds))
    finally:
        server.close()


async def _idled(server: RedisServer, shards: int, seconds: int) -> float:
    """Each has its own connections; they share what they know of each other, which is the same of all."""
    seal = Seal(bytes(16), b"k" * 32)
    crawl = _unused_crawl()
    map_ = ShardMap(shards, "cs", "near", bytes(16).hex())
    one = ShardExchange(0, shards, seal, SqliteStore())
    for peer in one._peers.values():
        peer.is_heard = True
    offices = [RedisTransport(server.url, bytes(16), me) for me in range(shards)]
    beating = [_beating(server, seal, map_, one, crawl, me) for me in range(shards)]
    for each in beating:
        await each._beat(0.0)
    before = cpu_of(server)
    await asyncio.sleep(_ALONE_S)
    alone = (cpu_of(server) - before) / _ALONE_S
    before = cpu_of(server)
    began = time.monotonic()
    beats = round(seconds / pace(shards))
    for now in range(beats):
        for _ in range(round(1 / ROUND_S)):
            for office in offices:
                outgoing = one.outgoing(now)
                assert not outgoing, "nothing is said"
                await office.exchange(outgoing)
        for each in beating:
            await each._beat(now)
    spent = cpu_of(server) - before - alone * (time.monotonic() - began)  # the virtual time takes another time
    for office, each in zip(offices, beating, strict=True):
        await office.close()
        await each._redis.aclose()
    return alone + spent / beats / pace(shards)


def _unused_crawl() -> Any:
    """What a shard's beat uses of its crawl."""
    ledger = SimpleNamespace(totals=Counter({"words": 123_456_789, "documents": 123_456, "pages": 654_321}))
    frontier = SimpleNamespace(is_finished=True, ledger=ledger)
    return SimpleNamespace(frontier=frontier, others_work=True, checkpoint=SimpleNamespace(set_meta=lambda *_: None))


def _beating(server: RedisServer, seal: Seal, map_: ShardMap, exchange: ShardExchange, crawl: Any, me: int) -> Shard:
    """A shard with what its beats need, and no more; all have its directory's place."""
    shard = Shard.__new__(Shard)
    shard.number = me
    claim = SimpleNamespace(token=b"%032d" % me, map=map_, map_key="spiderling:cs:cs:map")
    values = {"exchange": exchange, "claim": claim, "crawl": crawl, "seal": seal, "redis": connect(server.url)}
    values |= {"shards": range(exchange.shards), "beats": 0, "living": {}, "lost": {}, "counted": Counter()}
    values |= {"places": {me: f"machine{me}:/scratch/crawls/cs"}, "kept_at": 0.0}
    values |= {"totals": CrawlTotals(me, crawl.frontier.ledger.totals, {})}
    values |= {"termination": Termination(exchange.shards), "strange": StrangeValues(server.url)}
    for name, value in values.items():
        setattr(shard, f"_{name}", value)
    return shard


def slot_costs() -> dict[int, tuple[float, float]]:
    """Starts in a call -> microseconds of the caller and of Redis for each start."""
    server = RedisServer()
    try:
        return uvloop.run(_reserved(server))  # on the loop of a crawl
    finally:
        server.close()


async def _reserved(server: RedisServer) -> dict[int, tuple[float, float]]:
    found = {}
    redis: Any = connect(server.url)
    await redis.eval(BEGIN, 1, "slots")
    script = Script(redis, RESERVE)
    for number in SLOTS:
        reservations = Reservations()
        wanted = [SlotRequest(at, f"10.0.{number}.{at}", 0.0) for at in range(number)]
        before = cpu_of(server)
        began = time.process_time()
        for _ in range(_CALLS):
            arguments = reservations.arguments(wanted, 0.0, 0.0)
            sent = time.monotonic()
            answer = await script.call(1, "slots", *arguments)
            reservations.granted(answer, wanted, sent, time.monotonic())
        spent = time.process_time() - began
        found[number] = 1e6 * spent / number / _CALLS, 1e6 * (cpu_of(server) - before) / number / _CALLS
    await script.close()
    await redis.aclose()
    return found


OUTSIDE = 57
"""Links of a page to other hosts, half of which are of the other of two shards, beside three to its own."""
HOSTS = 250
MARKS = 0.2, 0.8
"""Parts of all pages between which a page's cost is taken (chosen: away from start and end)."""
_LOOK_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_SETTINGS = {
    "ALLOW_NETWORKS": "127.0.0.0/8", "STRATEGY": "bfs", "HOST_INTERVAL_S": 0.05, "IP_INTERVAL_S": 0,
    "DELAY_FACTOR": 0, "DEDUP": "off", "TRAPS": "off", "YIELD_PROFILE": "off",
    "OPTOUTS": "tdm-file=ignore,ai-txt=ignore", "CONTACT": "test@corpus.internal", "WORKERS": 1,
}  # fmt: skip


class Crawled(NamedTuple):
    """One crawl of all its processes."""

    pages: int
    ms_per_page: float
    """CPU between the marks."""
    start_s: float
    """CPU of start and end: what all pages at that cost leave of the whole."""
    by_kind: dict[str, float]
    """Milliseconds a page between the marks, of main processes, of text workers, of Redis."""
    pages_per_s: float
    """Between the marks."""
    rss_mb: list[float]
    """Of each main process at most."""


class _Looks:
    """Processor seconds of some processes and their children, by kind, read now and then."""

    def __init__(self, mains: Sequence[int], redis: int | None) -> None:
        self.times: list[float] = []
        self.seconds: list[Counter[str]] = []
        self._mains = mains
        self._redis = redis
        self._kinds: dict[int, str] = {}
        self._last: dict[int, float] = {}
        """Of each process, also of one that has ended."""

    def look(self) -> None:
        """Read them once."""
        for main in self._mains:
            self._note(main, "main")
            for child in _children(main):
                self._note(child, "workers")
        if self._redis is not None:
            self._note(self._redis, "redis")
        self.times.append(time.perf_counter())
        sums: Counter[str] = Counter()
        for process, seconds in self._last.items():
            sums[self._kinds[process]] += seconds
        self.seconds.append(sums)

    def _note(self, process: int, kind: str) -> None:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return
        self._kinds[process] = kind
        self._last[process] = (int(fields[11]) + int(fields[12])) / _TICKS

    def at(self, now: float) -> Counter[str]:
        """The seconds until *now*, between two looks by the straight line."""
        after = min(max(1, bisect_left(self.times, now)), len(self.times) - 1)
        part = (now - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        before = self.seconds[after - 1]
        return Counter({kind: before[kind] + part * (n - before[kind]) for kind, n in self.seconds[after].items()})


def _children(process: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def crawled(pages: int, shards: int, per_host: int, apart: int = 1) -> Crawled:
    """Crawl *pages* of a linked web with *per_host* pages on each of HOSTS hosts; *shards* 0: without.

    If these are all its pages, most links are known soon; if there are many more, most are new.  Without shards, as
    many crawls as *apart* says run at the same time, know nothing of each other, and crawl an equal part each.
    """
    web = f"linked:{HOSTS}:{per_host}:{OUTSIDE}"
    with tempfile.TemporaryDirectory() as directory, served(web, "--identity") as names:
        seeds = Path(directory, "seeds.txt")
        seeds.write_text("\n".join(LinkedWeb(HOSTS, per_host).url(number, 0) for number in range(HOSTS)))
        server = RedisServer() if shards else None
        try:
            given = {**_SETTINGS, "HOSTS": names, "MAX_PAGES": pages // apart}
            if server is not None:
                given |= {"CLUSTER": server.url, "SHARDS": shards}
            meters = [Path(directory, f"meter{number}.json") for number in range(shards or apart)]
            jobdirs = [Path(directory, "cs" if shards else f"cs{number}") for number in range(len(meters))]
            running = [subprocess.Popen(_command(seeds, jobdir, given, meter), cwd=ROOT,
                                        env={**os.environ, "PYTHONPATH": _path()},
                                        preexec_fn=with_parent(signal.SIGTERM))
                       for jobdir, meter in zip(jobdirs, meters, strict=True)]  # fmt: skip
            looks = _Looks([one.pid for one in running], server.process.pid if server is not None else None)
            while any(one.poll() is None for one in running):
                looks.look()
                time.sleep(_LOOK_S)
            if any(one.returncode for one in running):
                sys.exit("a crawl failed")
        finally:
            if server is not None:
                server.close()
        return _weighed(looks, [json.loads(meter.read_text()) for meter in meters])


def _weighed(looks: _Looks, told: list[dict[str, object]]) -> Crawled:
    number = sum(one["pages"] for one in told)
    began, ended = (_reached(told, part * number) for part in MARKS)
    spent = looks.at(ended)
    spent.subtract(looks.at(began))
    between = number * (MARKS[1] - MARKS[0])
    ms_per_page = 1000 * spent.total() / between
    start_s = looks.seconds[-1].total() - ms_per_page * number / 1000
    by_kind = {kind: round(1000 * seconds / between, 3) for kind, seconds in spent.items()}
    rss_mb = [one["main_rss_mb"] for one in told]
    return Crawled(number, ms_per_page, start_s, by_kind, between / (ended - began), rss_mb)


def _reached(told: list[dict[str, object]], pages: float) -> float:
    """When all together had so many *pages*, by ``time.perf_counter()``."""
    marks = sorted(
        (one["opened_s"] + seconds, number - former)
        for one in told
        for (former, *_), (number, seconds, *_) in pairwise([(0, 0.0), *one["marks"], (one["pages"], one["wall_s"])])
    )
    so_far = 0
    for (before, _), (now, more) in pairwise([(marks[0][0], 0), *marks]):
        if so_far + more >= pages:
            return before + (now - before) * (pages - so_far) / more
        so_far += more
    return marks[-1][0]


def _path() -> str:
    return os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])


def _command(seeds: Path, directory: Path, given: dict[str, object], meter: Path) -> list[str]:
    settings = {f"SPIDERLING_{name}": value for name, value in given.items()}
    settings |= {"JOBDIR": directory, "EXTENSIONS": json.dumps(METER), "METER_FILE": meter, "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "scrapy", "crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"]
    return [*command, *(part for name, value in settings.items() for part in ("-s", f"{name}={value}"))]


class Ratios(NamedTuple):
    """Medians over the rounds."""

    one_cpu: float
    two_cpu: float
    two_beside: float
    """Two shards beside two crawls that share nothing: what processes on one machine take from each other left out."""
    rounds: list[tuple[float, ...]]
    """CPU milliseconds a page: without shards, one shard, two shards, two crawls."""
    start_s: tuple[float, ...]
    """CPU seconds of start and end, of the same."""
    pages_per_s: tuple[float, ...]


def ratios(rounds: int, pages: int, per_host: int) -> Ratios:
    """CPU a page beside that of a crawl without shards."""
    found = []
    for _ in range(rounds):
        found.append([crawled(pages, shards, per_host, apart) for shards, apart in ((0, 1), (1, 1), (2, 1), (0, 2))])
        print(f"load {os.getloadavg()[0]:.1f}:", *found[-1], sep="\n  ", flush=True)
    ms = [tuple(one.ms_per_page for one in row) for row in found]
    return Ratios(
        statistics.median(one / plain for plain, one, _, _ in ms),
        statistics.median(two / plain for plain, _, two, _ in ms),
        statistics.median(two / beside for _, _, two, beside in ms),
        ms,
        tuple(statistics.median(one.start_s for one in column) for column in zip(*found, strict=True)),
        tuple(statistics.median(one.pages_per_s for one in column) for column in zip(*found, strict=True)),
    )


_SUMS = ("requests", "lost", "twice", "imbalance", "ip_violations", "host_violations", "starts", "fetched_again",
         "lost_again")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within some minutes")
    parser.add_argument("--only", choices=("faults", "costs", "idle", "crawls"))
    parser.add_argument("--faults", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1, help="of the first campaign")
    parser.add_argument("--hosts", type=int, default=48)
    parser.add_argument("--pages", type=int, default=20, help="of each host")
    parser.add_argument("--log", type=Path, help="outcomes of campaigns, which are not run again")
    options = parser.parse_args()
    values: dict[str, object] = {}
    if options.only in (None, "faults"):
        values |= faults(options)
    if options.only in (None, "costs"):
        values |= costs(options.quick)
    if options.only in (None, "idle"):
        found = [(shards, idle_cores(shards, 4 if options.quick else 16)) for shards in IDLE]
        table(("idle shards", "cores of Redis"), found)
        values["idle_1000"] = round(found[-1][1], 3)
    if options.only in (None, "crawls"):
        values |= crawls(options.quick)
    result(**values)


def costs(is_quick: bool) -> dict[str, object]:
    """Of a link and of a start."""
    links = link_costs(4 if is_quick else 10)
    table(("of a link", "figure"), list(links.items()))
    slots = slot_costs()
    table(("starts in a call", "us of the caller", "us of Redis"), [(number, *both) for number, both in slots.items()])
    kept = ("split_us_per_page", "us_per_link", "redis_us_per_link", "bytes_per_link")
    return {**{name: round(links[name], 2) for name in kept}, "slots_us": round(slots[15][0], 2)}


def crawls(is_quick: bool) -> dict[str, object]:
    """CPU a page of whole crawls, on a web whose links are soon known and on one where most are new."""
    rounds, pages = (1, 2_000) if is_quick else (5, 4_000)
    found: dict[str, object] = {}
    for name, per_host in (("", pages // HOSTS), ("_new_links", 100 * pages // HOSTS)):
        seen = ratios(rounds, pages, per_host)
        rows = [(*of_round, "") for of_round in seen.rounds]
        table(("ms a page without shards", "one shard", "two shards", "two crawls apart", "medians"), [
            *rows, (*seen.start_s, "start and end, CPU s"), (*seen.pages_per_s, "pages/s"),
        ])  # fmt: skip
        found |= {f"one_cpu{name}": round(seen.one_cpu, 3), f"two_cpu{name}": round(seen.two_cpu, 3)}
        found[f"two_beside{name}"] = round(seen.two_beside, 3)
    rss = [round(one) for one in crawled(pages, 4, pages // HOSTS).rss_mb]
    return {**found, "rss_mb_of_four": rss}


def faults(options: argparse.Namespace) -> dict[str, object]:
    """Campaigns until there were enough faults."""
    wanted = 12 if options.quick else options.faults
    known = _known(options.log)
    outcomes: list[Outcome] = []
    seed = options.seed
    while sum(sum(one.faults.values()) for one in outcomes) < wanted:
        outcome = known.get(seed)
        if outcome is None:
            directory = Path(tempfile.mkdtemp(prefix=f"campaign{seed}-"))
            outcome = campaign(directory, seed, options.hosts, options.pages, 12 if options.quick else 40)
            _keep(options.log, outcome)
            print(f"campaign {seed}: {asdict(outcome)}", flush=True)
        outcomes.append(outcome)
        seed += 1
    kinds = sum((Counter(one.faults) for one in outcomes), Counter[str]())
    table(("fault", "times"), [*sorted(kinds.items()), ("all", kinds.total())])
    sums = {name: sum(getattr(one, name) for one in outcomes) for name in _SUMS}
    wrong = [f"campaign {one.seed}: {line}" for one in outcomes for line in one.wrong]
    print("\n".join(wrong) or "nothing else was wrong")
    return {"faults": kinds.total(), "campaigns": len(outcomes), **sums, "wrong": len(wrong)}


def _known(log: Path | None) -> dict[int, Outcome]:
    if log is None or not log.exists():
        return {}
    found = [Outcome(**json.loads(line)) for line in log.read_text().splitlines()]
    return {one.seed: one for one in found}


def _keep(log: Path | None, outcome: Outcome) -> None:
    if log is not None:
        with log.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main()
