"""The URL log: how each URL ended and where it was found.  It is on disk only; users know it as the *trail*.

It has four append-only tables, which are written in the transaction of each batch (sqlite.py):

- *ended*: one row for each batch, with the URLs that ended and an ``UrlEnd`` for each.  Their keys are in a column of
  their own, so a search reads 8 bytes for each URL and unpacks one row.
- *found*: the keys of discovered URLs in order, and the pages on which they were found, as runs of (key of the page,
  number of URLs).  The key 0 stands for seeds.
- *purged*: one row for each queue that was given up as a whole.  A URL that was found, does not wait and is not in
  *ended* ended with the next purge of its host.
- *validator*: what was noted of pages that ended, by which they can be asked again (recrawl/pages.py).
"""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import NoneType
from typing import Any, NamedTuple

from spiderling.base.errors import DamageError
from spiderling.base.files import frame_packer, zstd
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import KEYS, Reason
from spiderling.frontier.hosts import Host, QueuedUrl

ASKED_AGAIN = "asked-again"
"""Key in the table ``meta``: for each Reason the last batch of *ended* up to which ``ask_again`` was carried out."""
_LEVEL = 6  # level of zstd compression (chosen)
_END_KINDS = (int, str, str, *[int] * 7, str, str, str)  # the types of an End's fields, except ``document``


class UrlEnd(NamedTuple):
    """How one URL ended; fields about a response are 0 or empty where there was none."""

    key: int
    url: str
    reason: str
    rank: int
    distance: int
    tries: int = 0  # earlier attempts, which failed
    status: int = 0
    body_bytes: int = 0
    kept_bytes: int = 0
    words: int = 0
    language: str = ""
    detail: str = ""  # the verdict in words: what was measured, and what would have been enough
    document: int | None = None  # index of its document in the batch's frame of the corpus
    payload: str = ""  # QueuedUrl.payload in base64, from which the request can be made again; empty for kept pages


@dataclass(frozen=True, slots=True)
class UrlLogBatch:
    """Rows that one batch adds to the URL log; crawl/checkpoint.py adds where its documents stand."""

    time: float = 0.0
    ends: list[UrlEnd] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    pages: list[tuple[int, int]] = field(default_factory=list)  # runs of (key of the page, number of keys in ``found``)
    purges: list[tuple[int, str, int]] = field(default_factory=list)  # (host id, reason, number of URLs)
    validators: list[tuple[int, bytes]] = field(default_factory=list)  # (key, recrawl/pages.py) of pages that ended
    segment: str = ""  # the segment with the batch's documents
    offset: int = 0  # where their frame begins in the segment, in bytes


class UrlLog:
    """Collects what the next batch adds."""

    def __init__(self, mode: str) -> None:
        """*mode*: the option SPIDERLING_TRAIL: ``full``; ``ends`` for ends and purges only; or ``off``."""
        self.keeps_ends = mode != "off"
        self._keeps_found = mode == "full"
        self._batch = UrlLogBatch()
        self.documents = 0  # documents of the batch so far

    def log_found(self, keys: list[int], page: int) -> None:
        """The URLs *keys* were discovered on the page with the key *page*; 0: they are seeds."""
        if not (self._keeps_found and keys):
            return
        self._batch.found.extend(keys)
        pages = self._batch.pages
        if pages and pages[-1][0] == page:
            pages[-1] = (page, pages[-1][1] + len(keys))
        else:
            pages.append((page, len(keys)))

    def log_end(self, url: QueuedUrl, reason: Reason, outcome: Outcome | None = None) -> None:
        """*outcome*: that of its last request; its document is the batch's next one.  None: nothing was asked for."""
        if not self.keeps_ends:
            return
        payload = "" if reason is Reason.KEPT or not url.payload else b64encode(url.payload).decode("ascii")
        end = UrlEnd(url.key, url.url, reason.value, url.rank, url.host.distance, url.tries, payload=payload)
        if outcome is not None:
            end = end._replace(
                status=outcome.status,
                body_bytes=outcome.body_bytes,
                kept_bytes=outcome.kept_bytes,
                words=outcome.words,
                language=outcome.language or "",
                detail=outcome.detail,
                document=None if outcome.document is None else self.documents,
            )
        self._batch.ends.append(end)

    def log_validators(self, key: int, packed: bytes) -> None:
        """Note by what the page with this *key*, which has ended, can be asked for again (recrawl/pages.py)."""
        if self.keeps_ends:
            self._batch.validators.append((key, packed))

    def log_purge(self, host: Host, reason: Reason, urls: int) -> None:
        """The whole queue of *host* ended, with this number of *urls*."""
        if self.keeps_ends and urls:
            self._batch.purges.append((host.id, reason.value, urls))

    def drain(self, now: float) -> UrlLogBatch:
        batch, self._batch = self._batch, UrlLogBatch()
        self.documents = 0
        return replace(batch, time=now)


