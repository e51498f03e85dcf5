"""The HTTP client under the download handler: one request over one connection to a judged address.

It uses aiohttp's protocol and parser, but not its session and connector.  They cost three times as much as the rest of
the request, and their pool, redirects, cookies and DNS are not needed.  tests/fetch fails if the protocol changes.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import aiohappyeyeballs
import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage

from spiderling.base.machine import is_reserved
from spiderling.fetch.errors import BadRequest, NoConnection, NoDescriptor, NoTls
from spiderling.fetch.translation import HeadFlood

MAX_HEADERS = 256
"""Most headers of one response (chosen)."""
MAX_HEADER_BYTES = 65_536
"""Most bytes of one header, or of the status line (chosen)."""
MAX_HEAD_BYTES = 1_000_000
"""Most bytes that are not body: interim (1xx) responses, headers, chunk extensions, trailers (chosen)."""
FRAMING_RATIO = 2
"""Most bytes on the wire for a byte of body, after MAX_HEAD_BYTES (chosen; chunks of one byte, six each, fail)."""
_NEVER_MADE = frozenset(
    {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.ETIMEDOUT}
)
"""Errors of a connection that could not be made; one that was made is reset in the place of refused."""
HEAD_START_S = 0.25
"""Seconds for which the first address is tried alone before the second is tried too (RFC 8305, section 5)."""


class Wire(ResponseHandler):
    """aiohttp's protocol, with a limit on what is not body."""

    content: aiohttp.StreamReader | None = None
    """The body; None until the final headers are here."""
    _received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # asyncio and uvloop have set TCP_NODELAY

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        # Before the final headers this ends endless headers and interim responses; a body that nobody reads yet is
        # held far below the limit by back-pressure.  After them it ends endless chunk extensions and trailers.
        body_bytes = 0 if self.content is None else self.content.total_bytes
        if self._received > MAX_HEAD_BYTES + FRAMING_RATIO * body_bytes:
            self.abort()
            error = HeadFlood(f"more than {MAX_HEAD_BYTES} bytes that are not body")
            reader = self if self.content is None else self.content
            reader.set_exception(error)
            return
        super().data_received(data)
        body = self._payload
        if self._exception is not None and body is not None and not body.is_eof():
            # aiohttp reports a broken chunk to the reader of the head only; the body would wait until its timeout
            body.set_exception(aiohttp.ClientPayloadError(f"Response payload is broken: {self._exception}"))


class RawRequest(NamedTuple):
    """A request as it is sent; `encoded` adds ``Connection: close``."""

    method: str
    target: str
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes = b""

    def encoded(self) -> bytes:
        """The bytes to send; raises BadRequest if a server would read them as something else."""
        lines = [f"{self.method} {self.target} HTTP/1.1".encode()]
        lines += [name + b": " + value for name, value in self.headers]
        lines += [b"Connection: close", b"", b""]
        head = b"\r\n".join(lines)
        breaks = len(lines) - 1
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head or lines[0].count(b" ") != 2:
            raise BadRequest("there is a space in the URL, or a line break or NUL in a header")
        return head + self.body


@dataclass(slots=True)
class RawResponse:
    """A response whose head is here; the caller may read ``content``, and aborts ``wire`` in any case."""

    request: RawRequest
    address: str
    """The address that the connection was made to."""
    certificate: bytes | None
    """The server's certificate in DER; None without TLS."""
    head: RawResponseMessage
    content: aiohttp.StreamReader
    wire: Wire
    """The connection; a TLS shutdown in place of the abort would wait for the peer."""


