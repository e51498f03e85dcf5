"""TLS: any certificate is accepted, unless the user is strict."""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import suppress

import pytest
from conftest import DEADLINE_S
from handled import DOWNLOAD_ERRORS, OK, PAGE, chunked, handling, open_sockets, reply, server_context, serving
from scrapy import Request
from scrapy.exceptions import (
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.settings import Settings

from spiderling.base.reasons import Reason
from spiderling.fetch import client, tls
from spiderling.fetch.errors import BadHttp, TlsFailed
from spiderling.fetch.messages import RawRequest

STRICT = {"DOWNLOAD_VERIFY_CERTIFICATES": True}
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture
def server_tls(tmp_path):
    return server_context(tmp_path)


@pytest.fixture
async def site(server_tls):
    """A server that gives a page over TLS."""
    async with serving(reply(), tls=server_tls) as running:
        yield running


@pytest.fixture
async def handler():
    async with handling() as made:
        yield made


async def test_tls_sends_the_name_and_accepts_any_certificate(site, handler):
    response, _ = await pages(handler, ("site.test", site.port), ("127.0.0.1", site.port))
    assert response.body == PAGE
    assert site.sni == ["site.test", None]


@pytest.mark.parametrize("made", [{}, {"days": (-20, -10)}, {"days": (10, 20)}, {"names": ["other.test"]}])
async def test_a_certificate_that_is_not_valid_is_accepted(tmp_path, handler, made):
    async with serving(reply(), tls=server_context(tmp_path, **made)) as site:
        (response,) = await pages(handler, ("site.test", site.port))
    assert (response.body, response.flags) == (PAGE, [])


async def test_certificates_are_verified_if_told_so(tmp_path, site, monkeypatch):
    async with handling(STRICT) as handler:
        with pytest.raises(TlsFailed, match="certificate") as caught:
            await pages(handler, ("site.test", site.port))
        assert caught.value.reason is Reason.TLS
        assert not site.requests
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
    async with handling(STRICT) as handler:
        (response,) = await pages(handler, ("site.test", site.port))
        assert response.body == PAGE
        with pytest.raises(TlsFailed):
            await pages(handler, ("x.test", site.port))


async def test_tls_to_a_plain_server_and_to_a_silent_one():
    async def silent(writer):
        await asyncio.sleep(600)

    for answer, error in ((b"not TLS at all\r\n\r\n", DownloadFailedError), (silent, DownloadTimeoutError)):
        server = await asyncio.start_server(lambda r, w, a=answer: a(w) if callable(a) else w.write(a), "127.0.0.1", 0)
        async with handling(constants={"FIRST_BYTE_TIMEOUT_S": 0.5}) as handler:
            with pytest.raises(error):
                await pages(handler, ("site.test", server.sockets[0].getsockname()[1]))
        server.close()


async def pages(handler, *sites):
    """The pages of *sites*, each ``(host name, port)``, asked for in turn."""
    asked = (Request(f"https://{name}:{port}/", meta={"address": "127.0.0.1"}) for name, port in sites)
    return [await handler.download_request(request) for request in asked]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_is_resumed_by_the_next_connections_to_the_same_host(server_tls, site, handler, version):
    server_tls.maximum_version = version
    responses = await pages(handler, *[("site.test", site.port)] * 3)
    assert site.resumed == [False, True, True]
    assert {response.body for response in responses} == {PAGE}


async def test_a_session_is_resumed_at_no_other_host_or_port(server_tls, site, handler):
    async with serving(reply(), tls=server_tls) as other:
        ports = site.port, site.port, other.port, site.port
        await pages(handler, *zip(("a.test", "b.test", "a.test", "a.test"), ports, strict=True))
    assert (site.resumed, other.resumed) == ([False, False, True], [False])


async def test_a_session_that_was_made_without_a_check_serves_no_strict_crawl(site, handler):
    async with handling(STRICT) as strict:
        await pages(handler, ("site.test", site.port))
        with pytest.raises(TlsFailed, match="certificate"):
            await pages(strict, ("site.test", site.port))
    assert site.resumed == [False]


async def test_a_server_that_does_not_know_a_session_any_more_gives_the_page_all_the_same(tmp_path, handler):
    """It was started anew, say, with other keys for its tickets."""
    async with serving(reply(b"before"), tls=server_context(tmp_path)) as site:
        await pages(handler, ("site.test", site.port))
    async with serving(reply(b"after"), tls=server_context(tmp_path), port=site.port) as site:
        responses = await pages(handler, *[("site.test", site.port)] * 2)
    assert [response.body for response in responses] == [b"after"] * 2
    assert site.resumed == [False, True]


async def test_a_server_that_gives_no_ticket_is_asked_without_one(server_tls, site, handler):
    server_tls.num_tickets = 0
    assert len(await pages(handler, *[("site.test", site.port)] * 2)) == 2
    assert site.resumed == [False, False]


async def test_few_sessions_are_kept_and_the_latest_used(site, handler, monkeypatch):
    monkeypatch.setattr(tls, "MAX_SESSIONS", 2)
    await pages(handler, *[(f"{name}.test", site.port) for name in "abacab"])
    assert site.resumed == [False, False, True, False, True, False]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "answer",
    [reply(PAGE * 500), chunked(PAGE * 250, PAGE * 250) + b"0\r\n\r\n", OK + b"\r\n" + PAGE * 500],
    ids=["length", "chunks", "closing"],
)
async def test_a_long_page_comes_whole_over_tls(server_tls, version, answer):
    server_tls.maximum_version = version
    async with serving(answer, tls=server_tls) as site, handling(MAX_BODY_BYTES=10_000_000) as handler:
        responses = await pages(handler, *[("site.test", site.port)] * 2)
    assert all(response.body == PAGE * 500 for response in responses)


