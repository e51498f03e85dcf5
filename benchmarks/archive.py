"""Archives: how fast they are read on all cores, beside the text chain alone; what writing them costs, beside warcio.

    python -m benchmarks.archive [--quick] [--data DIR]

A WARC file of real pages (the bundled miniature web, or pages-dev.jsonl.zst of DIR), gzip
by record with its requests, as a crawl would have written it, is read by ``scrapy crawl
archive`` with everything on: on all cores that this process may use, then on one of them.
*chain*: the worker's own function on the same pages from memory, in a fresh process for each
core at the same time, as a crawl of the web calls it (*bare*: without links, as the archive
spider does).  All take turns, and the best of each counts.  *share* is spider / chain in
pages a second of wall time, models loaded; *cpu_share* is the same in processor time of all
processes, which other programs on the machine change less.  *read* is what the reading alone
can do.

Then what writing archives costs a page: on the event loop, in the writer's thread, and there under Python's lock,
beside warcio, which writes the same three records.  The time under the lock is that of the whole without what zlib,
zstd and hashlib do, which release it.  Without --quick also whole crawls without and with links and archive.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import io
import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from benchmarks.common import arguments, crawl, result, served, table
from benchmarks.crawl import FAST
from spiderling.base.files import frame_packer, zstd
from spiderling.base.outcome import Exchange, Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.warc import WarcKind, verdict
from spiderling.engine.download_handler import exchange_with
from webs.recorded import read_pages
from webs.synthetic import SyntheticWeb, read_words

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # as a text worker has them
import tarfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from benchmarks.common import ROOT
from spiderling import languages
from spiderling.archives.records import RecordReader
from spiderling.archives.sources import BEGIN, FileRaw
from spiderling.base.options import Options
from spiderling.workers.process import Task, WorkerConfig, text_process

SENT = {
    "Accept": "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.5,*/*;q=0.1", "Accept-Language": "cs, *;q=0.3",
    "User-Agent": "spiderling (+me@example.org)", "Host": "a.test", "Accept-Encoding": "gzip, deflate, br, zstd",
    "Connection": "close",
}  # fmt: skip
RECEIVED = (
    (b"Server", b"nginx/1.22.1"), (b"Date", b"Sun, 22 Nov 2026 05:00:00 GMT"), (b"Connection", b"close"),
    (b"Content-Type", b"text/html; charset=utf-8"), (b"Cache-Control", b"max-age=600"), (b"Vary", b"Accept-Encoding"),
    (b"Last-Modified", b"Sun, 01 Nov 2026 05:00:00 GMT"), (b"ETag", b'"5f0c-1234567890"'),
)  # fmt: skip
ROUNDS = 5


def us_per_page(number: int, work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """CPU time of the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.thread_time()
        work()
        best = min(best, time.thread_time() - begin)
    return best / number * 1e6


def bundled_bodies(quick: bool) -> list[bytes]:
    sites = read_pages(ROOT / "examples" / "miniweb" / "pages.tar.zst")
    return [body for pages in sites.values() for body in pages.values()][:: 10 if quick else 1]


def reply_with(number: int, coding: tuple[tuple[bytes, bytes], ...]) -> tuple[Any, Request]:
    """What the client has of a response, and the request."""
    reply = SimpleNamespace(
        head=SimpleNamespace(status_line="HTTP/1.1 200 OK", headers=RECEIVED + coding),
        address="127.0.0.1",
        request=("GET", f"/page/{number}", [(name.encode(), value.encode()) for name, value in SENT.items()], b""),
    )
    return reply, Request(f"http://a.test/page/{number}", meta={"download_latency": 0.1})


def by_warcio(exchanges: list[tuple[Exchange, dict[str, object]]]) -> None:
    writer = WARCWriter(io.BytesIO(), gzip=True, warc_version="1.1")
    for exchange, said in exchanges:
        pairs = [(name.decode(), value.decode()) for name, value in exchange.headers]
        http = StatusAndHeaders("200 OK", pairs, protocol="HTTP/1.1")
        response = writer.create_warc_record(
            exchange.url, "response", io.BytesIO(exchange.body), http_headers=http,
            warc_headers_dict={"WARC-IP-Address": exchange.address},
        )  # fmt: skip
        pairs = [(name.decode(), value.decode()) for name, value in exchange.request[2]]
        http = StatusAndHeaders(f"GET {exchange.request[1]} HTTP/1.1", pairs, is_http_request=True)
        request = writer.create_warc_record(exchange.url, "request", http_headers=http)
        fields = "".join(f"{name}: {value}\r\n" for name, value in said.items()).encode()
        metadata = writer.create_warc_record(
            exchange.url, "metadata", io.BytesIO(fields), warc_content_type="application/warc-fields"
        )
        for record in (response, request, metadata):
            writer.write_record(record)


