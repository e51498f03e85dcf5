"""The wire between a simulated crawl and its web: connections in memory under the real download handler, and names.

Each connection is noted with its second.  Hosts may lie, by the web's ``manners``; the network may be away.  A
page that may change has an ETag, a Last-Modified, both or none, by which a request may ask whether it has.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter, deque
from email.utils import formatdate
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

from spiderling.fetch.client import ConnectTarget, Wire
from spiderling.fetch.errors import NameNotFound, NameServerFailure, NoDescriptor
from spiderling.fetch.resolver import Resolution
from tests.simulated import strange
from tests.simulated.clock import Clock
from tests.simulated.opt_outs import FILES, Heard
from tests.simulated.orders import Orders
from tests.simulated.web import Web

RETRY_AFTER_S = 30  # longer than a host rests by itself after such an answer
FORBIDDEN = ("10.0.0.1", "127.0.0.1", "169.254.169.254", "0.0.0.0", "::1")  # addresses that no crawl may connect to
HEAD_END = b"\r\n\r\n"


class Start(NamedTuple):
    """A connection that was opened, or a further request over one."""

    time: float
    host: str
    address: str


class Away(NamedTuple):
    """When the network is away, in seconds after the start of a session."""

    begin_s: float = 0.0
    end_s: float = 0.0
    names_answer: bool = False  # whether a name server near by still answers, as a router does from what it remembers


class Network:
    """All hosts of a web, and what was sent to them."""

    def __init__(self, web: Web, clock: Clock, rng: Random, changes: bool = False) -> None:
        """*changes*: whether pages may change."""
        self.web = web
        self._changes = changes
        self.clock = clock
        self.rng = rng
        self.starts: list[Start] = []
        self.asked: list[str] = []  # the URLs
        self.open: Counter[str] = Counter()  # host -> requests in transit
        self.impolite: list[str] = []  # what was asked when it should not have been
        self.heard = Heard(web)
        self.orders = Orders()
        self.away = Away()  # in seconds of the clock
        self._quiet_until: dict[str, float] = {}  # host -> until when it asked to be left alone
        self._untold: dict[str, float] = {}  # the same of answers that are not over

    @property
    def is_away(self) -> bool:
        return self.away.begin_s <= self.clock.now < self.away.end_s

    def lie_of(self, host: str) -> str:
        """How *host* misbehaves at this moment; '' for not at all."""
        manner = self.web.manners.get(host)
        return manner.kind if manner is not None and self.rng.random() < manner.share else ""

    async def resolve(self, name: str) -> Resolution:
        await asyncio.sleep(self.rng.choice((0.0, 0.02, 0.5)))
        if self.is_away and not self.away.names_answer:
            self.heard.failed(name, self.clock.now)
            raise NameServerFailure(f"{name}: no name server answers")
        lie = self.lie_of(name)
        if lie == "servfail":
            raise NameServerFailure(f"{name}: SERVFAIL")
        if name not in self.web.addresses or lie == "unnamed":
            raise NameNotFound(f"{name} has no address")
        addresses = self.web.addresses[name]
        if lie == "inside":
            addresses = (self.rng.choice(FORBIDDEN), *addresses[: self.rng.randint(0, 1)])
        return Resolution(addresses, self.rng.choice((60.0, 3600.0)), is_asked=True)

    async def connect(self, target: ConnectTarget) -> Wire:
        """What `ConnectTarget.connect` does: the first packet is sent before any other task runs."""
        address = target.place.address
        if self.rng.random() < 0.01:
            self.heard.failed(target.place.name, self.clock.now)
            raise NoDescriptor(errno.EMFILE, "too many open files")
        wire = Wire()
        target.started(address)
        host = target.place.name
        self._note_start(host, address)
        if address not in self.web.addresses.get(host, ()):
            self.impolite.append(f"{address} was connected to, as an address of {host}")
        await asyncio.sleep(0)
        wire.connection_made(Connection(self, wire, host, address))
        return wire

    def _note_start(self, host: str, address: str) -> None:
        self.starts.append(Start(self.clock.now, host, address))
        self.open[host] += 1
        if host in self.web.manners:
            return
        if self.open[host] > 1:
            self.impolite.append(f"{host} was asked while it answered")
        if self.clock.now < self._quiet_until.get(host, 0.0):
            self.impolite.append(f"{host} was asked though its Retry-After is not over")
        self.impolite += self.orders.wrong(host, self.clock.now)

    def note_further(self, host: str, address: str, before: str, path: str) -> None:
        """Another request came over a connection, after that for *before*; files are one visit (docs/opt-outs.md)."""
        if before in FILES and path in FILES:
            self.open[host] += 1
        else:
            self._note_start(host, address)

    def pieces_of(self, host: str, path: str, request: bytes) -> tuple[list[bytes], bool] | None:
        """What is sent, and whether the connection is closed then; None: it is refused."""
        url = f"http://{host}{path}"
        self.asked.append(url)
        self.impolite += self.heard.wrong(host, path, self.clock.now)
        lie = self.lie_of(host)
        if lie == "refuses":
            return None
        if lie == "hangs":
            return [], False
        if lie == "strange":
            status, headers = strange.head(self.rng)
            data, closes = self._framed(status, headers, strange.body(self.rng, path))
        elif self._changes and self._is_unchanged(url, request):
            said = "".join(f"\r\n{name}: {value}" for name, value in _opt_out(self.web.answers[url].said))
            head = f"HTTP/1.1 304 .\r\nContent-Length: 400{said}".encode()  # the length of what it does not send
            data, closes = head + HEAD_END, False
        else:
            data, closes = self._framed(*self._answer(url))
        if lie == "cuts":
            return self._split(data[: self.rng.randrange(len(data))]), True
        if lie == "forges":
            for true in (b"Content-Length: ", b"\r\n\r\n", b"\r\n0\r\n"):
                data = data.replace(true, true + self.rng.choice((b"9", b"-", b"0", b"", b"f")), 1)
            closes = self.rng.random() < 0.7
        if lie == "garbles":
            data = strange.garbled(self.rng, data, data.find(HEAD_END) + len(HEAD_END))
        if lie == "drips":
            return [data[:90], *(data[at : at + 3] for at in range(90, min(len(data), 300), 3))], False
        return self._split(data), closes

    def _is_unchanged(self, url: str, request: bytes) -> bool:
        """Whether *request* names the validators of the page as it is now."""
        answer = self.web.answers.get(url)
        sent = _validators(url, answer.text) if answer is not None else []
        asked = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        return bool(sent) and all(f"{asked[name]}: {value}".encode() in request.split(b"\r\n") for name, value in sent)

    def _answer(self, url: str) -> tuple[int, list[tuple[str, str]], bytes]:
        answer = self.web.answer(url)
        kinds = {"robots.txt": "text/plain", "sitemap.xml": "application/xml"}
        headers = [("Content-Type", kinds.get(url.rpartition("/")[2], "text/html; charset=utf-8"))]
        if self._changes:
            headers += _validators(url, answer.text)
        headers += _opt_out(answer.said)
        if answer.location:
            headers.append(("Location", answer.location))
        host = urlsplit(url).hostname or ""
        self._untold.pop(host, None)  # that answer was broken off
        if answer.status == 503:
            headers.append(("Retry-After", str(RETRY_AFTER_S)))
            self._untold[host] = self.clock.now + RETRY_AFTER_S
        return answer.status, headers, answer.text.encode()

    def _framed(self, status: int, headers: list[tuple[str, str]], body: bytes) -> tuple[bytes, bool]:
        """The bytes of an answer, and whether its end is that of the connection."""
        framing = self.rng.choice(("length", "length", "chunked", "closed"))
        if framing == "length":
            headers = [*headers, ("Content-Length", str(len(body)))]
        elif framing == "chunked":
            headers = [*headers, ("Transfer-Encoding", "chunked")]
            cut = self.rng.randint(0, len(body))
            parts = [part for part in (body[:cut], body[cut:]) if part]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        closes = framing == "closed" or self.rng.random() < 0.3
        if closes:
            headers = [*headers, ("Connection", "close")]
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("utf-8", "surrogatepass")
        return b"HTTP/1.1 %d .\r\n%b\r\n%b" % (status, lines, body), closes

    def _split(self, data: bytes) -> list[bytes]:
        cuts = sorted(self.rng.randrange(len(data) + 1) for _ in range(self.rng.choice((0, 0, 1, 3))))
        pieces = (data[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True))
        return [piece for piece in pieces if piece]

    def note_sent(self, host: str, path: str) -> None:
        """All of the answer of *host* to a request for *path* was sent."""
        self.heard.sent(host, path, self.clock.now)
        if host in self._untold:
            self._quiet_until[host] = self._untold.pop(host)

    def forget_open(self) -> None:
        """The process is gone, and with it its connections, and what it was told after its last checkpoint."""
        self.open.clear()
        self._quiet_until.clear()
        self._untold.clear()


def _opt_out(said: str) -> list[tuple[str, str]]:
    """The header that *said* is, if it is any."""
    name, _, value = said.partition(": ")
    return [(name, value)] if name else []


def _validators(url: str, text: str) -> list[tuple[str, str]]:
    """The headers that tell this *text* of a page from a later one; by the URL both, one or none."""
    mark, kind = crc32(text.encode()), crc32(url.encode())
    both = (("ETag", f'"{mark}"'), ("Last-Modified", formatdate(mark % 10**9, usegmt=True)))
    return [header for number, header in enumerate(both) if text and kind >> number & 1]


class Connection(asyncio.Transport):
    """The server's side of a connection: it answers one request after the other."""

    def __init__(self, network: Network, wire: Wire, host: str, address: str) -> None:
        super().__init__()
        self._network = network
        self._wire = wire
        self._host = host
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._path = ""  # that was asked for last
        self._to_send: deque[bytes] = deque()
        self._is_answering = True  # whether a request is in transit, as the first is from the connection on
        self._requests = 0
        self._closes = False
        self._is_closed = False
        self._is_paused = False

    def write(self, data: Any) -> None:
        self._received += bytes(data)
        if HEAD_END not in self._received or self._is_closed:
            return
        request, _, self._received = self._received.partition(HEAD_END)
        before, path = self._path, request.split(b" ")[1].decode("latin-1")
        self._path = path
        self._requests += 1
        if self._requests > 1:
            self._is_answering = True
            self._network.note_further(self._host, self._address, before, path)
        self._loop.call_later(self._network.rng.choice((0.01, 0.05, 0.2, 1.5)), self._answer, path, request)

    def _answer(self, path: str, request: bytes) -> None:
        network = self._network
        if self._is_closed:
            return
        if network.is_away:
            if network.rng.random() < 0.5:
                self._lose(ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
            return
        found = network.pieces_of(self._host, path, request)
        if found is None:
            self._lose(ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
            return
        pieces, self._closes = found
        self._to_send.extend(pieces)
        self._send()

    def _send(self) -> None:
        if self._is_closed or self._network.is_away:
            return
        if self._to_send and not self._is_paused:
            data = self._to_send.popleft()
            if not self._to_send:
                self._end_request()
                self._network.note_sent(self._host, self._path)
            if data:
                self._wire.data_received(data)
        if self._to_send:
            self._loop.call_later(self._network.rng.choice((0.0, 0.01, 0.3)), self._send)
        elif self._closes:
            self._lose(None)

    def _end_request(self) -> None:
        if self._is_answering:
            self._is_answering = False
            self._network.open[self._host] -= 1

    def _lose(self, error: Exception | None) -> None:
        if self._is_answering:
            self._network.heard.failed(self._host, self._network.clock.now)
        self._end_request()
        if not self._is_closed:
            self._is_closed = True
            self._loop.call_soon(self._wire.connection_lost, error)

    def abort(self) -> None:
        self._lose(None)

    close = abort

    def is_closing(self) -> bool:
        return self._is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self._address, 80) if name == "peername" else default

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._send)
