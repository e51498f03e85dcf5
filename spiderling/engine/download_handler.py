"""The download handler: each request goes over a connection to exactly the judged address.

A connection is kept for the host's next request if that is due while its server leaves it open.

The client (fetch/client.py) is given addresses; the name goes only into the Host header and the TLS handshake.  So
nobody resolves the name anew between the judgement of an address and the socket (DNS rebinding).  Everything that a
server sends is limited in size and time (docs/limits.md), and every failure is one of the errors in fetch/errors.py.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import math
import time
from typing import Any

from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadCancelledError, ResponseDataLossError, StopDownload
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from twisted.python.failure import Failure

from spiderling import signals as our_signals
from spiderling.base.addresses import literal_address
from spiderling.base.machine import descriptor_limit, running_time
from spiderling.base.outcome import Exchange
from spiderling.base.reasons import Reason
from spiderling.corpus.warc import EXCHANGE
from spiderling.engine.component import dispatcher_of
from spiderling.engine.dispatcher import Dispatcher
from spiderling.engine.outcomes import ResponseHeads
from spiderling.fetch import errors, tls
from spiderling.fetch.client import ConnectTarget, Destination, Pool, RawResponse, minimum_rate, send
from spiderling.fetch.messages import ACCEPT_ENCODING, BodyDecoder, RawRequest, UrlParts

_ip_address = functools.lru_cache(4096)(ipaddress.ip_address)
KEPT_S = 2.0
"""Seconds for which a connection waits for a request that is due; chosen: in a crawl of shards that waits for a slot,
half a second and more."""
MAX_KEPT = 500
"""Connections that wait, at most, and no more than an eighth of the descriptors (chosen; over TLS each takes 60 kB)."""
FIRST_BYTE_TIMEOUT_S = 30.0  # seconds until the headers are complete, connecting and TLS included; chosen
MIN_BYTES_PER_S = 100.0  # a slower body is given up, so that a server cannot hold a connection open; chosen
SLOW_WINDOW_S = 10.0  # seconds over which MIN_BYTES_PER_S is measured; chosen: shorter pauses are usual
_USUAL_BYTES = 100  # most bytes of a Content-Type whose class is remembered; chosen
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_NOT_SENT = frozenset(
    b"Proxy-Authorization Accept-Encoding Host Connection Content-Length Transfer-Encoding Expect".split()
)


class DownloadHandler(BaseDownloadHandler):
    """Scrapy download handler for ``http`` and ``https``.

    Reads from ``request.meta``: ``address`` (the IP address to connect to), ``judge_type`` (refuse an unwanted type),
    ``verbatim_url``, ``download_timeout`` and ``download_maxsize`` (may lower the limits), and
    ``download_fail_on_dataloss``.  Writes ``wire_bytes`` (bytes of the body as received, before it is decoded; also
    when the request failed), ``download_latency`` (seconds), and ``is_open`` if the connection is kept.
    """

    lazy = True

    def __init__(self, crawler: Crawler, gate: Dispatcher) -> None:
        """*gate* says when a connection may be opened."""
        super().__init__(crawler)
        self._gate = gate
        self._crawl = crawl = gate.crawl
        self._options = crawl.options
        self._heads = ResponseHeads(crawl.options, crawl.documents)
        self._fail_on_dataloss = crawler.settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._tls_sessions = tls.Sessions(tls.context(crawler.settings))
        bind = crawler.settings.get("DOWNLOAD_BIND_ADDRESS")
        self._bind_address = (bind, 0) if isinstance(bind, str) else bind
        self._transfers: set[asyncio.Task[Any]] = set()
        self._running = running_time()
        self._pool = Pool(min(MAX_KEPT, descriptor_limit() // 8))
        self._is_cutting = False
        crawler.signals.connect(self._cut, our_signals.transfers_cut)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DownloadHandler:
        """How Scrapy makes it, with the first request: the crawl is open by then."""
        return cls(crawler, dispatcher_of(crawler))

    async def download_request(self, request: Request) -> Response:
        """The response to *request*, its body decoded; raises only download errors (fetch/errors.py)."""
        request.meta["wire_bytes"] = 0
        stopped_s = self._running.stopped_s()
        task = asyncio.current_task()
        assert task is not None
        self._transfers.add(task)
        try:
            return await self._fetch(request)
        except asyncio.CancelledError:
            if self._is_cutting:
                raise errors.TransferCut(f"{request.url}: the crawl is being stopped") from None
            raise
        except Exception as error:  # nothing that a server sends may stop the crawl
            if isinstance(error, errors.NoDescriptor):
                self._pool.close()
                self._gate.rest()
            known = errors.translate(error, request.url)
            was_stopped = not self._may_send(stopped_s)
            if was_stopped and self._gate.waits_again(request) and errors.is_of_the_connection(known):
                raise errors.TransferCut(f"{request.url}: the process was stopped meanwhile ({known})") from None
            raise known from (None if known is error else error)
        finally:
            self._transfers.discard(task)

    def _cut(self) -> None:
        """End all transfers: the time that they had to finish after a stop is over."""
        self._is_cutting = True
        for task in self._transfers:
            task.cancel()

    async def close(self) -> None:
        """Close all connections."""
        self._cut()
        self._pool.close()

    async def _fetch(self, request: Request) -> Response:
        if request.meta.get("proxy"):
            raise DownloadCancelledError("A proxy cannot be used: connections go to the judged address.")
        url = UrlParts.of(request.url, bool(request.meta.get("verbatim_url")))
        target = await self._connect_target(url, request)
        total_s = min(self._options.timeout_s, request.meta.get("download_timeout") or self._options.timeout_s)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        until = begin + min(FIRST_BYTE_TIMEOUT_S, total_s)
        await self._its_turn(request, until)
        raw_response = await self._exchange(url, request, target, until)
        request.meta["download_latency"] = loop.time() - begin
        try:
            async with asyncio.timeout_at(begin + total_s):
                with minimum_rate(raw_response.wire, MIN_BYTES_PER_S, SLOW_WINDOW_S):
                    return await self._response(raw_response, request)
        finally:
            request.meta["wire_bytes"] = raw_response.wire.body_bytes
            self._leave(raw_response, target.place, request)
            self._crawl.times.download.add(loop.time() - begin)

    async def _exchange(self, url: UrlParts, request: Request, target: ConnectTarget, until: float) -> RawResponse:
        """The head of the response, over a connection that was kept if there is one; raises as `send`.

        If a request that is not the first over its connection fails, its URL waits again.
        """
        kept = self._pool.take(target.place)
        goes_on = kept is not None or self._gate.goes_on(request)
        may_go_on = self._gate.asked_again_in(request) < math.inf
        try:
            if kept is None and goes_on:
                raise ConnectionResetError("the server has closed the connection")
            async with asyncio.timeout_at(until):
                return await send(_raw_request(url, request, may_go_on), target, kept)
        except BaseException as error:
            if kept is not None:
                kept.abort()
                self._pool.failed(target.place)
            if goes_on and isinstance(error, Exception):
                raise errors.TransferCut(f"{request.url}: asked again over a new connection ({error!r})") from None
            raise

    def _leave(self, raw_response: RawResponse, place: Destination, request: Request) -> None:
        """Keep the connection if its server leaves it open until the host's next request is due, else close it."""
        wire = raw_response.wire
        if wire.is_open and raw_response.address == place.address:
            seconds = KEPT_S + self._gate.asked_again_in(request)
            if seconds <= raw_response.head.stays_open_s and self._pool.keep(place, wire, seconds):
                request.meta["is_open"] = True
                return
        wire.abort()

    async def _connect_target(self, url: UrlParts, request: Request) -> ConnectTarget:
        """Where to connect to; raises as `_where`."""
        address, port = await self._where(url, request)
        target = ConnectTarget(
            Destination(url.is_https, url.name, address, port),
            functools.partial(self._gate.started, request),
            # what was about to be asked before a stop may be another process' by now
            functools.partial(self._may_send, self._running.stopped_s()),
            self._bind_address,
        )
        if url.is_https:
            target.tls = self._tls_sessions
            target.server_name = url.name if literal_address(url.name) is None else address
        return target

    def _may_send(self, stopped_s: float) -> bool:
        return self._running.stopped_s() <= stopped_s and self._gate.is_ours()

    async def _where(self, url: UrlParts, request: Request) -> tuple[str, int]:
        """The address and the port to connect to; raises AddressForbidden or as `Resolver.resolve`."""
        name = url.name
        given = request.meta.get("address")
        known = (str(given),) if given else (await self._gate.resolver.resolve(name)).addresses
        address = next(filter(self._crawl.addresses.allows, known), None)
        if address is None:
            raise errors.AddressForbidden(
                f"{name} is at {', '.join(known)}; only networks of SPIDERLING_ALLOW_NETWORKS and, "
                "with SPIDERLING_CONTACT, public addresses may be fetched."
            )
        mapped = self._gate.host_map.lookup(name)
        port = (mapped and mapped.port) or url.port or (443 if url.is_https else 80)
        return address, port

    async def _its_turn(self, request: Request, until: float) -> None:
        """Wait until the address is due.

        It is due later than the frontier has planned if an earlier connection to it was opened late, or its interval
        has grown.  Raises TransferCut if it is not due *until* then, in the event loop's time.
        """
        while (seconds := self._gate.connect_in(request)) > 0:
            if asyncio.get_running_loop().time() + seconds >= until:
                raise errors.TransferCut(f"{request.url}: its address is not due for long")
            await asyncio.sleep(seconds)

    async def _response(self, raw_response: RawResponse, request: Request) -> Response:
        headers = Headers()
        head = raw_response.head
        for name, value in head.headers:  # as Headers(...) does, at a third of its time
            dict.setdefault(headers, name.title(), []).append(value)
        limit = self._heads.judge(head, headers, request)
        decoder = BodyDecoder(b",".join(dict.get(headers, b"Content-Encoding", ())), limit)
        if decoder.is_hopeless:
            raise errors.ResponseRefused(
                Reason.UNDECODABLE, f"{request.url} is encoded too often, or as nobody asked for."
            )
        give_out = functools.partial(_make_response, raw_response, headers, request.url)
        stop = self._stop_by(signals.headers_received, request, headers=headers, body_length=head.length)
        if stop is not None:
            return give_out(stop_download=stop)
        archives = self._options.warc != "off"
        raw: list[bytes] | None = [] if archives and decoder.changes else None
        body, flags, stop = await self._body(raw_response, request, decoder, limit, raw)
        self._heads.judge_body(head, headers, request, body)
        if archives:
            received = body if raw is None else b"".join(raw)
            truncated = "disconnect" if flags else "unspecified" if stop else ""
            request.meta[EXCHANGE] = exchange_with(request, raw_response, received, truncated)
        if decoder.understood:
            headers.pop(b"Content-Encoding", None)
            headers.pop(b"Content-Length", None)
        return give_out(body=body, flags=flags, stop_download=stop)

    def _stop_by(self, signal: object, request: Request, **facts: Any) -> StopDownload | None:
        """What the receiver of *signal* raises that wants no more of this download."""
        send = self.crawler.signals.send_catch_log
        for _, came in send(signal, request=request, spider=self.crawler.spider, **facts):
            if isinstance(came, Failure) and isinstance(came.value, StopDownload):
                return came.value
        return None

    async def _body(
        self, raw_response: RawResponse, request: Request, decoder: BodyDecoder, limit: int, raw: list[bytes] | None
    ) -> tuple[bytes, list[str], StopDownload | None]:
        """The decoded body, Scrapy's flags for it, and the StopDownload of a receiver of signals.

        *raw*, if given, gets the body as received.
        """
        pieces: list[bytes] = []
        wire = raw_response.wire
        try:
            while chunk := await wire.read():
                if raw is not None:
                    raw.append(chunk)
                pieces.append(decoder.decode(chunk))
                if wire.body_bytes > limit:
                    raise errors.ResponseRefused(Reason.TOO_BIG, f"{request.url} is larger than {limit} bytes.")
                stop = self._stop_by(signals.bytes_received, request, data=chunk)
                if stop is not None:
                    return b"".join(pieces), [], stop
        except ResponseDataLossError:
            if request.meta.get("download_fail_on_dataloss", self._fail_on_dataloss):
                raise
            return b"".join(pieces), ["dataloss"], None
        return b"".join(pieces), [], None