def without_lock(blobs: list[bytes], compress: Callable[[bytes], bytes]) -> None:
    """Only the work that other threads need not wait for: records as large as ours, hashed and compressed."""
    for blob in blobs:
        hashlib.sha1(blob, usedforsecurity=False)
        hashlib.sha1(blob, usedforsecurity=False)
        compress(blob)


def gzipped(data: bytes, level: int = 6) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def stored(name: str, pages: list[bytes], coding: tuple[tuple[bytes, bytes], ...]) -> tuple[list[Any], ...]:
    replies = [reply_with(number, coding) for number in range(len(pages))]
    outcome = Outcome(1, "http://a.test/", Reason.KEPT, 200, body_bytes=30_000, kept_bytes=2000, language="cs")

    def on_the_loop() -> list[tuple[Exchange, dict[str, object]]]:
        both = zip(replies, pages, strict=True)
        return [(exchange_with(request, reply, body, ""), verdict(outcome)) for (reply, request), body in both]

    entries, number = on_the_loop(), len(pages)
    loop = us_per_page(number, on_the_loop)
    warcio = us_per_page(number, lambda: by_warcio(entries), 2)
    theirs = max(0.0, warcio - us_per_page(number, lambda: without_lock(pages, lambda page: gzipped(page, 9)), 2))
    rows = []
    for compression, compress in (("gzip", gzipped), ("zstd", frame_packer(level=3))):
        packed = WarcKind(compression, {}).pack(entries)
        whole = us_per_page(number, lambda compression=compression: WarcKind(compression, {}).pack(entries), 2)  # type: ignore[misc]
        free = us_per_page(number, lambda compress=compress: without_lock(pages, compress), 2)  # type: ignore[misc]
        rows.append(
            [name, compression, loop, whole, max(0.0, whole - free), warcio, theirs, len(packed) / number / 1000]
        )
    return tuple(rows)


