"""What a sitemap or a feed lists: the addresses of pages, when each was last changed, and how it may be used.

Sitemaps (https://www.sitemaps.org/protocol.html, version 0.90) are XML or plain text, gzip or not.  A URL has the date
of its ``lastmod``, else that of the news extension's ``publication_date``.  They are read by a scanner, not an XML
parser: its time is linear and bounded, it expands only XML's five entities and numeric ones, and it reads malformed
files as far as it can.  Unlike the protocol, it reads other encodings than UTF-8 (UTF-16 by its byte order mark, others
by the XML declaration).

Feeds are RSS 0.9 to 2.0 and Atom (RFC 4287).  An entry may hold its licence by RSL (RSL 1.0, 4.7: ``<rsl:content>``
in ``<item>``).  Entities that a file defines are not expanded, nothing is fetched, and malformed XML is read as far as
it can be.  A feed lists a site's newest pages, so few entries are read of one.

A text worker reads the file, and sends the listing packed: a few values, which cost the event loop little.
"""

from __future__ import annotations

import codecs
import math
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from lxml import etree

from spiderling.base import opt_outs
from spiderling.base.opt_outs import Purpose, RslFile, Signal, Statement
from spiderling.base.urls import canonicalize
from spiderling.text.dates import iso_date, seconds_of
from spiderling.text.encoding.labels import codec_of
from spiderling.text.html.links import join

MAX_URLS = 50_000  # URLs that are read of one sitemap (the protocol's limit)
MAX_SITEMAP_BYTES = 50 * 1024 * 1024  # bytes that are read of one unpacked sitemap (the protocol's limit)
_MARKS_PER_URL = 6  # elements and comments, or lines, that are looked at for each URL; chosen: an entry has up to four
MAX_MARKED = MAX_SITEMAP_BYTES // 16
"""How many ``<`` and ``http``, and half as many ``&``, are read of one sitemap: they cost up to .05 us, an ``&`` .2 us.
Chosen: 65 in each entry of the largest file that the protocol allows."""
_MAX_DATE_CHARS = 40  # characters of a date that are read; chosen: the longest of the protocol has 35
_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 16
_ROOT_BYTES = 1 << 16  # bytes in which the root element must begin; chosen
_IS_XML = re.compile(rb"\s*<")
_ENCODING = re.compile(rb"<\?xml\s[^>]{0,200}?\sencoding\s*=\s*[\"']([\w.:-]{1,40})")
"""The encoding in the XML declaration."""
_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]{0,30}):)?(urlset|sitemapindex)[\s>]")
_URL = re.compile(rb"(http(?<![^\n\r]http)s?://\S{1,8192})([\t ]{0,9}(?:[\n\r]|\Z))?")
"""A URL at the beginning of a line; the second group is there if the line ends with it."""
_COMMENT = rb"!(?=--)(?:.*?-->|.*)"  # a comment behind its first character; one without an end takes the rest
_TAG_END = rb"(?:>|\s[^<>]{0,200}>)"  # what stands behind the name in a start tag
_VALUE = _TAG_END + rb"\s*(<!\[CDATA\[)?([^<]{0,8192})"
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class Sitemap(NamedTuple):
    """The URLs of a sitemap in their order, entities expanded."""

    urls: list[str]
    dates: list[str]  # for each URL when it was last changed, as the file has it; "" if it does not say so
    is_index: bool = False  # whether the URLs lead to other sitemaps
    left_out: int = 0  # number of URLs beyond MAX_URLS


def read_sitemap(body: bytes) -> Sitemap:
    """The first MAX_URLS URLs of the sitemap in *body*; none if it cannot be read.

    Takes less than half a second for any bytes, and some tenths to unpack them.
    """
    data = _gunzip(body)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    data = _without_masses(data.removeprefix(codecs.BOM_UTF8))
    begin = _IS_XML.match(data)
    if begin is None:
        return _read_lines(data)
    root = _ROOT.search(data, begin.end() - 1, begin.end() + _ROOT_BYTES)
    if root is None:
        return Sitemap([], [])
    declared = _ENCODING.match(data, begin.end() - 1)
    encoding = codec_of(declared[1].decode()) if declared else None
    prefix = root[1] + b":" if root[1] else b""
    return _read_xml(data, prefix, root[2] == b"sitemapindex", encoding)


def _gunzip(body: bytes) -> bytes:
    """*body* without its gzip layer, if it has one; a broken layer is read as far as possible."""
    if not body.startswith(_GZIP):
        return body[:MAX_SITEMAP_BYTES]
    stream = zlib.decompressobj(31)  # 31: gzip, with the largest window
    data = bytearray()
    try:
        for start in range(0, len(body), _PIECE_BYTES):
            data += stream.decompress(body[start : start + _PIECE_BYTES], MAX_SITEMAP_BYTES - len(data))
            if stream.eof or len(data) >= MAX_SITEMAP_BYTES:
                break
    except zlib.error:
        pass
    return bytes(data)


