"""The links and single URLs for other shards: gathered, as the bytes of a message, and sealed.

A message is one zstd frame of sections.  A section is what a shard found between two checkpoints: a head in JSON, and
a tail of columns.  It says what was found; what follows from a URL (hashes, words, form) the receiver computes, so it
is neither carried nor believed.  The links stand in the order of their pages.  Pages that no strategy can tell apart
(same distance, end, rank, language; badness to a tenth) count as one, over all sections of a message: the receiver
puts their links together, since each call of its frontier costs as much as some links.
"""

from __future__ import annotations

import hmac
import json
import math
import struct
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.files import frame_packer, unpack_frame, zstd
from spiderling.base.link_batch import NONE, Derive, LinkBatch, completed
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, owner_of
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import LAST_RANK, SEED_RANK
from spiderling.frontier.storage.seen import KeyTable
from spiderling.frontier.strategy import FarHost, LinkingPage

VERSION = 1  # version of the wire; shards of different versions never work together
CRAWL_ID_BYTES = 16
CODE_BYTES = 16  # chosen: 128 bits, which nobody guesses
_MAX_KEY_BYTES = 64  # the longest key of BLAKE2b
_PLACE = struct.Struct("!BB16sHHIQ")


class Kind(IntEnum):
    """What the content is."""

    MESSAGE = 1
    RECEIPT = 2
    STATUS = 3
    END = 4  # that the crawl is over, whoever says it
    FILES = 5  # the site files that a shard wants of others
    FILE = 6  # one of them
    TOTALS = 7  # what a shard has done, whoever says it
    CONTROL = 8  # the text of control.yaml
    CLAIM = 9  # machine and JOBDIR of a shard, whoever says it
    MAP = 10  # the shard map, whoever says it


class Place(NamedTuple):
    """Where a message stands; receipts and statuses have no receiver and no number."""

    kind: Kind
    sender: int
    receiver: int = 0
    epoch: int = 1  # how often the sender's shard was taken over, from 1 on; always 1 so far
    number: int = 0


class Refused(ValueError):
    """Bytes that are no message of this crawl, or not at this place."""


class Seal:
    """Seals and opens the messages of one crawl.

    Whoever can write to Redis can write anything there.  So each message ends with a keyed hash (BLAKE2b, RFC 7693) of
    all that it says and of where it stands; one without the right code is not read any further.  Repeated messages are
    known by their numbers (`Exchange.deliver`), those of another crawl by the crawl's id.
    """

    def __init__(self, crawl_id: bytes, key: bytes) -> None:
        """*key*: the content of the key file; b'': the code guards against damage alone."""
        assert len(crawl_id) == CRAWL_ID_BYTES
        self.refused: set[Place] = set()
        """Where something was found that is no message of this crawl; who tells it empties this."""
        self._crawl_id = crawl_id
        self._key = blake2b(key, digest_size=_MAX_KEY_BYTES).digest() if key else b""

    def seal(self, place: Place, content: bytes) -> bytes:
        """*content* as bytes for Redis."""
        return bytes([VERSION]) + content + self._code(place, content)

    def open(self, place: Place, data: bytes) -> bytes:
        """The content of *data*, which was found at *place*; raises Refused."""
        content = data[1:-CODE_BYTES]
        is_ours = len(data) > CODE_BYTES and hmac.compare_digest(data[-CODE_BYTES:], self._code(place, content))
        if is_ours and data[:1] == bytes([VERSION]):
            return content
        self.refused.add(place)
        if is_ours:
            raise Refused(f"a message of version {data[0]}, not {VERSION}")
        raise Refused("a message without the code of this crawl's key")

    def _code(self, place: Place, content: bytes) -> bytes:
        code = blake2b(
            _PLACE.pack(VERSION, place.kind, self._crawl_id, *place[1:]), key=self._key, digest_size=CODE_BYTES
        )
        code.update(content)
        return code.digest()


