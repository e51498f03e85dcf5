"""A small HTTP/1.1 server that puts a Web on loopback: one port, many addresses, hosts told apart by name.

    async with serve(web, log=Path("access.tsv")) as server:
        server.port, server.hosts_option, server.log_entries

    python -m webs.server --web DIR|synthetic:HOSTS[:SEED] --ready-file F --log F

It binds each address of the web by itself, never 0.0.0.0.  The access log has one line for
each request, written when the answer ends, so sort it by its first column.  Columns, separated
by tabs: time of arrival (seconds of the monotonic clock), local address, host, method, path,
status, bytes of the body sent.  Linux tells when the head arrived, so the times are right
even when the server is late.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.files import write_whole
from webs.messages import Request, parse_head, render
from webs.recorded import RecordedWeb
from webs.synthetic import SyntheticWeb, read_words
from webs.web import Web, WebResponse

MAX_HEAD_BYTES = 65_536
"""Bytes of a request's head above which the client is cut off (chosen)."""
PIECE_BYTES = 64
"""Bytes that a trickling answer sends at a time (chosen)."""
_RECEIVED_AT = 52
"""Offset in bytes of tcpi_last_data_recv, in milliseconds, in Linux's struct tcp_info."""
_TOGETHER_S = 0.001
"""Seconds within which the clock and the socket have to be read: a process that has to wait between the two for its
turn would date the request that much too early.  The milliseconds of tcp_info are no finer."""
_READINGS = 20  # how often both are read for that, on a machine that is ever so busy (chosen)
_MODELS = Path(__file__).resolve().parents[1] / "models"


class LogEntry(NamedTuple):
    """One request; ``time_s`` is ``time.monotonic()``."""

    time_s: float
    address: str
    host: str
    method: str
    path: str
    status: int
    body_bytes: int


