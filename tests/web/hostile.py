"""Servers that misbehave on purpose: a table of named cases, and a loopback web that serves them all at once.

A case is one host, ``http://<name>.bad.test/``, with an address of its own on loopback.  To add one, write a
``Serve`` (it is given each request but that for robots.txt, which gets a decent 404 unless ``robots`` says
otherwise) and put a Case into ``CASES`` by ``add``, with the Reason as which each of its URLs must end:

    add("reset-after-request", lambda visit: visit.reset(), Reason.CONNECTION)

``hostile_crawl.py`` crawls all cases together with good hosts, ``test_hostile_crawl.py`` looks at what came of it.
Cases of names are in hostile_names.py, of single answers in hostile_answers.py, of pages, redirects and traps in
hostile_pages.py; a further module is to be listed in ``hostile_crawl.REGISTERED``.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conftest import serving

from spiderling.base.reasons import Reason
from webs.web import WebResponse

if TYPE_CHECKING:
    import ssl

DOMAIN = "bad.test"
NETWORK = "127.84.0.0/16"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def reply(body: bytes | str, *headers: str) -> bytes:
    """A whole, correct answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(data)}"))
    return OK + lines.encode("latin-1") + b"\r\n" + data


@dataclass
class Visit:
    """One request to a case's server, and the ways to answer it."""

    case: Case
    path: str
    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int  # which of the case's requests this is, from 1, those for robots.txt left out

    @property
    def host(self) -> str:
        """The name that was asked, without its port."""
        return self.head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].decode("latin-1").partition(":")[0]

    async def send(self, *parts: bytes, pause_s: float = 0.0) -> None:
        """Write *parts*, one packet each, with pauses."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(pause_s)

    async def flood(self, piece: bytes) -> None:
        """Write *piece* until the client hangs up."""
        while True:
            await self.send(piece * (30_000 // len(piece) or 1))

    async def drip(self, data: bytes, bytes_per_s: float) -> None:
        """Write *data* byte by byte, then nothing."""
        for byte in data:
            await self.send(bytes([byte]), pause_s=1 / bytes_per_s)
        await self.silence()

    async def silence(self) -> None:
        """Say nothing until the client hangs up."""
        while await self.reader.read(1000):
            pass

    async def reset(self) -> None:
        """End the connection by RST instead of FIN."""
        await asyncio.sleep(0.02)  # what was written is on its way
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Serve = Callable[[Visit], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """One misbehaving host."""

    name: str
    serve: Serve
    ends: Mapping[str, Reason | tuple[Reason, ...]]
    """How its URLs end, by path (or whole URL, of another host); one of several where timing decides."""
    mentions: Mapping[Reason, int | None] = field(default_factory=dict)
    """Mentions that it causes to be refused: exactly so many, over all its pages; None: some."""
    robots: Serve | None = None  # how robots.txt is answered; None: 404
    seeds: tuple[str, ...] = ("/",)  # where the crawl begins: paths or whole URLs
    hosts: tuple[str, ...] = ()  # further names (patterns) that lead to its server
    max_requests: int | None = None  # how many requests it may cost at most, robots.txt included
    found: Reason | None = None  # how at least one URL on one of ``hosts`` ends
    scheme: str = "http"
    tls: Callable[[], ssl.SSLContext] | None = None
    raw: bool = False  # whether ``serve`` is called before a request is read, for robots.txt too

    def url(self, path: str) -> str:
        return path if "://" in path else f"{self.scheme}://{self.name}.{DOMAIN}{path}"


CASES: dict[str, Case] = {}


def add(name: str, serve: Serve | bytes, end: Reason | tuple[Reason, ...] | None = None, **rest: object) -> None:
    """Register a case: *serve* (or the bytes of every answer), and how its first page ends (or ``ends=``)."""
    assert name not in CASES
    ends = rest.pop("ends", {"/": end})
    CASES[name] = Case(name, answer(serve) if isinstance(serve, bytes) else serve, ends, **rest)  # type: ignore[arg-type]


def answer(sent: bytes, then: Callable[..., Awaitable[None]] | None = None, *arguments: object) -> Serve:
    """A Serve that sends *sent*, does *then*, a method of Visit, with *arguments*, and closes."""

    async def serve(visit: Visit) -> None:
        await visit.send(sent)
        if then:
            await then(visit, *arguments)

    return serve


def site(pages: Mapping[str, bytes | WebResponse] | Callable[[str], bytes | WebResponse]) -> Serve:
    """A Serve of a well-behaved server: path -> body, whole answer (``HTTP/``...) or WebResponse; else 404."""

    async def serve(visit: Visit) -> None:
        page = pages(visit.path) if callable(pages) else pages.get(visit.path, NOT_FOUND)
        await visit.send(rendered(page))

    return serve


def rendered(page: bytes | WebResponse) -> bytes:
    """The bytes of a whole answer."""
    if isinstance(page, bytes):
        return page if page.startswith(b"HTTP/") else reply(page)
    headers = "".join(f"{name}: {value}\r\n" for name, value in page.headers.items())
    return f"HTTP/1.1 {page.status} X\r\n{headers}Content-Length: {len(page.body)}\r\n\r\n".encode() + page.body


class HostileWeb:
    """All cases on loopback, one address each; made by ``hosting``."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self.cases = cases
        self.requests: list[tuple[str, bytes]] = []  # (case, head of the request), in order
        self.hosts_option = ""
        self._visits = dict.fromkeys(cases, 0)
        self._servers: list[asyncio.AbstractServer] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def urls_of_seeds(self) -> list[str]:
        return [case.url(seed) for case in self.cases.values() for seed in case.seeds]

    async def start(self) -> None:
        mapped = []
        for number, case in enumerate(self.cases.values()):
            address = f"127.84.{100 + number // 200}.{number % 200 + 1}"
            server = await asyncio.start_server(
                lambda reader, writer, case=case: self._connected(case, reader, writer),
                address, 0, ssl=case.tls() if case.tls else None, limit=1 << 20,
            )  # fmt: skip
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
            mapped += [f"{name}={address}:{port}" for name in (f"{case.name}.{DOMAIN}", *case.hosts)]
        self.hosts_option = ",".join(mapped)

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, case: Case, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._visit(case, reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _visit(self, case: Case, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"" if case.raw else await reader.readuntil(b"\r\n\r\n")
        self.requests.append((case.name, head))
        path = head.partition(b" ")[2].partition(b" ")[0].decode("latin-1")
        if path == "/robots.txt":
            visit = Visit(case, path, head, reader, writer, 0)
            await (case.robots or answer(NOT_FOUND))(visit)
            return
        self._visits[case.name] += 1
        await case.serve(Visit(case, path, head, reader, writer, self._visits[case.name]))


@asynccontextmanager
async def hosted(web: Any) -> AsyncIterator[Any]:
    """*web* between its ``start`` and ``stop``, for conftest's ``serving``."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # clients that hang up amid TLS
    await web.start()
    try:
        yield web
    finally:
        await web.stop()


def hosting(cases: Mapping[str, Case]) -> AbstractContextManager[HostileWeb]:
    """The *cases*, served."""
    return serving(HostileWeb(cases), hosted)
