"""The download handler against servers that misbehave in every way we know, all on loopback."""

from __future__ import annotations

import asyncio
import datetime
import gc
import gzip
import ipaddress
import random
import socket
import ssl
import subprocess
import sys
import time
import tracemalloc
import warnings
import zlib
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import brotli
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request, signals
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
from scrapy.http import HtmlResponse
from scrapy.utils.test import get_crawler

from spiderling.base.reasons import Reason
from spiderling.engine.download_handler import DownloadHandler
from spiderling.fetch.client import MAX_HEAD_BYTES, RawRequest, Wire
from spiderling.fetch.decoding import BodyDecoder, DecodedTooBig
from spiderling.fetch.errors import AddressForbidden, BadHttp, BadRequest, ResponseRefused, TlsFailed, TooSlow
from spiderling.fetch.tls import problems

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DOWNLOAD_ERRORS = (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
WORDS = bytes(random.Random(1).choices(b"abcdefgh ", k=400_000))
PROMPT_ERRORS = tuple(error for error in DOWNLOAD_ERRORS if error is not DownloadTimeoutError)
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
        self.port = 0

    async def serve(self, reader, writer):
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            if callable(self.answer):
                await self.answer(writer)
            else:
                writer.write(self.answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    @property
    def url(self):
        return f"http://site.test:{self.port}/"


@asynccontextmanager
async def serving(answer, *, host="127.0.0.1", tls=None):
    site = Site(answer)
    if tls is not None:
        tls.sni_callback = lambda sock, name, context: site.sni.append(name)
    server = await asyncio.start_server(site.serve, host, 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


@asynccontextmanager
async def handling(scrapy_settings=None, **options):
    ours = {"ALLOW_NETWORKS": "127.0.0.0/8,::1", "HOSTS": "*.test=127.0.0.1", "MAX_BODY_BYTES": LIMIT, **options}
    settings = {f"SPIDERLING_{name}": value for name, value in ours.items()}
    crawler = get_crawler(settings_dict={**settings, **(scrapy_settings or {})})
    crawler.engine = SimpleNamespace(scheduler=None)
    crawler.spider = crawler._create_spider("test")
    handler = DownloadHandler(crawler)
    try:
        yield handler
    finally:
        await handler.close()


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


# what works


async def test_page_with_its_address_host_name_and_class():
    async with serving(reply()) as site, handling() as handler:
        request = Request(site.url + "a?b=%C3%A9", meta={"address": "127.0.0.1"})
        response = await handler.download_request(request)
    assert isinstance(response, HtmlResponse)
    assert (response.status, response.body, response.url) == (200, PAGE, request.url)
    assert str(response.ip_address) == "127.0.0.1"
    assert response.protocol == "HTTP/1.1"
    assert request.meta["address"] == "127.0.0.1"
    assert request.meta["wire_bytes"] == len(PAGE)
    head = site.requests[0]
    assert head.startswith(b"GET /a?b=%C3%A9 HTTP/1.1\r\n")
    assert f"host: site.test:{site.port}\r\n".encode() in head.lower()
    assert b"accept-encoding: gzip, deflate, br, zstd\r\n" in head.lower()
    assert b"connection: close\r\n" in head.lower()


async def test_connects_to_the_given_address_whatever_the_name_says():
    async with serving(reply(b"second"), host="127.0.0.2") as site, handling() as handler:
        request = Request(f"http://127.0.0.1:{site.port}/", meta={"address": "127.0.0.2"})
        assert (await handler.download_request(request)).body == b"second"
        assert f"Host: 127.0.0.1:{site.port}\r\n".encode() in site.requests[0]


async def test_ipv6_address():
    try:
        async with serving(reply(b"six"), host="::1") as site, handling() as handler:
            request = Request(site.url, meta={"address": "::1"})
            response = await handler.download_request(request)
    except OSError:
        pytest.skip("no IPv6 loopback here")
    assert response.body == b"six"
    assert str(response.ip_address) == "::1"


@pytest.fixture
async def both_families():
    """A port on which 127.0.0.1 and ::1 answer with their own address."""
    sites = []
    try:
        async with serving(reply(b"four")) as four, serving_on(four.port, reply(b"six")) as six:
            sites += [four, six]
            yield four, six
    except OSError:
        if sites:
            raise
        pytest.skip("no IPv6 loopback here")


@asynccontextmanager
async def serving_on(port, answer):
    site = Site(answer)
    server = await asyncio.start_server(site.serve, "::1", port)
    try:
        yield site
    finally:
        server.close()


def two_addresses(site, address="127.0.0.1", fallback="::1"):
    return Request(site.url, meta={"address": address, "fallback_address": fallback})


class Due:
    """The scheduler's side: what was started (the first address is also kept before), and whether a second may be."""

    def __init__(self, second=True):
        self.started_at = []
        self.also_asked = []
        self._second = second

    def started(self, request, address):
        self.started_at.append(address)

    def may_also_connect(self, request, address):
        self.also_asked.append(address)
        return self._second


@pytest.mark.parametrize(("first", "second", "body"), [("127.0.0.1", "::1", b"four"), ("::1", "127.0.0.1", b"six")])
async def test_the_first_of_two_addresses_is_used_while_it_answers(both_families, first, second, body):
    four, six = both_families
    async with handling() as handler:
        handler.crawler.engine.scheduler = due = Due()
        response = await handler.download_request(two_addresses(four, first, second))
    assert (response.body, str(response.ip_address)) == (body, first)
    assert due.started_at == [first, first] and not due.also_asked
    assert len(four.requests) + len(six.requests) == 1
    assert b"site.test" in (four.requests + six.requests)[0]


async def test_the_second_address_is_used_when_the_first_refuses():
    async with serving(reply(b"four")) as four, handling() as handler:
        handler.crawler.engine.scheduler = due = Due()
        response = await handler.download_request(two_addresses(four, "::1", "127.0.0.1"))
    assert (response.body, str(response.ip_address)) == (b"four", "127.0.0.1")
    assert due.started_at == ["::1", "::1", "127.0.0.1"]
    assert due.also_asked == ["127.0.0.1"]


async def test_the_second_address_is_tried_when_the_first_is_silent(monkeypatch):
    """A full backlog on one address: the connection is neither made nor refused."""
    with socket.create_server(("127.0.0.3", 0), backlog=0) as full:
        port = full.getsockname()[1]
        stuffing = [socket.socket() for _ in range(3)]
        for sock in stuffing:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.3", port))
        async with serving_on(port, reply(b"six")) as site, handling() as handler:
            site.port = port
            handler.crawler.engine.scheduler = due = Due()
            begin = time.monotonic()
            response = await handler.download_request(two_addresses(site, "127.0.0.3", "::1"))
            assert (response.body, str(response.ip_address)) == (b"six", "::1")
            assert due.started_at == ["127.0.0.3", "127.0.0.3", "::1"], "each connection counts"
            assert 0.2 < time.monotonic() - begin < 5
        for sock in stuffing:
            sock.close()


async def test_a_second_address_that_is_not_due_is_not_connected_to(both_families):
    four, six = both_families
    async with handling() as handler:
        handler.crawler.engine.scheduler = due = Due(second=False)
        with pytest.raises(DownloadConnectionRefusedError):
            await handler.download_request(two_addresses(four, "127.0.0.9", "::1"))
    assert due.started_at == ["127.0.0.9", "127.0.0.9"] and due.also_asked == ["::1"]
    assert not four.requests and not six.requests


async def test_both_addresses_are_judged(both_families):
    four, six = both_families
    async with handling(ALLOW_NETWORKS="127.0.0.0/8") as handler:
        assert (await handler.download_request(two_addresses(four))).body == b"four"
        with pytest.raises(DownloadConnectionRefusedError):
            await handler.download_request(two_addresses(four, "127.0.0.9"))
        with pytest.raises(AddressForbidden):
            await handler.download_request(two_addresses(four, "::1", "127.0.0.1"))
    assert not six.requests


async def test_tls_names_the_host_whichever_address_is_used(server_tls):
    async with serving(reply(), tls=server_tls) as site, handling() as handler:
        meta = {"address": "::1", "fallback_address": "127.0.0.1"}
        response = await handler.download_request(Request(f"https://site.test:{site.port}/", meta=meta))
    assert (response.body, site.sni) == (PAGE, ["site.test"])


async def test_host_map_gives_the_port():
    async with serving(reply()) as site, handling(HOSTS=f"*.test=127.0.0.1:{site.port}") as handler:
        response = await handler.download_request(Request("http://any.test/x", meta={"address": "127.0.0.1"}))
    assert response.body == PAGE
    assert b"Host: any.test\r\n" in site.requests[0]


async def test_request_without_address_is_resolved_and_judged():
    async with serving(reply()) as site, handling() as handler:
        request = Request(site.url)
        assert (await handler.download_request(request)).body == PAGE
        assert "address" not in request.meta  # a redirect copies the meta: the next name is resolved anew


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://2130706433:1/", "http://0x7f.1:1/", "http://[::1]:1/"])
async def test_forbidden_addresses_are_not_connected_to(url):
    async with handling(ALLOW_NETWORKS="", HOSTS="") as handler:
        with pytest.raises(AddressForbidden):
            await handler.download_request(Request(url))
        with pytest.raises(AddressForbidden):
            await handler.download_request(Request("http://innocent.test/", meta={"address": "127.0.0.1"}))
        with pytest.raises(AddressForbidden):
            await handler.download_request(Request("http://innocent.test/", meta={"address": "no address"}))


async def test_public_addresses_are_not_connected_to_without_a_contact():
    async with handling() as handler:
        with pytest.raises(AddressForbidden, match="SPIDERLING_CONTACT"):
            await handler.download_request(Request("http://a.test/", meta={"address": "192.88.98.1"}))


async def test_a_start_is_told_before_and_again_right_behind_the_packet_that_opens_the_connection():
    """Before: so that nobody else takes the turn.  Behind: an interval that counts from there is never too short."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        came = []

        def started(request, address):
            try:
                listener.accept()[0].close()  # what was sent is there at once on loopback
                came.append(True)
            except BlockingIOError:
                came.append(False)

        async with handling() as handler:
            handler.crawler.engine = SimpleNamespace(scheduler=SimpleNamespace(started=started))
            url = f"http://site.test:{listener.getsockname()[1]}/"
            with pytest.raises(DOWNLOAD_ERRORS):
                await handler.download_request(Request(url, meta={"address": "127.0.0.1"}))
    assert came == [False, True]


async def test_verbatim_url_is_sent_as_it_is():
    async with serving(reply()) as site, handling() as handler:
        for verbatim in (True, False):
            url = site.url + "%7Ea/%2e?q=%41+%20"
            await handler.download_request(Request(url, meta={"address": "127.0.0.1", "verbatim_url": verbatim}))
    assert site.requests[0].startswith(b"GET /%7Ea/%2e?q=%41+%20 HTTP/1.1")
    assert not site.requests[1].startswith(b"GET /%7Ea/%2e?q=%41+%20 HTTP/1.1")


async def test_redirects_cookies_and_post():
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /next\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n"
    async with serving(redirect) as site, handling() as handler:
        for _ in range(2):
            request = Request(site.url, method="POST", body=b"x=1", meta={"address": "127.0.0.1"})
            response = await handler.download_request(request)
            assert (response.status, response.headers["Location"]) == (302, b"/next")
        assert len(site.requests) == 2
        assert not any(b"Cookie" in head for head in site.requests)
        assert all(b"Content-Length: 3\r\n" in head for head in site.requests)


async def test_proxy_of_the_environment_is_ignored(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert (await fetch(reply()))[1].body == PAGE


async def test_headers_keep_their_bytes_and_their_repetition():
    _, response = await fetch(reply(PAGE, b"X-City: Zl\xedn \xff", b"Set-Cookie: a=1", b"Set-Cookie: ;;=\x01bad"))
    assert response.headers["X-City"] == b"Zl\xedn \xff"
    assert len(response.headers.getlist("Set-Cookie")) == 2


async def test_signals_can_stop_a_download():
    async with serving(reply()) as site, handling() as handler:

        def stop(**kwargs):
            raise StopDownload(fail=False)

        handler.crawler.signals.connect(stop, signals.headers_received)
        response = await handler.download_request(Request(site.url, meta={"address": "127.0.0.1"}))
        assert response.flags == ["download_stopped"]
        assert response.body == b""


# TLS


def server_context(directory, *, names=("site.test",), days=(-1, 1), issuer=None):
    """A server's TLS with a certificate of its own making: for *names*, valid *days* from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")])
    by = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]) if issuer else subject
    now = datetime.datetime.now(datetime.timezone.utc)
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


@pytest.fixture
def server_tls(tmp_path):
    return server_context(tmp_path)


async def test_tls_sends_the_name_and_accepts_any_certificate(server_tls):
    async with serving(reply(), tls=server_tls) as site, handling() as handler:
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        response = await handler.download_request(request)
        assert response.body == PAGE
        assert response.certificate
        await handler.download_request(Request(f"https://127.0.0.1:{site.port}/", meta={"address": "127.0.0.1"}))
    assert site.sni == ["site.test", None]


@pytest.mark.parametrize(
    ("made", "flags"),
    [
        ({"issuer": "an authority"}, []),
        ({}, ["tls-self-signed"]),
        ({"issuer": "an authority", "days": (-20, -10)}, ["tls-expired"]),
        ({"issuer": "an authority", "days": (10, 20)}, ["tls-not-yet-valid"]),
        ({"issuer": "an authority", "names": ["other.test"]}, ["tls-wrong-name"]),
        ({"issuer": "an authority", "names": ["*.test"]}, []),
        ({"issuer": "an authority", "names": ["*.site.test"]}, ["tls-wrong-name"]),
        ({"issuer": "an authority", "names": ["SITE.TEST"]}, []),
        ({"names": [], "days": (-20, -10)}, ["tls-expired", "tls-self-signed", "tls-wrong-name"]),
    ],
)
async def test_what_is_wrong_with_a_certificate_is_recorded(tmp_path, made, flags):
    async with serving(reply(), tls=server_context(tmp_path, **made)) as site, handling() as handler:
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        response = await handler.download_request(request)
        assert (response.body, response.flags) == (PAGE, flags)
        stats = handler.crawler.stats.get_stats()
        assert [stats[f"spiderling/tls/{flag[4:]}"] for flag in flags] == [1] * len(flags)


def test_certificates_of_addresses_and_rubbish():
    assert problems(b"rubbish", "site.test") == ("unreadable",)
    assert problems(b"", "") == ("unreadable",)


async def test_a_certificate_is_for_an_address_only_if_it_says_so(tmp_path):
    tls = server_context(tmp_path, names=["127.0.0.1"], issuer="an authority")
    async with serving(reply(), tls=tls) as site, handling() as handler:
        for name, flags in (("127.0.0.1", []), ("site.test", ["tls-wrong-name"])):
            request = Request(f"https://{name}:{site.port}/", meta={"address": "127.0.0.1"})
            assert (await handler.download_request(request)).flags == flags


@pytest.mark.parametrize("strict", [{"options": {"TLS": "strict"}}, {"scrapy": {"DOWNLOAD_VERIFY_CERTIFICATES": True}}])
async def test_tls_certificate_is_verified_if_told_so(server_tls, strict):
    async with (
        serving(reply(), tls=server_tls) as site,
        handling(strict.get("scrapy"), **strict.get("options", {})) as handler,
    ):
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        with pytest.raises(TlsFailed, match="certificate") as caught:
            await handler.download_request(request)
        assert caught.value.reason is Reason.TLS
        assert not site.requests


async def test_a_valid_certificate_passes_when_strict(tmp_path, monkeypatch):
    tls = server_context(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
    async with serving(reply(), tls=tls) as site, handling(TLS="strict") as handler:
        request = Request(f"https://site.test:{site.port}/", meta={"address": "127.0.0.1"})
        assert (await handler.download_request(request)).body == PAGE
        with pytest.raises(TlsFailed):
            await handler.download_request(Request(f"https://x.test:{site.port}/", meta={"address": "127.0.0.1"}))


async def test_tls_to_a_plain_server_and_to_a_silent_one():
    async def silent(writer):
        await asyncio.sleep(5)

    for answer, error in ((b"not TLS at all\r\n\r\n", DownloadFailedError), (silent, DownloadTimeoutError)):
        server = await asyncio.start_server(lambda r, w, a=answer: a(w) if callable(a) else w.write(a), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with handling(FIRST_BYTE_TIMEOUT_S=0.5) as handler:
            with pytest.raises(error):
                await handler.download_request(Request(f"https://site.test:{port}/", meta={"address": "127.0.0.1"}))
        server.close()


# content codings


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("coding", CODINGS)
async def test_content_codings(coding):
    packed = CODINGS[coding](PAGE)
    request, response = await fetch(reply(packed, b"Content-Encoding: " + coding.upper().encode()))
    assert response.body == PAGE
    assert "Content-Encoding" not in response.headers
    assert "Content-Length" not in response.headers
    assert request.meta["wire_bytes"] == len(packed) < len(PAGE)


async def test_unknown_coding_is_left_alone():
    _, response = await fetch(reply(b"???", b"Content-Encoding: lzma"))
    assert response.body == b"???"
    assert response.headers["Content-Encoding"] == b"lzma"


def decoded(coding: bytes, data: bytes, size: int = 7, limit: int = LIMIT) -> bytes:
    decoder = BodyDecoder(coding, limit)
    return b"".join(decoder.decode(data[start : start + size]) for start in range(0, len(data), size))


@settings(max_examples=60)
@given(st.sampled_from(sorted(CODINGS)), st.binary(max_size=3000), st.integers(1, 5000))
def test_any_body_in_any_pieces_comes_back(coding, body, size):
    assert decoded(coding.encode(), CODINGS[coding](body), size) == body
    assert decoded(b"gzip, " + coding.encode(), CODINGS[coding](gzip.compress(body)), size) == body


@settings(max_examples=150)
@given(st.sampled_from([*sorted(CODINGS), "gzip, br", "a, , b"]), st.binary(max_size=3000), st.integers(1, 5000))
def test_garbage_never_raises_anything_else(coding, body, size):
    with suppress(DecodedTooBig):
        decoded(coding.encode(), body, size, limit=2000)


@pytest.mark.parametrize("size", [1, 100, 1_000_000])
def test_deflate_without_its_wrapping(size):
    assert decoded(b"deflate", raw_deflate(PAGE), size) == PAGE


@pytest.mark.parametrize("size", [1, 100, 1_000_000])
@pytest.mark.parametrize("coding", CODINGS)
def test_plain_body_labelled_as_compressed(coding, size):
    assert decoded(coding.encode(), PAGE, size) == PAGE


@pytest.mark.parametrize("size", [100, 1_000_000])
@pytest.mark.parametrize("coding", CODINGS)
def test_truncated_body_gives_what_there_was(coding, size):
    packed = CODINGS[coding](WORDS)
    got = decoded(coding.encode(), packed[: len(packed) * 3 // 4], size, 1_000_000)
    assert WORDS.startswith(got)
    assert len(got) > 250_000


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_wrong_checksum_and_damage_in_the_middle(size):
    packed = bytearray(gzip.compress(WORDS))
    packed[-6] ^= 0xFF
    assert len(decoded(b"gzip", bytes(packed), size, 1_000_000)) > 399_900
    half = len(packed) // 2
    packed[half : half + 50] = b"\xff" * 50
    assert decoded(b"gzip", bytes(packed), size, 1_000_000)[:190_000] == WORDS[:190_000]


@pytest.mark.parametrize("coding", CODINGS)
async def test_bombs_are_cut_in_bounded_memory(coding):
    bomb = CODINGS[coding](bytes(20_000_000))
    answer = reply(bomb[: LIMIT - 1000], b"Content-Encoding: " + coding.encode())
    async with serving(answer) as site, handling() as handler:
        request = Request(site.url, meta={"address": "127.0.0.1"})
        tracemalloc.start()
        with pytest.raises(ResponseRefused) as caught:
            await handler.download_request(request)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert caught.value.reason is Reason.TOO_BIG
    assert peak < 3_000_000


def test_nested_bomb_is_cut_at_the_inner_layer():
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    with pytest.raises(DecodedTooBig):
        decoded(b"gzip, gzip", bomb, 1000)


# what is refused


async def test_announced_size_is_refused_before_the_body():
    async def announce(writer):
        writer.write(OK + b"Content-Length: 100001\r\n\r\n")
        await asyncio.sleep(5)

    begin = time.monotonic()
    _, error = await failing(announce)
    assert isinstance(error, ResponseRefused)
    assert error.reason is Reason.TOO_BIG
    assert time.monotonic() - begin < 2


async def endless(writer):
    writer.write(OK + b"\r\n")
    while True:
        writer.write(b"x" * 10_000)
        await writer.drain()


async def test_endless_body_is_cut_at_the_limit():
    request, error = await failing(endless)
    assert error.reason is Reason.TOO_BIG
    assert LIMIT < request.meta["wire_bytes"] < LIMIT + 1_000_000


async def test_download_maxsize_lowers_the_limit():
    _, error = await failing(reply(), download_maxsize=1000)
    assert error.reason is Reason.TOO_BIG


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Type: image/png",
        b"Content-Type: application/pdf; x=y",
        b"Content-Type: application/octet-stream",
        b"Content-Type: text/html\r\nContent-Disposition: Attachment; filename=a.html",
    ],
)
async def test_not_text_is_refused_at_the_headers(line):
    async def answer(writer, status=b"200 OK"):
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + line + b"\r\n\r\n")
        await asyncio.sleep(5)

    begin = time.monotonic()
    request, error = await failing(answer, judge_type=True)
    assert error.reason is Reason.NOT_TEXT
    assert request.meta["wire_bytes"] == 0
    assert time.monotonic() - begin < 2


@pytest.mark.parametrize(
    "line",
    [
        b"X: y",
        b"Content-Type:",
        b"Content-Type: html",
        b"Content-Type: Text/HTML;charset=utf-8",
        b"Content-Type: application/xhtml+xml",
        b"Content-Type: text/plain\r\nContent-Disposition: inline",
    ],
)
async def test_text_passes_the_judgement(line):
    _, response = await fetch(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n" + PAGE, judge_type=True)
    assert response.body == PAGE


async def test_type_is_judged_only_on_request_and_for_200():
    image = b" \r\nContent-Type: image/png\r\n\r\nimage"
    assert (await fetch(b"HTTP/1.1 200 OK" + image))[1].body == b"image"
    assert (await fetch(b"HTTP/1.1 404 No" + image, judge_type=True))[1].status == 404


@pytest.mark.parametrize(
    ("header", "obeyed"),
    [(b"de", False), (b"de, sk-SK", False), (b"cs", True), (b"de,cs-CZ", True), (b"", True), (b"x-none", True)],
)
@pytest.mark.parametrize("option", ["obey", "ignore"])
async def test_declared_language_is_judged_at_the_headers_if_told_so(monkeypatch, header, obeyed, option):
    accepted = SimpleNamespace(accepted=[SimpleNamespace(code="cs")])
    monkeypatch.setattr("spiderling.engine.download_handler.crawl_of", lambda crawler: accepted)
    answer = reply(PAGE, b"Content-Language: " + header)
    options = {"CONTENT_LANGUAGE": option}
    if obeyed or option == "ignore":
        assert (await fetch(answer, judge_type=True, options=options))[1].body == PAGE
    else:
        _, error = await failing(answer, judge_type=True, options=options)
        assert error.reason is Reason.WRONG_LANGUAGE


@pytest.mark.parametrize("coding", [b"compress", b"gzip, gzip, gzip", b"br, deflate, zstd", b"gzip, dcb"])
async def test_hopeless_encodings_are_refused_at_the_headers(coding):
    request, error = await failing(reply(PAGE, b"Content-Encoding: " + coding))
    assert error.reason is Reason.UNDECODABLE
    assert request.meta["wire_bytes"] <= len(PAGE)


async def test_a_bomb_is_told_by_its_ratio_and_ends_early():
    bomb = gzip.compress(b" " * 3_000_000)
    answer = reply(bomb, b"Content-Encoding: gzip")
    _, error = await failing(answer, options={"MAX_BODY_BYTES": 5_000_000})
    assert error.reason is Reason.TOO_BIG
    assert (await fetch(answer, options={"MAX_BODY_BYTES": 5_000_000, "MAX_RATIO": 2000}))[1].body == b" " * 3_000_000
    small = reply(gzip.compress(b" " * 900_000), b"Content-Encoding: gzip")
    assert len((await fetch(small, options={"MAX_BODY_BYTES": 5_000_000}))[1].body) == 900_000


DOCUMENTS = {"DOCUMENTS": "odt,docx", "MAX_BODY_BYTES": 10_000, "MAX_DOCUMENT_BYTES": LIMIT}
ODT = b"Content-Type: application/vnd.oasis.opendocument.text\r\n"


@pytest.mark.parametrize(
    "line", [ODT, ODT + b"Content-Disposition: attachment\r\n", b"Content-Type: application/octet-stream\r\n"]
)
async def test_documents_that_are_wanted_pass_the_judgement_with_a_limit_of_their_own(line):
    answer = b"HTTP/1.1 200 OK\r\n" + line + b"\r\n" + b"x" * 50_000
    async with serving(answer) as site, handling(**DOCUMENTS) as handler:
        request = Request(site.url + "a.odt", meta={"address": "127.0.0.1", "judge_type": True})
        assert len((await handler.download_request(request)).body) == 50_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Content-Type: application/pdf\r\n", Reason.NOT_TEXT),
        (b"Content-Type: application/octet-stream\r\n", Reason.NOT_TEXT),
        (ODT + b"Content-Length: 100001\r\n", Reason.TOO_BIG),
        (b"Content-Type: text/html\r\nContent-Length: 10001\r\n", Reason.TOO_BIG),
    ],
)
async def test_other_documents_and_too_large_ones_do_not(line, reason):
    answer = b"HTTP/1.1 200 OK\r\n" + line + b"\r\n"
    _, error = await failing(answer, judge_type=True, options=DOCUMENTS)
    assert error.reason is reason


async def test_without_the_option_no_document_passes():
    _, error = await failing(b"HTTP/1.1 200 OK\r\n" + ODT + b"\r\n", judge_type=True)
    assert error.reason is Reason.NOT_TEXT


# what goes wrong


async def test_time_limits():
    async def slow_headers(writer):
        for byte in OK:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)

    async def slow_body(writer):
        writer.write(OK + b"Content-Length: 1000\r\n\r\n")
        for _ in range(100):
            writer.write(b"x")
            await asyncio.sleep(0.1)

    for answer, options, meta in (
        (slow_headers, {"FIRST_BYTE_TIMEOUT_S": 0.5}, {}),
        (slow_body, {"TIMEOUT_S": 0.8}, {}),
        (slow_body, {}, {"download_timeout": 0.5}),
    ):
        begin = time.monotonic()
        request, error = await failing(answer, options=options, **meta)
        assert isinstance(error, DownloadTimeoutError)
        assert 0.4 < time.monotonic() - begin < 2.5
        assert (request.meta["wire_bytes"] > 2) is (answer is slow_body)