async def test_a_connection_that_is_cut_over_tls_ends_as_without(server_tls, handler):
    async def cut(writer):
        writer.write(reply(PAGE)[:-100])
        await writer.drain()
        writer.transport.abort()

    async with serving(cut, tls=server_tls) as site:
        with pytest.raises(ResponseDataLossError):
            await pages(handler, ("site.test", site.port))


async def test_a_name_that_tls_has_no_room_for_is_a_download_error(site, handler):
    with pytest.raises(UnsupportedURLSchemeError, match="TLS"):
        await pages(handler, ("a" * 70 + ".test", site.port))


async def test_what_is_no_data_over_tls_is_limited(server_tls, monkeypatch):
    """Records of one byte cost twenty times as much as they bring."""
    monkeypatch.setattr(client, "MAX_HEAD_BYTES", 10_000)

    async def bytewise(writer):
        for byte in reply(PAGE):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)

    async with serving(bytewise, tls=server_tls) as site, handling() as handler:
        with pytest.raises(BadHttp, match="not body"):
            await pages(handler, ("site.test", site.port))


@pytest.mark.parametrize("answer", [reply(), OK + b"\r\n" + PAGE, reply()[:-9], b"no HTTP", b""])
async def test_no_socket_stays_open_when_the_server_takes_leave_first(server_tls, answer):
    """TLS says so before TCP does."""
    async with serving(answer, tls=server_tls) as site, handling() as handler:
        before = open_sockets()
        for _ in range(3):
            with suppress(*DOWNLOAD_ERRORS):
                await pages(handler, ("site.test", site.port))
        deadline = time.monotonic() + DEADLINE_S
        while open_sockets() > before:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_connection_over_tls_that_is_left_open_brings_the_next_page(server_tls, version):
    server_tls.maximum_version = version

    async def answer(writer):
        writer.write(reply(b"one"))
        await site.next_request()
        writer.write(reply(b"two"))

    async with serving(answer, tls=server_tls) as site:
        sessions = tls.Sessions(tls.context(Settings()))
        place = client.Destination(True, "site.test", "127.0.0.1", site.port)
        target = client.ConnectTarget(place, lambda _: None)
        target.tls, target.server_name = sessions, "site.test"
        request = RawRequest("GET", "/", [(b"Host", b"site.test")])
        bodies = []
        wire = None
        for _ in range(2):
            wire = (await client.send(request, target, wire)).wire
            bodies.append(await wire.read())
        wire.abort()
    assert (bodies, site.resumed) == ([b"one", b"two"], [False])
