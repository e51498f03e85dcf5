"""``warc/``: everything that was fetched, as received, in WARC 1.1 (ISO 28500:2017), for archives and later crawls.

Each exchange becomes three records: the ``response`` (a ``revisit`` if the same payload was stored before), the
``request``, and a ``metadata`` record with the page's end.  Each record is a gzip member or zstd frame of its own.
The writer's thread renders, hashes and compresses them; the event loop only keeps the exchange (docs/warc.md).

warcio is not used to write: it holds the interpreter's lock twice as long (benchmarks/results.md), takes no headers as
bytes and writes no zstd.  The tests read everything with warcio and FastWARC.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from spiderling import __version__
from spiderling.base.errors import StorageError
from spiderling.base.files import frame_packer
from spiderling.base.outcome import Exchange, Outcome
from spiderling.corpus.segments import SegmentKind, frames

EXCHANGE = "spiderling_exchange"  # key of a Request's meta under which the download handler stores the Exchange
_GZIP_LEVEL = 6  # level of zlib; chosen: its default
_ZSTD_LEVEL = 3  # level of zstd; chosen: its default
_SMALL = 4096  # bytes below which `_gzip` packs a record with less memory; chosen
REMEMBERED = 100_000  # most recent payloads to which a revisit record may refer; they take about 30 MB; chosen
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_CONFORMS = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_LAST_OF_BATCH = {"batch": "ends here"}  # field of the last metadata record of a batch, which marks the batch's end
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class WarcKind(SegmentKind):
    """Writes three records for each (Exchange, fields of its metadata record)."""

    def __init__(self, compression: str, about: Mapping[str, str]) -> None:
        """*compression*: gzip or zstd; *about*: further fields of each file's ``warcinfo`` record."""
        is_zstd = compression == "zstd"
        super().__init__("warc", ".warc.zst" if is_zstd else ".warc.gz")
        self._pack = frame_packer(_ZSTD_LEVEL) if is_zstd else _gzip
        software = {"software": f"Spiderling/{__version__}", "format": "WARC File Format 1.1", "conformsTo": _CONFORMS}
        self._about = {**software, **about}
        self._stored: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Payload digest -> URL and date of the response that holds it."""

    def begin(self, name: str) -> bytes:
        date = _date(datetime.now(UTC).timestamp())
        fields = {"WARC-Type": "warcinfo", "WARC-Record-ID": _new_id(), "WARC-Date": date, "WARC-Filename": name}
        return self._pack(_record(fields, "application/warc-fields", _fields(self._about)))

    def pack(self, entries: Sequence[tuple[Exchange, Mapping[str, object]]]) -> bytes:
        *others, (exchange, said) = entries
        whole = [*others, (exchange, {**said, **_LAST_OF_BATCH})]
        return b"".join(self._pack(record) for entry in whole for record in self._records(*entry))

    def _records(self, exchange: Exchange, said: Mapping[str, object]) -> tuple[bytes, bytes, bytes]:
        record_id = _new_id()
        common = {"WARC-Target-URI": _printable(exchange.url), "WARC-Date": _date(exchange.began)}
        http = common | ({"WARC-IP-Address": exchange.address} if exchange.address else {})
        request = {"WARC-Type": "request", "WARC-Record-ID": _new_id(), **http, "WARC-Concurrent-To": record_id}
        metadata = {"WARC-Type": "metadata", "WARC-Record-ID": _new_id(), **common}
        metadata |= {"WARC-Refers-To": record_id, "WARC-Concurrent-To": record_id}
        about = _fields({**said, "fetchTimeMs": round(1000 * exchange.took_s)})
        return (
            self._response({"WARC-Record-ID": record_id, **http}, exchange),
            _record(request, "application/http;msgtype=request", _request(exchange)),
            _record(metadata, "application/warc-fields", about),
        )

    def _response(self, fields: dict[str, str], exchange: Exchange) -> bytes:
        digest = sha1_digest(exchange.body)
        fields["WARC-Payload-Digest"] = digest
        head = _response_head(exchange)
        stored = self._stored.get(digest)
        if stored is not None and exchange.body:
            self._stored.move_to_end(digest)
            fields |= {"WARC-Type": "revisit", "WARC-Profile": _REVISIT, "WARC-Truncated": "length"}
            fields |= {"WARC-Refers-To-Target-URI": stored[0], "WARC-Refers-To-Date": stored[1]}
            return _record(fields, "application/http;msgtype=response", head)
        if exchange.truncated:
            fields["WARC-Truncated"] = exchange.truncated
        self._stored[digest] = (fields["WARC-Target-URI"], fields["WARC-Date"])
        if len(self._stored) > REMEMBERED:
            self._stored.popitem(last=False)
        fields["WARC-Type"] = "response"
        return _record(fields, "application/http;msgtype=response", head + exchange.body)


def ends_batch(record: bytes) -> bool:
    """Whether *record* is the last of a batch; nothing that a server sends can look like it."""
    head, _, block = record.partition(b"\r\n\r\n")
    return b"\r\nWARC-Type: metadata\r\n" in head and b"\r\n" + _fields(_LAST_OF_BATCH) in b"\r\n" + block


def verdict(outcome: Outcome) -> dict[str, object]:
    """The fields of a page's metadata record."""
    return {
        "reason": outcome.reason.value,
        "detail": outcome.detail,
        "language": outcome.language or "",
        "downloadedBytes": outcome.body_bytes,
        "keptBytes": outcome.kept_bytes,
        "words": outcome.words,
        "yieldRate": round(outcome.kept_bytes / max(1, outcome.body_bytes), 4),
    }


