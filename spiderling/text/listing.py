"""What a sitemap or a feed lists: the addresses of pages, and when each was last changed.

A text worker reads the file, and sends the listing packed: three values, which cost the event loop little.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from spiderling.text.declared import seconds_of
from spiderling.text.feed import Feed, read_feed
from spiderling.text.sitemap import read_sitemap

Entry: TypeAlias = "tuple[str, float | None]"
"""Address of a page, and when it was last changed, in seconds since 1970; None: the file does not say."""
Packed: TypeAlias = "tuple[str, bytes, bool, int]"
"""Addresses as lines, times as doubles (nan for None), whether it is an index, number of those left out."""


_HEAD_BYTES = 4096
"""Bytes in which a feed's first element must begin; chosen: comments of its maker come before it."""
_IS_FEED = re.compile(rb"<(?:\w+:)?(?:rss|feed|rdf)[\s>]|^(?:\xef\xbb\xbf)?\s*\{", re.IGNORECASE)


class Listing(NamedTuple):
    """The entries of a sitemap or feed, in their order."""

    entries: list[Entry]
    is_index: bool = False
    """Whether the addresses are those of other sitemaps."""
    left_out: int = 0
    """Number of entries beyond the limits of a file."""


def read_listing(body: bytes, address: str) -> Packed:
    """What the sitemap or feed in *body*, which is at *address*, lists; nothing if it is neither."""
    feed = read_feed(body, address) if _IS_FEED.search(body[:_HEAD_BYTES].replace(b"\0", b"")) else Feed([])
    if feed.entries:
        dated = ((entry.url, entry.modified or entry.published) for entry in feed.entries)
        return _packed(dated, False, feed.left_out)
    sitemap = read_sitemap(body)
    return _packed(zip(sitemap.urls, sitemap.dates, strict=True), sitemap.is_index, sitemap.left_out)


def _packed(entries: Iterable[tuple[str, str]], is_index: bool, left_out: int) -> Packed:
    urls: list[str] = []
    times = array("d")
    known: dict[str, float | None] = {"": None}
    """Many entries of a file have the same date, and reading one takes 2 us."""
    for url, date in entries:
        urls.append("".join(url.splitlines()))
        if date not in known:
            known[date] = seconds_of(date)
        time = known[date]
        times.append(math.nan if time is None else time)
    return "\n".join(urls).encode("utf-8", "replace").decode(), times.tobytes(), is_index, left_out


def unpacked(value: Any) -> Listing:
    """The listing that a worker has packed; raises ValueError for any other value, since workers are not trusted."""
    try:
        lines, data, is_index, left_out = value
        times = array("d", data)
        urls = lines.split("\n") if lines else []
        entries = [(url, None if math.isnan(time) else time) for url, time in zip(urls, times, strict=True)]
        return Listing(entries, bool(is_index), int(left_out))
    except (TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"it is no listing ({error})") from None
