"""What the exchange between shards costs, in one process: real messages, states and Redis, and no crawl around them.

Sixteen shards find links as `frontier.py` makes them, sixty on a page, a third of them to other hosts.  Each second of
virtual time each makes some pages, a checkpoint, and the rounds of that time.  What strategies read of the pages is as
in a crawl: links of pages that are alike travel together.  What a frontier does with a link that has arrived is left
out, for without shards it does the same.  Times are processor times of this process, or of Redis.
"""

from __future__ import annotations

import asyncio
import gc
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from redis_server import RedisServer

from benchmarks.frontier import Web
from spiderling.base.link_batch import Link, LinkBatch, gathered
from spiderling.base.owners import owner_of
from spiderling.base.reasons import Reason
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import Exchange
from spiderling.cluster.redis_transport import RedisTransport, Script, connected
from spiderling.cluster.shard import ROUND_S
from spiderling.cluster.slots import BEGIN, RESERVE, Reservations
from spiderling.frontier.hosts import SEED_RANK
from spiderling.frontier.intervals import Wanted
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.strategy import FarHost, LinkingPage
from spiderling.text.compiled import choose

SHARDS = 16
PAGES_PER_S = 100
"""Of each shard; chosen: less than one process gets out of two cores (results.md, crawl.py)."""
_MOST_TAIL_S = 30
STAGES = ("split", "gather and pack", "outbox", "send", "take")
SLOTS = (1, 5, 15, 30, 100)
"""Starts reserved in one call."""
_CALLS = 400


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
    shards = [Exchange(me, SHARDS, seal, stores[me], derive=derive) for me in range(SHARDS)]
    offices = [RedisTransport(server.url, bytes(16), me) for me in range(SHARDS)]
    redis_s = 0.0
    sent_bytes = 0
    for second in range(seconds + _MOST_TAIL_S):
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
                    asked = shard.ask(now + turn * ROUND_S)
                    answer = await office.exchange(asked)
                    messages = shard.take_answer(answer)
                sent_bytes += sum(len(data) for outgoing in asked.to.values() for _, data in outgoing.entries)
                with clocked.stage("take"):
                    for message in messages:
                        shard.deliver(message, frontier, now)  # type: ignore[arg-type]
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


def slot_costs() -> dict[int, tuple[float, float]]:
    """Starts in a call -> microseconds of the caller and of Redis for each start."""
    server = RedisServer()
    try:
        return uvloop.run(_reserved(server))  # on the loop of a crawl
    finally:
        server.close()


async def _reserved(server: RedisServer) -> dict[int, tuple[float, float]]:
    found = {}
    redis: Any = connected(server.url)
    await redis.eval(BEGIN, 1, "slots")
    script = Script(redis, RESERVE)
    for number in SLOTS:
        reservations = Reservations()
        wanted = [Wanted(at, f"10.0.{number}.{at}", 0.0) for at in range(number)]
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
