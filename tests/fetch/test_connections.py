"""Which address the download handler connects to, and when it tells of it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
from handled import DOWNLOAD_ERRORS, PAGE, Due, Site, handling, reply, serving
from needs import needs
from scrapy import Request
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError
from scrapy.http import HtmlResponse

from spiderling.engine import download_handler
from spiderling.fetch.errors import AddressForbidden, TransferCut
from spiderling.frontier import Fetch
from spiderling.items import FETCH


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


@pytest.mark.parametrize("host", ["127.0.0.2", pytest.param("::1", marks=needs("IPv6 on loopback"))])
async def test_connects_to_the_given_address_whatever_the_name_says(host):
    async with serving(reply(b"second"), host=host) as site, handling() as handler:
        request = Request(f"http://127.0.0.1:{site.port}/", meta={"address": host})
        response = await handler.download_request(request)
    assert (response.body, str(response.ip_address)) == (b"second", host)
    assert f"Host: 127.0.0.1:{site.port}\r\n".encode() in site.requests[0]


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
        for meta in ({}, {"address": "127.0.0.1"}, {"address": "no address"}):
            with pytest.raises(AddressForbidden):
                await handler.download_request(Request("http://innocent.test/" if meta else url, meta=meta))


async def test_public_addresses_are_not_connected_to_without_a_contact():
    async with handling() as handler:
        with pytest.raises(AddressForbidden, match="SPIDERLING_CONTACT"):
            await handler.download_request(Request("http://a.test/", meta={"address": "192.88.98.1"}))


async def test_a_start_is_told_right_behind_the_packet_that_opens_the_connection():
    """An interval that counts from there is never too short."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        came = []

        def started(request, address):
            try:
                listener.accept()[0].close()  # what was sent is there at once on loopback
                came.append(True)
            except BlockingIOError:
                came.append(False)

        gate = Due()
        gate.started = started
        async with handling(gate=gate) as handler:
            url = f"http://a.test:{listener.getsockname()[1]}/"
            with pytest.raises(DOWNLOAD_ERRORS):
                await handler.download_request(Request(url, meta={"address": "127.0.0.1"}))
    assert came == [True]


class Waiting(Due):
    """The gate of a crawl in which a further URL of each host is due after some seconds."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def asked_again_in(self, request):
        return self.seconds


def fetch_over(url, address="127.0.0.1"):
    """A request of the frontier."""
    return Request(url, meta={"address": address, FETCH: Fetch(1, url, address, None)})


class Lasting(Site):
    """A server that leaves its connections open."""

    def __init__(self, answer):
        super().__init__(answer)
        self.connections = 0

    async def serve(self, reader, writer):
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(self.answer)
        writer.close()


def lasting(answer):
    return serving(answer, site=Lasting(answer))


@pytest.mark.parametrize(
    ("seconds", "answer", "connections"),
    [
        (5, reply(), 1), (5, reply(PAGE, b"Keep-Alive: timeout=60, max=99"), 1),
        (5, reply(PAGE, b"Keep-Alive: timeout=5"), 3), (60, reply(), 3), (float("inf"), reply(), 3),
        (5, reply(PAGE, b"Connection: close"), 3), (5, reply() + b"more", 3),
    ],
)  # fmt: skip
async def test_a_connection_is_kept_only_if_its_host_is_asked_again_in_time(seconds, answer, connections):
    gate = Waiting(seconds)
    async with lasting(answer) as site, handling(gate=gate) as handler:
        for number in range(3):
            assert (await handler.download_request(fetch_over(site.url))).body == PAGE
            assert gate.started_at == ["127.0.0.1"] * (number + 1), "each request counts"
    assert site.connections == connections and len(site.requests) == 3
    asked = b"close" if seconds == float("inf") else b"keep-alive"
    assert all(b"\r\nConnection: %b\r\n" % asked in head for head in site.requests)


async def test_a_connection_is_kept_for_no_other_name_or_address():
    async with lasting(reply()) as site, handling(gate=Waiting(5), ALLOW_NETWORKS="127.0.0.0/8") as handler:
        await handler.download_request(fetch_over(site.url))
        await handler.download_request(fetch_over(site.url.replace("site", "other")))
        with pytest.raises(DownloadConnectionRefusedError):
            await handler.download_request(fetch_over(site.url, "127.0.0.9"))
    assert site.connections == 2


async def test_few_connections_are_kept_and_none_when_descriptors_are_missing(monkeypatch):
    monkeypatch.setattr(download_handler, "MAX_KEPT", 2)
    async with lasting(reply()) as site, handling(gate=Waiting(5)) as handler:
        for name in "abcac":
            await handler.download_request(fetch_over(site.url.replace("site", name)))
    assert site.connections == 4, "that of a was closed for that of c"


async def test_a_server_that_fails_a_further_request_is_asked_over_new_connections():
    """A page is not lost by it: it waits again, as if never asked for."""

    async def once(writer):
        writer.write(reply())
        await site.next_request()

    async with serving(once) as site, handling(gate=Waiting(5)) as handler:
        assert (await handler.download_request(fetch_over(site.url))).body == PAGE
        with pytest.raises(TransferCut, match="new connection"):
            await handler.download_request(fetch_over(site.url))
        for _ in range(2):
            assert (await handler.download_request(fetch_over(site.url))).body == PAGE


async def test_refused_connection_and_unknown_name():
    async with serving(b"") as site:
        port = site.port
    async with handling(HOSTS="") as handler:
        with pytest.raises(DownloadConnectionRefusedError):
            await handler.download_request(Request(f"http://a.test:{port}/", meta={"address": "127.0.0.1"}))
        with pytest.raises(CannotResolveHostError):
            await handler.download_request(Request("http://a..b/"))


async def test_connections_come_from_the_bind_address():
    peers = []

    async def answer(writer):
        peers.append(writer.get_extra_info("peername")[0])
        writer.write(reply())

    async with serving(answer) as site, handling({"DOWNLOAD_BIND_ADDRESS": "127.0.0.7"}) as handler:
        assert (await handler.download_request(Request(site.url, meta={"address": "127.0.0.1"}))).body == PAGE
    assert peers == ["127.0.0.7"]
