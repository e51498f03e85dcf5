"""The links and single URLs of a message, as bytes and back.

A message is one zstd frame of sections.  A section is what a shard found between two checkpoints: a head in JSON, and
a tail of columns.  It says what was found; what follows from a URL (hashes, words, form) the receiver computes, so it
is neither carried nor believed.  The links stand in the order of their pages.  Pages that no strategy can tell apart
(same distance, end, rank, language; badness to a tenth) count as one, over all sections of a message: the receiver
puts their links together, since each call of its frontier costs as much as some links.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import zstandard

from spiderling.base.link_batch import Derive, LinkBatch, completed
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import LAST_RANK, SEED_RANK
from spiderling.frontier.strategy import FarHost, LinkingPage

MAX_PLAIN_BYTES = 16 << 20
"""The longest message before compression.  gathering.py stays far below it."""
_LEVEL = 1
"""Level of zstd; chosen: level 3 saves a twentieth of the bytes."""
_PACKER = zstandard.ZstdCompressor(level=_LEVEL)
_UNPACKER = zstandard.ZstdDecompressor()
"""The event loop alone uses them; to make new ones takes longer than a message."""
_MAX_DISTANCE = 0xFFFF
_MAX_HOSTS = 0xFFFF
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


class _Section(NamedTuple):
    """A section as it was read."""

    pages: list[tuple[tuple[Any, ...], int]]
    """What is said of each page, and its number of links."""
    links: LinkBatch
    """Without the columns that follow from the URLs."""
    mentions: list[Mention]


def unpacked(message: bytes, derive: Derive | None = None) -> Content:
    """The content of *message*; raises ValueError for what no shard can have sent.

    *derive* may be a faster `derived` of link_batch.py.
    """
    try:
        sections = [_read(head, _Tail(tail)) for head, tail in _sections(_decompressed(message))]
        links = _joined([one for one in sections if one.links.size], derive)
    except (*_UNREADABLE, zstandard.ZstdError) as error:
        raise ValueError(f"a message that cannot be read: {error!r:.200}") from error
    return Content(links, tuple(mention for one in sections for mention in one.mentions))


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


def _read(head: bytes, tail: _Tail) -> _Section:
    abouts, hosts, length, mentions = json.loads(head)
    pages = [(tuple(about), number) for *about, number in abouts]
    if any(type(number) is not int or number < 0 for _, number in pages):
        raise ValueError("a page with links that cannot be counted")
    paths = tail.take(length)
    size = sum(number for _, number in pages)
    of_host, prefixes, flags, scores, anchors = (tail.take(width * size) for width in _COLUMNS.values())
    if size and paths.count(b"\n") != size - 1:
        raise ValueError("more or fewer paths than links")
    bare = LinkBatch(tuple(hosts), paths, of_host, prefixes=prefixes, flags=flags, scores=scores, anchors=anchors)
    section = _Section(pages, bare, [_mention(mention, tail) for mention in mentions])
    tail.end()
    return section


def _joined(sections: Sequence[_Section], derive: Derive | None) -> tuple[FoundLinks, ...]:
    """The links of *sections* by their pages, in the order in which a page comes first."""
    if not sections:
        return ()
    numbers: dict[tuple[Any, ...], int] = {}
    of_page = [numbers.setdefault(about, len(numbers)) for one in sections for about, _ in one.pages]
    pages = [_page(*about) for about in numbers]
    counts = [number for one in sections for _, number in one.pages]
    page_of_link = np.repeat(of_page, counts)
    order = np.argsort(page_of_link, kind="stable")
    names: dict[str, int] = {}
    of_hosts = []
    for one in sections:
        table = np.array([names.setdefault(name, len(names)) for name in one.links.hosts])
        of_hosts.append(table[np.frombuffer(one.links.of_host, np.uint16)])
    if len(names) > _MAX_HOSTS:
        raise ValueError("more hosts than a batch holds")
    lines = b"\n".join([one.links.paths for one in sections]).split(b"\n")
    columns = zip(*[(one.prefixes, one.flags, one.scores, one.anchors) for _, one, _ in sections], strict=True)
    prefixes, flags, scores, anchors = (
        np.frombuffer(b"".join(column), np.uint8)[order].tobytes() for column in columns
    )
    bare = LinkBatch(
        tuple(names),
        b"\n".join([lines[at] for at in order.tolist()]),
        np.concatenate(of_hosts)[order].astype(np.uint16).tobytes(),
        prefixes=prefixes,
        flags=flags,
        scores=scores,
        anchors=anchors,
    )
    sizes = np.bincount(page_of_link, minlength=len(pages)).tolist()
    parts = completed(bare, derive).parts(sizes)
    return tuple([FoundLinks(page, links) for page, links, size in zip(pages, parts, sizes, strict=True) if size])


@lru_cache(maxsize=1 << 10, typed=True)
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
    if payload is not None and payload.startswith(PICKLED):
        raise ValueError("a pickle")
    return Mention(target, distance, rank, 0, payload, tail.take(of_salt), redirects)


def _check_ranked(distance: int, rank: int) -> None:
    whole = type(distance) is int and type(rank) is int
    if not whole or not 0 <= distance <= _MAX_DISTANCE or not SEED_RANK <= rank <= LAST_RANK:
        raise ValueError("a distance or a rank that is none")
