"""The download handler: one request over one fresh connection to exactly the judged address.

The URL's host is replaced by the address before the client sees it, and the name goes
into the Host header and the TLS handshake: nothing between the judgement and the socket
can resolve the name anew (DNS rebinding).  Everything that a server sends is limited in
size and time, and whatever goes wrong comes out as one of Scrapy's download errors:

    ResponseRefused               we do not want it: not text, or too big (never worth a retry)
    AddressForbidden              the address may not be fetched (same)
    TransferCut                   the crawl is being stopped
    DownloadTimeoutError          no headers, or no complete body, in time
    CannotResolveHostError        only for requests without ``meta["address"]``
    DownloadConnectionRefusedError, ResponseDataLossError, DownloadFailedError

Two private attributes of aiohttp are used, ``connector._factory`` and
``session._retry_connection``; tests/test_handler.py fails if they lose their meaning.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from scrapy import signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers
from scrapy.utils._download_handlers import check_stop_download, make_response, normalize_bind_address
from scrapy.utils.ssl import _make_ssl_context

from spiderling import filetypes
from spiderling import signals as our_signals
from spiderling.addresses import AddressPolicy, HostMap, literal_address
from spiderling.converter import usable
from spiderling.decoding import ACCEPT_ENCODING, BodyDecoder, DecodedTooBig
from spiderling.options import Options
from spiderling.reasons import Reason
from spiderling.resolver import NameNotFound, NameServerFailure, Resolver

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

MAX_HEADERS = 256
MAX_HEADER_BYTES = 65_536
MAX_HEAD_BYTES = 1_000_000
"""What may come besides the body: interim (1xx) responses, headers, chunk extensions, trailers."""

_TEXT_TYPES = frozenset({b"text/html", b"application/xhtml+xml", b"application/vnd.wap.xhtml+xml", b"text/plain"})


class AddressForbidden(DownloadCancelledError):
    """The request's address is not one that may be connected to."""

    reason = Reason.ADDRESS_FORBIDDEN


