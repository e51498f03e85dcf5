"""The links of one page as columns: a text worker makes them, the frontier takes them in together.

The worker computes canonical form, host name, hash and form of each URL once, off the event loop.  A batch of any size
travels as a few byte strings.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from spiderling.base import media_types
from spiderling.base.urls import (
    HASH_BITS,
    OF_NAME,
    OF_PATH,
    PREFIXES,
    CanonicalUrl,
    assemble,
    canonicalize,
    name_of,
    owner_of,
    prefix_of,
    section_of,
    url_hash,
    words_of_name,
    words_of_path,
)

TEXT_BLOCK = 1
NOFOLLOW = 2
WANTED = 4
FOREIGN = 8
"""Flags of a link: its block was classified as running text; it has rel=nofollow; hreflang, of the link or of an
alternate version of the page, names a wanted language; it names another one."""
MAX_REPEATED_SEGMENTS = 3  # times that a path may hold one segment (chosen); a path with more is repetitive
NO_TEXT = 1  # form of a path whose suffix names a file type without text
REPETITIVE = 0x80  # bit of a form: the path is repetitive, as of relative links that extend it without end
KINDS = (None, None, *media_types.FILE_TYPES)  # lower bits of a form -> the kind of document; None for 0 and NO_TEXT
_NO_TEXT_SUFFIXES = (
    "7z aac apk avi avif bin bmp bz2 css csv dat deb dmg doc eot exe flac flv gif gz ico ics img iso jar jpg jpeg"
    " js json m3u m3u8 m4a m4v mid mkv mov mp3 mp4 mpg mpeg msi ogg ogv otf png ppt pptx ppts ps psd rar rpm rss rtf"
    " svg swf tar tgz tif tiff torrent ttf wasm wav webm webp wma wmv woff woff2 xls xlsx xml xz zip zst"
)
FORMS = dict.fromkeys(_NO_TEXT_SUFFIXES.split(), NO_TEXT)
FORMS |= {kind: form for form, kind in enumerate(KINDS) if kind is not None}
_MAX_BYTE = 255
MAX_HOST = 0xFFFF  # last place of a host that two bytes can say
WORDS = OF_NAME + OF_PATH  # hashes of words that a batch holds for each URL


class Link(NamedTuple):
    """A link of a page, on its way into a batch."""

    url: str
    text_block: bool = False  # whether the block that encloses the link was classified as running text
    score: float = 0.0  # probability of running text; 0: ``text_block`` is certain
    anchor: int = 0  # characters of the link's text
    nofollow: bool = False
    said: int = 0  # by hreflang: WANTED, FOREIGN or 0


def form_of(path: str) -> tuple[int, int]:
    """The form and the depth of *path*, the path of a URL with its query.

    The form is a place in KINDS, by the suffix, or NO_TEXT, or 0; REPETITIVE is added for a repetitive path.  The depth
    is the number of slashes, 255 at most.
    """
    address = path.partition("?")[0]
    depth = address.count("/")
    kind = FORMS.get(address.rpartition(".")[2].lower(), 0)
    if depth > MAX_REPEATED_SEGMENTS and _is_repetitive(address):
        kind |= REPETITIVE
    return kind, depth if depth < _MAX_BYTE else _MAX_BYTE


def _is_repetitive(path: str) -> bool:
    """Whether one word is a segment of *path* more than MAX_REPEATED_SEGMENTS times."""
    every = path.split("/")
    if len(every) - len(set(every)) < MAX_REPEATED_SEGMENTS:  # true of nearly all paths
        return False
    segments = Counter(segment for segment in every if len(segment) > 2 and not segment.isdigit())
    return bool(segments) and max(segments.values()) > MAX_REPEATED_SEGMENTS


Derive = Callable[
    [Iterable[str], Sequence[str], Sequence[bytes], Iterable[tuple[int, ...]]], tuple[bytes, bytes, bytes, bytes, bytes]
]
"""Type of `derived`."""
Other = tuple[str, str, int, int, int]
"""Canonical URL, name of its host record, flags, score and characters of the text, both 0 to 255."""


class LinkBatch(NamedTuple):
    """Links in the order of the page.  A field of bytes is a column: one byte, or as many as it says, for each link."""

    hosts: tuple[str, ...] = ()  # names of the host records, each once
    paths: bytes = b""  # paths with queries, one a line, in canonical form
    of_host: bytes = b""  # place of each link's host in ``hosts``; two bytes
    hashes: bytes = b""  # `spiderling.base.urls.url_hash` of each URL; eight bytes
    sections: bytes = b""  # `section_of` of each path; four bytes
    words: bytes = b""  # WORDS hashes of the words of each URL (urls.py), of two bytes each
    prefixes: bytes = b""
    """Place of each URL's prefix in `spiderling.base.urls.PREFIXES`; prefix + host + path is the whole URL."""
    forms: bytes = b""
    depths: bytes = b""
    """Form and depth of each path, by ``form_of``."""
    flags: bytes = b""
    scores: bytes = b""  # probability that the enclosing block is running text, 0 to 255
    anchors: bytes = b""  # characters of each link's text, 255 at most
    others: tuple[Other, ...] = ()
    """Links that the columns cannot hold, such as one with a port that the host record folds away."""
    bad: int = 0  # number of links that cannot be fetched
    owners: bytes = b""  # shard that owns each of ``hosts`` (urls.py), two bytes; empty if nobody has looked

    @property
    def size(self) -> int:
        """Number of links in the columns."""
        return len(self.prefixes)

    @property
    def number(self) -> int:
        """Number of all links."""
        return self.size + len(self.others)

    def __reduce__(self) -> tuple[Callable[..., LinkBatch], tuple[object, ...]]:
        return received, tuple(self)

    def block(self, at: int) -> tuple[bool, float]:
        """Whether the link at place *at* stands in running text, and the probability."""
        return bool(self.flags[at] & TEXT_BLOCK), self.scores[at] / _MAX_BYTE

    def target(self, at: int) -> CanonicalUrl:
        """The link at the place *at*, as ``canonicalize`` gives it."""
        host = self.hosts[array("H", self.of_host)[at]]
        return assemble(self.prefixes[at], host, self.paths.split(b"\n")[at].decode("ascii"))

    def rows(self) -> Iterator[tuple[str, int, int]]:
        """Canonical URL, score (0 to 255) and characters of the text of each link."""
        heads = [PREFIXES[number] for number in self.prefixes]
        paths = self.paths.decode("ascii").split("\n")
        names = [self.hosts[number] for number in array("H", self.of_host)]
        urls = map("".join, zip(heads, names, paths, strict=False))  # without links, `paths` still is one empty line
        yield from zip(urls, self.scores, self.anchors, strict=True)
        yield from ((url, score, anchor) for url, _, _, score, anchor in self.others)

    def only(self, places: list[int], others: tuple[Other, ...]) -> LinkBatch:
        """A batch of the links at *places* and of *others* alone."""
        lines = self.paths.split(b"\n")
        columns = zip(self[2:-3], _WIDTHS, strict=True)
        kept = [np.frombuffer(column, f"V{width}")[places].tobytes() for column, width in columns]
        paths = b"\n".join([lines[at] for at in places])
        return LinkBatch._make((self.hosts, paths, *kept, others, self.bad, self.owners))

    def parts(self, sizes: Iterable[int]) -> Iterator[LinkBatch]:
        """The links in the columns as batches of *sizes*, each with its own hosts alone."""
        numbers = array("H", self.of_host)
        lines = self.paths.split(b"\n")
        end = 0
        for size in sizes:
            start = end
            end += size
            places = {number: place for place, number in enumerate(dict.fromkeys(numbers[start:end]))}
            hosts = tuple([self.hosts[number] for number in places])
            of_host = array("H", [places[number] for number in numbers[start:end]]).tobytes()
            columns = [c[start * w : end * w] for c, w in zip(self[3:-3], _WIDTHS[1:], strict=True)]
            yield LinkBatch._make((hosts, b"\n".join(lines[start:end]), of_host, *columns, (), 0, b""))

    def followed(self) -> LinkBatch:
        """The links without rel=nofollow."""
        if not self.others and len(self.flags.translate(None, _NOFOLLOWS)) == len(self.flags):
            return self
        places = [at for at, flags in enumerate(self.flags) if not flags & NOFOLLOW]
        others = tuple(other for other in self.others if not other[2] & NOFOLLOW)
        return self.only(places, others)


