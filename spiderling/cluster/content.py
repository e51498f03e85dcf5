"""What a shard says to others: links, single URLs and digests; gathered, as the bytes of a message, and sealed.

A message is one zstd frame of sections.  A section is what a shard found between two checkpoints: a head in JSON, and
a tail of columns.  It says what was found; what follows from a URL (hashes, words, form) the receiver computes, so it
is neither carried nor believed.  The links stand in the order of their pages.  Pages that no strategy can tell apart
(same distance, end, rank, language; badness to a tenth) count as one, over all sections of a message: the receiver
puts their links together, since each call of its frontier costs as much as some links.

Links go to the shard that owns their hosts.  Digests of texts go to others, so that what one has kept is a duplicate
there, and mirrors are found.
"""

from __future__ import annotations

import hmac
import json
import math
import struct
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.files import frame_packer, unpack_frame, zstd
from spiderling.base.link_batch import MAX_HOST, NONE, Derive, LinkBatch, completed
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize, owner_of
from spiderling.corpus.duplicates import NO_HASHES, Hashes
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.hosts import LAST_RANK, SEED_RANK
from spiderling.frontier.storage.seen import KeyTable
from spiderling.frontier.strategy import FarHost, LinkingPage

VERSION = 1  # version of the wire; shards of different versions never work together
CRAWL_ID_BYTES = 16
CODE_BYTES = 16  # chosen: 128 bits, which nobody guesses
_MAX_KEY_BYTES = 64  # the longest key of BLAKE2b


class Seal:
    """Seals and opens what shards write into Redis for each other.

    Whoever can write to Redis can write anything there.  So each value ends with a keyed hash (BLAKE2b, RFC 7693) of
    all that it says and of its place: the key under which it stands, as in ``lease:3``, and behind a space the field or
    entry there.  A value without the right code counts as none.  Repeated messages are known by their numbers
    (`ShardExchange.deliver`), those of another crawl by the crawl's id.
    """

    def __init__(self, crawl_id: bytes, key: bytes, report: Callable[[str], None] = lambda key: None) -> None:
        """*key*: the content of the key file; b'': the code guards against damage alone.

        *report* is called with each key in Redis under which something else was found.
        """
        assert len(crawl_id) == CRAWL_ID_BYTES
        self._report = report
        self._crawl = f"spiderling:{crawl_id.hex()}"
        self._key = blake2b(key, digest_size=_MAX_KEY_BYTES).digest() if key else b""

    def key(self, *parts: str | int) -> str:
        """The key in Redis that ends with *parts*."""
        return ":".join([self._crawl, *map(str, parts)])

    def seal(self, place: str, content: bytes) -> bytes:
        """*content* as bytes for Redis."""
        return content + self._code(place, content)

    def open(self, place: str, data: bytes | None) -> bytes | None:
        """The content of *data*, which was found at *place*; None if no shard of this crawl has written that there."""
        if data is None:
            return None
        content = data[:-CODE_BYTES]
        if hmac.compare_digest(data[-CODE_BYTES:], self._code(place, content)):
            return content
        self._report(self.key(place.partition(" ")[0]))
        return None

    def seal_json(self, place: str, value: object) -> bytes:
        return self.seal(place, json.dumps(value).encode())

    def open_json(self, place: str, data: bytes | None) -> Any:
        """The value in *data*; None if there is none that can be believed."""
        with suppress(ValueError):
            return json.loads(self.open(place, data) or b"null")
        return None

    def _code(self, place: str, content: bytes) -> bytes:
        key_here = blake2b(self.key(place).encode(), key=self._key).digest()
        return blake2b(content, key=key_here, digest_size=CODE_BYTES).digest()


MAX_PLAIN_BYTES = 16 << 20
"""The longest message before compression.  `Gathering` stays far below it."""
_LEVEL = 1  # level of zstd; chosen: level 3 saves a twentieth of the bytes
_pack = frame_packer(_LEVEL, has_checksum=False)  # the event loop alone uses it
_MAX_DISTANCE = 0xFFFF
_LENGTHS = struct.Struct("!II")
_COLUMNS = {"of_host": 2, "prefixes": 1, "flags": 1, "scores": 1, "anchors": 1}
"""The columns that are carried beside the paths, with their bytes a link."""
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error)

Places = NDArray[np.int64]


