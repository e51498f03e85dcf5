"""What archiving costs a page: on the event loop, in the writer's thread, and there under Python's lock.

    python benchmarks/warc.py [--quick] [--data ../shared/data]

Pages: those of the bundled miniature web, as a server sends them with and without gzip.
The reference is warcio, which writes the same three records.  The time under the lock is
that of the whole without what zlib, zstandard and hashlib do, which release it.  Then, but
with --quick, whole crawls of made pages of 30 kB without and with links and archive.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import zstandard
from scrapy import Request
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common import arguments, crawl, result, served, table  # noqa: E402
from benchmarks.crawl import FAST  # noqa: E402
from spiderling.base.outcome import Exchange, Outcome  # noqa: E402
from spiderling.base.reasons import Reason  # noqa: E402
from spiderling.corpus.warc import WarcKind, verdict  # noqa: E402
from spiderling.engine.download_handler import exchange_with  # noqa: E402
from webs.recorded import read_pages  # noqa: E402
from webs.synthetic import SyntheticWeb, read_words  # noqa: E402

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


def bodies(quick: bool) -> list[bytes]:
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


def measured(name: str, pages: list[bytes], coding: tuple[tuple[bytes, bytes], ...]) -> tuple[list[Any], ...]:
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
    for compression, compress in (("gzip", gzipped), ("zstd", zstandard.ZstdCompressor(level=3).compress)):
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
    return [[name, *min(measured)] for name, measured in runs.items()]


def main() -> None:
    args = arguments(__doc__)
    pages = bodies(args.quick)
    mean = sum(map(len, pages)) / len(pages)
    print(f"{len(pages)} pages of {mean / 1000:.1f} kB on average; CPU microseconds a page\n")
    plain = measured("as it is", pages, ())
    coded = measured("with gzip", [gzip.compress(page, 6) for page in pages], ((b"Content-Encoding", b"gzip"),))
    columns = ["sent", "stored", "event loop", "writer", "of it locked", "warcio (gzip)", "of it locked", "kB a page"]
    table(columns, [*plain, *coded])
    if not args.quick:
        print()
        table(["written beside the corpus", "main ms/page", "CPU ms/page"], whole_crawls())
    gz = coded[0]
    result(
        loop_us_per_page=gz[2], writer_us_per_page=gz[3], locked_us_per_page=gz[4], warcio_us_per_page=gz[5],
        warcio_locked_us_per_page=gz[6], kb_per_page=gz[7],
    )  # fmt: skip


if __name__ == "__main__":
    main()
