"""The HTTP client under the download handler: a request over a connection to a judged address.

A connection that its server leaves open can be used again for the same host.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, cast

from scrapy.exceptions import DownloadConnectionRefusedError, ResponseDataLossError, UnsupportedURLSchemeError

from spiderling.base.machine import is_reserved
from spiderling.fetch.errors import BadHttp, NoDescriptor, TlsFailed, TooSlow
from spiderling.fetch.messages import END_OF_HEAD, HEAD_START, Framing, RawRequest, ResponseHead
from spiderling.fetch.tls import Server, Sessions

MAX_HEAD_BYTES = 1_000_000
"""Most bytes that are not body: interim (1xx) responses, headers, chunk extensions, trailers, TLS (chosen)."""
FRAMING_RATIO = 2
"""Most bytes on the wire for a byte of body, after MAX_HEAD_BYTES (chosen; chunks of one byte, six each, fail)."""
MAX_HELD_BYTES = 131_072
"""Bytes of a body that wait for their reader, above which the socket is not read (as in asyncio)."""
_NEVER_MADE = frozenset(
    {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.ETIMEDOUT}
)
"""Errors of a connection that could not be made; one that was made is reset in the place of refused."""
_RECORD_BYTES = 16_384  # most bytes of a TLS record (RFC 8446, 5.1)
MAX_FAILED = 10_000  # servers remembered to take no second request over a connection (chosen: a megabyte or two)


class Wire(asyncio.Protocol):
    """A connection and the response that comes over it; what follows that, unasked for, closes it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.socket: socket.socket | None = None  # that of *transport*
        self._is_used = False  # whether this is not the first request over the connection
        self._begin()

    def _begin(self) -> None:
        """Be ready for a response."""
        self.has_body = True  # whether the response may have one; to be said before the request is sent
        self.body_bytes = 0  # bytes of the body that have come, without their framing
        self._received = 0
        self._head_bytes = bytearray()
        self._head: ResponseHead | None = None
        self._framing: Framing | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_over = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # asyncio and uvloop have set TCP_NODELAY

    def write(self, data: bytes) -> None:
        """Send the request; at once, if it is not the first over this connection."""
        if self.transport is None:
            return
        if self._is_used and self.socket is not None and not self.transport.get_write_buffer_size():
            with suppress(OSError):  # uvloop would send it in its next turn, after its start is noted
                data = data[self.socket.send(data) :]
        if data:
            self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            self.abort()
            return
        self._received += len(data)
        try:
            if self._received > MAX_HEAD_BYTES + FRAMING_RATIO * self.body_bytes:
                raise BadHttp(f"more than {MAX_HEAD_BYTES} bytes that are not body")
            if self._framing is None:
                data = self._read_heads(data)
            if self._framing is not None:
                self._read_body(data, self._framing)
        except BadHttp as error:
            self.end(error)

    def _read_heads(self, data: bytes) -> bytes:
        """Read heads up to the final one; what follows that.  Raises BadHttp."""
        begin = max(0, len(self._head_bytes) - 2)
        self._head_bytes += data if self._head_bytes else data.lstrip(b"\r\n")
        start = self._head_bytes[: len(HEAD_START)].upper()
        if not HEAD_START.startswith(start):
            raise BadHttp(f"an answer that begins with {bytes(self._head_bytes[:80])!r}")
        while (found := END_OF_HEAD.search(self._head_bytes, begin)) is not None:
            head = ResponseHead.parse(bytes(self._head_bytes[: found.start()]))
            del self._head_bytes[: found.end()]
            begin = 0
            if head.status == 101 or not head.is_interim:
                self._head = head
                self._framing = head.framing(has_body=self.has_body)
                self._wake()
                rest = bytes(self._head_bytes)
                self._head_bytes = bytearray()
                return rest
        return b""

    def _read_body(self, data: bytes, framing: Framing) -> None:
        for piece in framing.unframe(data):
            self._held.append(piece)
            self._held_bytes += len(piece)
            self.body_bytes += len(piece)
        if framing.is_over:
            self.end()
        elif self._held_bytes:
            self._wake()
            if self._held_bytes > MAX_HELD_BYTES and self.transport is not None:
                self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._is_over:
            return
        if self._framing is None:
            self.end(exc or ConnectionResetError("the server closed the connection before it answered"))
        elif self._framing.may_be_closed:
            self.end()
        else:
            self.end(ResponseDataLossError(f"the connection was closed within the body ({exc or 'in good order'})"))

    async def read_head(self) -> ResponseHead:
        """The final head; raises BadHttp or OSError if there is none."""
        while self._head is None:
            await self._news()
        return self._head

    async def read(self) -> bytes:
        """The bytes of the body that came next, b"" at its end; raises what ended it too soon."""
        while not self._held_bytes:
            if self._is_over and self._error is None:
                return b""
            await self._news()
        data = b"".join(self._held)
        self._held.clear()
        if self._held_bytes > MAX_HELD_BYTES and self.transport is not None:
            self.transport.resume_reading()
        self._held_bytes = 0
        return data

    def end(self, error: Exception | None = None) -> None:
        """Take nothing more of the response; what came before can be read, then *error* is raised."""
        if not self._is_over:
            self._is_over = True
            self._error = error
            self._wake()

    @property
    def is_open(self) -> bool:
        """Whether the server takes another request: the response is whole, and the connection was not closed."""
        if self._framing is None or self._head is None or self._error is not None or self.transport is None:
            return False
        return self._framing.is_over and not self._framing.is_overrun and self._head.keeps_open

    def next(self) -> Wire:
        """This connection, which must be open, for the next request."""
        assert self.is_open and self.transport is not None
        if self._held_bytes > MAX_HELD_BYTES:
            self.transport.resume_reading()
        self._is_used = True
        self._begin()
        return self

    def abort(self) -> None:
        """Close the connection; a TLS shutdown would wait for the peer."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    async def _news(self) -> None:
        """Wait for the next part of the response; raises what ended it."""
        if self._error is not None:
            raise self._error
        self._reader = asyncio.get_running_loop().create_future()
        await self._reader

    def _wake(self) -> None:
        if self._reader is not None:
            _resolve(self._reader)


class TlsWire(Wire):
    """A `Wire` within TLS.

    The event loop's own layer can resume no session, and takes nearly as long again as a handshake.
    """

    def __init__(self, sessions: Sessions, server: Server) -> None:
        """Raises ValueError if *server* has a name that TLS has no room for."""
        super().__init__()
        self._sessions = sessions
        self._server = server
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = sessions.connection(server, self._incoming, self._outgoing)
        self._is_open = False  # whether the handshake is over
        self._unsent = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._advance()

    def write(self, data: bytes) -> None:
        self._unsent = data
        self._advance()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > MAX_HEAD_BYTES + FRAMING_RATIO * self.body_bytes:
            self.end(BadHttp(f"more than {MAX_HEAD_BYTES} bytes that are not body"))
            return
        self._incoming.write(data)
        self._advance()

    def _advance(self) -> None:
        """Go on with the handshake, then send the request, then read what has come."""
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._is_open = True
            if self._unsent:
                self._tls.write(self._unsent)
                self._unsent = b""
            while self._incoming.pending or self._tls.pending():
                if not (plain := self._tls.read(_RECORD_BYTES)):
                    self._be_left(None)
                    break
                self._received -= len(plain)
                super().data_received(plain)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._be_left(error if self._is_open else TlsFailed(str(error)))
        if self._outgoing.pending:
            super().write(self._outgoing.read())

    def _be_left(self, error: Exception | None) -> None:
        """TLS is over, in good order or by *error*, and with it the connection."""
        if self.transport is not None:
            self.transport.abort()
        self.connection_lost(error)

    def abort(self) -> None:
        if self._is_open:
            self._sessions.keep(self._server, self._tls)
        super().abort()


@dataclass(slots=True)
class RawResponse:
    """A response whose head is here; the caller may read its body from ``wire``, and aborts that in any case."""

    request: RawRequest
    address: str  # the address that the connection was made to
    head: ResponseHead
    wire: Wire


class Destination(NamedTuple):
    """What a connection leads to."""

    is_https: bool
    name: str
    address: str
    port: int


class Pool:
    """Open connections that wait for the next request of their hosts."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[Destination, tuple[Wire, asyncio.TimerHandle]] = {}  # the oldest first
        self._failed: set[Destination] = set()

    def keep(self, place: Destination, wire: Wire, seconds: float) -> bool:
        """Keep *wire*, which is open, for so long; where there are too many, the oldest is closed.

        False if a further request there has failed before.
        """
        if place in self._failed:
            return False
        self.drop(place)
        while len(self._waiting) >= self._most:
            self.drop(next(iter(self._waiting)))
        self._waiting[place] = wire, asyncio.get_running_loop().call_later(seconds, self.drop, place)
        return True

    def failed(self, place: Destination) -> None:
        """Note that a further request over a connection to *place* failed: some servers hang then, or garble it."""
        if len(self._failed) >= MAX_FAILED:
            self._failed.clear()
        self._failed.add(place)

    def take(self, place: Destination) -> Wire | None:
        """The connection to *place*, no longer kept; None if there is none, or its server has closed it."""
        if place not in self._waiting:
            return None
        wire, timer = self._waiting.pop(place)
        timer.cancel()
        if not wire.is_open:
            wire.abort()
            return None
        return wire

    def drop(self, place: Destination) -> None:
        if (wire := self.take(place)) is not None:
            wire.abort()

    def close(self) -> None:
        for place in list(self._waiting):
            self.drop(place)


