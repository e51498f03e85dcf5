"""What a sitemap or a feed lists: the addresses of pages, when each was last changed, and how it may be used.

A text worker reads the file, and sends the listing packed: a few values, which cost the event loop little.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from spiderling.base.opt_outs import Purpose, Signal, Statement
from spiderling.base.rsl import Licensee, RslFile
from spiderling.base.urls import canonicalize
from spiderling.text.declared import seconds_of
from spiderling.text.feed import Entry as FeedEntry
from spiderling.text.feed import Feed, read_feed
from spiderling.text.sitemap import read_sitemap

Entry: TypeAlias = "tuple[str, float | None]"
"""Address of a page, and when it was last changed, in seconds since 1970; None: the file does not say."""
_Said: TypeAlias = "list[tuple[str, list[str]]]"
"""Statements by RSL: detail, and the names of the purposes that it refuses."""
Packed: TypeAlias = "tuple[str, bytes, bool, int, dict[int, _Said]]"
"""Addresses as lines, times as doubles (nan for None), whether it is an index, number of those left out, statements by
the number of the entry."""


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
    said: Mapping[int, list[Statement]] = {}
    """Number of an entry, from 0 on -> what its licence says to us, if it has one."""


def read_listing(body: bytes, address: str, who: Licensee) -> Packed:
    """What the sitemap or feed in *body*, which is at *address*, lists; nothing if it is neither.

    *who* would use the pages: the licences of entries are read for him.
    """
    feed = read_feed(body, address) if _IS_FEED.search(body[:_HEAD_BYTES].replace(b"\0", b"")) else Feed([])
    if feed.entries:
        dated = ((entry.url, entry.modified or entry.published) for entry in feed.entries)
        said = {number: _said(entry, who) for number, entry in enumerate(feed.entries) if entry.licence}
        return *_packed(dated), False, feed.left_out, said
    sitemap = read_sitemap(body)
    return *_packed(zip(sitemap.urls, sitemap.dates, strict=True)), sitemap.is_index, sitemap.left_out, {}


def _said(entry: FeedEntry, who: Licensee) -> _Said:
    target = canonicalize(entry.url)
    found = RslFile(entry.licence, who).statements(entry.url, target.path if target else "/")
    return [(said.detail, [purpose.value for purpose in said.refuses]) for said in found]


def _packed(entries: Iterable[tuple[str, str]]) -> tuple[str, bytes]:
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
    return "\n".join(urls).encode("utf-8", "replace").decode(), times.tobytes()


def unpacked(value: Any) -> Listing:
    """The listing that a worker has packed; raises ValueError for any other value, since workers are not trusted."""
    try:
        lines, data, is_index, left_out, said = value
        times = array("d", data)
        urls = lines.split("\n") if lines else []
        entries = [(url, None if math.isnan(time) else time) for url, time in zip(urls, times, strict=True)]
        statements = {int(number): [_statement(*one) for one in each] for number, each in said.items()}
        return Listing(entries, bool(is_index), int(left_out), statements)
    except (TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"it is no listing ({error})") from None


def _statement(detail: str, refuses: Iterable[str]) -> Statement:
    return Statement(Signal.RSL, str(detail), frozenset(map(Purpose, refuses)))
