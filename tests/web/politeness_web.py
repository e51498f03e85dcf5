"""Sites for the proof of politeness, served over http and https on one port, and what the logs say of a crawl of them.

For benchmarks/polite.py.  The sites redirect to each other, also their robots.txt, answer 429 and 503 with Retry-After,
ask for a Crawl-delay, answer late, under www and without; twelve hosts share each address.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from conftest import page
from hostile_pages import context

from webs.server import AccessLog, Connection, Server, bind_all
from webs.web import Web, WebResponse, not_found, plain, redirect, unavailable

HOSTS, ADDRESSES, PAGES = 72, 6, 400
HOST_INTERVAL_S, IP_INTERVAL_S, CRAWL_DELAY_S = 0.5, 0.03, 1.2
RETRY_AFTER_S, ROBOTS_RETRY_AFTER_S = 1, 2


class Sites:
    """Sites h0 to h71, each with PAGES pages; the number of a host and of a page decide how it answers."""

    def __init__(self) -> None:
        self._asked: set[str] = set()

    def hosts(self) -> dict[str, str]:
        names = [(f"{www}h{number}.test", number) for number in range(HOSTS) for www in ("", "www.")]
        return {name: address_of(number) for name, number in names}

    globs = hosts

    def seeds(self) -> str:
        return ",".join(f"http://h{number}.test/" for number in range(HOSTS))

    def respond(self, host: str, path: str) -> WebResponse:
        number = number_of(host)
        if path in ("/robots.txt", "/rules.txt"):
            return self._robots(host, path, number)
        if number % 7 == 1 and not host.startswith("www."):
            return redirect(f"http://www.{host}{path}")
        n = int(path.strip("/") or 0)
        if n % 9 == 4:
            return redirect(f"http://h{(number + n) % HOSTS}.test/{n + 1}", status=302)
        if n % 23 == 7:
            return unavailable(RETRY_AFTER_S, status=429 if number % 2 else 503)
        links = [f"/{(3 * n + step) % PAGES}" for step in range(1, 6)]
        scheme = "https" if n % 3 == 1 else "http"
        answer = page(f"{number} {n}", *links, f"{scheme}://h{(number * 5 + n) % HOSTS}.test/{n}")
        return WebResponse(200, answer.headers, answer.body, delay_s=0.3 if number % 11 == 3 else 0.0)

    def _robots(self, host: str, path: str, number: int) -> WebResponse:
        if number % 17 == 5 and host not in self._asked:
            self._asked.add(host)
            return unavailable(ROBOTS_RETRY_AFTER_S)
        if path == "/robots.txt" and number % 13 == 6:
            return redirect(f"http://h{(number + 1) % HOSTS}.test/rules.txt", status=302)
        return plain(f"User-agent: *\nCrawl-delay: {CRAWL_DELAY_S}\n") if is_slowed(number) else not_found()


def address_of(number: int) -> str:
    return f"127.84.40.{1 + number % ADDRESSES}"


def number_of(host: str) -> int:
    return int(host.removeprefix("www.h").removeprefix("h").partition(".")[0])


def is_slowed(number: int) -> bool:
    """Whether its robots.txt asks for CRAWL_DELAY_S; the rules that others are sent to do not."""
    return number % 5 == 2 and number % 13 not in (6, 7)


# -- servers


class BothServer(Server):
    """Speaks TLS to a client whose first byte is that of a handshake, else HTTP."""

    async def start(self, port: int) -> None:
        self._context = context(names=("*.test",))
        self._tasks: set[asyncio.Task[None]] = set()
        sockets = bind_all(sorted(set(self.web.hosts().values())), port)
        self.port = sockets[0].getsockname()[1]
        for sock in sockets:
            sock.listen(1024)
            sock.setblocking(False)
            self._spawn(self._accept(sock))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().stop()

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                self._spawn(self._greet((await asyncio.get_running_loop().sock_accept(listener))[0]))

    async def _greet(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        spoke = asyncio.Event()
        loop.add_reader(client, spoke.set)
        try:
            await spoke.wait()
            first = client.recv(1, socket.MSG_PEEK)
        except OSError:
            first = b""
        finally:
            loop.remove_reader(client)
        tls = self._context if first == b"\x16" else None
        try:
            await loop.connect_accepted_socket(lambda: Connection(self), client, ssl=tls)
        except OSError:
            client.close()


@asynccontextmanager
async def serve_both(web: Web) -> AsyncIterator[Server]:
    """*web* over http and https."""
    server = BothServer(web, AccessLog(None, keep=True))
    await server.start(0)
    try:
        yield server
    finally:
        await server.stop()


# -- what the logs say


class Start(NamedTuple):
    """A line of StartLog; the fields are named as those of the access log."""

    time_s: float
    address: str
    host: str
    path: str
    took_s: float
    status: int = 0


def read_starts(path: Path, entries: Iterable[Any]) -> tuple[list[Start], list[float]]:
    """The starts, each with the status that its request got (0: none); and each request's time from start to arrival.

    Raises AssertionError for a request in the access log without a start.
    """
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    starts = sorted(Start(float(line[0]), *line[1:4], took_s=float(line[4])) for line in lines)
    numbers = defaultdict(list)
    for number, start in enumerate(starts):
        numbers[start[1:4]].append(number)
    lags = []
    for entry in entries:
        mine = numbers[entry.address, entry.host, entry.path]
        at = bisect_right(mine, entry.time_s + CLOCK_S, key=lambda number: starts[number].time_s) - 1
        assert at >= 0, f"no start for {entry}"
        number = mine[at]
        assert not starts[number].status, f"one start for two requests, the second is {entry}"
        starts[number] = starts[number]._replace(status=entry.status)
        lags.append(entry.time_s - starts[number].time_s)
    return starts, lags


CLOCK_S = 0.01  # how exactly the system tells when data arrived: by its clock's ticks


class Spacing(NamedTuple):
    """What a log says of hosts, or of addresses."""

    groups: int
    pairs: int
    violations: int
    worst_s: float  # how much closer the closest pair was than its interval allows; negative: it was farther apart
    uncertain_s: float  # how much of it at most is not known exactly: the first start's ``took_s``


def spacing(entries: Iterable[Any], by: str, tolerance_s: float) -> Spacing:
    """Each two requests in a row of one host or address, against the interval that holds there."""
    groups = defaultdict(list)
    for entry in entries:
        groups[entry.address if by == "address" else entry.host.removeprefix("www.")].append(entry)
    short = [
        _shortfall(by, first, second)
        for group in groups.values()
        for first, second in itertools.pairwise(sorted(group, key=lambda entry: entry.time_s))
    ]
    return Spacing(len(groups), len(short), sum(value > tolerance_s for value, _ in short), *max(short))


def _shortfall(by: str, first: Any, second: Any) -> tuple[float, float]:
    """How much closer two requests were than allowed, and what was taken off because it is not known."""
    uncertain_s = getattr(first, "took_s", 0.0)
    return _interval_s(by, first) - (second.time_s - first.time_s) - uncertain_s, uncertain_s


def _interval_s(by: str, first: Any) -> float:
    if by == "address":
        return IP_INTERVAL_S
    asked_s = 0.0
    if first.status in (429, 503):
        asked_s = ROBOTS_RETRY_AFTER_S if first.path in ("/robots.txt", "/rules.txt") else RETRY_AFTER_S
    return max(HOST_INTERVAL_S, CRAWL_DELAY_S if is_slowed(number_of(first.host)) else 0.0, asked_s)
