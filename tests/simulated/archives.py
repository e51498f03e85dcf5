"""Archives of a generated web, which a simulated crawl reads in place of it, and its reading in virtual time.

An archive may be a file that somebody still copies: a session finds its beginning, the last one all of it.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from spiderling.archives.archives import Batch
from tests.simulated.clock import VirtualLoop
from tests.simulated.web import Web


class Archives:
    """The archives of a *web*, in some files below *directory*."""

    def __init__(self, web: Web, rng: Random, directory: Path) -> None:
        self._directory = directory
        self._rng = rng
        self.is_whole = False  # whether all of each file is there
        texts = [url for url, answer in web.answers.items() if answer.text]
        urls = [*texts, *rng.sample(texts, 3), *(url for url, answer in web.answers.items() if not answer.text)]
        rng.shuffle(urls)
        records = [_record(url, web.answers[url].status, web.answers[url].text) for url in urls]
        bounds = sorted(rng.sample(range(1, len(records)), rng.choice((0, 1, 3))))
        pack: Callable[[bytes], bytes] = rng.choice((gzip.compress, bytes))
        packed = [pack(record) for record in records]
        parts = zip([0, *bounds], [*bounds, len(packed)], strict=True)
        ending = ".warc.gz" if pack is gzip.compress else ".warc"
        self._files = {f"{begin:03}{ending}": packed[begin:end] for begin, end in parts}

    @property
    def sources(self) -> str:
        """What the spider's argument names."""
        return ",".join(str(self._directory / name) for name in self._files)

    def write(self, is_whole: bool) -> None:
        """Write the files; those that are not to be whole may end in any record, or before it."""
        self._directory.mkdir(exist_ok=True)
        self.is_whole = is_whole
        for name, records in self._files.items():
            path = self._directory / name
            data = b"".join(records)
            if not is_whole and self._rng.random() < 0.5:
                ends = (sum(map(len, records[:-2])), self._rng.randrange(len(data)))
                data = data[: max(len(records[0]), self._rng.choice(ends))]  # of no record it would be no archive
            if not path.exists() or path.stat().st_size < len(data):
                path.write_bytes(data)


def _record(url: str, status: int, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    block = head.encode() + body
    fields = {
        "WARC-Type": "response",
        "WARC-Target-URI": url,
        "WARC-Date": "2026-01-01T00:00:00Z",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"WARC/1.1\r\n{lines}\r\n".encode() + block + b"\r\n\r\n"


class Readers:
    """In place of the threads that read ahead: one archive after the other is read, a batch a moment after the last."""

    def __init__(self, batches_of: Callable[[str], Iterator[Batch]], ahead: int) -> None:
        self._batches_of = batches_of
        self._sources: list[str] = []
        self._is_stopped = False

    def start(self, sources: Sequence[str], threads: int) -> None:
        self._sources += sources

    def stop(self) -> None:
        self._is_stopped = True

    async def batches(self) -> AsyncIterator[Batch]:
        reading = [self._batches_of(source) for source in self._sources]
        while reading and not self._is_stopped:
            batches = VirtualLoop.current.rng.choice(reading)
            await asyncio.sleep(VirtualLoop.current.rng.choice((0.0, 0.01, 0.4)))
            if (batch := next(batches, None)) is not None:
                yield batch
            else:
                reading.remove(batches)