class ResponseRefused(DownloadCancelledError):
    """The response is not wanted; the rest of it was not read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TransferCut(DownloadCancelledError):
    """The transfer was ended because the crawl is being stopped; its URL waits again."""


class DownloadHandler(BaseDownloadHandler):
    """Scrapy download handler for ``http`` and ``https``.

    Reads from ``request.meta``: ``address`` (the IP address to connect to), ``judge_type`` (refuse
    what is not text at the headers), ``verbatim_url``, ``download_timeout`` and ``download_maxsize``
    (may lower the limits), ``download_fail_on_dataloss``.  Writes ``wire_bytes`` (body bytes as
    received, before content decoding; also when the request failed) and ``download_latency``.
    """

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._options = Options.from_settings(crawler.settings)
        self._documents = usable(filetypes.parse(self._options.documents))[0]
        self._host_map = HostMap.parse(self._options.hosts)
        self._policy = AddressPolicy.parse(self._options.allow_networks, public=bool(self._options.contact))
        self._resolver = Resolver(self._host_map, self._options.nameservers)
        self._fail_on_dataloss = crawler.settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._ssl_context = _make_ssl_context(crawler.settings)
        self._session = _session(crawler.settings.get("DOWNLOAD_BIND_ADDRESS"))
        self._transfers: set[asyncio.Task[Any]] = set()
        self._is_cutting = False
        crawler.signals.connect(self._cut, our_signals.transfers_cut)

    async def download_request(self, request: Request) -> Response:
        """The response to *request*, its body decoded; raises only the errors listed above."""
        request.meta["wire_bytes"] = 0
        task = asyncio.current_task()
        assert task is not None
        self._transfers.add(task)
        try:
            return await self._fetch(request)
        except asyncio.CancelledError:
            if self._is_cutting:
                raise TransferCut(f"{request.url}: the crawl is being stopped") from None
            raise
        except (DownloadCancelledError, StopDownload):
            raise
        except DecodedTooBig as error:
            raise ResponseRefused(Reason.TOO_BIG, f"{request.url} is larger than the limit once decoded.") from error
        except Exception as error:  # whatever a server sends must not reach the crawl loop
            raise _translated(error, request.url) from error
        finally:
            self._transfers.discard(task)

    def _cut(self) -> None:
        """End all transfers: the crawl is being stopped and has waited long enough."""
        self._is_cutting = True
        for task in self._transfers:
            task.cancel()

    async def close(self) -> None:
        """Close all connections and the resolver."""
        await self._session.close()
        await self._resolver.close()

    async def _fetch(self, request: Request) -> Response:
        if request.meta.get("proxy"):
            raise DownloadCancelledError("A proxy cannot be used: connections go to the judged address.")
        url = yarl.URL(request.url, encoded=bool(request.meta.get("verbatim_url")))
        address, port = await self._where(url, request)
        started = getattr(self.crawler.engine.scheduler, "started", None)
        if started is not None:
            started(request)
        begin = time.monotonic()
        reply = await self._connect(request, url, url.with_host(address).with_port(port))
        request.meta["download_latency"] = time.monotonic() - begin
        try:
            return await self._response(reply, request, address)
        finally:
            request.meta["wire_bytes"] = reply.content.total_bytes
            reply.close()

    async def _where(self, url: yarl.URL, request: Request) -> tuple[str, int | None]:
        """The address and port to connect to; raises AddressForbidden or what `Resolver.resolve` raises."""
        name = url.raw_host or ""
        given = request.meta.get("address")
        addresses = (str(given),) if given else (await self._resolver.resolve(name)).addresses
        address = next(filter(self._policy.allows, addresses), None)
        if address is None:
            raise AddressForbidden(
                f"{name} is at {', '.join(addresses)}; only networks of SPIDERLING_ALLOW_NETWORKS and, "
                "with SPIDERLING_CONTACT, public addresses may be fetched."
            )
        mapped = self._host_map.lookup(name)
        return address, (mapped and mapped.port) or url.port

    async def _connect(self, request: Request, url: yarl.URL, target: yarl.URL) -> _Reply:
        """Send *request* for *url* to *target*, the same URL with an address for host; returns at the headers."""
        headers = request.headers.copy()
        headers.pop(b"Proxy-Authorization", None)
        headers.setdefault(b"Host", url.host_port_subcomponent or "")
        headers[b"Accept-Encoding"] = ACCEPT_ENCODING
        name = (url.raw_host or "").rstrip(".")
        total_s = min(self._options.timeout_s, request.meta.get("download_timeout") or self._options.timeout_s)
        sending: Awaitable[Any] = self._session.request(
            request.method,
            target,
            data=request.body or None,
            headers=headers.to_tuple_list(),
            allow_redirects=False,
            ssl=self._ssl_context,
            server_hostname=name if target.scheme == "https" and literal_address(name) is None else None,
            timeout=aiohttp.ClientTimeout(total=total_s),
        )
        reply: _Reply = await asyncio.wait_for(sending, min(self._options.first_byte_timeout_s, total_s))
        return reply

    async def _response(self, reply: _Reply, request: Request, address: str) -> Response:
        headers = Headers(reply.raw_headers)
        limit = self._judge(reply.status, headers, request)
        decoder = BodyDecoder(b",".join(headers.getlist(b"Content-Encoding")), limit)
        version = reply.version or aiohttp.HttpVersion11
        give_out = functools.partial(
            make_response,
            url=request.url,
            status=reply.status,
            headers=headers,
            certificate=reply.certificate,
            ip_address=ipaddress.ip_address(address),
            protocol=f"HTTP/{version.major}.{version.minor}",
        )
        stop = check_stop_download(
            signals.headers_received, self.crawler, request, headers=headers, body_length=_declared_length(headers)
        )
        if stop is not None:
            return give_out(stop_download=stop)
        body, flags, stop = await self._body(reply, request, decoder, limit)
        if decoder.understood:
            headers.pop(b"Content-Encoding", None)
            headers.pop(b"Content-Length", None)
        return give_out(body=body, flags=flags, stop_download=stop)

    def _judge(self, status: int, headers: Headers, request: Request) -> int:
        """The most body bytes that may follow; raises ResponseRefused for what is not wanted at all."""
        kind = self._document_kind(headers, request)
        if status == 200 and request.meta.get("judge_type") and not kind and not _is_text(headers):
            raise ResponseRefused(Reason.NOT_TEXT, f"{request.url} is {headers.get(b'Content-Type')!r}, not text.")
        limit = self._options.max_document_bytes if kind else self._options.max_body_bytes
        limit = min(limit, request.meta.get("download_maxsize") or limit)
        length = _declared_length(headers)
        if length is not None and length > limit and request.method != "HEAD":
            raise ResponseRefused(Reason.TOO_BIG, f"{request.url} announces {length} bytes, more than {limit}.")
        return limit

    def _document_kind(self, headers: Headers, request: Request) -> str | None:
        """The kind of document that is announced, if it is one of those wanted."""
        if not self._documents:
            return None
        names = (b"Content-Type", b"Content-Disposition")
        content_type, disposition = ((headers.get(name) or b"").decode("latin-1") for name in names)
        kind = filetypes.of_headers(content_type, disposition, yarl.URL(request.url, encoded=True).path)
        return kind if kind in self._documents else None

    async def _body(
        self, reply: _Reply, request: Request, decoder: BodyDecoder, limit: int
    ) -> tuple[bytes, list[str], StopDownload | None]:
        """The decoded body, Scrapy's flags for it, and the wish of a signal handler to stop here."""
        body = bytearray()
        try:
            async for chunk in reply.content.iter_any():
                body += decoder.decode(chunk)
                if reply.content.total_bytes > limit:
                    raise ResponseRefused(Reason.TOO_BIG, f"{request.url} is larger than {limit} bytes.")
                stop = check_stop_download(signals.bytes_received, self.crawler, request, data=chunk)
                if stop is not None:
                    return bytes(body), [], stop
        except aiohttp.ClientPayloadError:
            if request.meta.get("download_fail_on_dataloss", self._fail_on_dataloss):
                raise
            reply.content.set_exception(None)  # type: ignore[arg-type]  # what had come before is still there
            body += decoder.decode(reply.content.read_nowait())
            return bytes(body), ["dataloss"], None
        return bytes(body), [], None