@dataclass(slots=True)
class ConnectTarget:
    """Where a connection goes: one or two judged addresses."""

    addresses: tuple[str, ...]
    port: int
    may_connect: Callable[[str], bool]
    """Whether an address may be connected to now; asked before each attempt."""
    connected: Callable[[str], None]
    """Called with an address once the connection's first packet is sent, before any other task runs."""
    bind_address: tuple[str, int] | None = None
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """Name in the TLS handshake."""

    @property
    def begins_at_once(self) -> bool:
        """Whether `connect` sends the first packet before any other task runs."""
        return len(self.addresses) == 1 and self.tls is None and self.bind_address is None

    async def connect(self) -> Wire:
        """A connection to the address that answers first (RFC 8305); raises NoConnection, NoTls or NoDescriptor."""
        loop = asyncio.get_running_loop()
        kind = socket.SOCK_STREAM, socket.IPPROTO_TCP, ""
        own = self.bind_address
        if self.begins_at_once:
            return await self._connecting(loop)
        options: dict[str, Any] = {"ssl": self.tls, "server_hostname": self.server_name} if self.tls else {}
        try:
            sock = await aiohappyeyeballs.start_connection(
                [(_family(address), *kind, (address, self.port)) for address in self.addresses],
                local_addr_infos=[(_family(own[0]), *kind, own)] if own else None,
                happy_eyeballs_delay=HEAD_START_S,
                loop=cast("asyncio.AbstractEventLoop", self),  # only its ``sock_connect`` is called
                socket_factory=_socket,
            )
            _, wire = await loop.create_connection(lambda: Wire(loop), sock=sock, **options)
        except ssl.SSLError as error:
            raise NoTls(str(error)) from error
        except NoDescriptor:
            raise
        except OSError as error:
            raise NoConnection(str(error)) from error
        return wire

    async def _connecting(self, loop: asyncio.AbstractEventLoop) -> Wire:
        """A connection to the only address that is still being made; whether it fails, the first read says."""
        address = self.addresses[0]
        sock = _socket((_family(address), socket.SOCK_STREAM))
        sock.setblocking(False)
        try:
            self._begin(sock, (address, self.port))
            _, wire = await loop.create_connection(lambda: Wire(loop), sock=sock)
        except OSError as error:
            sock.close()
            raise NoConnection(str(error)) from error
        return wire

    async def sock_connect(self, sock: socket.socket, place: tuple[str, int]) -> None:
        """Connect *sock* in place of the event loop's method, which may run other tasks before the packet is sent.

        (uvloop hands the call to a thread.)
        """
        if self._begin(sock, place):
            await _writable(sock)
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise _failure(error, place)

    def _begin(self, sock: socket.socket, place: tuple[str, int]) -> bool:
        """Send the first packet to *place*; whether the connection is not made yet.  Raises OSError."""
        if not self.may_connect(place[0]):
            raise OSError(f"{place[0]} is not due")
        try:
            error = sock.connect_ex(place)
        finally:
            self.connected(place[0])
        if error not in (0, errno.EINPROGRESS):
            raise _failure(error, place)
        return error != 0


def _socket(wanted: Sequence[Any]) -> socket.socket:
    """A socket of the family and type that *wanted* begins with; raises NoDescriptor if it had a reserved one."""
    try:
        sock = socket.socket(*wanted[:2])
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise NoDescriptor(*error.args) from error
        raise
    if is_reserved(sock.fileno()):
        sock.close()
        raise NoDescriptor(errno.EMFILE, os.strerror(errno.EMFILE))
    return sock


def _failure(error: int, place: tuple[str, int]) -> OSError:
    return OSError(error, f"{os.strerror(error)}: {place[0]}:{place[1]}")


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    is_writable = loop.create_future()
    loop.add_writer(sock, _resolve, is_writable)
    try:
        await is_writable
    finally:
        loop.remove_writer(sock)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def send(request: RawRequest, target: ConnectTarget) -> RawResponse:
    """Send *request*; returns when the headers of the final response are here.

    Raises BadRequest, NoConnection, NoTls, NoDescriptor, or errors of aiohttp.
    """
    head = request.encoded()
    wire = await target.connect()
    try:
        transport = wire.transport
        if transport is None:
            raise aiohttp.ServerDisconnectedError
        wire.set_response_params(
            skip_payload=request.method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        transport.write(head)
        message, content = await wire.read()
        while 100 <= message.code < 200 and message.code != 101:
            message, content = await wire.read()
    except aiohttp.ClientOSError as error:
        wire.abort()
        if error.errno in _NEVER_MADE:
            raise NoConnection(f"{error}: {target.addresses[0]}:{target.port}") from error
        raise
    except BaseException:
        wire.abort()
        raise
    wire.content = content
    tls = transport.get_extra_info("ssl_object") if target.tls else None
    return RawResponse(
        request=request,
        address=target.addresses[0] if len(target.addresses) == 1 else transport.get_extra_info("peername")[0],
        certificate=tls.getpeercert(binary_form=True) if tls is not None else None,
        head=message,
        content=content,
        wire=wire,
    )


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
