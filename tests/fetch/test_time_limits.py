"""Slow servers: what is not held against them; the silent and dripping ones of tests/web run into each limit."""

from __future__ import annotations

import asyncio
import time

from handled import OK, failing, fetch
from scrapy.exceptions import DownloadTimeoutError

from spiderling.base.reasons import Reason
from spiderling.fetch.errors import TooSlow


async def test_a_request_may_have_a_shorter_time_limit():
    async def slow_body(writer):
        writer.write(OK + b"Content-Length: 50000\r\n\r\n")
        while True:
            writer.write(b"xxx")
            await asyncio.sleep(0.1)

    request, error = await failing(slow_body, download_timeout=0.5)
    assert isinstance(error, DownloadTimeoutError) and not isinstance(error, TooSlow)
    assert request.meta["wire_bytes"] > 2


async def silence(writer):
    writer.write(OK + b"Content-Length: 5000\r\n\r\nsome")
    await asyncio.sleep(600)


async def test_a_slow_body_above_the_floor_comes_through_and_one_below_may_pass():
    async def slow(writer):
        writer.write(OK + b"Content-Length: 3000\r\n\r\n")
        for _ in range(30):
            writer.write(b"x" * 100)
            await writer.drain()
            await asyncio.sleep(0.05)

    _, response = await fetch(slow, options={"constants": {"SLOW_WINDOW_S": 0.5}})
    assert len(response.body) == 3000
    _, error = await failing(silence, options={"constants": {"SLOW_WINDOW_S": 0.5}, "TIMEOUT_S": 600})
    assert isinstance(error, TooSlow) and error.reason is Reason.TOO_SLOW and error.may_pass
    _, error = await failing(
        silence, options={"constants": {"MIN_BYTES_PER_S": 0, "SLOW_WINDOW_S": 0.1}, "TIMEOUT_S": 1}
    )
    assert isinstance(error, DownloadTimeoutError) and not isinstance(error, TooSlow)


async def test_a_late_event_loop_is_not_held_against_the_server():
    async def late(writer):
        writer.write(OK + b"Content-Length: 2\r\n\r\n")
        await asyncio.sleep(0.2)
        time.sleep(1)
        await asyncio.sleep(0.05)
        writer.write(b"ab")

    _, response = await fetch(late, options={"constants": {"MIN_BYTES_PER_S": 1, "SLOW_WINDOW_S": 0.4}})
    assert response.body == b"ab"
