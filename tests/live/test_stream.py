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


async def test_a_ninth_who_looks_takes_the_place_of_who_does_not_read_then_of_the_oldest(monkeypatch):
    """Eight tabs that somebody had forgotten locked all others out."""
    monkeypatch.setattr(server, "EVERY_S", 0.03)
    rounds = 0

    async def made() -> str:
        nonlocal rounds
        rounds += 1
        return "x" * 300_000

    async def opened(buffer_bytes: int = 1 << 16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, (served.host, served.port))
        reader, writer = await asyncio.open_connection(sock=client, limit=1 << 24)
        writer.write(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        return reader, writer

    told = Stream(made)
    app = web.Application()
    app.router.add_get("/events", told.serve)
    running = asyncio.ensure_future(told.run())
    async with TestServer(app) as served:
        looking = [await opened(4096 if number == 3 else 1 << 16) for number in range(server.MAX_STREAMS)]
        slow = looking.pop(3)
        slow[1].transport.pause_reading()
        last = [asyncio.ensure_future(said_last(reader)) for reader, _ in looking]
        while rounds < 40:  # more than the system keeps for one who does not read
            await asyncio.sleep(0.02)
        new = [await opened() for _ in range(2)]
        last_of_new = [asyncio.ensure_future(said_last(reader)) for reader, _ in new]
        assert await last[0] == b"event: replaced"
        slow[1].transport.resume_reading()
        assert await said_last(slow[0]) != b"event: replaced", "it was cut off"
        assert not any(one.done() for one in (*last[1:], *last_of_new))
        told.end("")
        assert {await one for one in (*last[1:], *last_of_new)} == {b"event: ended"}
        for _, writer in (*looking, *new, slow):
            writer.close()
    running.cancel()