class Texts(NamedTuple):
    """What shards tell each other of their texts: 64-bit digests."""

    digests: array[int]  # signed, of pages and texts that were kept (`Outcome.digests`)
    paragraphs: Hashes = NO_HASHES  # of the paragraphs of those that were new (`NearDuplicates.settle`)
    visits: Hashes = NO_HASHES  # two for each page that may tell a mirror (`Visit.keys`)


NO_TEXTS = Texts(array("q"))


def section(
    pages: Sequence[tuple[LinkingPage, int]], links: LinkBatch, mentions: Sequence[Mention], texts: Texts = NO_TEXTS
) -> bytes:
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
    columns = [column.tobytes() for column in texts]
    tail += columns
    values = [abouts, links.hosts, len(links.paths), singles, *map(len, columns)]
    head = json.dumps(values, separators=(",", ":")).encode()
    return b"".join([_LENGTHS.pack(len(head), sum(map(len, tail))), head, *tail])


def pack(sections: Iterable[bytes]) -> bytes:
    return _pack(b"".join(sections))


class _Section(NamedTuple):
    """A section as it was read."""

    pages: list[tuple[tuple[Any, ...], int]]  # the head of each page, and its number of links
    links: LinkBatch  # without the columns that follow from the URLs
    mentions: list[Mention]
    texts: Texts


class Content(NamedTuple):
    """What a message holds."""

    links: list[tuple[LinkingPage, LinkBatch]]  # by pages that no strategy can tell apart
    mentions: list[Mention]
    texts: Texts


def unpack(message: bytes, derive: Derive | None = None) -> Content:
    """The content of *message*.

    *derive* may be a faster `derived` of link_batch.py.  Raises ValueError for what no shard can have sent.
    """
    try:
        sections = list(_sections(_Reader(unpack_frame(message, MAX_PLAIN_BYTES))))
        links = _join([one for one in sections if one.links.size], derive)
    except (*_UNREADABLE, zstd.ZstdError) as error:
        raise ValueError(f"a message that cannot be read: {error!r:.200}") from error
    digests = array("q", chain.from_iterable([one.texts.digests for one in sections]))
    paragraphs, visits = (np.concatenate([NO_HASHES, *[one.texts[at] for one in sections]]) for at in (1, 2))
    mentions = [mention for one in sections for mention in one.mentions]
    return Content(links, mentions, Texts(digests, paragraphs, visits))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        taken = self.data[self.at : self.at + length]
        if length < 0 or len(taken) < length:
            raise ValueError("a section is cut off")
        self.at += length
        return taken


def _sections(reader: _Reader) -> Iterator[_Section]:
    while reader.at < len(reader.data):
        head, tail = _LENGTHS.unpack(reader.take(_LENGTHS.size))
        end = reader.at + head + tail
        abouts, hosts, length, mentions, *of_texts = json.loads(reader.take(head))
        pages = [(tuple(about), number) for *about, number in abouts]
        if any(type(number) is not int or number < 0 for _, number in pages):
            raise ValueError("a page with links that cannot be counted")
        paths = reader.take(length)
        size = sum(number for _, number in pages)
        of_host, prefixes, flags, scores, anchors = (reader.take(width * size) for width in _COLUMNS.values())
        if size and paths.count(b"\n") != size - 1:
            raise ValueError("more or fewer paths than links")
        links = LinkBatch(tuple(hosts), paths, of_host, prefixes=prefixes, flags=flags, scores=scores, anchors=anchors)
        singles = [_mention(mention, reader) for mention in mentions]
        digests, *others = map(reader.take, of_texts or (0, 0, 0))  # messages of version 1.0 have none
        paragraphs, visits = (np.frombuffer(column, np.uint64) for column in others)
        if len(visits) % 2:
            raise ValueError("half a visit")
        yield _Section(pages, links, singles, Texts(array("q", digests), paragraphs, visits))
        if reader.at != end:
            raise ValueError("a section says more or less than its head announces")