MAX_PLAIN_BYTES = 16 << 20
"""The longest message before compression.  `Gathering` stays far below it."""
_LEVEL = 1  # level of zstd; chosen: level 3 saves a twentieth of the bytes
_pack = frame_packer(_LEVEL, has_checksum=False)  # the event loop alone uses it
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
    """What a message holds."""

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
    singles: list[object] = []
    for mention in mentions:
        length = None if mention.payload is None else len(mention.payload)
        singles.append(
            [mention.target.url, mention.distance, mention.rank, mention.redirects, length, len(mention.salt)]
        )
        tail += [mention.payload or b"", mention.salt]
    head = json.dumps([abouts, links.hosts, len(links.paths), singles], separators=(",", ":")).encode()
    return b"".join([_LENGTHS.pack(len(head), sum(map(len, tail))), head, *tail])


def pack(sections: Iterable[bytes]) -> bytes:
    return _pack(b"".join(sections))


class _Section(NamedTuple):
    """A section as it was read."""

    pages: list[tuple[tuple[Any, ...], int]]  # the head of each page, and its number of links
    links: LinkBatch  # without the columns that follow from the URLs
    mentions: list[Mention]


def unpack(message: bytes, derive: Derive | None = None) -> Content:
    """The content of *message*; raises ValueError for what no shard can have sent.

    *derive* may be a faster `derived` of link_batch.py.
    """
    try:
        sections = [_read(head, _Tail(tail)) for head, tail in _sections(unpack_frame(message, MAX_PLAIN_BYTES))]
        links = _joined([one for one in sections if one.links.size], derive)
    except (*_UNREADABLE, zstd.ZstdError) as error:
        raise ValueError(f"a message that cannot be read: {error!r:.200}") from error
    return Content(links, tuple(mention for one in sections for mention in one.mentions))


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


MAX_SECTION_LINKS = 1000  # links of one section: with the longest URLs they stay far below MAX_PLAIN_BYTES
MAX_URL_BYTES = 8192  # longer paths are left out, since they are refused (frontier/admission.py)
_REMEMBERED = 1_000_000  # links that are known as sent, at most; chosen: 12 MB
_KNOWN_HOSTS = 200_000  # hosts whose distance is remembered, at most; chosen: 20 MB
_TAIL_BITS = 24  # bits of a host name's hash below the 40 of a URL's hash, in a key of the links that were sent
_TAIL_MASK = (1 << _TAIL_BITS) - 1
_KEY_MASK = (1 << 64) - 1

Places = NDArray[np.int64]
_Found = tuple[LinkBatch, NDArray[np.uint16], Places]
"""Links of a page, the owner of each, and the places of those to be sent."""