NONE = LinkBatch()
_NOFOLLOWS = bytes(flags for flags in range(256) if flags & NOFOLLOW)
_WIDTHS = (2, 8, 4, 2 * WORDS, 1, 1, 1, 1, 1, 1)  # bytes of one link in each column

_PREFIX_NUMBERS = bytes(range(len(PREFIXES)))


def batch_of(links: LinkBatch | Iterable[Link]) -> LinkBatch:
    return links if isinstance(links, LinkBatch) else gathered(links)


Gather = Callable[[Iterable[Link]], LinkBatch]  # type of `columns_of`


def gathered(links: Iterable[Link], shards: int = 1, gather: Gather | None = None) -> LinkBatch:
    """*links* as a batch; their URLs need not be canonical, and what is no URL is ``bad``.

    If the crawl has several *shards*, the owners of the hosts are looked up.  *gather* may be a faster `columns_of`.
    """
    batch = (gather or columns_of)(links)
    if shards == 1:
        return batch
    return batch._replace(owners=array("H", [owner_of(name, shards) for name in batch.hosts]).tobytes())


def columns_of(links: Iterable[Link]) -> LinkBatch:
    """*links* as a batch, without the owners of their hosts."""
    links = list(links)
    hosts: dict[str, int] = {}
    origins: dict[str, tuple[int | None, int, tuple[int, ...]]] = {}
    """Origin -> places of prefix and host, words of the name."""
    kept: list[Link] = []
    rows: list[tuple[str, str, int, int, tuple[int, ...]]] = []
    others: list[Other] = []
    bad = 0
    for link, target in zip(links, map(canonicalize, [link[0] for link in links]), strict=True):
        if target is None:
            bad += 1
            continue
        canonical, name, host, origin, path = target
        if origin not in origins:
            prefix = prefix_of(target)
            origins[origin] = prefix, hosts.setdefault(host, len(hosts)), words_of_name(name)
        prefix, number, of_name = origins[origin]
        if prefix is None or number > MAX_HOST or not path.isascii():
            others.append((canonical, host, *_cues(link)))
        else:
            kept.append(link)
            rows.append((canonical, path, prefix, number, of_name))
    if not rows:
        return NONE._replace(hosts=tuple(hosts), others=tuple(others), bad=bad)
    urls, paths, prefixes, of_host, of_names = zip(*rows, strict=True)
    text = "\n".join(paths).encode("ascii")
    hashes, sections, words, forms, depths = derived(urls, paths, text.split(b"\n"), of_names)
    flags, scores, anchors = map(bytes, zip(*map(_cues, kept), strict=True))
    head = tuple(hosts), text, array("H", of_host).tobytes(), hashes, sections, words, bytes(prefixes), forms, depths
    return LinkBatch(*head, flags, scores, anchors, tuple(others), bad)