def _join(sections: Sequence[_Section], derive: Derive | None) -> list[tuple[LinkingPage, LinkBatch]]:
    """The links of *sections* by their pages, in the order in which a page comes first."""
    if not sections:
        return []
    numbers: dict[tuple[Any, ...], int] = {}
    of_page = [numbers.setdefault(about, len(numbers)) for one in sections for about, _ in one.pages]
    pages = [_page(*about) for about in numbers]
    counts = [number for one in sections for _, number in one.pages]
    page_of_link = np.repeat(of_page, counts)
    order = np.argsort(page_of_link, kind="stable")
    batches = [one.links for one in sections]
    bare = _combine(batches, _paths(batches, order), order)
    sizes = np.bincount(page_of_link, minlength=len(pages)).tolist()
    parts = completed(bare, derive).parts(sizes)
    return [(page, links) for page, links, size in zip(pages, parts, sizes, strict=True) if size]


def _paths(batches: Iterable[LinkBatch], places: Places) -> list[bytes]:
    """The paths of the links at *places* among those of all *batches*."""
    lines = b"\n".join([one.paths for one in batches]).split(b"\n")
    return [lines[place] for place in places.tolist()]


def _combine(batches: Sequence[LinkBatch], paths: Sequence[bytes], places: Places) -> LinkBatch:
    """The links at *places* among those of all *batches*, with their *paths*; without what URLs say themselves."""
    every_host = list(chain.from_iterable([one.hosts for one in batches]))
    first_hosts = np.repeat(_starts([len(one.hosts) for one in batches]), [one.size for one in batches])
    numbers = (first_hosts + np.frombuffer(b"".join([one.of_host for one in batches]), np.uint16))[places]
    if len(every_host) > MAX_HOST:  # of which few may be linked
        linked, numbers = np.unique(numbers, return_inverse=True)
        every_host = [every_host[place] for place in linked.tolist()]
    names = {name: number for number, name in enumerate(dict.fromkeys(every_host))}
    table = np.array(list(map(names.__getitem__, every_host)))
    if len(names) > MAX_HOST + 1:
        raise ValueError("more hosts than a batch holds")
    columns = zip(*[(one.prefixes, one.flags, one.scores, one.anchors) for one in batches], strict=True)
    prefixes, flags, scores, anchors = (
        np.frombuffer(b"".join(column), np.uint8)[places].tobytes() for column in columns
    )
    return LinkBatch(
        tuple(names),
        b"\n".join(paths),
        table[numbers].astype(np.uint16).tobytes(),
        prefixes=prefixes,
        flags=flags,
        scores=scores,
        anchors=anchors,
    )


def _starts(sizes: list[int]) -> Places:
    """Where each of as many runs of *sizes* begins."""
    return np.cumsum([0, *sizes[:-1]])


@lru_cache(maxsize=1 << 10, typed=True)
def _page(distance: int, reason: str, rank: int, relevant: bool, language: str, badness: float) -> LinkingPage:
    _check_ranked(distance, rank)
    if type(relevant) is not bool or type(language) is not str or not math.isfinite(badness):
        raise ValueError("a page that is none")
    return LinkingPage(FarHost(distance), Reason[reason], rank, relevant, language, badness)


def _mention(values: list[Any], reader: _Reader) -> Mention:
    url, distance, rank, redirects, length, of_salt = values
    target = canonicalize(url)
    if target is None or target.url != url or type(redirects) is not int or not 0 <= redirects <= _MAX_DISTANCE:
        raise ValueError("a mention of no URL")
    _check_ranked(distance, rank)
    payload = None if length is None else reader.take(length)
    if payload is not None and payload.startswith(PICKLED):
        raise ValueError("a pickle")
    return Mention(target, distance, rank, 0, payload, reader.take(of_salt), redirects)


def _check_ranked(distance: int, rank: int) -> None:
    whole = type(distance) is int and type(rank) is int
    if not whole or not 0 <= distance <= _MAX_DISTANCE or not SEED_RANK <= rank <= LAST_RANK:
        raise ValueError("a distance or a rank that is none")


MAX_SECTION_LINKS = 1000  # links of one section: with the longest URLs they stay far below MAX_PLAIN_BYTES
MAX_URL_BYTES = 8192  # longer paths are left out, since they are refused (frontier/admission.py)
REMEMBERED = 1_000_000  # links that are known as sent, at most; chosen: 12 MB
KNOWN_HOSTS = 200_000  # hosts whose distance is remembered, at most; chosen: 20 MB
_TAIL_BITS = 24  # bits of a host name's hash below the 40 of a URL's hash, in a key of the links that were sent
_TAIL_MASK = (1 << _TAIL_BITS) - 1
_KEY_MASK = (1 << 63) - 1  # so many bits of it, since a KeyTable holds signed keys

