"""The links and single URLs of a message, as bytes and back.

A message is one zstd frame of sections.  A section is what a shard found between two checkpoints: a head in JSON, and
a tail of columns.  It says what was found; what follows from a URL (hashes, words, form) the receiver computes, so it
is neither carried nor believed.  The links stand in the order of their pages.  Pages that no strategy can tell apart
(same distance, end, rank, language; badness to a tenth) count as one.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import zstandard

from spiderling.base.link_batch import Derive, LinkBatch, completed
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier.discovery.admission import Mention
from spiderling.frontier.hosts.ranks import LAST_RANK, SEED_RANK
from spiderling.frontier.ranking.linking_page import FarHost, LinkingPage

MAX_PLAIN_BYTES = 16 << 20
"""The longest message before compression.  gathering.py stays far below it."""
_LEVEL = 1
"""Level of zstd; chosen: level 3 saves a twentieth of the bytes."""
_PACKER = zstandard.ZstdCompressor(level=_LEVEL)
_UNPACKER = zstandard.ZstdDecompressor()
"""The event loop alone uses them; to make new ones takes longer than a message."""
_MAX_DISTANCE = 0xFFFF
_LENGTHS = struct.Struct("!II")
_COLUMNS = {"of_host": 2, "prefixes": 1, "flags": 1, "scores": 1, "anchors": 1}
"""The columns that are carried beside the paths, with their bytes a link."""
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error)


class FoundLinks(NamedTuple):
    """Links of pages that a strategy cannot tell apart."""

    page: LinkingPage
    links: LinkBatch


class Content(NamedTuple):
    """What one shard tells another."""

    links: tuple[FoundLinks, ...] = ()
    mentions: tuple[Mention, ...] = ()


def section(pages: Sequence[tuple[LinkingPage, int]], links: LinkBatch, mentions: Sequence[Mention]) -> bytes:
    """A section of a message.

    *pages*: whose *links* these are, and how many each has, in their order.  Of a page only what strategies read is
    carried, of its host the distance; of *links*, the columns alone, of *mentions* not their pages.
    """
    abouts = [
        [page.host.distance, page.reason.name, page.rank, page.relevant, page.language, page.badness, number]
        for page, number in pages
    ]
    tail = [links.paths, *(getattr(links, name) for name in _COLUMNS)]
    told: list[object] = []
    for mention in mentions:
        length = None if mention.payload is None else len(mention.payload)
        told.append([mention.target.url, mention.distance, mention.rank, mention.redirects, length, len(mention.salt)])
        tail += [mention.payload or b"", mention.salt]
    head = json.dumps([abouts, links.hosts, len(links.paths), told], separators=(",", ":")).encode()
    return b"".join([_LENGTHS.pack(len(head), sum(map(len, tail))), head, *tail])


def packed(sections: Iterable[bytes]) -> bytes:
    """The message of *sections*."""
    return _PACKER.compress(b"".join(sections))


def unpacked(message: bytes, derive: Derive | None = None) -> Content:
    """The content of *message*; raises ValueError for what no shard can have sent.

    *derive* may be a faster `derived` of link_batch.py.
    """
    try:
        parts = [_read(head, _Tail(tail), derive) for head, tail in _sections(_decompressed(message))]
    except (*_UNREADABLE, zstandard.ZstdError) as error:
        raise ValueError(f"a message that cannot be read: {error!r:.200}") from error
    links = tuple(found for part in parts for found in part.links)
    return Content(links, tuple(mention for part in parts for mention in part.mentions))


def _decompressed(message: bytes) -> bytes:
    if zstandard.frame_content_size(message) > MAX_PLAIN_BYTES:
        raise ValueError("it is too long")
    return _UNPACKER.decompress(message, max_output_size=MAX_PLAIN_BYTES)


def _sections(plain: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Head and tail of each section."""
    at = 0
    while at < len(plain):
        head, tail = _LENGTHS.unpack_from(plain, at)
        start = at + _LENGTHS.size
        at = start + head + tail
        if at > len(plain):
            raise ValueError("a section is cut off")
        yield plain[start : start + head], plain[start + head : at]


class _Tail:
    """The tail of a section, which is read from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + length]
        if length < 0 or len(taken) < length:
            raise ValueError("a column is cut off")
        self._at += length
        return taken

    def end(self) -> None:
        if self._at != len(self._data):
            raise ValueError("a section says more than its head announces")


def _read(head: bytes, tail: _Tail, derive: Derive | None) -> Content:
    abouts, hosts, length, mentions = json.loads(head)
    pages = [(_page(*about), number) for *about, number in abouts]
    links = tuple(_found(pages, LinkBatch(tuple(hosts), tail.take(length)), tail, derive))
    content = Content(links, tuple([_mention(mention, tail) for mention in mentions]))
    tail.end()
    return content


def _found(
    pages: list[tuple[LinkingPage, Any]], bare: LinkBatch, tail: _Tail, derive: Derive | None
) -> list[FoundLinks]:
    """The links of *pages*; of *bare* hosts and paths are there, and the other columns come from *tail*."""
    if any(type(number) is not int or number < 0 for _, number in pages):
        raise ValueError("a page with links that cannot be counted")
    sizes = [number for _, number in pages]
    of_host, prefixes, flags, scores, anchors = (tail.take(width * sum(sizes)) for width in _COLUMNS.values())
    bare = bare._replace(of_host=of_host, prefixes=prefixes, flags=flags, scores=scores, anchors=anchors)
    links = completed(bare, derive)
    return [FoundLinks(page, batch) for (page, _), batch in zip(pages, links.parts(sizes), strict=True)]


def _page(distance: int, reason: str, rank: int, relevant: bool, language: str, badness: float) -> LinkingPage:
    _check_ranked(distance, rank)
    if type(relevant) is not bool or type(language) is not str or not math.isfinite(badness):
        raise ValueError("a page that is none")
    return LinkingPage(FarHost(distance), Reason[reason], rank, relevant, language, badness)


def _mention(values: list[Any], tail: _Tail) -> Mention:
    url, distance, rank, redirects, length, of_salt = values
    target = canonicalize(url)
    if target is None or target.url != url or type(redirects) is not int or not 0 <= redirects <= _MAX_DISTANCE:
        raise ValueError("a mention of no URL")
    _check_ranked(distance, rank)
    payload = None if length is None else tail.take(length)
    return Mention(target, distance, rank, 0, payload, tail.take(of_salt), redirects)


def _check_ranked(distance: int, rank: int) -> None:
    whole = type(distance) is int and type(rank) is int
    if not whole or not 0 <= distance <= _MAX_DISTANCE or not SEED_RANK <= rank <= LAST_RANK:
        raise ValueError("a distance or a rank that is none")
