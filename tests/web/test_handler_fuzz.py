"""Random garbage against the handler: mutated, cut, spliced and badly timed answers; only download errors come out."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import random
import time
import zlib

import brotli
import pytest
from handled import CHUNKED_HEAD, DOWNLOAD_ERRORS, OK, PAGE, chunked, handling, reply
from scrapy import Request

from tests.simulated.strange import garbled

TEMPLATES = [
    reply(),
    chunked(PAGE[:500], PAGE[500:]) + b"0\r\n\r\n",
    chunked(PAGE) + b"0\r\nX-Trailer: a\r\n\r\n",
    reply(gzip.compress(PAGE), b"Content-Encoding: gzip"),
    reply(zlib.compress(PAGE), b"Content-Encoding: deflate"),
    reply(brotli.compress(PAGE), b"Content-Encoding: br"),
    reply(gzip.compress(brotli.compress(PAGE)), b"Content-Encoding: br, gzip", b"Content-Language: cs, de"),
    OK + b"\r\n" + PAGE,
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + reply(),
    b"HTTP/1.1 302 Found\r\nLocation: http://a.test/b?c#d\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\nContent-Type: text/plain\r\nRetry-After: 5\r\n\r\nnothing",
    CHUNKED_HEAD + b"5;a=b\r\nhello\r\n0\r\n\r\n",
]


def garbage(rng: random.Random) -> list[bytes]:
    """An answer in packets."""
    data = rng.choice(TEMPLATES)
    if rng.random() < 0.2:
        other = rng.choice(TEMPLATES)
        data = data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]
    if rng.random() < 0.8:
        data = garbled(rng, data, data.find(b"\r\n\r\n") + 4)
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 1, 5))))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


class Fuzzer:
    """A server of garbage: the number in the path is the seed of the answer."""

    async def serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            rng = random.Random(head.split(b" ")[1])
            for packet in garbage(rng):
                writer.write(packet)
                await asyncio.sleep(0.001)
            if rng.random() < 0.1:
                writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def attack(seconds: float, first_seed: int) -> tuple[int, int]:
    """(answers tried, responses among them); raises whatever comes out of the handler that should not."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    server = await asyncio.start_server(Fuzzer().serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    constants = {"FIRST_BYTE_TIMEOUT_S": 3, "MIN_BYTES_PER_S": 1, "SLOW_WINDOW_S": 2}
    async with handling(TIMEOUT_S=5, constants=constants) as handler:

        async def one(seed: int) -> bool:
            meta = {"address": "127.0.0.1", "judge_type": seed % 2 == 0, "download_fail_on_dataloss": seed % 3 > 0}
            request = Request(f"http://site.test:{port}/{seed}", meta=meta)
            try:
                response = await handler.download_request(request)
            except DOWNLOAD_ERRORS:
                return False
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error
            assert isinstance(response.body, bytes) and len(response.body) <= 100_000, seed
            assert request.meta["wire_bytes"] >= 0
            return True

        end, seeds = time.monotonic() + seconds, itertools.count(first_seed)

        async def many() -> list[bool]:
            results = []
            while time.monotonic() < end:
                results.append(await one(next(seeds)))
            return results

        results = [result for some in await asyncio.gather(*(many() for _ in range(40))) for result in some]
    server.close()
    assert not complaints, complaints[:3]
    return len(results), sum(results)


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
async def test_garbage_never_raises_anything_but_download_errors(seconds, record_property):
    seed = 0 if seconds < 10 else random.randrange(10**9)
    tried, answered = await attack(seconds, seed)
    record_property("summary", f"{tried} random answers from seed {seed} on, {answered} of them responses")
    assert tried >= 50
    assert 0 < answered < tried