async def drip(writer, bytes_per_s=50, seconds=30.0):
    writer.write(OK + b"Content-Length: 5000\r\n\r\n")
    for _ in range(int(seconds * 20)):
        writer.write(b"x" * max(1, bytes_per_s // 20))
        await writer.drain()
        await asyncio.sleep(0.05)


async def silence(writer):
    writer.write(OK + b"Content-Length: 5000\r\n\r\nsome")
    await asyncio.sleep(20)


@pytest.mark.parametrize("answer", [drip, silence])
async def test_a_body_below_the_floor_of_speed_is_given_up_and_may_pass(answer):
    begin = time.monotonic()
    _, error = await failing(answer, options={"MIN_BYTES_PER_S": 200, "SLOW_WINDOW_S": 0.5, "TIMEOUT_S": 15})
    assert isinstance(error, TooSlow) and error.reason is Reason.TOO_SLOW and error.may_pass
    assert 0.4 < time.monotonic() - begin < 5


async def test_a_slow_body_above_the_floor_comes_through():
    async def slow(writer):
        writer.write(OK + b"Content-Length: 3000\r\n\r\n")
        for _ in range(30):
            writer.write(b"x" * 100)
            await writer.drain()
            await asyncio.sleep(0.05)

    _, response = await fetch(slow, options={"MIN_BYTES_PER_S": 100, "SLOW_WINDOW_S": 0.5})
    assert len(response.body) == 3000
    _, error = await failing(silence, options={"MIN_BYTES_PER_S": 0, "SLOW_WINDOW_S": 0.1, "TIMEOUT_S": 1})
    assert isinstance(error, DownloadTimeoutError) and not isinstance(error, TooSlow)


async def test_a_late_event_loop_is_not_held_against_the_server():
    async def late(writer):
        writer.write(OK + b"Content-Length: 2\r\n\r\n")
        await asyncio.sleep(0.2)
        time.sleep(1)
        await asyncio.sleep(0.05)
        writer.write(b"ab")

    _, response = await fetch(late, options={"MIN_BYTES_PER_S": 1, "SLOW_WINDOW_S": 0.4})
    assert response.body == b"ab"


async def test_refused_connection_and_unknown_name():
    async with serving(b"") as site:
        port = site.port
    async with handling(HOSTS="") as handler:
        with pytest.raises(DownloadConnectionRefusedError):
            await handler.download_request(Request(f"http://a.test:{port}/", meta={"address": "127.0.0.1"}))
        with pytest.raises(CannotResolveHostError):
            await handler.download_request(Request("http://a..b/"))


async def test_lost_data_is_an_error_that_may_be_retried_or_a_flag():
    short = OK + b"Content-Length: 5000\r\n\r\n" + PAGE
    for answer in (short, chunked(PAGE), chunked(PAGE)[:-1000]):
        request, error = await failing(answer)
        assert isinstance(error, ResponseDataLossError)
        assert request.meta["wire_bytes"] > 2000
        _, response = await fetch(answer, download_fail_on_dataloss=False)
        assert response.flags == ["dataloss"]
        assert len(response.body) > 2000
        assert PAGE.startswith(response.body)


async def test_a_failed_request_is_not_sent_twice():
    """aiohttp repeats a GET that the server hung up on; that would break the politeness interval."""
    async with serving(b"") as site, handling() as handler:
        with pytest.raises(DownloadFailedError):
            await handler.download_request(Request(site.url, meta={"address": "127.0.0.1"}))
        await asyncio.sleep(0.1)
        assert len(site.requests) == 1


async def flood(writer, piece):
    while True:
        writer.write(piece * (20_000 // len(piece)))
        await writer.drain()


async def header_flood(writer):
    writer.write(OK)
    await flood(writer, b"X-Header: some value\r\n")


async def one_endless_header(writer):
    writer.write(OK + b"X-Header: ")
    await flood(writer, b"xxxx")


async def interim_flood(writer):
    await flood(writer, b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")


async def endless_status_line(writer):
    await flood(writer, b"HTTP/1.1 200 " + b"O" * 50)


async def chunk_header_flood(writer):
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n5;")
    await flood(writer, b"extension=value;")


async def trailer_flood(writer):
    writer.write(chunked(PAGE) + b"0\r\n")
    await flood(writer, b"X-Trailer: some value\r\n")


async def bodiless_flood(writer):
    await flood(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


async def tiny_chunk_flood(writer):
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    await flood(writer, b"1\r\na\r\n")


async def test_a_page_may_come_in_small_chunks():
    body = PAGE * 20
    answer = chunked(*(body[at : at + 20] for at in range(0, len(body), 20))) + b"0\r\n\r\n"
    assert (await fetch(answer))[1].body == body


async def broken_chunk_later(writer):
    writer.write(chunked(PAGE))
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.write(b"zz\r\n" + PAGE)
    await asyncio.sleep(60)


async def test_a_broken_chunk_ends_a_body_whose_headers_came_before():
    _, error = await failing(broken_chunk_later, options={"SLOW_WINDOW_S": 30})
    assert isinstance(error, ResponseDataLossError)


FLOODS = [
    tiny_chunk_flood,
    header_flood,
    one_endless_header,
    interim_flood,
    endless_status_line,
    chunk_header_flood,
    trailer_flood,
]


@pytest.mark.parametrize("answer", [*FLOODS, bodiless_flood], ids=lambda answer: answer.__name__)
async def test_floods_end_soon_and_in_bounded_memory(answer):
    async with (
        serving(answer) as site,
        handling(TIMEOUT_S=20, FIRST_BYTE_TIMEOUT_S=20, MAX_BODY_BYTES=5_000_000) as handler,
    ):
        request = Request(site.url, meta={"address": "127.0.0.1"})
        begin = time.monotonic()
        tracemalloc.start()
        if answer is bodiless_flood:
            await handler.download_request(request)
        else:
            with pytest.raises(BadHttp):
                await handler.download_request(request)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert time.monotonic() - begin < 15, "ended by the limits, not by the time for the whole answer"
    assert peak < 8 * MAX_HEAD_BYTES


HOSTILE = {
    "empty": b"",
    "newline": b"\r\n\r\n",
    "not http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nul": b"\0" * 1000,
    "ftp": b"220 welcome\r\n",
    "no version": b"HTTP 200 OK\r\n\r\nbody",
    "http/9.9": b"HTTP/9.9 200 OK\r\n\r\nbody",
    "status word": b"HTTP/1.1 OK\r\n\r\n",
    "status 0": b"HTTP/1.1 000 Nought\r\n\r\n",
    "status 99999": b"HTTP/1.1 99999 Big\r\n\r\n",
    "status -1": b"HTTP/1.1 -1 Minus\r\n\r\n",
    "101": b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\0\0\0",
    "reason bytes": b"HTTP/1.1 200 \xff\xfe\0\r\n\r\nbody",
    "header nul": OK + b"X: a\0b\r\n\r\nbody",
    "header name": OK + b"X Y\x01: a\r\n\r\nbody",
    "header colon": OK + b"no colon here\r\n\r\nbody",
    "header empty name": OK + b": value\r\n\r\nbody",
    "header folded": OK + b"X: a\r\n  b\r\n\r\nbody",
    "header lf": b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nbody",
    "header cr": b"HTTP/1.1 200 OK\rContent-Type: text/html\r\rbody",
    "length garbage": OK + b"Content-Length: 12abc\r\n\r\nbody",
    "length negative": OK + b"Content-Length: -4\r\n\r\nbody",
    "length plus": OK + b"Content-Length: +4\r\n\r\nbody",
    "length empty": OK + b"Content-Length: \r\n\r\nbody",
    "length huge": OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nbody",
    "length arabic": OK + "Content-Length: ٤\r\n\r\nbody".encode(),
    "length twice": OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
    "length and chunked": OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    "chunk size": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nbody\r\n0\r\n\r\n",
    "chunk negative": OK + b"Transfer-Encoding: chunked\r\n\r\n-4\r\nbody\r\n0\r\n\r\n",
    "chunk huge": OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\nbody",
    "chunk no crlf": OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbodyX0\r\n\r\n",
    "coding unknown": OK + b"Transfer-Encoding: what, ever\r\n\r\nbody",
    "coding gzip": OK + b"Transfer-Encoding: gzip\r\n\r\nbody",
    "encoding bytes": OK + b"Content-Encoding: \xff\xfe, gzip\0\r\n\r\nbody",
    "type bytes": b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe;=;;charset=\xe9\r\n\r\nbody",
    "charset": b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=../../x\r\n\r\nbody",
    "disposition": OK + b"Content-Disposition: inline; filename*=%ff''\xff; =\r\n\r\nbody",
    "cookie": OK + b"Set-Cookie: =;=\xff; expires=never; Max-Age=1e99\r\n\r\nbody",
    "location": b"HTTP/1.1 301 Moved\r\nLocation: http://[::1\xff\r\n\r\n",
    "two replies": reply(b"one") + reply(b"two"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_nothing_but_a_response_or_a_download_error_comes_out(name):
    async with serving(HOSTILE[name]) as site, handling(TIMEOUT_S=2) as handler:
        request = Request(site.url, meta={"address": "127.0.0.1", "judge_type": True})
        with suppress(*PROMPT_ERRORS):
            response = await handler.download_request(request)
            assert isinstance(response.body, bytes)
            assert isinstance(response.status, int)
    assert request.meta["wire_bytes"] >= 0


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(
            [OK, b"\r\n", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"5\r\n"]
        )
        | st.binary(max_size=40),
        max_size=8,
    ).map(b"".join)
)
def test_random_answers_never_raise_anything_else(answer):
    async def one():
        async with serving(answer) as site, handling(TIMEOUT_S=2) as handler:
            with suppress(*PROMPT_ERRORS):
                await handler.download_request(Request(site.url, meta={"address": "127.0.0.1"}))

    asyncio.run(one())


@pytest.mark.parametrize(
    "url",
    [
        "http://a..b.test/",
        "http://" + "a" * 70 + ".test/",
        "http://a b.test/",
        "http://[v1.x]/",
        "http://x.test:99999/",
    ],
)
@pytest.mark.parametrize("verbatim", [True, False])
async def test_bad_urls_and_headers_are_download_errors(url, verbatim):
    async with handling() as handler:
        request = Request("http://x.test/", meta={"address": "127.0.0.1", "verbatim_url": verbatim})
        request._url = url  # what Request itself would have refused or repaired
        with pytest.raises(DOWNLOAD_ERRORS):
            await handler.download_request(request)
        for headers in ({"X": "a\r\nb: c"}, {"X\n": "a"}, {"X": b"\xff\xfe"}):
            with pytest.raises(DOWNLOAD_ERRORS):
                await handler.download_request(
                    Request("http://x.test:1/", headers=headers, meta={"address": "127.0.0.1"})
                )
        with pytest.raises(DownloadCancelledError, match="proxy"):
            await handler.download_request(Request("http://x.test/", meta={"proxy": "http://127.0.0.1:1/"}))


@settings(max_examples=200)
@given(
    st.text(max_size=8), st.text(max_size=8).map("/".__add__),
    st.lists(st.tuples(st.binary(max_size=4) | st.just(b"X\r\nY"), st.binary(max_size=4)), max_size=3),
)  # fmt: skip
def test_no_request_is_sent_that_reads_as_another(method, target, headers):
    try:
        head = RawRequest(method, target, headers, b"the body").encoded()
    except (BadRequest, UnicodeEncodeError):
        return
    lines = head.removesuffix(b"the body").split(b"\r\n")
    assert lines == [f"{method} {target} HTTP/1.1".encode(), *(b": ".join(field) for field in headers),
                     b"Connection: close", b"", b""]  # fmt: skip
    assert not {b"\r"[0], b"\n"[0], 0} & set(b"".join(lines))
    assert len(lines[0].split(b" ")) == 3


@pytest.mark.parametrize("fallback", [None, "127.0.0.1"])
async def test_connections_come_from_the_bind_address(fallback):
    peers = []

    async def answer(writer):
        peers.append(writer.get_extra_info("peername")[0])
        writer.write(reply())

    async with serving(answer) as site, handling({"DOWNLOAD_BIND_ADDRESS": "127.0.0.7"}) as handler:
        meta = {"address": "127.0.0.1", "fallback_address": fallback}
        assert (await handler.download_request(Request(site.url, meta=meta))).body == PAGE
    assert peers == ["127.0.0.7"]


async def test_cancelled_and_failed_downloads_leave_nothing_open():
    async def half(writer):
        writer.write(OK + b"Content-Length: 1000\r\n\r\nhalf")
        await asyncio.sleep(5)

    unraised: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: unraised.append(context))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with serving(half) as site, handling() as handler:
            request = Request(site.url, meta={"address": "127.0.0.1"})
            task = asyncio.ensure_future(handler.download_request(request))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert request.meta["wire_bytes"] == 4
            with pytest.raises(DownloadTimeoutError):
                await handler.download_request(
                    Request(site.url, meta={"address": "127.0.0.1", "download_timeout": 0.2})
                )
            assert not handler._transfers
            assert not [wire for wire in gc.get_objects() if isinstance(wire, Wire) and wire.transport is not None]
        gc.collect()
        await asyncio.sleep(0)
    assert not unraised
    assert not [str(w.message) for w in caught if "handler" in str(w.filename) or "aiohttp" in str(w.message)]


CRAWL = """
import asyncio, sys
import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from spiderling.fetch.errors import ResponseRefused

OK = b"HTTP/1.1 200 OK\\r\\nContent-Type: "
PAGES = {b"/": OK + b"text/html\\r\\n\\r\\n<p>one", b"/img": OK + b"image/png\\r\\n\\r\\nx"}

async def serve(reader, writer):
    path = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1]
    writer.write(PAGES.get(path, b""))
    writer.close()

class S(scrapy.Spider):
    name = "s"
    async def start(self):
        print(type(asyncio.get_running_loop()).__module__)
        self.server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        for path in ("", "img", "drop"):
            meta = {"judge_type": True, "verbatim_url": True}
            yield scrapy.Request(f"http://x.test:{port}/{path}", meta=meta, errback=self.failed)
    def parse(self, response):
        print("page", response.body.decode(), response.ip_address, response.meta["wire_bytes"])
    def failed(self, failure):
        print("failed", failure.type.__name__, getattr(failure.value, "reason", ""))

handler = "spiderling.engine.download_handler.DownloadHandler"
process = AsyncCrawlerProcess({
    "DOWNLOAD_HANDLERS": {"http": handler, "https": handler}, "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "RETRY_ENABLED": False, "LOG_LEVEL": "WARNING",
    "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8", "SPIDERLING_HOSTS": "*.test=127.0.0.1",
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
})
process.crawl(S)
process.start()
"""


def test_real_crawl_on_uvloop():
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", CRAWL]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = run.stdout.splitlines()
    assert lines[0] == "uvloop", run.stderr
    assert sorted(lines[1:]) == [
        "failed DownloadFailedError ",
        "failed ResponseRefused Reason.NOT_TEXT",
        "page <p>one 127.0.0.1 6",
    ], run.stderr
    assert "Unclosed" not in run.stderr
