"""The loopback server over real sockets: what a client sees, also when the server misbehaves on purpose."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import pytest
from conftest import DEADLINE_S

from webs.server import serve, waited_s
from webs.web import FixedWeb, WebResponse, html, unavailable

TEXT = "<p>" + "Vlk a koza. " * 200 + "</p>"
SITES = {
    "a.test": {
        "/": html("A"),
        "/long": html(TEXT),
        "/slow": WebResponse(body=b"late", delay_s=0.3),
        "/trickle": WebResponse(body=b"x" * 200, trickle_s=0.05),
        "/endless": WebResponse(body=b"y" * 1000, endless=True),
        "/liar": WebResponse(body=b"short", claimed_bytes=1000),
        "/busy": unavailable(7, status=429),
    },
    "b.test": {"/": html("B")},
}
ADDRESSES = {"a.test": "127.80.9.1", "b.test": "127.80.9.2"}
KERNEL_TICK_S = 0.01  # the kernel dates an arrival to its last tick, of which there are at least 100 a second


@pytest.fixture
async def server(tmp_path):
    async with serve(FixedWeb(SITES, ADDRESSES), log=tmp_path / "access.tsv") as running:
        yield running


@asynccontextmanager
async def client(server, address="127.80.9.1"):
    reader, writer = await asyncio.open_connection(address, server.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(streams, path, host="a.test", method="GET", **headers):
    """Status, headers and body of one request."""
    reader, writer = streams
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    status, fields = await read_head(reader)
    length = 0 if method == "HEAD" else int(fields.get("content-length", 0))
    return status, fields, await reader.readexactly(length)


async def read_head(reader):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    return int(lines[0].split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:] if line)}


async def test_the_host_header_chooses_the_site_and_the_connection_is_kept_until_one_side_says_close(server):
    async with client(server) as streams:
        assert (await ask(streams, "/"))[2] == b"A"
        assert (await ask(streams, "/", host=f"B.TEST:{server.port}"))[2] == b"B"
        assert (await ask(streams, "/", host="nowhere.test"))[0] == 404
        assert (await ask(streams, "/nothing"))[0] == 404
        status, fields, _ = await ask(streams, "/busy")
        assert (status, fields["retry-after"], fields["connection"]) == (429, "7", "keep-alive")
        assert (await ask(streams, "/", connection="close"))[1]["connection"] == "close"
        assert await streams[0].read() == b""
    async with client(server, "127.80.9.2") as streams:
        assert (await ask(streams, "/", host="b.test"))[0] == 200
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.80.9.3", server.port)
    assert server.hosts_option == f"a.test=127.80.9.1:{server.port},b.test=127.80.9.2:{server.port}"


async def test_gzip_only_when_asked_for_and_worth_it(server):
    async with client(server) as streams:
        _, fields, body = await ask(streams, "/long", accept_encoding="gzip, br")
        assert fields["content-encoding"] == "gzip"
        assert gzip.decompress(body).decode() == TEXT
        status, fields, body = await ask(streams, "/long", method="HEAD")
        assert (status, int(fields["content-length"]), body) == (200, len(TEXT), b"")
        assert (await ask(streams, "/long"))[2].decode() == TEXT
        assert "content-encoding" not in (await ask(streams, "/", accept_encoding="gzip"))[1]


async def test_a_body_trickles_has_no_end_or_a_false_length(server):
    begin = time.monotonic()
    async with client(server) as streams:
        assert len((await ask(streams, "/trickle"))[2]) == 200
        assert time.monotonic() - begin >= 0.15
        with pytest.raises(asyncio.IncompleteReadError) as broken:
            await ask(streams, "/liar")
        assert (broken.value.partial, broken.value.expected) == (b"short", 1000)
    async with client(server) as (reader, writer):
        writer.write(b"GET /endless HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert "content-length" not in (await read_head(reader))[1]
        assert await reader.readexactly(3_000_000) == b"y" * 3_000_000


async def test_the_log_has_a_line_for_each_request_with_its_arrival(tmp_path):
    path = tmp_path / "access.tsv"
    async with serve(FixedWeb(SITES, ADDRESSES), log=path) as server:
        before = time.monotonic()
        async with client(server) as streams:
            await ask(streams, "/slow")
            await ask(streams, "/?q=1", host="b.test")
        async with client(server) as (_, writer):
            writer.write(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n")
            await asyncio.sleep(0.05)
            writer.close()
            await asyncio.sleep(0.05)
        first, *others = server.log_entries
        left, second = sorted(others, key=lambda entry: entry.status)  # which came within a millisecond or two
        assert first[1:] == ("127.80.9.1", "a.test", "GET", "/slow", 200, 4)
        assert before - 10 * KERNEL_TICK_S <= first.time_s <= second.time_s - 0.15  # a busy machine reads clocks late
        assert (second.path, second.status) == ("/?q=1", 404)
        assert (left.path, left.body_bytes) == ("/slow", 0)
        async with client(server) as (reader, writer):
            writer.write(b"GET /endless HTTP/1.1\r\nHost: a.test\r\n\r\n")
            await reader.readexactly(5000)
            await server.stop()
            assert "/endless" in path.read_text(), "what is being sent at the end is cut, and in the log"
    rows = [line.split("\t") for line in path.read_text().splitlines()][:3]
    assert sorted((float(row[0]), *row[1:]) for row in rows) == [
        (round(entry.time_s, 6), *map(str, entry[1:])) for entry in (first, *others)
    ]


async def test_time_of_a_request_is_its_arrival_and_not_when_the_server_had_time(server):
    """A busy server would else seem to be asked more often than it was."""
    with socket.create_connection(("127.80.9.1", server.port)) as client:
        await asyncio.sleep(0.1)
        sent = time.monotonic()
        client.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        time.sleep(0.4)  # the server's loop stands still
        await asyncio.sleep(0.1)
    assert server.log_entries[0].time_s - sent < 0.2


async def test_a_server_that_waits_for_its_turn_dates_no_request_too_early(server, monkeypatch):
    """A request seemed to have come before another one, whose answer its client had waited for."""

    def interrupted(sock):
        if not pauses:
            time.sleep(0.3)
        pauses.append(0.3)
        return waited_s(sock)

    pauses = []
    monkeypatch.setattr("webs.server.waited_s", interrupted)
    before = time.monotonic()
    async with client(server) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
    assert server.log_entries[0].time_s >= before - 10 * KERNEL_TICK_S


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_line_says_when_it_is_ready_and_ends_on_a_signal(tmp_path, number):
    for language in ("cs", "sk", "pl", "en", "de"):
        (tmp_path / language).mkdir()
        (tmp_path / language / "words.txt").write_text("pes\t3\na\t9\n", encoding="utf-8")
    ready, log = tmp_path / "ready.json", tmp_path / "log.tsv"
    command = [sys.executable, "-m", "webs.server", "--web", "synthetic:20:3", "--port", "0"]
    command += ["--ready-file", str(ready), "--log", str(log), "--models", str(tmp_path)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
        try:
            deadline = time.monotonic() + DEADLINE_S
            while not ready.exists() and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.05)
            said = json.loads(ready.read_text())
            assert said["pid"] == process.pid
            assert said["hosts"].startswith(f"*-00.*=127.81.0.1:{said['port']},")
            process.send_signal(number)
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()
    assert log.exists()
