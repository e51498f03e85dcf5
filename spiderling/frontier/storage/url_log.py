"""The trail: why each URL is in the corpus or not, to be asked afterwards; on disk, never in memory.

Three append-only tables, written in the transaction of each batch (sqlite.py):

- *ended*: the URLs that ended, each with an ``End``; one row a batch, their keys first,
  so that a search reads 8 bytes a URL and unpacks one row;
- *found*: keys in the order of discovery, and the page that each was found on as runs
  of (page's key, number of URLs), key 0 for seeds;
- *purged*: a whole queue given up at once, one row whatever its length.  A URL that was
  found, does not wait and has no end of its own ended with the next purge of its host.
"""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import zstandard

from spiderling.base.errors import DamageError
from spiderling.base.reasons import KEYS, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spiderling.base.outcome import Outcome
    from spiderling.frontier.hosts.host import Host, QueuedUrl

ASKED_AGAIN = "asked-again"
"""In the table ``meta``: for each Reason the last batch of *ended* whose URLs that ended so wait again, or did."""
_LEVEL = 6
_END_KINDS = (int, str, str, *[int] * 7, str, str, str)
"""Of an End, its ``document`` left out."""
_compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)


class End(NamedTuple):
    """How one URL ended; what no request told is 0 or empty."""

    key: int
    url: str
    reason: str
    rank: int
    distance: int
    tries: int = 0
    """Attempts that failed before."""
    status: int = 0
    body_bytes: int = 0
    kept_bytes: int = 0
    words: int = 0
    language: str = ""
    detail: str = ""
    """The verdict in words: what was measured and found wanting."""
    document: int | None = None
    """Its place among the documents of the batch's frame."""
    payload: str = ""
    """That of a request of a subclass and of a sitemap, in base64, so that it can be made again; of kept pages none."""


class Purge(NamedTuple):
    time: float
    host: int
    reason: str
    urls: int


@dataclass(frozen=True, slots=True)
class UrlLogBatch:
    """What one batch adds; ``ends`` get what their outcomes told in the checkpoint."""

    time: float = 0.0
    ends: tuple[End, ...] = ()
    found: tuple[int, ...] = ()
    pages: tuple[tuple[int, int], ...] = ()
    """Runs of (key of the page, number of keys in ``found``)."""
    purges: tuple[Purge, ...] = ()
    segment: str = ""
    """Segment that holds the batch's documents ..."""
    offset: int = 0
    """... and where their frame begins, in bytes."""


class UrlLog:
    """Collects between two batches; ``full``, only the ``ends``, or nothing (``off``)."""

    def __init__(self, mode: str) -> None:
        self.keeps_ends, self._keeps_found = mode != "off", mode == "full"
        self._ends: list[End] = []
        self._found: list[int] = []
        self._pages: list[tuple[int, int]] = []
        self._purges: list[Purge] = []

    def log_found(self, keys: list[int], page: int) -> None:
        """URLs were discovered on the page of the key *page*; 0: a seed."""
        if not (self._keeps_found and keys):
            return
        self._found += keys
        last, number = self._pages[-1] if self._pages else (0, 0)
        if number and last == page:
            self._pages[-1] = (page, number + len(keys))
        else:
            self._pages.append((page, len(keys)))

    def log_end(self, url: QueuedUrl, reason: Reason) -> None:
        if self.keeps_ends:
            end = End(url.key, url.url, reason.value, url.rank, url.host.distance, url.tries)
            if url.payload is not None and reason is not Reason.KEPT:
                end = end._replace(payload=b64encode(url.payload).decode("ascii"))
            self._ends.append(end)

    def log_purge(self, host: Host, reason: Reason, urls: int) -> None:
        """All *urls* that waited for *host* ended at once."""
        if self.keeps_ends and urls:
            self._purges.append(Purge(0.0, host.id, reason.value, urls))

    def drain(self, now: float) -> UrlLogBatch:
        """Everything since the last call."""
        purges = tuple(purge._replace(time=now) for purge in self._purges)
        batch = UrlLogBatch(now, tuple(self._ends), tuple(self._found), tuple(self._pages), purges)
        self._ends, self._found, self._pages, self._purges = [], [], [], []
        return batch