@dataclass(slots=True)
class ConnectTarget:
    """Where a connection goes, and who is told of it."""

    place: Destination
    started: Callable[[str], None]
    """Called with the address once the connection's first packet is sent, or a further request over one that was kept,
    before any other task runs."""
    may_send: Callable[[], bool] = lambda: True  # whether the request may go over the connection that was made for it
    bind_address: tuple[str, int] | None = None
    tls: Sessions | None = None
    server_name: str = ""  # name in the TLS handshake

    async def connect(self) -> Wire:
        """A connection, whose first packet is sent before any other task runs.

        Raises UnsupportedURLSchemeError, DownloadConnectionRefusedError or NoDescriptor.
        """
        sock = None
        try:
            wire = Wire() if self.tls is None else TlsWire(self.tls, (self.server_name, self.place.port))
            sock = self._connecting()
            await asyncio.get_running_loop().create_connection(lambda: wire, sock=sock)
            wire.socket = sock
        except ValueError as error:
            raise UnsupportedURLSchemeError(f"no name for TLS: {error}") from error
        except NoDescriptor:
            raise
        except OSError as error:
            if sock is not None:
                sock.close()
            raise DownloadConnectionRefusedError(str(error)) from error
        return wire

    def _connecting(self) -> socket.socket:
        """A socket whose first packet is just sent; whether it connects, the first write or read says.

        No other task runs meanwhile, as it may in the event loop's ``sock_connect``: uvloop hands that to a thread.
        Raises OSError.
        """
        address = self.place.address
        sock = _socket(address)
        try:
            sock.setblocking(False)
            if self.bind_address is not None:
                sock.bind(self.bind_address)
            try:
                error = sock.connect_ex((address, self.place.port))
            finally:
                self.started(address)
            if error not in (0, errno.EINPROGRESS):
                raise OSError(error, f"{os.strerror(error)}: {address}:{self.place.port}")
        except BaseException:
            sock.close()
            raise
        return sock


