"""What is watched, on disk: groups of up to 64 pages of a host, one compressed row each in the table ``watched``.

Pages of a host have similar URLs, so a page takes some 40 bytes beside its ETag.  A row is read when one of its pages
is to be looked at, and written when one was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

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


class Group:
    """The pages of one group, column by column, since similar values compress better together."""

    def __init__(self, columns: list[NDArray[Any]], lines: list[bytes]) -> None:
        self._columns = columns
        self._lines = lines
        """Addresses, and behind them ETags."""

    @classmethod
    def of(cls, pages: Sequence[WatchedPage]) -> Group:
        """A group of *pages*."""
        numbers = zip(*map(_values, pages), strict=True)
        columns = [np.array(values, kind) for values, (_, kind) in zip(numbers, _COLUMNS, strict=True)]
        return cls(columns, [*(page.url.encode() for page in pages), *(page.validators.etag for page in pages)])

    @classmethod
    def unpacked(cls, row: bytes) -> Group:
        """The group of a row; raises DamageError for what ``packed`` cannot have made."""
        try:
            data = bytearray(zstandard.ZstdDecompressor().decompress(row))
            number = int.from_bytes(data[:2], "little")
            lines = bytes(data[2 + number * _ROW_BYTES :]).split(b"\n")
            if len(lines) != 2 * number or not number:
                raise ValueError(f"{number} pages have {len(lines)} lines")
            at = 2
            columns = []
            for _, kind in _COLUMNS:
                columns.append(np.frombuffer(data, kind, number, at))
                at += columns[-1].nbytes
            return cls(columns, lines)
        except (zstandard.ZstdError, ValueError) as error:
            raise _damage(error) from None

    def packed(self) -> bytes:
        """The row."""
        columns = (column.tobytes() for column in self._columns)
        data = b"".join([len(self).to_bytes(2, "little"), *columns, b"\n".join(self._lines)])
        return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)

    def __len__(self) -> int:
        return len(self._lines) // 2

    def pages(self) -> list[WatchedPage]:
        """All of them; raises DamageError, as `page` does."""
        return [self._page(at) for at in range(len(self))]

    def page(self, key: int) -> WatchedPage:
        """The page with this key, which the group must hold."""
        return self._page(self._place(key))

    def put(self, page: WatchedPage) -> None:
        """*page*, which the group must hold, has changed; its address never does."""
        at = self._place(page.key)
        for column, value in zip(self._columns, _values(page), strict=True):
            column[at] = value
        self._lines[len(self) + at] = page.validators.etag

    def _place(self, key: int) -> int:
        try:
            keys: list[int] = self._columns[0].tolist()
            return keys.index(key)
        except ValueError:
            raise _damage(f"page {key} is not there") from None

    def _page(self, at: int) -> WatchedPage:
        key, found, last, since, text_key, modified, *states, version = (column[at].item() for column in self._columns)
        kind, state, score = states
        validators = Validators(text_key, modified, self._lines[len(self) + at])
        try:
            url = self._lines[at].decode()
            return WatchedPage(key, url, found, last, validators, kind, Standing(state), since, score, version)
        except ValueError as error:
            raise _damage(error) from None


def _values(page: WatchedPage) -> tuple[float, ...]:
    """What the columns have of it."""
    validators = page.validators
    times = page.key, page.found_at, page.last, page.since
    return *times, *validators[:2], page.kind, page.state, page.hub_score, min(255, page.version)


def _damage(error: Exception | str) -> DamageError:
    return DamageError(f"a row of watched pages is damaged: {error}; see `scrapy inspect JOBDIR --check`.")