class AccessLog:
    """Stores entries in memory, in a file, or both."""

    def __init__(self, path: Path | None, keep: bool) -> None:
        self.entries: list[LogEntry] = []
        self._keep = keep
        self._file = path.open("w", encoding="utf-8", buffering=1) if path else None

    def write(self, entry: LogEntry) -> None:
        if self._keep:
            self.entries.append(entry)
        if self._file is not None:
            self._file.write(f"{entry.time_s:.6f}\t" + "\t".join(map(str, entry[1:])) + "\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Server:
    """A running server; made by ``serve``."""

    def __init__(self, web: Web, log: AccessLog) -> None:
        self.web = web
        self.port = 0
        self.connections: set[Connection] = set()
        self.log = log
        self._listeners: list[asyncio.AbstractServer] = []

    @property
    def log_entries(self) -> list[LogEntry]:
        """The requests answered up to now, in order of their arrival."""
        return sorted(self.log.entries, key=lambda entry: entry.time_s)

    @property
    def hosts_option(self) -> str:
        """The value for SPIDERLING_HOSTS."""
        return ",".join(f"{glob}={address}:{self.port}" for glob, address in self.web.globs().items())

    async def start(self, port: int) -> None:
        """Listen; port 0 chooses one that is free on every address.  Raises BadInput when the port is taken."""
        loop = asyncio.get_running_loop()
        sockets = bind_all(sorted(set(self.web.hosts().values())), port)
        self.port = sockets[0].getsockname()[1]
        self._listeners = [await loop.create_server(self.connection, sock=sock, backlog=1024) for sock in sockets]

    def connection(self) -> Connection:
        """What answers a new client."""
        return Connection(self)

    async def stop(self) -> None:
        """Close the sockets and cut what is still being sent."""
        for listener in self._listeners:
            listener.close()
        senders = [connection.abort() for connection in list(self.connections)]
        # they write their lines before the log is closed
        await asyncio.gather(*filter(None, senders), return_exceptions=True)
        self.log.close()


def bind_all(addresses: Sequence[str], port: int, attempts: int = 20) -> list[socket.socket]:
    """One socket for each address, all on one port.  Raises BadInput."""
    for attempt in range(attempts):
        chosen = port
        sockets = []
        try:
            for address in addresses:
                sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                sockets.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((address, chosen))
                chosen = sock.getsockname()[1]
            return sockets
        except OSError as error:
            for sock in sockets:
                sock.close()
            if port or attempt == attempts - 1:
                raise BadInput(f"cannot listen on {address}:{chosen} ({error.strerror}); try --port 0.") from None
    raise BadInput("the simulated web has no hosts, so there is nothing to listen on.")


class Connection(asyncio.Protocol):
    """One client, whose requests are answered one after another."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._arrival = 0.0
        self._sender: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._address = str(transport.get_extra_info("sockname")[0])
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._drained.set()
        if self._sender is not None:
            self._sender.cancel()

    def abort(self) -> asyncio.Task[None] | None:
        """Cut the connection; returns the sending task that still has to end, if any."""
        self._transport.abort()
        return self._sender

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        arrival = arrival_s(self._transport.get_extra_info("socket"))
        self._arrival = max(self._arrival, arrival)  # of the system's milliseconds two requests may share one
        self._buffer += data
        if len(self._buffer) > MAX_HEAD_BYTES:
            self._transport.abort()
        else:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        while self._sender is None and not self._transport.is_closing():
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self._buffer = rest
            self._answer(head, self._arrival)

    def _answer(self, head: bytes, now: float) -> None:
        request = parse_head(head)
        if request is None or request.method not in ("GET", "HEAD"):
            response = WebResponse(400 if request is None else 405)
            request = Request("-", "-", "-", False, False)
        else:
            response = self._server.web.respond(request.host, request.path)
            if request.known and request.known == response.headers.get("ETag"):
                response = WebResponse(304, {"ETag": request.known})
        if response.delay_s or response.trickle_s or response.endless:
            self._sender = asyncio.get_running_loop().create_task(self._send_slowly(request, response, now))
            return
        header, body = render(request, response)
        self._transport.write(header + body)
        self._ended(request, response, now, len(body))

    async def _send_slowly(self, request: Request, response: WebResponse, now: float) -> None:
        sent = 0
        try:
            await asyncio.sleep(response.delay_s)
            header, body = render(request, response)
            self._transport.write(header)
            size = PIECE_BYTES if response.trickle_s else max(len(body), 1)
            while body:
                for start in range(0, len(body), size):
                    piece = body[start : start + size]
                    self._transport.write(piece)
                    sent += len(piece)
                    await self._drained.wait()
                    await asyncio.sleep(response.trickle_s)
                if not response.endless:
                    break
        finally:
            self._ended(request, response, now, sent)
        self._sender = None
        self._answer_waiting()

    def _ended(self, request: Request, response: WebResponse, now: float, sent: int) -> None:
        entry = LogEntry(now, self._address, request.host, request.method, request.path, response.status, sent)
        self._server.log.write(entry)
        if not request.keep_alive or response.endless or response.claimed_bytes is not None:
            self._transport.close()


def arrival_s(sock: socket.socket) -> float:
    """When data last arrived at a TCP socket, in seconds of the monotonic clock; now, if the system does not tell."""
    for _ in range(_READINGS):
        now = time.monotonic()
        waited = waited_s(sock)
        if time.monotonic() - now < _TOGETHER_S:
            break
    return now - waited


def waited_s(sock: socket.socket) -> float:
    """Seconds since data last arrived at a TCP socket (``tcpi_last_data_recv``); 0 if the system does not tell."""
    info = getattr(socket, "TCP_INFO", None)
    try:
        data = sock.getsockopt(socket.IPPROTO_TCP, info, _RECEIVED_AT + 4) if sys.platform == "linux" and info else b""
    except OSError:
        return 0.0
    return int.from_bytes(data[_RECEIVED_AT:], sys.byteorder) / 1000 if len(data) == _RECEIVED_AT + 4 else 0.0


@asynccontextmanager
async def serve(web: Web, port: int = 0, log: Path | None = None, keep_log: bool = True) -> AsyncIterator[Server]:
    """Serve *web* until the block is left.  *log*: file for the access log; *keep_log*: fill ``log_entries``."""
    server = Server(web, AccessLog(log, keep_log))
    await server.start(port)
    try:
        yield server
    finally:
        await server.stop()


def open_web(text: str, models: Path = _MODELS) -> Web:
    """The web that ``--web`` names: a directory, or ``synthetic:HOSTS[:SEED]``.  Raises BadInput."""
    if not text.startswith("synthetic:"):
        return RecordedWeb(Path(text))
    numbers = text.split(":")[1:]
    if len(numbers) not in (1, 2) or not all(number.isdecimal() for number in numbers):
        raise BadInput(f"--web is {text!r}; a synthetic web is written synthetic:HOSTS or synthetic:HOSTS:SEED.")
    return SyntheticWeb(int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else 1, read_words(models))


async def _run(web: Web, port: int, ready_file: Path | None, log: Path | None) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with serve(web, port, log, keep_log=False) as server:
        ready = json.dumps({"port": server.port, "pid": os.getpid(), "hosts": server.hosts_option})
        if ready_file is None:
            print(ready, flush=True)
        else:
            write_whole(ready_file, ready)  # so that nobody reads half of it
        await ended.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m webs.server",
        description="Serve a recorded or synthetic web on loopback addresses until SIGTERM or Ctrl-C.",
        epilog="example: python -m webs.server --web examples/miniweb --ready-file ready.json",
    )
    parser.add_argument(
        "--web", required=True, help="a directory with sites.csv and pages.tar.zst, or synthetic:HOSTS[:SEED]"
    )
    parser.add_argument("--port", type=int, default=0, help="0 (default) chooses a free one")
    parser.add_argument("--ready-file", type=Path, help="written when all addresses listen: JSON {port, pid, hosts}")
    parser.add_argument("--log", type=Path, help="access log, tab-separated")
    parser.add_argument("--models", type=Path, default=_MODELS, help="directory of LANG/words.txt for a synthetic web")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_run(open_web(options.web, options.models), options.port, options.ready_file, options.log))
    except (SpiderlingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
