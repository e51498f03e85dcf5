"""The web of the shards' faults: hosts of all shards on shared addresses, and when they were really asked.

Most links lead to other hosts.  Some pages redirect to other hosts, and some answer late, so that requests are under
way when a fault comes.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import xxhash
from conftest import page
from synlog import Syn

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