def _socket(address: str) -> socket.socket:
    """A socket for TCP to *address*; raises NoDescriptor if it had a reserved one."""
    try:
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise NoDescriptor(*error.args) from error
        raise
    if is_reserved(sock.fileno()):
        sock.close()
        raise NoDescriptor(errno.EMFILE, os.strerror(errno.EMFILE))
    return sock


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def send(request: RawRequest, target: ConnectTarget, kept: Wire | None = None) -> RawResponse:
    """Send *request*, over the open connection *kept* if given; returns when the final headers are here.

    Raises UnsupportedURLSchemeError, DownloadConnectionRefusedError, TlsFailed, NoDescriptor, BadHttp or OSError.
    """
    sent = request.encode()
    wire = await target.connect() if kept is None else kept.next()
    try:
        transport = wire.transport
        if transport is None:
            await wire.read_head()
            raise ConnectionResetError("the server answered and left before it was asked")
        if not target.may_send():
            raise ConnectionAbortedError("the process was stopped before it asked")
        wire.has_body = request.method != "HEAD"
        wire.write(sent)
        if kept is not None:
            target.started(target.place.address)
        head = await wire.read_head()
    except OSError as error:
        wire.abort()
        if error.errno in _NEVER_MADE:
            raise DownloadConnectionRefusedError(f"{error}: {target.place.address}:{target.place.port}") from error
        raise
    except BaseException:
        wire.abort()
        raise
    return RawResponse(
        request=request,
        address=target.place.address,
        head=head,
        wire=wire,
    )


@contextmanager
def minimum_rate(wire: Wire, bytes_per_s: float, window_s: float) -> Iterator[None]:
    """Within it a body over *wire* that does not bring *bytes_per_s* in each window of *window_s* seconds is TooSlow.

    A window does not count if the event loop was late.
    """
    loop = asyncio.get_running_loop()
    before = wire.body_bytes
    timer = loop.call_later(window_s, lambda: look(loop.time()))
    due = loop.time() + window_s

    def look(now: float) -> None:
        nonlocal before, timer, due
        came = wire.body_bytes - before
        if came < bytes_per_s * window_s and now < due + window_s / 2:
            wire.end(TooSlow(f"{came} bytes in {window_s:g} s"))
        before = wire.body_bytes
        timer = loop.call_later(window_s, lambda: look(loop.time()))
        due = now + window_s

    try:
        yield
    finally:
        timer.cancel()
