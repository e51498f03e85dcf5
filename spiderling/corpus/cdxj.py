"""CDXJ: a sorted index beside each WARC file that a crawl writes, in the form of pywb and cdxj-indexer.

    cz,example)/page 20260102030405 {"url": ..., "mime": ..., "status": "200", "digest": "sha1:...", "length": ...}

It depends only on the WARC file, so it can be made anew at any time: ``python -m spiderling.corpus.cdxj DIRECTORY``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from spiderling.base.atomic_files import write_whole
from spiderling.base.errors import SpiderlingError, StorageError
from spiderling.corpus.segments import frames

_WWW = re.compile(r"www\d*\.")
_PORTS = {"http": 80, "https": 443}
_SLASHES = re.compile("//+")


class Record(NamedTuple):
    """One WARC record."""

    headers: dict[str, str]
    """Name in lower case -> value."""
    block: bytes
    offset: int
    """Byte of the file at which its member or frame begins."""
    length: int
    """Bytes of the member or frame."""

    @property
    def is_capture(self) -> bool:
        return self.headers.get("warc-type") in ("response", "revisit")


def records(path: Path, length: int) -> Iterator[Record]:
    """The records in the first *length* bytes of a WARC file that a crawl wrote.

    Raises StorageError at a record that breaks off, or does not have its stated length or digest.
    """
    for frame in frames(path, length):
        head, _, rest = frame.data.partition(b"\r\n\r\n")
        version, *lines = head.decode("utf-8", "replace").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        block = rest[:-4]
        said = version, headers.get("content-length"), headers.get("warc-block-digest"), rest[-4:]
        if said != ("WARC/1.1", str(len(block)), sha1_digest(block), b"\r\n\r\n"):
            raise StorageError(f"{path} holds at byte {frame.offset} no record that is whole.")
        yield Record(headers, block, frame.offset, frame.length)


def sha1_digest(data: bytes) -> str:
    """SHA-1 in base 32 behind ``sha1:``, as in WARC files."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def index_all(paths: Iterable[Path]) -> None:
    """Write the index of each WARC file without one, or with one older than the file; raises StorageError."""
    for path in paths:
        index = _index_of(path)
        if not index.exists() or index.stat().st_mtime_ns < path.stat().st_mtime_ns:
            write_index(path)


def write_index(path: Path) -> None:
    """Write the index of one file; raises StorageError."""
    write_whole(_index_of(path), "".join(sorted(_lines(path))))


def _index_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.cdxj")


def _lines(path: Path) -> Iterator[str]:
    for record in records(path, path.stat().st_size):
        if record.is_capture:
            headers = record.headers
            status, mime = _of_http(record.block)
            values = {
                "url": headers["warc-target-uri"],
                "mime": "warc/revisit" if headers["warc-type"] == "revisit" else mime,
                "status": status,
                "digest": headers["warc-payload-digest"],
                "length": str(record.length),
                "offset": str(record.offset),
                "filename": path.name,
            }
            time = re.sub("[^0-9]+", "", headers["warc-date"])[:14]
            yield f"{surt(values['url'])} {time} {json.dumps(values)}\n"


def _of_http(block: bytes) -> tuple[str, str]:
    """(status, media type) of an HTTP response; '' for what is missing."""
    first, *lines = block.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    types = (line.partition(":")[2] for line in lines if line.lower().startswith("content-type:"))
    return [*first.split(" "), ""][1], next(types, "").partition(";")[0].strip().lower()


def surt(url: str) -> str:
    """The key of a canonical *url*: lower case, host reversed and without ``www.``, no default port, no last slash.

    The Internet Archive's package surt gives the same, except that session ids stay.
    """
    parts = urlsplit(url.lower())
    host = ",".join(reversed(_WWW.sub("", parts.hostname or "", count=1).rstrip(".").split(".")))
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    path = _SLASHES.sub("/", parts.path).rstrip("/")
    query = "?" + "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{host}{port}){path or '/'}{query}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            index_all(sorted((*Path(name).glob("*.warc.gz"), *Path(name).glob("*.warc.zst"))))
        except SpiderlingError as error:
            sys.exit(f"cdxj: {error}")
