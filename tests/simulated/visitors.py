"""The live page of a simulated crawl, and who connects to it: clients that ask as they should, and such that do not.

Connections are in memory, under the real server.  What a client does not read stays with the server, as in a socket.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

from prometheus_client.parser import text_string_to_metric_families

from spiderling.live import server
from spiderling.reporting.page import part
from tests.simulated import strange
from tests.simulated.clock import VirtualExecutor, VirtualLoop

PLACE = ("127.0.0.1", 8580)
HOST = "127.0.0.1:8580"
PATHS = (
    "/", "/page.css", "/page.js", "/metrics", "/status.json", "/hosts.json?search=w&page=0", "/host.json?name=h0.test",
)  # fmt: skip
CONTROLS = ("pause", "resume", "block", "reopen", "budget")
METHODS = ("GET", "POST", "HEAD", "PUT", "OPTIONS", "TRACE", "CONNECT", "get", "PRI")
AT_ONCE = 16  # connections that a server accepts in one turn of its loop (its backlog)
KERNEL_BYTES = 60_000  # bytes that sockets hold of what a client does not read; chosen
WRITTEN_BYTES = 1 << 16  # bytes that wait in a transport from which on it takes no more, as asyncio has it
PATIENCE_S = 60.0  # seconds after which a connection must be over; chosen: a call in a thread takes up to 4 s
CLOSING_S = 10.0  # the same for one that the server has closed; chosen


class Client(NamedTuple):
    """How a client behaves."""

    pieces: list[bytes]
    pause_s: float = 0.0  # between two of them
    leaves_after_s: float = math.inf
    reads: bool = True
    asks: str = ""  # the path of a request that is to be answered; else nothing is expected


class Page:
    """All that the visitors of one session see."""

    def __init__(self, directory: Path, is_troubled: Callable[[], bool]) -> None:
        """*is_troubled*: whether the disk of the session has failed, so that not all can be told."""
        self._token = directory / "page.token"
        self._is_troubled = is_troubled
        self._factories: list[Callable[[], Any]] = []
        self._waiting: list[Client] = []  # to be accepted
        self._is_accepting = False  # whether some were in this turn of the loop
        self.open: list[Connection] = []  # those that take a descriptor
        self.wrong: list[str] = []

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """Within it a socket that is made to listen has no port, and its server is this one."""
        with (
            mock.patch.object(socket, "create_server", return_value=mock.Mock(getsockname=lambda: PLACE)),
            mock.patch.object(server, "ThreadPoolExecutor", VirtualExecutor),
            mock.patch.object(VirtualLoop, "create_server", self._listen, create=True),
        ):
            yield

    @property
    def is_served(self) -> bool:
        return bool(self._factories)

    async def _listen(self, factory: Callable[[], Any], **_: Any) -> Any:
        self._factories.append(factory)
        return mock.Mock(close=partial(self._factories.remove, factory))

    def visit(self, seed: float) -> None:
        """Let some clients come, as drawn from *seed*."""
        self._waiting += self._clients(Random(seed))
        if not self._is_accepting:
            self._accept()

    def _accept(self) -> None:
        accepted, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        for client in accepted if self.is_served else ():
            self.open.append(Connection(self, client, self._factories[-1]))
        self._is_accepting = bool(accepted)
        if accepted:
            asyncio.get_running_loop().call_soon(self._accept)
        most = max(Counter(one.factory for one in self.open).values(), default=0)
        if most > server.MAX_CONNECTIONS + AT_ONCE:
            self.wrong.append(f"live page: {most} connections at once")

    def _clients(self, rng: Random) -> list[Client]:
        path, body, headers, method = rng.choice(PATHS), b"", {"Host": HOST}, "GET"
        if rng.random() < 0.3 and self._token.is_file():
            control = {"action": rng.choice(CONTROLS), "host": "nowhere.test", "max_pages": 0}
            path, body, method = "/control", json.dumps(control).encode(), "POST"
            headers |= {"X-Spiderling": self._token.read_text().strip(), "Content-Length": str(len(body))}
        true = _request(method, path, headers, body)
        kind = rng.randrange(7)
        if kind == 0:
            return [Client([true], asks=path)]
        if kind == 1:  # half a head, and silence
            return [Client([true[: rng.randrange(40)]])] * rng.choice((1, 5, 100))
        if kind == 2:  # byte by byte
            return [Client([bytes([byte]) for byte in true * 2], rng.choice((0.1, 3.0)))]
        if kind == 3:  # many requests, whose answers it does not read
            asked = [_request("GET", rng.choice(PATHS[:3]), {"Host": HOST}) for _ in range(rng.choice((1, 6, 12, 60)))]
            return [Client(asked, 0.01, reads=False)] * rng.choice((1, 100))
        if kind == 4:
            headers |= {"Host": rng.choice((HOST, "evil.test", "", "\xff")), **dict(strange.head(rng)[1])}
            true = _request(rng.choice(METHODS), path + rng.choice(("", *strange.URLS)), headers, body)
        else:
            true = strange.garbled(rng, true, len(true))
        cut = rng.randrange(len(true) + 1)
        return [Client([true[:cut], true[cut:]], rng.choice((0.0, 0.01, 12.0)), rng.choice((0.0, 0.01, 5.0, math.inf)))]

    def judge(self, asked: str, answer: bytes, factory: Callable[[], Any]) -> None:
        """Note what is wrong with the *answer* to a request, if that was one that is *asked* as it should be.

        *factory*: that of the server's side, which knows whether this has closed.
        """
        head, _, body = answer.partition(b"\r\n\r\n")
        statuses = [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")]
        path = asked.partition("?")[0]
        may_be = {200, {"/control": 409, "/host.json": 404}.get(path, 200), 503 if self._is_troubled() else 200}
        try:
            assert not [status for status in statuses if status >= 500 and status != 503]
            is_driven_out = not answer and (factory not in self._factories or len(self.open) >= server.MAX_CONNECTIONS)
            if not asked or is_driven_out or b"the shards in " in body:  # that are only being made
                return
            assert len(statuses) == 1 and statuses[0] in may_be and b"Content-Security-Policy: " in head
            if path in server.FILES:
                assert body == part(server.FILES[path][0]).encode()
            elif path == "/metrics":
                assert b"Content-Type: text/plain" in head and list(text_string_to_metric_families(body.decode()))
            else:
                assert b"Content-Type: application/json" in head and isinstance(json.loads(body), dict)
        except (AssertionError, ValueError):
            self.wrong.append(f"live page: {asked} is answered by {answer[:300]!r}")


def _request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + body


class Connection(asyncio.Transport):
    """The server's end of a connection, and the client at the other one."""

    def __init__(self, page: Page, client: Client, factory: Callable[[], Any]) -> None:
        super().__init__()
        self._page = page
        self._client = client
        self.factory = factory  # of the server's side
        self._protocol = protocol = factory()
        self._pieces = iter(client.pieces)
        self._received = b""
        self._most_bytes = WRITTEN_BYTES  # that wait to be read
        self._is_held_up = False  # whether the server was told to write no more
        self._is_closing = False
        loop = self._loop = asyncio.get_running_loop()
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._send)
        loop.call_later(PATIENCE_S, self._must_be_over)
        if client.leaves_after_s < math.inf:
            loop.call_later(client.leaves_after_s, self.abort)

    def _send(self) -> None:
        if not self._is_closing and (piece := next(self._pieces, None)) is not None:
            self._protocol.data_received(piece)
            self._loop.call_later(self._client.pause_s, self._send)

    def _must_be_over(self) -> None:
        if self in self._page.open and (self._client.reads or self._is_closing) and self._page.is_served:
            self._page.wrong.append(f"live page: {self._client.pieces[:1]} is still connected")

    # -- as the server sees it

    def write(self, data: Any) -> None:
        self._received += bytes(data)
        if not self._is_held_up and self.get_write_buffer_size() > self._most_bytes:
            self._is_held_up = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return 0 if self._client.reads else max(0, len(self._received) - KERNEL_BYTES)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._most_bytes = WRITTEN_BYTES if high is None else high

    def close(self) -> None:
        self._is_closing = True
        if not self.get_write_buffer_size():
            self.abort()
        else:
            self._loop.call_later(CLOSING_S, self._must_be_over)

    def abort(self) -> None:
        self._is_closing = True
        if self in self._page.open:
            self._page.judge(self._client.asks, self._received, self.factory)
            self._page.open.remove(self)
            self._loop.call_soon(self._protocol.connection_lost, None)

    def is_closing(self) -> bool:
        return self._is_closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return PLACE if name in ("peername", "sockname") else default
