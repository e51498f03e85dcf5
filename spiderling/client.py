"""The HTTP client under the download handler: aiohttp with what a hostile server needs.

Two private attributes of aiohttp are used, ``connector._factory`` and
``session._retry_connection``; tests/test_handler.py fails if they lose their meaning.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from scrapy.utils._download_handlers import normalize_bind_address

from spiderling.downloaderrors import HeadFlood, TooSlow

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_HEADERS = 256
MAX_HEADER_BYTES = 65_536
MAX_HEAD_BYTES = 1_000_000
"""What may come besides the body: interim (1xx) responses, headers, chunk extensions, trailers."""
FRAMING_RATIO = 2
"""... and all that comes may be so many times the body: a flood of chunks of one byte is six times, and dear."""
HEAD_START_S = 0.25
"""How long the first address is tried alone before the second is too (RFC 8305, 5)."""


class Wire(ResponseHandler):
    """aiohttp's protocol, with a limit on what is not body and no lingering at the end."""

    content: aiohttp.StreamReader | None = None
    """The body, once the final headers are here."""
    _received = 0

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        # Before the headers: endless ones, and interim responses (back-pressure holds a body that
        # nobody reads yet far below the limit).  After them: endless chunk extensions and trailers.
        body_bytes = 0 if self.content is None else self.content.total_bytes
        if self._received > MAX_HEAD_BYTES + FRAMING_RATIO * body_bytes:
            self.abort()
            error = HeadFlood(f"more than {MAX_HEAD_BYTES} bytes that are not body")
            reader = self if self.content is None else self.content
            reader.set_exception(error)
            return
        super().data_received(data)

    def close(self) -> None:
        """Close at once: a polite TLS shutdown would wait for a peer that we are done with."""
        self.abort()


class Reply(aiohttp.ClientResponse):
    """A response that takes what it needs of the connection before a short body lets that go."""

    certificate: bytes | None = None
    """Of the server, DER."""
    address: str = ""
    """That the connection was made to."""

    async def start(self, connection: aiohttp.connector.Connection) -> Reply:
        wire, transport = connection.protocol, connection.transport
        if transport is not None:
            tls = transport.get_extra_info("ssl_object")
            self.certificate = tls.getpeercert(binary_form=True) if tls is not None else None
            self.address = (transport.get_extra_info("peername") or [""])[0]
        await super().start(connection)
        if isinstance(wire, Wire):
            wire.content = self.content
        return self


class Floor:
    """A floor of bytes a second under a body: looked at once a window, for no cost while data flows.

    A window that the event loop itself was late for is not held against the server.
    """

    def __init__(self, content: aiohttp.StreamReader, bytes_per_s: float, window_s: float) -> None:
        self._content = content
        self._least = bytes_per_s * window_s
        self._window_s = window_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Floor:
        if self._least > 0:
            self._next_window()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _next_window(self) -> None:
        due = self._loop.time() + self._window_s
        self._timer = self._loop.call_at(due, self._look, due, self._content.total_bytes)

    def _look(self, due: float, before: int) -> None:
        came = self._content.total_bytes - before
        if came < self._least and self._loop.time() < due + self._window_s / 2:
            self._content.set_exception(TooSlow(f"{came} bytes in {self._window_s:g} s"))
            return
        self._next_window()


class Attempt:
    """One request's judged addresses; ``may_connect`` is asked before each connection to one of them."""

    def __init__(self, addresses: tuple[str, ...], may_connect: Callable[[str], bool]) -> None:
        self.addresses = addresses
        self.may_connect = may_connect


ATTEMPT: ContextVar[Attempt] = ContextVar("attempt")
"""Of the request that the current task makes; aiohttp hands its context on."""


class JudgedAddresses(AbstractResolver):
    """In place of DNS: whatever name is asked for, the addresses that were judged for this request."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[Any]:
        return [
            ResolveResult(
                hostname=host, host=address, port=port, proto=0, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
            )
            for address in ATTEMPT.get().addresses
        ]  # fmt: skip

    async def close(self) -> None:
        """Nothing is open."""


def _judged_socket(address_info: Any) -> socket.socket:
    family, kind, protocol, _, address = address_info
    if not ATTEMPT.get().may_connect(address[0]):
        raise OSError(f"{address[0]} is not due")
    return socket.socket(family=family, type=kind, proto=protocol)


def open_session(bind_address: Any) -> aiohttp.ClientSession:
    """A client without DNS, cookies, proxies, redirects, retries and kept connections."""
    connector = aiohttp.TCPConnector(
        limit=0,
        force_close=True,
        local_addr=normalize_bind_address(bind_address),
        resolver=JudgedAddresses(),
        use_dns_cache=False,
        happy_eyeballs_delay=HEAD_START_S,
        socket_factory=_judged_socket,
    )
    connector._factory = functools.partial(Wire, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        response_class=Reply,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
    )
    session._retry_connection = False  # a second connection would break the politeness interval
    return session
