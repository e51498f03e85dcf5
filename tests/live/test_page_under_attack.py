"""Nobody who can connect to the live page harms the crawl, or keeps others from looking: real sockets, real crawls."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import resource
import socket
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import NamedTuple

import pytest
from conftest import Crawl, page, serving
from prometheus_client import CollectorRegistry
from watched import Watched, watching, web

from spiderling.base.machine import RESERVED
from spiderling.base.option_values import parse_page
from spiderling.live import server
from spiderling.live.server import Server
from webs.web import WebResponse

HALF_A_HEAD = b"GET / HT"


def limit_descriptors(watched: Watched, number: int) -> None:
    resource.prlimit(watched.running.process.pid, resource.RLIMIT_NOFILE, (number, number))


def test_sockets_that_say_nothing_do_not_end_the_crawl(tmp_path):
    """1,500 of them took all descriptors, so that the next segment, log or snapshot could not be opened."""
    with (
        serving(web()) as origin,
        watching(tmp_path / "job", origin, CONSTANTS={"crawl.crawl.SEGMENT_BYTES": 1000}) as watched,
        ExitStack() as opened,
    ):
        limit_descriptors(watched, 256)
        segments = watched.crawl.directory / "corpus"
        for number in range(1500):
            client = opened.enter_context(socket.create_connection(watched.host.split(":")))
            client.sendall(HALF_A_HEAD)
            if number % 100 == 0:
                assert watched.ask("/status.json").json["phase"] == "running"
        before = len(list(segments.iterdir()))
        watched.running.until(lambda: len(list(segments.iterdir())) > before + 5)
        assert watched.ask("/status.json").json["phase"] == "running"
        result = watched.running.stop()
        assert result.code == 0 and "was paused (shutdown)" in result.output
        assert not [line for line in result.output.splitlines() if "ERROR" in line or "Traceback" in line]
        watched.crawl.state().check()


def few_pages(hosts: int, pages: int) -> dict:
    """Slow hosts, so that many are asked at once."""
    sites = {}
    for host in range(hosts):
        links = [f"/{number}" for number in range(1, pages)]
        answers = [page(f"h{host}p{number}", *links) for number in range(pages)]
        slow = [WebResponse(200, answer.headers, answer.body, delay_s=0.3) for answer in answers]
        sites[f"h{host}.test"] = {f"/{number}": answer for number, answer in enumerate(slow)}
    return sites


def test_a_crawl_without_descriptors_for_its_requests_waits_and_loses_nothing(tmp_path):
    hosts, pages = 24, 4
    seeds = " ".join(f"http://h{host}.test/0" for host in range(hosts))
    with serving(few_pages(hosts, pages)) as origin:
        constants = {"crawl.crawl.SEGMENT_BYTES": 1000, "engine.dispatcher.REST_S": 0.1}
        crawl = Crawl(tmp_path / "job", origin, RETRIES=0, CONSTANTS=constants)
        running = crawl.start(seeds)
        running.until(lambda: len(origin.log_entries) > hosts)
        process = running.process.pid
        resource.prlimit(process, resource.RLIMIT_NOFILE, (RESERVED, 4096))  # each socket is one too many
        running.until(lambda: "too many files and sockets open (96 allowed)" in running.output())
        asked = len(origin.log_entries)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (4096, 4096))
        running.until(lambda: len(origin.log_entries) > asked + hosts)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (RESERVED + 40, 4096))  # some find one
        result = running.wait()
    assert result.code == 0 and "is finished." in result.output and "ERROR" not in result.output
    assert len(result.lines("too many files and sockets open")) == 1
    assert crawl.state().ends["kept"] == hosts * pages
    assert {reason for reason, _ in crawl.ended().values()} == {"kept"}


@pytest.mark.slow
def test_the_number_of_requests_at_once_is_kept_within_the_limit(tmp_path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (150, 200))

    with serving(few_pages(2, 2)) as origin:
        result = Crawl(tmp_path / "job", origin).run("http://h0.test/0", preexec_fn=limit)
    assert result.code == 0 and "is finished." in result.output
    (line,) = result.lines("requests run at the same time, not CONCURRENT_REQUESTS=500")
    assert "this process may have 200 files and sockets open" in line, "the soft limit is raised to the hard one"


# -- its own server, without a crawl


class Place(NamedTuple):
    host: str
    port: int


@asynccontextmanager
async def served(directory):
    """A live page without a crawl, which can tell nothing of one."""
    page_server = Server(parse_page("127.0.0.1:0"), directory, lambda: None, CollectorRegistry())
    await page_server.start()
    try:
        host, port = page_server.place.removeprefix("http://").rstrip("/").split(":")
        yield Place(host, int(port))
    finally:
        await page_server.close()


async def opened(place: Place, sent: bytes = b""):
    reader, writer = await asyncio.open_connection(*place)
    writer.write(sent)
    await writer.drain()
    return reader, writer


def head(place, path: str = "/", more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\n{more}\r\n".encode()


async def closes(reader) -> bytes:
    """What the server sends before it closes the connection."""
    received = b""
    with suppress(ConnectionError):
        while piece := await reader.read(4096):
            received += piece
    return received


@pytest.fixture
def quick(monkeypatch):
    """A server that is as impatient as a test."""
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    monkeypatch.setattr(server, "BODY_S", 0.3)
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 4)


@pytest.mark.parametrize("before", [False, True])
async def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(tmp_path, quick, before):
    """Nor is one that comes byte by byte, or after a request that was answered."""
    async with served(tmp_path) as place:
        reader, writer = await opened(place, head(place) if before else b"")
        writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        over = asyncio.ensure_future(closes(reader))
        while not over.done():
            with suppress(ConnectionError):
                writer.write(b"a")
            await asyncio.sleep(0.02)
        assert over.result().count(b"HTTP/1.1 ") == before and b" 400 " not in over.result()
        writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path, quick):
    async with served(tmp_path) as place:
        more = f"X-Spiderling: {(tmp_path / 'page.token').read_text().strip()}\r\nContent-Length: 100\r\n"
        reader, writer = await opened(place, head(place, "/control", more).replace(b"GET", b"POST") + b"{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_new_connection_takes_the_place_of_the_one_that_waits_longest(tmp_path, quick, monkeypatch):
    monkeypatch.setattr(server, "HEAD_S", 600)
    monkeypatch.setattr(server, "BODY_S", 600)
    async with served(tmp_path) as place:
        more = f"X-Spiderling: {(tmp_path / 'page.token').read_text().strip()}\r\nContent-Length: 2\r\n"
        asking = await opened(place, head(place, "/control", more).replace(b"GET", b"POST") + b"{")
        await asyncio.sleep(0.1)
        idle = [await opened(place, HALF_A_HEAD) for _ in range(3)]
        served_since = []
        for _ in range(9):
            reader, writer = await opened(place, head(place))
            assert b"200 OK" in await reader.readline()
            served_since.append(writer)
        for reader, _ in idle:
            await closes(reader)
        asking[1].write(b"}")
        assert b" 409 " in await asking[0].readline(), "it was being answered"
        for writer in (asking[1], *served_since):
            writer.close()


async def test_a_connection_whose_answer_nobody_reads_counts_as_one(tmp_path, quick, monkeypatch):
    """Closed with what was not read, it was not counted, and kept its descriptor for as long as its client liked."""
    listen = socket.create_server

    def listen_with_little_memory(*place, **more):
        listening = listen(*place, **more)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return listening

    monkeypatch.setattr(socket, "create_server", listen_with_little_memory)
    async with served(tmp_path) as place:
        with ExitStack() as opened_sockets:
            before = len(os.listdir("/proc/self/fd"))
            for number in range(12):
                client = opened_sockets.enter_context(socket.socket())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, place)
                client.sendall(head(place, "/page.js") * 2)
                if number % 3 == 2:
                    await asyncio.sleep(0.4)  # they have been silent for too long
            assert len(os.listdir("/proc/self/fd")) - before <= 12 + server.MAX_CONNECTIONS


async def test_the_page_goes_on_when_no_connection_could_be_accepted(tmp_path, quick):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with served(tmp_path) as place:
        with socket.socket() as client, ExitStack() as filling:
            client.setblocking(False)
            resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, hard))
            try:
                with suppress(OSError):
                    while True:
                        filling.enter_context(client.dup())
                await asyncio.get_running_loop().sock_connect(client, place)
                await asyncio.sleep(0.2)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await asyncio.get_running_loop().sock_sendall(client, head(place))
            assert (await asyncio.get_running_loop().sock_recv(client, 99)).startswith(b"HTTP/1.1 200 ")


# -- whatever is asked


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    with serving(web()) as origin, watching(tmp_path_factory.mktemp("asked") / "job", origin) as crawl:
        crawl.running.until(lambda: crawl.ask("/hosts.json").json["found"] == 2)
        yield crawl


PATHS = ("/", "/page.js", "/status.json", "/hosts.json", "/host.json", "/metrics", "/control", "*")
TARGETS = (
    "", "?", "?search=%ff&order=%00", "?search=%ED%A0%80", "?name=\ud800", "?name=%00", "?page=" + "9" * 20,
    "?page=-1", "?page=٣", "?order=words;drop&rising=2", "?name[]=x&name[]=%", "?search=" + "x" * 3000, "#x",
    "/..;/", "%2e%2e/%2e%2e/etc/passwd", "?name=http://[::1", "?search=%%%", "?name=" + "a." * 300,
    "?search=_%25'\"", "\\", "\xff",
)  # fmt: skip
BODIES = (
    b"", b"{}", b"[]", b"{", b"null", b"7", b'"x"', b"[" * 5000, b'{"a":' * 2000, b'{"token":"\\ud800"}',
    b'{"token":7}', b'{"token":"\xff"}', b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}", b"\0", gzip.compress(b"{}"),
    gzip.compress(b"x" * 9_000_000), gzip.compress(b"{}")[:-4], b"9" * 5000, b"NaN", b"x" * 20_000,
    b'{"action":"block","host":"\\ud800"}', b'{"action":{},"host":[]}', b'{"action":"block","host":"[::1]"}',
    b'{"action":"block","host":"' + b"a" * 5000 + b'"}', b'{"action":"reopen","host":"xn--\\u0000"}',
    b'{"action":"block","host":"\\u0000.test"}', b'{"action":"block","host":"a..b"}',
)  # fmt: skip
JSON = "application/json"
HEADERS = (
    ("Content-Type", (JSON, f"{JSON}; charset=none", f"{JSON}; charset=\x00", f"{JSON}; charset=utf-7", "x", ";", "",
                      f"{JSON}; charset=idna", "multipart/form-data")),
    ("Content-Encoding", ("gzip", "deflate", "br", "zstd", "x", "gzip, gzip")),
    ("X-Spiderling", ("token", "1", "", "\xff")),
    ("Origin", ("own", "null", "http://", "\xff", "://x")),
    ("Authorization", ("token", "Bearer", "Bearer \xff", "Basic x", "")),
    ("Cookie", ("a=b; =; \xff", "spiderling-0=\xff", ";" * 500, "\x22")),
    ("Host", ("own", "", "evil.test", "\xff", "[::1", "own, own")),
    ("Accept", ("application/openmetrics-text", "\xff", ",;q=x", "*/*;q=9")),
    ("Accept-Encoding", ("gzip", "\xff", "gzip;q=\xff")),
    ("Transfer-Encoding", ("chunked", "gzip, chunked", "x")),
    ("Content-Length", ("0", "5", "-1", "x", "99999999999999999999")),
    ("Expect", ("100-continue", "x")),
    ("Upgrade", ("websocket", "h2c")),
    ("Connection", ("close", "upgrade", "keep-alive")),
    ("Range", ("bytes=0-1", "x")),
    ("If-Modified-Since", ("x",)),
)  # fmt: skip
METHODS = ("GET", "POST", "HEAD", "PUT", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "X\xff", "PRI")


def made(chance: random.Random, watched: Watched, control: bool) -> bytes:
    """A request that a hostile or broken client may send; *control*: with the token, and mostly as it should be."""
    origin = f"http://{watched.host}"
    body = chance.choice(BODIES)
    given = {"Host": watched.host, "Connection": "close", "Content-Length": str(len(body))}
    if chance.random() < 0.7:
        given |= {"Content-Type": JSON, "Origin": origin}
    if control:
        given["Authorization"] = f"Bearer {watched.token}"
    for name, values in chance.sample(HEADERS, chance.choice((0, 1, 1, 2, 4))):
        own = {
            "own": watched.host if name == "Host" else origin,
            "token": f"Bearer {watched.token}" if name == "Authorization" else watched.token,
        }
        value = chance.choice(values)
        given[name] = own.get(value, value)
    path = "/control" if control else chance.choice(PATHS) + chance.choice(TARGETS)
    method = "POST" if control else chance.choice(METHODS)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + body


def statuses(watched: Watched, sent: bytes) -> list[int]:
    """The statuses of all answers to what is *sent*."""
    with socket.create_connection(watched.host.split(":"), timeout=60) as client:
        received = b""
        with suppress(ConnectionError):
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(65536):
                received += piece
    return [int(line.split()[1]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.")]


def test_whatever_a_client_sends_is_answered_and_leaves_no_trace_in_the_log(watched):
    """A token of half a character, an odd charset and a broken gzip each gave 500 and a traceback."""
    chance = random.Random(37)
    odd = []
    for number in range(900):
        sent = made(chance, watched, control=number % 3 == 0)
        if not all(100 <= status < 500 for status in statuses(watched, sent)):
            odd.append(sent)
    pieces = b"", b"\0" * 500, b"\x16\x03\x01\x02", b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 3000
    for piece in pieces:
        assert all(status < 500 for status in statuses(watched, piece))
    assert odd == []
    assert watched.ask("/status.json").json["phase"] in ("running", "paused")
    logged = watched.running.output()
    assert not [word for word in ("Traceback", "ERROR", "could not answer") if word in logged], logged[-3000:]