class Gathering:
    """The links and single URLs of a shard that lead to hosts of others, until the next checkpoint.

    A link that was sent lately is not sent again, unless it shortens the distance of its host.  The memory for that is
    bounded and ends with the process: the receiver knows what it has seen.
    """

    def __init__(self, me: int, shards: int) -> None:
        self._me = me
        self._shards = shards
        self._distances: dict[str, int] = {}
        """Name of a foreign host -> the smallest distance of the pages whose links to it were sent."""
        self._sent = KeyTable()
        self._sent_before = KeyTable()
        self._links: defaultdict[LinkingPage, list[_Found]] = defaultdict(list)
        self._mentions: defaultdict[int, list[Mention]] = defaultdict(list)

    def owner(self, name: str) -> int:
        return owner_of(name, self._shards)

    def __bool__(self) -> bool:
        return bool(self._links or self._mentions)

    # -- in

    def give(self, mention: Mention) -> None:
        """Take a single URL of a foreign host."""
        self._mentions[self.owner(mention.target.host)].append(mention)

    def keep_own(self, page: LinkingPage, links: LinkBatch) -> Places | None:
        """Take the links to foreign hosts; returns the places of the others, None if that is all."""
        owners = array("H", links.owners)
        if max(owners, default=self._shards) >= self._shards:  # nobody has looked, or a worker has made them up
            owners = array("H", map(self.owner, links.hosts))
        if owners.count(self._me) == len(owners):
            return None
        of_host = np.frombuffer(links.of_host, np.uint16)
        owner_of_link = np.array(owners)[of_host]
        is_own = owner_of_link == self._me
        places = self._not_sent(page, links, of_host, np.flatnonzero(~is_own))
        if len(places):
            self._links[_alike(page)].append((links, owner_of_link, places))
        return np.flatnonzero(is_own)

    def _not_sent(self, page: LinkingPage, links: LinkBatch, of_host: NDArray[np.uint16], places: Places) -> Places:
        """Those of *places* that were not sent lately, or not from as near; the first of equal links.

        A page has a few dozen of them, for which Python is faster than arrays.
        """
        numbers = of_host[places].tolist()
        hosts = {number: links.hosts[number] for number in numbers}
        tails = {number: xxhash.xxh3_64_intdigest(name.encode()) & _TAIL_MASK for number, name in hosts.items()}
        hashes = np.frombuffer(links.hashes, np.uint64)[places].tolist()
        found: dict[int, int] = {}
        for at, (digest, number) in enumerate(zip(hashes, numbers, strict=True)):
            found.setdefault((digest << _TAIL_BITS | tails[number]) & _KEY_MASK, at)
        new = self._remember(list(found))
        nearer = {number for number, name in hosts.items() if self._is_nearer(name, page.host.distance)}
        if nearer:
            return places[[at for key, at in found.items() if key in new or numbers[at] in nearer]]
        return places[[found[key] for key in new]]

    def _is_nearer(self, name: str, distance: int) -> bool:
        known = self._distances.get(name)
        if known is not None and known <= distance:
            return False
        if len(self._distances) >= _KNOWN_HOSTS:
            self._distances.clear()
        self._distances[name] = distance
        return known is not None

    def _remember(self, keys: list[int]) -> dict[int, None]:
        """Those of different *keys* that were not known; from now on they are."""
        new = keys
        if len(self._sent_before):
            new = [key for key in keys if key not in self._sent_before]
        for at in reversed(self._sent.add_all(new)):
            del new[at]
        if len(self._sent) > _REMEMBERED // 2:
            self._sent_before = self._sent
            self._sent = KeyTable()
        return dict.fromkeys(new)

    # -- out

    def sections(self) -> Iterator[tuple[int, bytes, int]]:
        """(Shard, section, links in it) of what has gathered, which is forgotten then."""
        links = self._links
        mentions = self._mentions
        self._links = defaultdict(list)
        self._mentions = defaultdict(list)
        for shard, pages, batch in _by_shard(links) if links else ():
            yield shard, section(pages, batch, ()), batch.size
        for shard, some in mentions.items():
            for mention in some:
                yield shard, section((), NONE, (mention,)), 1


def _alike(page: LinkingPage) -> LinkingPage:
    """What a strategy reads of *page*; badness to a tenth."""
    badness = round(page.badness, 1)
    return LinkingPage(FarHost(page.host.distance), page.reason, page.rank, page.relevant, page.language, badness)


class _Columns(NamedTuple):
    """Links to be sent, by the shards that they go to; of each shard, in the order of their pages."""

    owners: NDArray[np.uint16]
    of_page: Places  # place of each link's page among the pages that are alike
    of_host: Places  # place of each link's host in ``names``
    names: list[str]
    paths: list[bytes]
    cues: list[bytes]  # prefixes, flags, scores, anchors


