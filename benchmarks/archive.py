"""How fast the archive spider is on all cores, beside the text chain alone on the same pages and cores.

    python benchmarks/archive.py [--quick] [--data DIR]

A WARC file of real pages (the bundled miniature web, or pages-dev.jsonl.zst of DIR), gzip
by record with its requests, as a crawl would have written it, is read by ``scrapy crawl
archive`` with everything on: on all cores that this process may use, then on one of them.
*chain*: the worker's own function on the same pages from memory, in a fresh process for each
core at the same time, as a crawl of the web calls it (*bare*: without links, as the archive
spider does).  All take turns, and the best of each counts.  *share* is spider / chain in
pages a second of wall time, models loaded; *cpu_share* is the same in processor time of all
processes, which other programs on the machine change less.  *read* is what the reading alone
can do.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # as a text worker has them
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, crawl, result, table
from spiderling import languages
from spiderling.archives.records import RecordReader
from spiderling.archives.sources import BEGIN, FileRaw
from spiderling.base.options import Options
from spiderling.base.zstd import zstd
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


def main() -> None:
    options = arguments(__doc__)
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
    result(
        pages_per_s=round(1000 / all_cores.wall),
        share=round(full.wall / all_cores.wall, 3),
        cpu_share=round(full.cpu / all_cores.cpu, 3),
        bare_share=round(bare.wall / all_cores.wall, 3),
        bare_cpu_share=round(bare.cpu / all_cores.cpu, 3),
        gain_of_cores=round(one.wall / all_cores.wall, 2),
        main_cpu_ms_per_page=round(all_cores.main_cpu, 3),
    )


if __name__ == "__main__":
    main()
