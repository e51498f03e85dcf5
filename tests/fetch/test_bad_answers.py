"""Answers that are no HTTP, end early or never end: an error that says so, soon and in bounded memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import suppress

import pytest
from handled import OK, PAGE, PROMPT_ERRORS, chunked, failing, fetch, handling, reply, serving
from scrapy import Request
from scrapy.exceptions import ResponseDataLossError

from spiderling.fetch.client import MAX_HEAD_BYTES
from spiderling.fetch.errors import BadHttp


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
    await asyncio.sleep(600)


async def test_a_broken_chunk_ends_a_body_whose_headers_came_before():
    _, error = await failing(broken_chunk_later, options={"constants": {"SLOW_WINDOW_S": 30}})
    assert isinstance(error, BadHttp)


FLOODS = [
    pytest.param(tiny_chunk_flood, marks=pytest.mark.slow), header_flood, one_endless_header,
    pytest.param(interim_flood, marks=pytest.mark.slow), endless_status_line, chunk_header_flood, trailer_flood,
]  # fmt: skip


@pytest.mark.parametrize("answer", [*FLOODS, bodiless_flood], ids=lambda answer: answer.__name__)
async def test_floods_end_soon_and_in_bounded_memory(answer):
    async with (
        serving(answer) as site,
        handling(TIMEOUT_S=600, constants={"FIRST_BYTE_TIMEOUT_S": 600}, MAX_BODY_BYTES=5_000_000) as handler,
    ):
        request = Request(site.url, meta={"address": "127.0.0.1"})
        tracemalloc.start()
        if answer is bodiless_flood:
            await handler.download_request(request)
        else:
            with pytest.raises(BadHttp):
                await handler.download_request(request)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
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
    async with serving(HOSTILE[name]) as site, handling() as handler:
        request = Request(site.url, meta={"address": "127.0.0.1", "judge_type": True})
        with suppress(*PROMPT_ERRORS):
            response = await handler.download_request(request)
            assert isinstance(response.body, bytes)
            assert isinstance(response.status, int)
    assert request.meta["wire_bytes"] >= 0