def _record(fields: Mapping[str, str], content_type: str, block: bytes) -> bytes:
    fields = {
        **fields,
        "Content-Type": content_type,
        "WARC-Block-Digest": sha1_digest(block),
        "Content-Length": str(len(block)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return b"".join((b"WARC/1.1\r\n", head.encode(), b"\r\n", block, b"\r\n\r\n"))


def _response_head(exchange: Exchange) -> bytes:
    """The header block as received, changed where it would not describe the stored body.

    The body is stored without its transfer coding.  So that header, and a Content-Length that does not fit, get Common
    Crawl's prefix X-Crawl-, and the stored length is added.  The content coding stays.
    """
    length = b"%d" % len(exchange.body)
    is_said = not exchange.body
    lines = [exchange.status_line.encode("utf-8", "surrogateescape")]
    for name, value in exchange.headers:
        is_length = name.lower() == b"content-length"
        is_true = is_length and (not exchange.body or value.strip() == length)
        is_said |= is_true
        is_renamed = name.lower() == b"transfer-encoding" or (is_length and not is_true)
        lines.append((b"X-Crawl-" if is_renamed else b"") + name + b": " + value)
    if not is_said:
        lines.append(b"Content-Length: " + length)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _request(exchange: Exchange) -> bytes:
    method, target, headers, body = exchange.request
    lines = [f"{method} {target} HTTP/1.1".encode(), *(name + b": " + value for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _fields(values: Mapping[str, object]) -> bytes:
    """*values* as application/warc-fields; empty ones are left out."""
    return "".join(f"{name}: {_printable(str(value))}\r\n" for name, value in values.items() if value != "").encode()


def _printable(text: str) -> str:
    """*text* on one line; '?' for what cannot be encoded."""
    return _CONTROL.sub(" ", text).encode("utf-8", "replace").decode()


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _new_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def _gzip(record: bytes) -> bytes:
    """*record* as a gzip member without a time stamp."""
    memory = 5 if len(record) < _SMALL else zlib.DEF_MEM_LEVEL  # clearing more would take longer than compressing
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31, memory)
    return packer.compress(record) + packer.flush()


def pack_record(record: bytes, name: str) -> bytes:
    """*record* as a frame of the WARC file *name*."""
    return _gzip(record) if name.endswith(".gz") else frame_packer(_ZSTD_LEVEL)(record)


def as_response(revisit: bytes, body: bytes) -> bytes:
    """The record *revisit* with the payload *body*, to which it only referred."""
    head, _, block = revisit.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    for name in ("WARC-Profile", "WARC-Truncated", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date"):
        fields.pop(name, None)
    return _record(fields | {"WARC-Type": "response"}, fields["Content-Type"], block[:-4] + body)


class WarcRecord(NamedTuple):
    """One WARC record."""

    headers: dict[str, str]  # name in lower case -> value
    block: bytes

    @property
    def is_capture(self) -> bool:
        return self.headers.get("warc-type") in ("response", "revisit")


def records(path: Path, length: int) -> Iterator[WarcRecord]:
    """The records in the first *length* bytes of a WARC file that a crawl wrote.

    Raises StorageError at a record that breaks off, or does not have its stated length or digest.
    """
    for frame in frames(path, length):
        record = record_of(frame.data)
        said = record.headers.get("content-length"), record.headers.get("warc-block-digest")
        is_framed = frame.data.startswith(b"WARC/1.1\r\n") and frame.data.endswith(b"\r\n\r\n")
        if not is_framed or said != (str(len(record.block)), sha1_digest(record.block)):
            raise StorageError(f"{path} holds at byte {frame.offset} no record that is whole.")
        yield record


def record_of(data: bytes) -> WarcRecord:
    """The record in a frame, as far as it is one."""
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("utf-8", "replace").split("\r\n")[1:]
    return WarcRecord(
        {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}, rest[:-4]
    )


def sha1_digest(data: bytes) -> str:
    """SHA-1 in base 32 behind ``sha1:``, as in WARC files."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()