def _columns(found: dict[LinkingPage, list[_Found]]) -> _Columns:
    batches = [one for some in found.values() for one in some]
    of_page = np.repeat(np.arange(len(found)), [sum(len(places) for *_, places in some) for some in found.values()])
    # all links of all pages one behind the other, and the places of those to be sent
    sizes = [links.size for links, _, _ in batches]
    starts = _starts(sizes)
    at = np.concatenate([places + start for (_, _, places), start in zip(batches, starts.tolist(), strict=True)])
    owners = np.concatenate([owner_of_link for _, owner_of_link, _ in batches])[at]
    order = np.argsort(owners, kind="stable")
    every_path = b"\n".join([links.paths for links, _, _ in batches]).split(b"\n")
    paths = [every_path[place] for place in at[order].tolist()]
    if max(map(len, paths)) > MAX_URL_BYTES:
        short = [place for place, path in enumerate(paths) if len(path) <= MAX_URL_BYTES]
        paths = [paths[place] for place in short]
        order = order[short]
    at = at[order]
    every_host = list(chain.from_iterable([links.hosts for links, _, _ in batches]))
    first_hosts = np.repeat(_starts([len(links.hosts) for links, _, _ in batches]), sizes)
    of_host = np.frombuffer(b"".join([links.of_host for links, _, _ in batches]), np.uint16)
    linked, numbers = np.unique(of_host[at] + first_hosts[at], return_inverse=True)
    names: dict[str, int] = {}
    table = np.array([names.setdefault(every_host[place], len(names)) for place in linked.tolist()], np.int64)
    cues = zip(*((links.prefixes, links.flags, links.scores, links.anchors) for links, _, _ in batches), strict=True)
    taken = [np.frombuffer(b"".join(column), np.uint8)[at].tobytes() for column in cues]
    return _Columns(owners[order], of_page[order], table[numbers], list(names), paths, taken)


def _by_shard(
    found: dict[LinkingPage, list[_Found]],
) -> Iterator[tuple[int, list[tuple[LinkingPage, int]], LinkBatch]]:
    """(Shard, pages and how many links each has, their links) for sections.

    The links lack the columns that follow from their URLs.
    """
    owners, of_page, of_host, names, paths, cues = _columns(found)
    if not paths:
        return
    shards, ends = _section_ends(owners)
    section_of_link = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    # the hosts of each section, and the place of each link's host among them
    used, numbers = np.unique(section_of_link * len(names) + of_host, return_inverse=True)
    first_hosts = np.searchsorted(used, np.arange(len(ends) + 1) * len(names))
    hosts = [names[number] for number in (used % len(names)).tolist()]
    host_numbers = (numbers - first_hosts[section_of_link]).astype(np.uint16).tobytes()
    # its pages, and how many links each has
    page_of_link = section_of_link * len(found) + of_page
    firsts = np.flatnonzero(np.diff(page_of_link, prepend=-1))
    every_page = list(found)
    pages = [every_page[number] for number in of_page[firsts].tolist()]
    counts = np.diff(firsts, append=len(paths)).tolist()
    page_ends = np.searchsorted(firsts, ends).tolist()
    start = page_start = 0
    for number, (shard, end, page_end) in enumerate(zip(shards, ends, page_ends, strict=True)):
        prefixes, flags, scores, anchors = (column[start:end] for column in cues)
        batch = LinkBatch(
            tuple(hosts[first_hosts[number] : first_hosts[number + 1]]),
            b"\n".join(paths[start:end]),
            host_numbers[2 * start : 2 * end],
            prefixes=prefixes,
            flags=flags,
            scores=scores,
            anchors=anchors,
        )
        yield shard, list(zip(pages[page_start:page_end], counts[page_start:page_end], strict=True)), batch
        start = end
        page_start = page_end


def _starts(sizes: list[int]) -> Places:
    """Where each of as many runs of *sizes* begins."""
    return np.cumsum([0, *sizes[:-1]])


def _section_ends(owners: NDArray[np.uint16]) -> tuple[list[int], list[int]]:
    """The shard of each section, and where it ends among links whose *owners* are sorted."""
    shards, ends = [], []
    end = 0
    for shard, number in zip(*(column.tolist() for column in np.unique(owners, return_counts=True)), strict=True):
        start = end
        end += number
        for section_start in range(start, end, MAX_SECTION_LINKS):
            shards.append(shard)
            ends.append(min(section_start + MAX_SECTION_LINKS, end))
    return shards, ends