TOLD = 15
"""Other shards that a shard tells of its texts, those that follow it.  Chosen: their digests then take as much
memory of each as its own text does, and no more in a crawl of more shards (docs/shards.md)."""

_Found = tuple[LinkBatch, NDArray[np.uint16], Places]
"""Links of a page, the owner of each, and the places of those to be sent."""


class Gathering:
    """What a shard has for others, until the next checkpoint: links, single URLs, digests of texts.

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
        self._texts: list[Texts] = []
        self._visits = array("Q")
        self._told = [(me + step) % shards for step in range(1, min(shards, 1 + TOLD))]

    def owner(self, name: str) -> int:
        return owner_of(name, self._shards)

    def __bool__(self) -> bool:
        return bool(self._links or self._mentions or self._texts or self._visits)

    # -- in

    def give(self, mention: Mention) -> None:
        """Take a single URL of a foreign host."""
        self._mentions[self.owner(mention.target.host)].append(mention)

    def tell_kept(self, digests: Iterable[int], paragraphs: Hashes) -> None:
        """Take the digests of a document that was kept, and the least shingles of its new paragraphs."""
        self._texts.append(Texts(array("q", digests), paragraphs))

    def tell_visit(self, host: int, page: int) -> None:
        """Take the keys of a page (`Visit.keys`)."""
        self._visits.extend((host, page))

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
        if len(self._distances) >= KNOWN_HOSTS:
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
        if len(self._sent) > REMEMBERED // 2:
            self._sent_before = self._sent
            self._sent = KeyTable()
        return dict.fromkeys(new)

    # -- out

    def sections(self) -> Iterator[tuple[int, bytes, int]]:
        """(Shard, section, links in it) of what has gathered, which is forgotten then."""
        links, self._links = self._links, defaultdict(list)
        mentions, self._mentions = self._mentions, defaultdict(list)
        if links:
            yield from _by_shard(links)
        for shard, some in mentions.items():
            for mention in some:
                yield shard, section((), NONE, (mention,)), 1
        texts, self._texts = self._texts, []
        if self._visits:
            texts.append(NO_TEXTS._replace(visits=np.array(self._visits, np.uint64)))
            self._visits = array("Q")
        for one in texts:
            told = section((), NONE, (), one)
            yield from [(shard, told, 0) for shard in self._told]


def _alike(page: LinkingPage) -> LinkingPage:
    """What a strategy reads of *page*; badness to a tenth."""
    badness = round(page.badness, 1)
    return LinkingPage(FarHost(page.host.distance), page.reason, page.rank, page.relevant, page.language, badness)


def _by_shard(found: dict[LinkingPage, list[_Found]]) -> Iterator[tuple[int, bytes, int]]:
    """(Shard, section, links in it) of all that was *found*."""
    every_page = list(found)
    batches = [links for some in found.values() for links, _, _ in some]
    of_page = np.repeat(np.arange(len(found)), [sum(len(places) for *_, places in some) for some in found.values()])
    starts = _starts([links.size for links in batches]).tolist()
    every = chain.from_iterable(found.values())
    at = np.concatenate([places + start for (_, _, places), start in zip(every, starts, strict=True)])
    owners = np.concatenate([owner_of_link for some in found.values() for _, owner_of_link, _ in some])[at]
    order = np.argsort(owners, kind="stable")
    paths = _paths(batches, at[order])
    if max(map(len, paths)) > MAX_URL_BYTES:
        short = [place for place, path in enumerate(paths) if len(path) <= MAX_URL_BYTES]
        paths = [paths[place] for place in short]
        order = order[short]
    for start in range(0, len(order), MAX_HOST):
        some = order[start : start + MAX_HOST]  # which name no more hosts than a batch holds
        sizes = [(shard, min(MAX_SECTION_LINKS, links - first))
                 for shard, links in Counter(owners[some].tolist()).items()
                 for first in range(0, links, MAX_SECTION_LINKS)]  # fmt: skip
        batch = _combine(batches, paths[start : start + MAX_HOST], at[some])
        pages = of_page[some].tolist()
        end = 0
        for (shard, size), part in zip(sizes, batch.parts(size for _, size in sizes), strict=True):
            counted = Counter(pages[end : end + size])
            yield shard, section([(every_page[page], links) for page, links in counted.items()], part, ()), size
            end += size
