"""The stream of the live page goes on, whatever happens when a status is made."""

import asyncio
import logging
import socket
from contextlib import suppress

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from spiderling.live import server
from spiderling.live.server import Stream


async def test_a_status_that_fails_does_not_end_the_stream(monkeypatch, caplog):
    monkeypatch.setattr(server, "EVERY_S", 0.01)
    answers = iter([KeyError("host"), KeyError("host"), '{"pages": 1}'])

    async def made() -> str:
        answer = next(answers, '{"pages": 1}')
        if isinstance(answer, Exception):
            raise answer
        return answer

    told = Stream(made)
    app = web.Application()
    app.router.add_get("/events", told.serve)
    caplog.set_level(logging.WARNING)
    running = asyncio.ensure_future(told.run())
    async with TestClient(TestServer(app)) as client, client.get("/events") as answer:
        async for line in answer.content:
            if line.startswith(b"data"):
                break
        assert line == b'data: {"pages": 1}\n'
        told.end("")
    running.cancel()
    assert [record.getMessage() for record in caplog.records] == ["The live page stands still: KeyError: 'host'"]


async def said_last(reader: asyncio.StreamReader) -> bytes:
    """The last event of a stream, when that has ended."""
    last = b""
    with suppress(ConnectionError):
        async for line in reader:
            last = line.strip() if line.startswith(b"event") else last
    return last


async def test_a_ninth_who_looks_takes_the_place_of_the_oldest_and_who_does_not_read_is_cut_off(monkeypatch):
    """Eight tabs that somebody had forgotten locked all others out."""
    monkeypatch.setattr(server, "EVERY_S", 0.03)
    monkeypatch.setattr(server, "WRITE_S", 0.3)
    given_up = asyncio.Event()

    async def made() -> str:
        return "x" * 300_000

    async def opened(buffer_bytes: int = 1 << 16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, (served.host, served.port))
        reader, writer = await asyncio.open_connection(sock=client, limit=1 << 24)
        writer.write(f"GET /events?{buffer_bytes} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return reader, writer

    async def serve(request: web.Request) -> web.StreamResponse:
        response = await told.serve(request)
        if request.query_string == "4096":
            given_up.set()
        return response

    told = Stream(made)
    app = web.Application()
    app.router.add_get("/events", serve)
    running = asyncio.ensure_future(told.run())
    async with TestServer(app) as served:
        slow = await opened(4096)
        slow[1].transport.pause_reading()
        await given_up.wait()
        monkeypatch.setattr(server, "WRITE_S", 60)  # who reads is not cut off, however slow the machine is
        looking = [await opened() for _ in range(server.MAX_STREAMS + 1)]
        last = [asyncio.ensure_future(said_last(reader)) for reader, _ in looking]
        assert await last[0] == b"event: replaced"
        assert not any(one.done() for one in last[1:])
        told.end("")
        assert {await one for one in last[1:]} == {b"event: ended"}
        for _, writer in (*looking, slow):
            writer.close()
    running.cancel()