class _Wire(ResponseHandler):
    """aiohttp's protocol, with a limit on what is not body and no lingering at the end."""

    content: aiohttp.StreamReader | None = None
    """The body, once the final headers are here."""
    _received = 0

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        # Before the headers: endless ones, and interim responses (back-pressure holds a body that
        # nobody reads yet far below the limit).  After them: endless chunk extensions and trailers.
        body_bytes = 0 if self.content is None else self.content.total_bytes
        if self._received > MAX_HEAD_BYTES + 8 * body_bytes:
            self.abort()
            error = aiohttp.ClientPayloadError(f"more than {MAX_HEAD_BYTES} bytes that are not body")
            reader = self if self.content is None else self.content
            reader.set_exception(error)
            return
        super().data_received(data)

    def close(self) -> None:
        """Close at once: a polite TLS shutdown would wait for a peer that we are done with."""
        self.abort()


class _Reply(aiohttp.ClientResponse):
    """A response that takes the server's certificate before a short body lets the connection go."""

    certificate: bytes | None = None

    async def start(self, connection: aiohttp.connector.Connection) -> _Reply:
        wire, transport = connection.protocol, connection.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        if tls is not None:
            self.certificate = tls.getpeercert(binary_form=True)
        await super().start(connection)
        if isinstance(wire, _Wire):
            wire.content = self.content
        return self


def _session(bind_address: Any) -> aiohttp.ClientSession:
    """A client without cookies, proxies, redirects, retries and kept connections."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True, local_addr=normalize_bind_address(bind_address))
    connector._factory = functools.partial(_Wire, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        response_class=_Reply,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
    )
    session._retry_connection = False  # a second connection would break the politeness interval
    return session


def _is_text(headers: Headers) -> bool:
    """Whether the headers admit a page of text; a missing or malformed type is given its chance."""
    disposition = headers.get(b"Content-Disposition") or b""
    if disposition.strip().lower().startswith(b"attachment"):
        return False
    media_type = (headers.get(b"Content-Type") or b"").partition(b";")[0].strip().lower()
    return b"/" not in media_type or media_type in _TEXT_TYPES


def _declared_length(headers: Headers) -> int | None:
    text = headers.get(b"Content-Length") or b""
    return int(text) if text.isdigit() and len(text) < 19 else None


_TRANSLATION: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[Exception]], ...] = (
    ((asyncio.TimeoutError, TimeoutError), DownloadTimeoutError),
    ((NameNotFound, NameServerFailure), CannotResolveHostError),
    (aiohttp.ClientPayloadError, ResponseDataLossError),
    ((aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError), UnsupportedURLSchemeError),
    (aiohttp.ClientSSLError, DownloadFailedError),
    (aiohttp.ClientConnectorError, DownloadConnectionRefusedError),
)


def _translated(error: Exception, url: str) -> Exception:
    """*error* as the download error that Scrapy knows; the first row that fits."""
    kind = next((ours for theirs, ours in _TRANSLATION if isinstance(error, theirs)), DownloadFailedError)
    return kind(f"{url}: {type(error).__name__}: {error}")