def completed(bare: LinkBatch, derive: Derive | None = None) -> LinkBatch:
    """*bare* with the columns that follow from its URLs; raises ValueError or IndexError if those do not fit together.

    A message to another shard (cluster/content.py) leaves these columns out.  *derive* may be a faster `derived`.
    """
    if not bare.size:
        return received(*bare)
    paths = bare.paths.decode("ascii").split("\n")
    places = zip(bare.prefixes, array("H", bare.of_host), strict=True)
    origins = [PREFIXES[prefix] + bare.hosts[number] for prefix, number in places]
    words_of = {origin: _words_of_origin(origin) for origin in set(origins)}
    urls = map(str.__add__, origins, paths)
    names = [words_of[origin] for origin in origins]
    hashes, sections, words, forms, depths = (derive or derived)(urls, paths, bare.paths.split(b"\n"), names)
    whole = bare._replace(hashes=hashes, sections=sections, words=words, forms=forms, depths=depths)
    return received(*whole)


@lru_cache(maxsize=1 << 14)
def _words_of_origin(origin: str) -> tuple[int, ...]:
    return words_of_name(name_of(origin))


def derived(
    urls: Iterable[str], paths: Sequence[str], lines: Sequence[bytes], of_names: Iterable[tuple[int, ...]]
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Hashes, sections, words, forms, depths of *urls*; *paths* are theirs, *lines* the same as bytes."""
    words = chain.from_iterable(chain.from_iterable(zip(of_names, map(words_of_path, lines), strict=True)))
    forms, depths = zip(*map(form_of, paths), strict=True)
    wide = array("Q", map(url_hash, urls)), array("I", map(section_of, lines)), array("H", words)
    hashes, sections, every_word = (column.tobytes() for column in wide)
    return hashes, sections, every_word, bytes(forms), bytes(depths)


def _cues(link: Link) -> tuple[int, int, int]:
    """Flags, score and characters of the text, both 0 to 255."""
    _, text_block, score, anchor, nofollow, said = link
    flags = TEXT_BLOCK * text_block | NOFOLLOW * nofollow | said
    return flags, int(_MAX_BYTE * score) or _MAX_BYTE * text_block, anchor if anchor < _MAX_BYTE else _MAX_BYTE


def received(*values: object) -> LinkBatch:
    """The batch of *values* from a text worker, which a page may have taken over; raises ValueError for a false one.

    The event loop does this for each page, so each check looks at a whole column at once.
    """
    batch = LinkBatch._make(values)
    if {*map(type, batch[1:-3]), type(batch.owners)} != {bytes} or type(batch.bad) is not int:
        raise ValueError("links that are none")
    number = len(batch.prefixes)
    lines = b"\n" + batch.paths
    whole = [*map(len, batch[2:-3])] == [*map(number.__mul__, _WIDTHS)]
    straight = lines.isascii() and (not number or lines.count(b"\n") == lines.count(b"\n/") == number)
    if not (whole and straight) or batch.prefixes.translate(None, _PREFIX_NUMBERS):
        raise ValueError("links that do not fit together")
    is_too_high = max(array("Q", batch.hashes), default=0) >> HASH_BITS
    if is_too_high or max(array("H", batch.of_host), default=-1) >= len(batch.hosts):
        raise ValueError("links of unknown hosts")
    texts = {*map(type, batch.hosts)} <= {str} and "".join(batch.hosts).isascii()
    if not texts or not all(map(_is_other, batch.others)):
        raise ValueError("links that are no text")
    if len(batch.owners) not in (0, 2 * len(batch.hosts)):
        raise ValueError("hosts without an owner")
    return batch


def _is_other(value: object) -> bool:
    return isinstance(value, tuple) and [*map(type, value)] == [str, str, int, int, int]
