"""Reads the URLs in a sitemap (https://www.sitemaps.org/protocol.html, version 0.90): XML or plain text, gzip or not.

A URL has the date of its ``lastmod``, else that of the news extension's ``publication_date``.

It is a scanner, not an XML parser: its time is linear and bounded, it expands only XML's five entities and numeric
ones, and it reads malformed files as far as it can.  Unlike the protocol, it reads other encodings than UTF-8 (UTF-16
by its byte order mark, others by the XML declaration).  Feeds are read by feed.py.
"""

from __future__ import annotations

import codecs
import re
import zlib
from itertools import islice
from typing import NamedTuple

from spiderling.text.encoding.labels import codec_of

MAX_URLS = 50_000
"""URLs that are read of one sitemap (the protocol's limit)."""
MAX_BYTES = 50 * 1024 * 1024
"""Bytes that are read of one unpacked sitemap (the protocol's limit)."""
_MARKS_PER_URL = 6
"""Elements and comments, or lines, that are looked at for each URL; chosen: an entry has up to four."""
MAX_MARKED = MAX_BYTES // 16
"""How many ``<`` and ``http``, and half as many ``&``, are read of one sitemap: they cost up to .05 us, an ``&`` .2 us.
Chosen: 65 in each entry of the largest file that the protocol allows."""
_MAX_DATE_CHARS = 40
"""Characters of a date that are read; chosen: the longest of the protocol has 35."""
_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 16
_HEAD_BYTES = 1 << 16
"""Bytes in which the root element must begin; chosen."""
_IS_XML = re.compile(rb"\s*<")
_ENCODING = re.compile(rb"<\?xml\s[^>]{0,200}?\sencoding\s*=\s*[\"']([\w.:-]{1,40})")
"""The encoding in the XML declaration."""
_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]{0,30}):)?(urlset|sitemapindex)[\s>]")
_URL = re.compile(rb"(http(?<![^\n\r]http)s?://\S{1,8192})([\t ]{0,9}(?:[\n\r]|\Z))?")
"""A URL at the beginning of a line; the second group is there if the line ends with it."""
_COMMENT = rb"!(?=--)(?:.*?-->|.*)"
"""A comment behind its first character; one without an end takes the rest of the file."""
_TAG_END = rb"(?:>|\s[^<>]{0,200}>)"
"""What stands behind the name in a start tag."""
_VALUE = _TAG_END + rb"\s*(<!\[CDATA\[)?([^<]{0,8192})"
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class Sitemap(NamedTuple):
    """The URLs of a sitemap in their order, entities expanded."""

    urls: list[str]
    dates: list[str]
    """For each URL when it was last changed, as the file has it; "" if it does not say so."""
    is_index: bool = False
    """Whether the URLs lead to other sitemaps."""
    left_out: int = 0
    """Number of URLs beyond MAX_URLS."""


def read_sitemap(body: bytes, most: int = MAX_URLS) -> Sitemap:
    """The first *most* URLs of the sitemap in *body*; none if it cannot be read.

    Takes less than half a second for any bytes, and some tenths to unpack them.
    """
    data = _without_masses(_as_utf8(_unpacked(body)))
    begin = _IS_XML.match(data)
    if begin is None:
        return _read_lines(data, most)
    root = _ROOT.search(data, begin.end() - 1, begin.end() + _HEAD_BYTES)
    if root is None:
        return Sitemap([], [])
    declared = _ENCODING.match(data, begin.end() - 1)
    encoding = codec_of(declared[1].decode()) if declared else None
    prefix = root[1] + b":" if root[1] else b""
    return _read_xml(data, prefix, root[2] == b"sitemapindex", encoding, most)


def _unpacked(body: bytes) -> bytes:
    """*body* without its gzip layer, if it has one; a broken layer is read as far as possible."""
    if not body.startswith(_GZIP):
        return body[:MAX_BYTES]
    stream = zlib.decompressobj(31)  # 31: gzip, with the largest window
    data = bytearray()
    try:
        for start in range(0, len(body), _PIECE_BYTES):
            data += stream.decompress(body[start : start + _PIECE_BYTES], MAX_BYTES - len(data))
            if stream.eof or len(data) >= MAX_BYTES:
                break
    except zlib.error:
        pass
    return bytes(data)


def _as_utf8(data: bytes) -> bytes:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def _without_masses(data: bytes) -> bytes:
    """*data*, halved until it has few of the marks that cost time."""
    while data.count(b"<") + data.count(b"http") + 2 * data.count(b"&") > MAX_MARKED:
        data = data[: len(data) // 2]
    return data


def _read_lines(data: bytes, most: int) -> Sitemap:
    """The URLs of a plain text, one a line."""
    lines = islice(_URL.finditer(data), _MARKS_PER_URL * most)
    found = list(islice((line for line in lines if line[2] is not None), most))
    left_out = data.count(b"http", found[-1].end()) if len(found) == most else 0
    return Sitemap([_text(line[1], None) for line in found], [""] * len(found), left_out=left_out)


def _read_xml(data: bytes, prefix: bytes, is_index: bool, encoding: str | None, most: int) -> Sitemap:
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
    for found in islice(mark.finditer(data), _MARKS_PER_URL * most):
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
            if len(urls) == most:
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
