"""What a page costs the event loop's process on its way through a text worker, beside the bytes alone.

    python benchmarks/workers.py [--quick] [--data DIR]

The worker does no text work: it answers with the pages found beforehand in real HTML (the
bundled miniature web, or pages-dev.jsonl.zst of DIR), sent to it in their true size.
*bytes alone* moves the same bodies and answers through the same kind of transport on the
same event loop, and nobody reads them; the difference is what the pool adds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import pickle
import signal
import socket
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import uvloop

from benchmarks.common import ROOT, arguments, result, table
from spiderling.base.zstd import zstd
from spiderling.languages import load
from spiderling.text import Page, TextOptions, process
from spiderling.workers.pool import QUEUED_PER_WORKER, Task, WorkerConfig, WorkerPool

ENGLISH = TextOptions(("en",))
PAGES = 60
ROUNDS = 5


def answers(config: WorkerConfig) -> Callable[[Task], Page]:
    """The worker: the page whose number the URL ends in."""
    pages: list[Page] = pickle.loads(Path(config.models).read_bytes())
    return lambda task: pages[int(task.url.rpartition("/")[2])]


def main() -> None:
    options = arguments(__doc__)
    bodies = list(itertools.islice(_bodies(options.data), PAGES))
    models = load(("en", "de"))
    pages = [process(b, url="http://a.test/b/c", http_charset=None, models=models, options=ENGLISH) for b in bodies]
    number = 300 if options.quick else 1500
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "pages")
        made.write_bytes(pickle.dumps(pages, 5))
        config = WorkerConfig(ENGLISH, ("en",), models=str(made), process="benchmarks.workers:answers")
        frames = [(body, pickle.dumps(page, 5)) for body, page in zip(bodies, pages, strict=True)]
        rows = []
        for name, seen in (("nothing read", ()), ("links", ("links",)), ("links, paragraphs", ("links", "paragraphs"))):
            alone, pooled = [], []
            for _ in range(ROUNDS):  # in turn, so that what else the machine does meets both
                alone.append(uvloop.run(_alone(frames, number)))
                pooled.append(uvloop.run(_pooled(config, bodies, number, seen)))
            rows.append((name, min(pooled), min(alone), min(pooled) - min(alone)))
    mean = sum(map(len, bodies)) / len(bodies)
    print(
        f"{len(bodies)} pages of {mean / 1000:.0f} kB, {sum(len(page.links) for page in pages) / len(pages):.0f} links"
    )
    table(("what is read of a page", "us/page", "bytes alone", "beyond the bytes"), rows)
    result(us_per_page=round(rows[0][1], 1), us_beyond_bytes=round(rows[0][3], 1), us_links=round(rows[1][3], 1))


def _bodies(data: Path | None) -> Iterator[bytes]:
    if data is not None:
        with zstd.open(data / "pages/pages-dev.jsonl.zst", "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["html"].encode("latin-1") for line in lines)
        return
    with zstd.open(ROOT / "examples/miniweb/pages.tar.zst") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.name.endswith(".html") else None
            if stream is not None and member.size > 10_000:
                yield stream.read()


async def _pooled(config: WorkerConfig, bodies: list[bytes], number: int, seen: Iterable[str]) -> float:
    """CPU us of this process for a page through the pool."""
    pool = WorkerPool(1, config, 60.0)
    await pool.start()
    tasks = [Task(body, f"http://a.test/b/{index}") for index, body in enumerate(bodies)]

    async def caller(mine: Iterable[Task]) -> None:
        for task in mine:
            page = await pool.process(task)
            for name in seen:
                getattr(page, name)

    source = itertools.islice(itertools.cycle(tasks), number)
    start = time.process_time()
    await asyncio.gather(*(caller(source) for _ in range(QUEUED_PER_WORKER)))
    spent = time.process_time() - start
    await pool.stop()
    return spent / number * 1e6


async def _alone(frames: list[tuple[bytes, bytes]], number: int) -> float:
    """CPU us of this process for the same bytes with a peer that only counts."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _peer(theirs, frames)
        os._exit(0)
    theirs.close()
    ours.setblocking(False)
    exchange = _Exchange(frames, number)
    await asyncio.get_running_loop().create_unix_connection(lambda: exchange, sock=ours)
    start = time.process_time()
    await exchange.run()
    spent = time.process_time() - start
    os.kill(pid, signal.SIGKILL)  # the loop has not closed our end yet
    os.waitpid(pid, 0)
    return spent / number * 1e6


def _peer(sock: socket.socket, frames: list[tuple[bytes, bytes]]) -> None:
    with sock.makefile("rwb", 1 << 20) as stream:
        for sent, back in itertools.cycle(frames):
            if len(stream.read(len(sent))) < len(sent):
                return
            stream.write(back)
            stream.flush()


class _Exchange(asyncio.Protocol):
    def __init__(self, frames: list[tuple[bytes, bytes]], number: int) -> None:
        self._frames = [sent for sent, _ in frames]
        self._backs = itertools.cycle([len(back) for _, back in frames])
        self._left = number
        self._number = 0
        self._missing = next(self._backs)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    async def run(self) -> None:
        self._done = asyncio.get_running_loop().create_future()
        for _ in range(QUEUED_PER_WORKER):
            self._send()
        await self._done
        self._transport.abort()

    def _send(self) -> None:
        self._transport.write(self._frames[self._number % len(self._frames)])
        self._number += 1

    def data_received(self, data: bytes) -> None:
        self._missing -= len(data)
        while self._missing <= 0 and not self._done.done():
            self._missing += next(self._backs)
            self._left -= 1
            if self._left == 0:
                self._done.set_result(None)
            else:
                self._send()


if __name__ == "__main__":
    main()
