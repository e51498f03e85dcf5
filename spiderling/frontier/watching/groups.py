"""What is watched, on disk: groups of up to 64 pages of a host, one compressed row each in the table ``watched``.

Pages of a host have similar URLs, so a page takes some 40 bytes beside its ETag.  A row is read when one of its pages
is to be looked at, and written when one was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import zstandard

from spiderling.base.errors import DamageError
from spiderling.frontier.watching.policy import PAGE
from spiderling.frontier.watching.validators import Validators

GROUP_PAGES = 64
"""Pages of a full group (chosen: a few kB, about a page of SQLite)."""
PART_BITS = 16
"""Bits of a group's id that hold its number within its host; those above are the host's id."""
MAX_PARTS = 1 << PART_BITS
_LEVEL = 3
_COLUMNS = (
    *(("key", "<i8"), ("found_at", "<f4"), ("last", "<f4"), ("since", "<f4"), ("text_key", "<u8")),
    *(("modified", "<u4"), ("kind", "u1"), ("state", "u1"), ("hub_score", "u1"), ("version", "u1")),
)
_ROW_BYTES = sum(np.dtype(kind).itemsize for _, kind in _COLUMNS)


class Standing(IntEnum):
    """What is known of a watched page."""

    LIVE = 0
    MISSED = 1
    """Its last answer was 404, first at the time ``since``."""
    GONE = 2
    """410, or 404 at two looks a week apart; it is not looked at any more."""
    OPTED_OUT = 3
    """It may not be used, since then; it is not looked at any more."""
    FRUITLESS = 4
    """It is not in the corpus, and several looks found no link: it is not looked at any more."""


@dataclass(slots=True)
class WatchedPage:
    """A page, hub, feed or sitemap that has ended; times are days since the watch began."""

    key: int
    url: str
    found_at: float
    """When it was first fetched."""
    last: float
    validators: Validators
    kind: int = PAGE
    state: Standing = Standing.LIVE
    since: float = 0.0
    """Since when it stands so, unless it is live."""
    hub_score: int = 0
    """What looks at it found of late (watch.py)."""
    version: int = 0
    """Documents that were kept of it, at most 255; 0: it is not in the corpus."""


def group_id(host: int, part: int) -> int:
    """The id of a row of the table ``watched``."""
    return host << PART_BITS | part


def host_and_part(group: int) -> tuple[int, int]:
    return group >> PART_BITS, group & MAX_PARTS - 1


def packed(pages: Sequence[WatchedPage]) -> bytes:
    """The row of *pages*, column by column, since similar values compress better together."""
    numbers = (
        [page.key for page in pages],
        [page.found_at for page in pages],
        [page.last for page in pages],
        [page.since for page in pages],
        [page.validators.text_key for page in pages],
        [page.validators.modified for page in pages],
        [page.kind for page in pages],
        [page.state for page in pages],
        [page.hub_score for page in pages],
        [min(255, page.version) for page in pages],
    )
    columns = [np.array(values, kind).tobytes() for values, (_, kind) in zip(numbers, _COLUMNS, strict=True)]
    lines = b"\n".join([*(page.url.encode() for page in pages), *(page.validators.etag for page in pages)])
    data = b"".join([len(pages).to_bytes(2, "little"), *columns, lines])
    return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)


def unpacked(row: bytes) -> list[WatchedPage]:
    """The pages of a row; raises DamageError for what ``packed`` cannot have made."""
    try:
        data = zstandard.ZstdDecompressor().decompress(row)
        number = int.from_bytes(data[:2], "little")
        lines = data[2 + number * _ROW_BYTES :].split(b"\n")
        if len(lines) != 2 * number or not number:
            raise ValueError(f"{number} pages have {len(lines)} lines")
        at = 2
        columns = []
        for _, kind in _COLUMNS:
            column = np.frombuffer(data, kind, number, at)
            at += column.nbytes
            columns.append(column.tolist())
        keys, found, last, since, texts, modified, kinds, states, scores, versions = columns
        return [
            WatchedPage(
                keys[n],
                lines[n].decode(),
                found[n],
                last[n],
                Validators(texts[n], modified[n], lines[number + n]),
                kinds[n],
                Standing(states[n]),
                since[n],
                scores[n],
                versions[n],
            )
            for n in range(number)
        ]
    except (zstandard.ZstdError, ValueError) as error:
        raise DamageError(f"a row of watched pages is damaged: {error}; see `scrapy inspect JOBDIR --check`.") from None