def with_outcome(end: End, outcome: Outcome, document: int | None) -> End:
    """*end* with what the outcome of its request told; *document*: the place of its document in the batch."""
    return end._replace(
        status=outcome.status, body_bytes=outcome.body_bytes, kept_bytes=outcome.kept_bytes, words=outcome.words,
        language=outcome.language or "", detail=outcome.detail, document=document,
    )  # fmt: skip


def rows(batch: UrlLogBatch) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The rows that *batch* adds: each with its table, and without the number that the table gives it."""
    if batch.ends:
        keys = pack_keys(tuple(end.key for end in batch.ends))
        values = (batch.time, batch.segment, batch.offset, keys, pack_ends(batch.ends))
        yield "ended", values
    if batch.found:
        runs = pack_keys(tuple(part for run in batch.pages for part in run))
        yield "found", (batch.time, pack_keys(batch.found), runs)
    for purge in batch.purges:
        yield "purged", purge


def pack_keys(keys: tuple[int, ...]) -> bytes:
    return array("q", keys).tobytes()


def unpack_keys(blob: bytes) -> list[int]:
    keys = array("q")
    keys.frombytes(blob)
    return keys.tolist()


def pack_ends(ends: tuple[End, ...]) -> bytes:
    """The ends of a batch by column, since like values pack better side by side."""
    columns = list(zip(*(end[1:] for end in ends), strict=True))
    if not any(columns[-1]):
        del columns[-1]  # payloads, which the stock spider has none of
    return _compressor.compress(json.dumps(columns, separators=(",", ":")).encode())


def unpack_ends(keys: bytes, blob: bytes) -> list[End]:
    """The ends of a batch; raises DamageError for what was never packed."""
    try:
        columns = json.loads(zstandard.ZstdDecompressor().decompress(blob))
        ends = [End(*row) for row in zip(unpack_keys(keys), *columns, strict=True)]
    except (zstandard.ZstdError, ValueError, TypeError, RecursionError) as error:
        raise DamageError(f"a batch of the trail is damaged: {error}; see `scrapy inspect JOBDIR --check`.") from error
    strange = [end for end in ends if not _is_end(end)]
    if strange:
        raise DamageError(
            f"the trail is damaged: {str(strange[0])[:120]} is no end; see `scrapy inspect JOBDIR --check`."
        )
    return ends


def _is_end(end: End) -> bool:
    kinds = tuple(map(type, end))
    return kinds[:12] + kinds[13:] == _END_KINDS and kinds[12] in (int, NoneType) and end.reason in KEYS


def place_of(key: int, blob: bytes) -> int | None:
    """The place of *key* among the packed keys in *blob*; None when it is not there."""
    wanted, at = pack_keys((key,)), -1
    while (at := blob.find(wanted, at + 1)) >= 0:
        if at % 8 == 0:
            return at // 8
    return None


def page_of(place: int, runs: bytes) -> int:
    """The key of the page on which the URL at *place* of its batch was found; 0: none, it is a seed."""
    pairs = unpack_keys(runs)
    for page, number in zip(pairs[::2], pairs[1::2], strict=True):
        place -= number
        if place < 0:
            return page
    return 0


SCHEMA = """
CREATE TABLE ended(batch INTEGER PRIMARY KEY, time REAL NOT NULL, segment TEXT NOT NULL,
    offset_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, keys BLOB NOT NULL, ends BLOB NOT NULL);
CREATE TABLE found(batch INTEGER PRIMARY KEY, time REAL NOT NULL, checksum INTEGER NOT NULL,
    keys BLOB NOT NULL, pages BLOB NOT NULL);
CREATE TABLE purged(time REAL NOT NULL, host INTEGER NOT NULL, reason TEXT NOT NULL,
    urls INTEGER NOT NULL, checksum INTEGER NOT NULL);
"""