def _raw_request(url: UrlParts, request: Request, may_go_on: bool) -> RawRequest:
    """*request* as it is sent; *may_go_on*: another may follow over the connection."""
    given = request.headers
    headers = [(b"Host", given.get(b"Host") or url.authority.encode())]
    headers += [(name, value) for name, values in dict.items(given) if name not in _NOT_SENT for value in values]
    headers.append((b"Accept-Encoding", ACCEPT_ENCODING.encode()))
    if request.body or request.method in _WITH_BODY:
        headers.append((b"Content-Length", b"%d" % len(request.body)))
    headers.append((b"Connection", b"keep-alive" if may_go_on else b"close"))
    return RawRequest(request.method, url.target, headers, request.body)


def _make_response(
    raw_response: RawResponse,
    headers: Headers,
    url: str,
    body: bytes = b"",
    flags: list[str] | None = None,
    stop_download: StopDownload | None = None,
) -> Response:
    """The response, made as Scrapy does but without a copy of *headers*; raises *stop_download* if that asks for it."""
    response = _response_class(headers, url, body)(
        url,
        raw_response.head.status,
        body=body,
        flags=[*(flags or []), "download_stopped"] if stop_download else flags,
        ip_address=_ip_address(raw_response.address),
        protocol=raw_response.head.version,
    )
    response.headers = headers
    if stop_download and stop_download.fail:
        stop_download.response = response
        raise stop_download
    return response


def _response_class(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Scrapy's class for such a response."""
    content_type = (dict.get(headers, b"Content-Type") or [b""])[-1]
    if 0 < len(content_type) <= _USUAL_BYTES and b"Content-Encoding" not in headers:
        found = _class_of(content_type)
        if found is not Response:
            return found
    return responsetypes.from_args(headers=headers, url=url, body=body)


_class_of = functools.lru_cache(1024)(responsetypes.from_content_type)


def exchange_with(request: Request, raw_response: RawResponse, body: bytes, truncated: str) -> Exchange:
    """What went over the wire, for the archive; another thread writes the heads out later."""
    return Exchange(
        url=request.url,
        began=time.time(),
        took_s=request.meta["download_latency"],
        address=raw_response.address,
        request=raw_response.request,
        status_line=raw_response.head.status_line,
        headers=raw_response.head.headers,
        body=body,
        truncated=truncated,
    )
