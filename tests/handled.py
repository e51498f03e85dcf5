"""What tests of the download handler share: a server that misbehaves as told, and the handler itself, on loopback."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import math
import os
import ssl
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.utils.test import get_crawler

from spiderling.base import media_types
from spiderling.base.addresses import AddressPolicy, HostMap
from spiderling.base.machine import StageTimes
from spiderling.base.options import Options
from spiderling.engine import download_handler
from spiderling.engine.download_handler import DownloadHandler
from spiderling.engine.requests import fetch_of
from spiderling.fetch.resolver import Resolver

DOWNLOAD_ERRORS = (
    CannotResolveHostError, DownloadCancelledError, DownloadConnectionRefusedError, DownloadFailedError,
    DownloadTimeoutError, ResponseDataLossError, UnsupportedURLSchemeError,
)  # fmt: skip
PAGE = b"<html><body>" + b"text of the page, " * 200 + b"</body></html>"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
LIMIT = 100_000


def reply(body: bytes = PAGE, *extra: bytes) -> bytes:
    return OK + b"Content-Length: %d\r\n" % len(body) + b"".join(line + b"\r\n" for line in extra) + b"\r\n" + body


CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def chunked(*chunks: bytes) -> bytes:
    return CHUNKED_HEAD + b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks)


class Site:
    """A server that answers every request with the same thing and remembers what it was sent."""

    def __init__(self, answer):
        self.answer = answer
        self.requests: list[bytes] = []
        self.sni: list[str | None] = []
        self.resumed: list[bool] = []  # of each connection over TLS, whether it went on with a session
        self.port = 0

    async def serve(self, reader, writer):
        if (tls := writer.get_extra_info("ssl_object")) is not None:
            self.resumed.append(tls.session_reused)
        try:
            self._reader = reader
            await self.next_request()
            if callable(self.answer):
                await self.answer(writer)
            else:
                writer.write(self.answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def next_request(self):
        """The next request over the connection that was made last."""
        self.requests.append(await self._reader.readuntil(b"\r\n\r\n"))

    @property
    def url(self):
        return f"http://site.test:{self.port}/"


@asynccontextmanager
async def serving(answer, *, host="127.0.0.1", port=0, tls=None, site=None):
    site = site or Site(answer)
    if tls is not None:
        tls.sni_callback = lambda sock, name, context: site.sni.append(name)
    server = await asyncio.start_server(site.serve, host, port, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


@asynccontextmanager
async def handling(scrapy_settings=None, gate=None, constants=None, **options):
    """*constants*: values of those of download_handler.py."""
    ours = {"ALLOW_NETWORKS": "127.0.0.0/8,::1", "HOSTS": "*.test=127.0.0.1", "MAX_BODY_BYTES": LIMIT, **options}
    settings = {f"SPIDERLING_{name}": value for name, value in ours.items()}
    crawler = get_crawler(settings_dict={**settings, **(scrapy_settings or {})})
    crawler.spider = crawler.spidercls.from_crawler(crawler, "test")
    gate = opened(Options.from_settings(settings), gate or Due())
    with mock.patch.multiple(
        download_handler, **{"SLOW_WINDOW_S": download_handler.SLOW_WINDOW_S, **(constants or {})}
    ):
        handler = DownloadHandler(crawler, gate)
        try:
            yield handler
        finally:
            await handler.close()
            await gate.resolver.close()


class Due:
    """The crawl's gate, and the addresses of what was started."""

    def __init__(self):
        self.started_at = []

    def started(self, request, address):
        self.started_at.append(address)

    def connect_in(self, request):
        return 0.0

    def asked_again_in(self, request):
        return math.inf

    def goes_on(self, request):
        fetch = fetch_of(request)
        return fetch is not None and fetch.goes_on

    def is_ours(self):
        return True

    def waits_again(self, request):
        return fetch_of(request) is not None


def opened(options, gate):
    """*gate* with what it hands out of a crawl in Czech."""
    gate.crawl = SimpleNamespace(
        options=options,
        codes=frozenset({"cs"}),
        documents=media_types.parse(options.documents),
        addresses=AddressPolicy(options.allow_networks, public=bool(options.contact)),
        times=StageTimes(),
    )
    gate.host_map = HostMap(options.hosts)
    gate.resolver = Resolver(options, gate.host_map)
    return gate


def open_sockets():
    """How many sockets this process has."""
    links = (os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return sum(link.startswith("socket:") for link in links)


async def fetch(answer, *, url=None, options=None, headers=None, **meta):
    """(request, response) of one download from a server that gives *answer*."""
    async with serving(answer) as site, handling(**(options or {})) as handler:
        request = Request(url or site.url, headers=headers, meta={"address": "127.0.0.1", **meta})
        return request, await handler.download_request(request)


async def failing(answer, **arguments):
    """(request, error) of one download that fails."""
    async with serving(answer) as site, handling(**arguments.pop("options", {})) as handler:
        request = Request(site.url, meta={"address": "127.0.0.1", **arguments})
        with pytest.raises(DOWNLOAD_ERRORS) as caught:
            await handler.download_request(request)
        return request, caught.value


def server_context(directory, *, names=("site.test",), days=(-1, 1), issuer=None):
    """A server's TLS with a certificate of its own making: for *names*, valid *days* from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")])
    by = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]) if issuer else subject
    now = datetime.datetime.now(datetime.UTC)
    alternatives = [
        x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in names
    ]
    builder = (
        x509.CertificateBuilder(by, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    pem = serialization.Encoding.PEM
    path = directory / "both.pem"
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