def rows(batch: UrlLogBatch) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(table, row) for each row that *batch* adds; rows are without the number that their table gives them."""
    if batch.ends:
        keys = pack_keys(end.key for end in batch.ends)
        yield "ended", (batch.time, batch.segment, batch.offset, keys, pack_ends(batch.ends))
    if batch.found:
        runs = pack_keys(chain.from_iterable(batch.pages))
        yield "found", (batch.time, pack_keys(batch.found), runs)
    if batch.validators:
        keys = pack_keys(key for key, _ in batch.validators)
        yield "validator", (batch.time, keys, b"".join(packed for _, packed in batch.validators))
    for purge in batch.purges:
        yield "purged", (batch.time, *purge)


def pack_keys(keys: Iterable[int]) -> bytes:
    return array("q", keys).tobytes()


def unpack_keys(blob: bytes) -> list[int]:
    return array("q", blob).tolist()


def pack_ends(ends: Sequence[UrlEnd]) -> bytes:
    """The ends of a batch without their keys, column by column, since similar values compress better together."""
    columns = list(zip(*(end[1:] for end in ends), strict=True))
    if not any(columns[-1]):
        del columns[-1]  # payloads, of which the stock spider has none
    pack = frame_packer(_LEVEL)  # one serves one thread at a time
    return pack(json.dumps(columns, separators=(",", ":")).encode())


def unpack_ends(keys: bytes, blob: bytes) -> list[UrlEnd]:
    """The ends of a batch with these *keys*; raises DamageError for what ``pack_ends`` cannot have made."""
    try:
        columns = json.loads(zstd.decompress(blob))
        ends = [UrlEnd(*row) for row in zip(unpack_keys(keys), *columns, strict=True)]
    except (zstd.ZstdError, ValueError, TypeError, RecursionError) as error:
        raise DamageError(f"a batch of the trail is damaged: {error}; see `scrapy inspect JOBDIR --check`.") from error
    strange = [end for end in ends if not _is_end(end)]
    if strange:
        raise DamageError(
            f"the trail is damaged: {str(strange[0])[:120]} is no end; see `scrapy inspect JOBDIR --check`."
        )
    return ends


def _is_end(end: UrlEnd) -> bool:
    kinds = tuple(map(type, end))
    return kinds[:12] + kinds[13:] == _END_KINDS and kinds[12] in (int, NoneType) and end.reason in KEYS


def place_of(key: int, blob: bytes) -> int | None:
    """The index of *key* among the packed keys in *blob*; None if it is not there."""
    wanted = pack_keys((key,))
    at = -1
    while (at := blob.find(wanted, at + 1)) >= 0:
        if at % 8 == 0:
            return at // 8
    return None


def page_of(place: int, runs: bytes) -> int:
    """The key of the page on which the URL with the index *place* in its batch was found; 0 if it is a seed."""
    pairs = unpack_keys(runs)
    for page, number in zip(pairs[::2], pairs[1::2], strict=True):
        place -= number
        if place < 0:
            return page
    return 0
