"""The stream of the live page goes on, whatever happens when a status is made."""

import asyncio
import logging

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from spiderling.live import stream
from spiderling.live.stream import Stream


async def test_a_status_that_fails_does_not_end_the_stream(monkeypatch, caplog):
    monkeypatch.setattr(stream, "EVERY_S", 0.01)
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
        told.end()
    running.cancel()
    assert [record.getMessage() for record in caplog.records] == ["The live page stands still: KeyError: 'host'"]
