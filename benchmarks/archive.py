"""How fast the archive spider is, beside the text chain alone on the same pages in as many processes.

    python benchmarks/archive.py [--quick] [--data DIR]

A WARC file of real pages (the bundled miniature web, or pages-dev.jsonl.zst of DIR), gzip
by record with its requests, as a crawl would have written it, is read by ``scrapy crawl
archive`` with one text worker, everything on.  *chain*: the worker's own function on the
same pages, from memory, in this process and no other.  *share* is spider / chain, in pages a
second of wall time, models loaded; both take turns, and the best of each counts.  *read* is
what the reading alone can do.
"""

from __future__ import annotations

import gc
import gzip
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from benchmarks.common import ROOT, Measured, arguments, crawl, result, table
from spiderling import languages
from spiderling.archives.places import BEGIN
from spiderling.archives.records import RecordReader
from spiderling.archives.sources import FileRaw
from spiderling.base.options import Options
from spiderling.workers.process import Task, WorkerConfig, text_process

_HEAD = (
    "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Target-URI: {}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    "Content-Type: application/http\r\nContent-Length: {}\r\n\r\n"
)
OPTIONS = Options(lang="cs,en")


def pages(data: Path | None) -> Iterator[tuple[str, bytes]]:
    """(URL, HTML) of real pages."""
    if data is not None:
        with zstd.open(data / "pages/pages-dev.jsonl.zst", "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                yield f"http://h{number % 50}.test/{number}", json.loads(line)["html"].encode("latin-1")
        return
    with zstd.open(ROOT / "examples/miniweb/pages.tar.zst") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.name.endswith(".html") else None
            if stream is not None:
                yield f"http://{member.name}", stream.read()


def record(kind: str, url: str, block: bytes) -> bytes:
    return gzip.compress(_HEAD.format(kind, url, len(block)).encode() + block + b"\r\n\r\n", 6)


def write(path: Path, found: list[tuple[str, bytes]]) -> None:
    with path.open("wb") as stream:
        for url, body in found:
            stream.write(record("request", url, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
            stream.write(record("response", url, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body))


def chain_s(found: list[tuple[str, bytes]]) -> float:
    """Seconds for all pages, one after the other."""
    accepted = languages.find_languages(OPTIONS.lang, "")
    codes = [info.code for info in accepted]
    config = WorkerConfig.from_options(OPTIONS, codes, languages.to_recognise(accepted, "", ""))
    work = text_process(config)
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    for url, body in found:
        work(Task(body, url))
    seconds = time.perf_counter() - start
    gc.enable()
    return seconds


def reading_s(path: Path) -> float:
    """Seconds to read all pages."""
    reader = RecordReader(OPTIONS, frozenset(), lambda target: None)
    start = time.perf_counter()
    for _ in reader.records(FileRaw(str(path)), BEGIN):
        pass
    return time.perf_counter() - start


def spider(path: Path) -> Measured:
    with tempfile.TemporaryDirectory() as directory:
        words = ["crawl", "archive", "-a", f"lang={OPTIONS.lang}", "-a", f"warc={path}"]
        return crawl(words, {"JOBDIR": f"{directory}/job", "SPIDERLING_WORKERS": 1})


def main() -> None:
    options = arguments(__doc__)
    found = list(pages(options.data))[: 300 if options.quick else None]
    rounds = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pages.warc.gz")
        write(path, found)
        read = min(reading_s(path) for _ in range(rounds))
        turns = [(chain_s(found), spider(path)) for _ in range(rounds)]
    number = len(found)
    chain = number / min(seconds for seconds, _ in turns)
    best = min((run for _, run in turns), key=lambda run: run.wall_s)
    ours, main_ms = number / best.wall_s, 1000 * best.main_cpu_s / number
    print(f"{number} pages, {sum(len(body) for _, body in found) / 1e6:.1f} MB")
    names = ("read_pages_per_s", "chain_pages_per_s", "pages_per_s", "share", "main_cpu_ms_per_page")
    row = (number / read, chain, ours, ours / chain, main_ms)
    table(names, [row])
    result(**{name: round(value, 3) for name, value in zip(names, row, strict=True)})


if __name__ == "__main__":
    main()