def _without_masses(data: bytes) -> bytes:
    """*data*, halved until it has few of the marks that cost time."""
    while data.count(b"<") + data.count(b"http") + 2 * data.count(b"&") > MAX_MARKED:
        data = data[: len(data) // 2]
    return data


def _read_lines(data: bytes) -> Sitemap:
    """The URLs of a plain text, one a line."""
    lines = islice(_URL.finditer(data), _MARKS_PER_URL * MAX_URLS)
    found = list(islice((line for line in lines if line[2] is not None), MAX_URLS))
    left_out = data.count(b"http", found[-1].end()) if len(found) == MAX_URLS else 0
    return Sitemap([_text(line[1], None) for line in found], [""] * len(found), left_out=left_out)


def _read_xml(data: bytes, prefix: bytes, is_index: bool, encoding: str | None) -> Sitemap:
    """The texts of the elements for addresses and dates, in CDATA or not, outside of comments."""
    ours = re.escape(prefix)
    mark = re.compile(
        rb"<(?:" + _COMMENT + rb"|" + ours + rb"(?:(url|sitemap)" + _TAG_END + rb"|l(oc|astmod)" + _VALUE + rb")"
        rb"|(?:news|n):publication_date" + _VALUE + rb")",
        re.DOTALL,
    )
    urls: list[str] = []
    dates: list[str] = []
    modified = published = ""
    is_open = False
    """Whether the last URL is that of the entry that the scanner is in."""
    for found in islice(mark.finditer(data), _MARKS_PER_URL * MAX_URLS):
        entry, name, is_quoted, raw, _, other = found.groups()
        if entry or (is_open and name == b"oc"):
            modified = published = ""
            is_open = False
        if entry:
            continue
        value = _text((raw or other or b"").partition(b"]]>")[0].strip(), encoding)
        if not value:
            continue
        if name == b"oc":
            if len(urls) == MAX_URLS:
                return Sitemap(urls, dates, is_index, data.count(b"<" + prefix + b"loc", found.start()))
            urls.append(value if is_quoted else _ENTITY.sub(_character, value))
            dates.append("")
            is_open = True
        elif name:
            modified = value[:_MAX_DATE_CHARS]
        else:
            published = value[:_MAX_DATE_CHARS]
        if is_open:
            dates[-1] = modified or published
    return Sitemap(urls, dates, is_index)


def _text(value: bytes, encoding: str | None) -> str:
    """*value* in UTF-8, else in the *encoding* that is declared."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode(encoding or "latin-1", "replace")


def _character(entity: re.Match[str]) -> str:
    if entity[1]:
        return _CHARACTERS[entity[1]]
    number = int(entity[2] or entity[3], 10 if entity[2] else 16)
    return chr(number) if 0 < number < 0x110000 else entity[0]


MAX_FEED_BYTES = 8 * 1024 * 1024
"""Bytes that are read of a feed, in less than a second (chosen; feeds with whole articles have some hundred kB)."""
MAX_ENTRIES = 1000  # entries that are read of a feed (chosen: 98 % of 23,681 feeds have at most 50, Vogels 2004)
_MAX_URL = 8192  # characters of an address
_PUBLISHED = {"pubdate", "published", "date", "issued"}
_MODIFIED = {"updated", "modified"}
"""Names of elements that date an entry, in small letters, in RSS, its module Dublin Core, Atom 1.0 and 0.3."""

_RSL = "{" + opt_outs.RSL_NAMESPACE + "}"
MAX_LICENCE_BYTES = 500 * 1024
"""Bytes of the licences in a feed that are read: as many as of a licence file (frontier/site_files.py)."""
_UNREAD = b"<"  # stands for a licence beyond that limit: terms that cannot be read
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
"""Read at the root and at an entry: to add up those of all elements above takes quadratic time."""


class FeedEntry(NamedTuple):
    """A page that a feed lists."""

    url: str  # absolute; '' if the feed gives none
    changed: str  # when it was modified, else published, as by `iso_date`; '' if it does not say
    licence: bytes = b""  # an RSL file with what the entry says of its use; empty: nothing


def read_feed(body: bytes, address: str) -> tuple[list[FeedEntry], int]:
    """The first entries of the feed in *body*, which is at *address*, and how many are left out; none if it is no feed.

    Each address is taken once.
    """
    entries: dict[str, FeedEntry] = {}
    left_out = 0
    left_bytes = MAX_LICENCE_BYTES
    for entry in _entries(body[:MAX_FEED_BYTES], address):
        if not entry.url or entry.url in entries:
            continue
        if len(entries) == MAX_ENTRIES:
            left_out += 1
        else:
            left_bytes -= len(entry.licence)
            licence = entry.licence if left_bytes >= 0 else entry.licence and _UNREAD
            entries[entry.url] = entry._replace(licence=licence)
    return list(entries.values()), left_out


def _entries(data: bytes, address: str) -> Iterator[FeedEntry]:
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False)
    try:
        root = etree.fromstring(data.lstrip(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return
    if root is None or _name(root) not in ("rss", "rdf", "feed"):
        return
    base = root.get(_BASE, "")
    for element in root.iter(etree.Element):
        if _name(element) in ("item", "entry"):
            yield _entry(element, element.get(_BASE, base)[:_MAX_URL], address)


def _entry(element: etree._Element, base: str, address: str) -> FeedEntry:
    """An <item> of RSS or an <entry> of Atom; its addresses are relative to *base*, if there is one, else *address*."""
    link, published, modified, licence = "", "", "", b""
    for child in islice(element.iterchildren(etree.Element), 200):
        name = _name(child)
        if child.tag.startswith(_RSL):
            licence += etree.tostring(child, with_tail=False)
        elif name == "link" and (not link or child.get("rel") == "alternate"):
            link = _link(child) or link
        elif name == "guid" and not link and child.get("isPermaLink") != "false":
            link = _text_of(child) if _text_of(child).startswith("http") else ""
        elif name in _PUBLISHED:
            published = published or _text_of(child)
        elif name in _MODIFIED:
            modified = modified or _text_of(child)
    licence = licence and b'<rsl xmlns="%s">%s</rsl>' % (opt_outs.RSL_NAMESPACE.encode(), licence)
    return FeedEntry(_absolute(link, base, address), iso_date(modified) or iso_date(published), licence)


def _link(element: etree._Element) -> str:
    """Atom's links have an attribute, and some of them lead to something else than the entry; RSS has a text."""
    href = element.get("href")
    if href is None:
        return _text_of(element)
    return href.strip()[:_MAX_URL] if element.get("rel", "alternate") == "alternate" else ""


def _text_of(element: etree._Element) -> str:
    return (element.text or "").strip()[:_MAX_URL]


def _name(element: etree._Element) -> str:
    """Without its namespace, which many feeds declare wrongly."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2].lower()


def _absolute(link: str, base: str, address: str) -> str:
    url = join(join(address, base) or address if base else address, link) if link else None
    return url if url and url.startswith(("http://", "https://")) else ""


Entry: TypeAlias = "tuple[str, float | None]"
"""Address of a page, and when it was last changed, in seconds since 1970; None: the file does not say."""
_Said: TypeAlias = "list[tuple[str, list[str]]]"  # by RSL: detail, and names of the purposes that it refuses
Packed: TypeAlias = "tuple[str, bytes, bool, int, dict[int, _Said]]"
"""Addresses as lines, times as doubles (nan for None), whether it is an index, number of those left out, statements by
the number of the entry."""


_HEAD_BYTES = 4096  # bytes in which a feed's first element must begin; chosen: comments of its maker come before it
_IS_FEED = re.compile(rb"<(?:\w+:)?(?:rss|feed|rdf)[\s>]", re.IGNORECASE)


class Listing(NamedTuple):
    """The entries of a sitemap or feed, in their order."""

    entries: list[Entry]
    is_index: bool = False  # whether the addresses are those of other sitemaps
    left_out: int = 0  # number of entries beyond the limits of a file
    said: Mapping[int, list[Statement]] = {}  # number of an entry, from 0 on -> what its licence, if any, says to us


def read_listing(body: bytes, address: str) -> Packed:
    """What the sitemap or feed in *body*, at *address*, lists, if it is one."""
    is_feed = _IS_FEED.search(body[:_HEAD_BYTES].replace(b"\0", b"")) is not None
    entries, left_out = read_feed(body, address) if is_feed else ([], 0)
    if entries:
        said = {number: _statements(entry) for number, entry in enumerate(entries) if entry.licence}
        return *_pack((entry.url, entry.changed) for entry in entries), False, left_out, said
    sitemap = read_sitemap(body)
    return *_pack(zip(sitemap.urls, sitemap.dates, strict=True)), sitemap.is_index, sitemap.left_out, {}


def _statements(entry: FeedEntry) -> _Said:
    target = canonicalize(entry.url)
    found = RslFile(entry.licence).statements(entry.url, target.path if target else "/")
    return [(said.detail, [purpose.value for purpose in said.refuses]) for said in found]


def _pack(entries: Iterable[tuple[str, str]]) -> tuple[str, bytes]:
    time_of = cache(seconds_of)  # many entries of a file have the same date, and reading one takes 2 us
    rows = [("".join(url.splitlines()), time_of(date)) for url, date in entries]
    times = array("d", [math.nan if time is None else time for _, time in rows])
    return "\n".join([url for url, _ in rows]).encode("utf-8", "replace").decode(), times.tobytes()


def unpack(value: Any) -> Listing:
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