def whole_crawls(pages: int = 1500, hosts: int = 2000) -> list[list[Any]]:
    """Main process and all processes a page, each variant twice in turn, the better of both."""
    outputs = {
        "neither": {}, "links": {"SPIDERLING_LINKS": "on"}, "archive, gzip": {"SPIDERLING_WARC": "on"},
        "archive, zstd": {"SPIDERLING_WARC": "zstd"},
    }  # fmt: skip
    web = SyntheticWeb(hosts, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in outputs}
    with served(f"synthetic:{hosts}:1") as map_:
        for name, settings in [*outputs.items()] * 2:
            with tempfile.TemporaryDirectory() as directory:
                seeds = Path(directory, "seeds.txt")
                seeds.write_text("\n".join(web.seeds(hosts // 10)))
                settings = {**FAST, **settings, "SPIDERLING_HOSTS": map_, "CLOSESPIDER_PAGECOUNT": pages}  # type: ignore[assignment]
                settings["JOBDIR"] = f"{directory}/job"
                run = crawl(["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"], settings)
            runs[name].append((run.main_cpu_ms_per_page, run.cpu_ms_per_page))
    return [[name, *min(both)] for name, both in runs.items()]


def archiving(args: argparse.Namespace) -> dict[str, object]:
    """What archiving costs a page, beside warcio."""
    pages = bundled_bodies(args.quick)
    mean = sum(map(len, pages)) / len(pages)
    print(f"{len(pages)} pages of {mean / 1000:.1f} kB on average; CPU microseconds a page\n")
    plain = stored("as it is", pages, ())
    coded = stored("with gzip", [gzip.compress(page, 6) for page in pages], ((b"Content-Encoding", b"gzip"),))
    columns = ["sent", "stored", "event loop", "writer", "of it locked", "warcio (gzip)", "of it locked", "kB a page"]
    table(columns, [*plain, *coded])
    if not args.quick:
        print()
        table(["written beside the corpus", "main ms/page", "CPU ms/page"], whole_crawls())
    names = ("loop_us", "writer_us", "locked_us", "warcio_us", "warcio_locked_us", "kb")
    return {f"{name}_per_page": value for name, value in zip(names, coded[0][2:], strict=True)}


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


class Spent(NamedTuple):
    """Milliseconds a page."""

    wall: float
    cpu: float
    main_cpu: float = 0.0
    """That part of *cpu* which the main process took."""


def chained(found: list[tuple[str, bytes]], gathers_links: bool) -> tuple[float, float]:
    """Seconds and processor seconds for all pages, one after the other."""
    accepted = languages.find_languages(OPTIONS.lang, "")
    codes = [info.code for info in accepted]
    config = WorkerConfig.from_options(OPTIONS, codes, languages.to_recognise(accepted, "", ""), gathers_links)
    work = text_process(config)
    gc.collect()
    gc.disable()
    start, worked = time.perf_counter(), time.process_time()
    for url, body in found:
        work(Task(body, url))
    return time.perf_counter() - start, time.process_time() - worked


def chain(found: list[tuple[str, bytes]], cores: int, gathers_links: bool) -> Spent:
    parts = [found[number::cores] for number in range(cores)]
    with ProcessPoolExecutor(cores, get_context("spawn")) as processes:
        spent = list(processes.map(chained, parts, [gathers_links] * cores))
    walls, cpus = zip(*spent, strict=True)
    return Spent(1000 * max(walls) / len(found), 1000 * sum(cpus) / len(found))


def reading_s(path: Path) -> float:
    """Seconds to read all pages."""
    reader = RecordReader(OPTIONS, frozenset(), lambda target: None)
    start = time.perf_counter()
    for _ in reader.records(FileRaw(str(path)), BEGIN):
        pass
    return time.perf_counter() - start


def spider(path: Path, number: int, cores: set[int]) -> Spent:
    """The spider with as many text workers as it takes by itself on *cores*."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        with tempfile.TemporaryDirectory() as directory:
            words = ["crawl", "archive", "-a", f"lang={OPTIONS.lang}", "-a", f"warc={path}"]
            run = crawl(words, {"JOBDIR": f"{directory}/job"})
    finally:
        os.sched_setaffinity(0, allowed)
    return Spent(*(1000 * seconds / number for seconds in (run.wall_s, run.cpu_s, run.main_cpu_s)))


def reading(options: argparse.Namespace) -> dict[str, object]:
    """How fast the archive spider is, beside the text chain alone."""
    found = list(pages(options.data))[: 300 if options.quick else None]
    number, rounds = len(found), 1 if options.quick else 3
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pages.warc.gz")
        write(path, found)
        read = 1000 * min(reading_s(path) for _ in range(rounds)) / number
        turns: dict[str, list[Spent]] = {"chain": [], "bare": [], "spider": [], "one core": []}
        for _ in range(rounds):
            turns["chain"].append(chain(found, len(cores), True))
            turns["spider"].append(spider(path, number, cores))
            turns["bare"].append(chain(found, len(cores), False))
            turns["one core"].append(spider(path, number, {min(cores)}))
    best = {name: Spent(*map(min, zip(*spent, strict=True))) for name, spent in turns.items()}
    print(
        f"{number} pages, {sum(len(body) for _, body in found) / 1e6:.1f} MB; {len(cores)} cores; reading {read:.2f} ms"
    )
    table(["ms a page", *Spent._fields], [[name, *spent] for name, spent in best.items()])
    full, bare, all_cores, one = best["chain"], best["bare"], best["spider"], best["one core"]
    return {
        "pages_per_s": round(1000 / all_cores.wall),
        "share": round(full.wall / all_cores.wall, 3),
        "cpu_share": round(full.cpu / all_cores.cpu, 3),
        "bare_share": round(bare.wall / all_cores.wall, 3),
        "bare_cpu_share": round(bare.cpu / all_cores.cpu, 3),
        "gain_of_cores": round(one.wall / all_cores.wall, 2),
        "main_cpu_ms_per_page": round(all_cores.main_cpu, 3),
    }


def main() -> None:
    options = arguments(__doc__)
    result(**reading(options), **archiving(options))


if __name__ == "__main__":
    main()
