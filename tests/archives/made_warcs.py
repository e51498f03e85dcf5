"""WARC files as other programs write them, made by hand so that any part of them can be broken."""

from __future__ import annotations

import gzip
import io

from spiderling.archives.records import ArchiveRecord, RecordReader
from spiderling.archives.sources import BEGIN, Position
from spiderling.base.files import zstd
from spiderling.base.options import Options

DATE = "2024-03-05T06:07:08Z"


def record(
    url: str, body: bytes = b"", kind: str = "response", head: str = "", status: str = "200 OK", **fields
) -> bytes:
    """One record; *head*: header lines of the answer, *fields*: of the record (``Content_Length="5"``)."""
    head = head or "Content-Type: text/html; charset=utf-8\r\n"
    block = f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + body if kind == "response" else body
    media_type = "application/http; msgtype=response" if kind == "response" else "text/html"
    lines = {
        "WARC-Type": kind, "WARC-Target-URI": url, "WARC-Date": DATE, "WARC-IP-Address": "192.0.2.7",
        "WARC-Record-ID": "<urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>", "Content-Type": media_type,
        "Content-Length": str(len(block)), **{name.replace("_", "-"): value for name, value in fields.items()},
    }  # fmt: skip
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"WARC/1.1\r\n{text}\r\n".encode() + block + b"\r\n\r\n"


FORMS = {
    "plain": b"".join,
    "gzip by record": lambda records: b"".join(map(gzip.compress, records)),
    "gzip as a whole": lambda records: gzip.compress(b"".join(records)),
    "zstd by record": lambda records: b"".join(map(zstd.compress, records)),
    "zstd as a whole": lambda records: zstd.compress(b"".join(records)),
}
"""How the records of a file may be packed."""


class Bytes:
    """An archive in memory."""

    def __init__(self, data: bytes) -> None:
        self._stream, self.size = io.BytesIO(data), len(data)

    def read(self, size: int) -> bytes:
        return self._stream.read(size)

    def seek(self, offset: int) -> None:
        self._stream.seek(offset)

    def close(self) -> None:
        return


def read(data: bytes, last: Position = BEGIN, refusal=lambda target: None, **options) -> list[ArchiveRecord]:
    reader = RecordReader(Options(lang="cs", **options), frozenset(), refusal)
    return list(reader.records(Bytes(data), last))
