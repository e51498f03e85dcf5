"""HTTP/1 messages: the bytes of a request, and responses read as leniently as browsers do.

Bytes go in, a head and the decoded bytes of a body come out.

Parsers for servers and proxies refuse what might be read in two ways, since a connection is used again after it, and
for others (request smuggling).  Here it is used again for the same host alone, and only if its last response cannot be
read in two ways.  Framing is that of RFC 9112, 6.3, and what is no header is passed over, as in the Fetch standard's
implementations.

Content codings (gzip, deflate, br, zstd) are decoded chunk by chunk and in bounded memory.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import brotli  # type: ignore[import-untyped]
from scrapy.exceptions import UnsupportedURLSchemeError

from spiderling.base.files import whole_number, zstd
from spiderling.base.terminal import entries_of
from spiderling.base.urls import serialize
from spiderling.fetch.errors import BadHttp, DecodedTooBig

MAX_HEADERS = 256  # most lines in one head (chosen)
MAX_CHUNK_LINE_BYTES = 16_384  # most bytes of the line before a chunk (Chromium's limit)
UNTOLD_S = 15.0
"""Seconds for which an idle connection stays open where the server does not say.  Chosen: servers that close theirs
earlier (5 s: Apache, Node, LiteSpeed) say so, others wait for a minute and more (nginx, IIS)."""
HEAD_START = b"HTTP/"
END_OF_HEAD = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"(HTTP/\d\.\d)[ \t]+(\d{3})(?!\d)", re.IGNORECASE)
_FIELD = re.compile(rb"^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)$", re.MULTILINE)
_FOLD = re.compile(rb"\n[ \t]+")
_IDLE = re.compile(rb"timeout[ \t]*=[ \t]*([0-9]{1,6})", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;|$)")
MAX_PORT = 65_535
_URL = re.compile(r"(https?)://([^/?#:@]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(/[^?#]*)(\?[^#]*)?")
"""Takes a serialised URL without a user name apart."""


class UrlParts(NamedTuple):
    """The parts of a URL that a request is made of."""

    is_https: bool
    name: str  # host name, or address literal without brackets; without a dot at its end
    port: int | None  # None: that of the scheme
    target: str  # path and query

    @classmethod
    def of(cls, url: str, is_verbatim: bool) -> UrlParts:
        """*is_verbatim*: *url* is serialised and asked for as it is.  Raises UnsupportedURLSchemeError."""
        found = _URL.match(url if is_verbatim else serialize(url) or "")
        if found is None or int(found[3] or 0) > MAX_PORT:
            raise UnsupportedURLSchemeError("not a URL over http or https that can be asked for")
        port = int(found[3]) if found[3] else None
        return cls(found[1] == "https", found[2].strip("[]").removesuffix("."), port, found[4] + (found[5] or ""))

    @property
    def authority(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port in (None, 443 if self.is_https else 80) else f"{name}:{self.port}"


class RawRequest(NamedTuple):
    """A request as it is sent."""

    method: str
    target: str
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes = b""

    def encode(self) -> bytes:
        """The bytes to send; raises UnsupportedURLSchemeError if a server would read them as something else."""
        lines = [f"{self.method} {self.target} HTTP/1.1".encode()]
        lines += [name + b": " + value for name, value in self.headers]
        lines += [b"", b""]
        head = b"\r\n".join(lines)
        breaks = len(lines) - 1
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head or lines[0].count(b" ") != 2:
            raise UnsupportedURLSchemeError("there is a space in the URL, or a line break or NUL in a header")
        return head + self.body


class ResponseHead(NamedTuple):
    """A status line and the headers below it."""

    version: str
    status: int
    status_line: str  # as received; bytes that are not UTF-8 as lone surrogates
    headers: list[tuple[bytes, bytes]]
    is_chunked: bool  # whether the body comes in chunks; then Content-Length counts for nothing
    length: int | None
    """The bytes of the body that Content-Length announces; None if it announces none, or by no number."""

    @classmethod
    def parse(cls, head: bytes) -> ResponseHead:
        """*head* without the empty line at its end; raises BadHttp.

        A line without a colon, or with what is no token before it, is passed over.
        """
        if b"\0" in head:
            raise BadHttp("there is a NUL in the headers")
        lines = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if lines.count(b"\n") > MAX_HEADERS:
            raise BadHttp(f"more than {MAX_HEADERS} headers")
        status_line, _, fields = lines.partition(b"\n")
        found = _STATUS_LINE.match(status_line)
        if found is None:
            raise BadHttp(f"no status line: {status_line[:80]!r}")
        if b"\n " in fields or b"\n\t" in fields:
            fields = _FOLD.sub(b" ", fields)
        headers = [(name, value.strip(b" \t")) for name, value in _FIELD.findall(fields)]
        is_chunked = b"chunked" in _values(headers, b"transfer-encoding")
        lengths = set() if is_chunked else _values(headers, b"content-length")
        if len(lengths) > 1:
            raise BadHttp(f"contradicting lengths: {lengths}")
        length = whole_number(lengths.pop()) if lengths else None
        line = status_line.decode("utf-8", "surrogateescape")
        return cls(found[1].decode().upper(), int(found[2]), line, headers, is_chunked, length)

    @property
    def is_interim(self) -> bool:
        """Whether the status is 1xx: no body follows, and but for 101 a further head does."""
        return 100 <= self.status < 200

    @property
    def keeps_open(self) -> bool:
        """Whether the server leaves the connection open (RFC 9112, 9.3), and it is clear where the body ends."""
        if self.status == 101 or self.version != "HTTP/1.1":
            return False
        framed = 0
        for name, value in self.headers:
            key = name.lower()
            if key in (b"content-length", b"transfer-encoding"):
                framed += 1
                if framed > 1 or (self.is_chunked and value.lower() != b"chunked"):
                    return False
        return b"close" not in _values(self.headers, b"connection")

    @property
    def stays_open_s(self) -> float:
        """Seconds for which the server leaves the connection open without a request."""
        told = (_IDLE.search(value) for name, value in self.headers if name.lower() == b"keep-alive")
        return min((float(found[1]) for found in told if found), default=UNTOLD_S)

    def framing(self, *, has_body: bool) -> Framing:
        """How the body of this head is framed; *has_body* is False for the answer to HEAD."""
        if not has_body or self.is_interim or self.status in (204, 304):
            return Counted(0)
        return Chunked() if self.is_chunked else Counted(self.length)


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> set[bytes]:
    """What all *headers* called *name* (in lower case) list, in lower case."""
    lists = [value for key, value in headers if key.lower() == name]
    return {value.strip().lower() for value in b",".join(lists).split(b",")} if lists else set()


class Counted:
    """A body of so many bytes, or (None) of as many as come."""

    def __init__(self, length: int | None) -> None:
        self._left = sys.maxsize if length is None else length
        self.is_over = length == 0  # whether the body is complete
        self.may_be_closed = length is None  # whether the end of the connection is the end of the body
        self.is_overrun = False  # whether more has come than the body

    def unframe(self, data: bytes) -> Iterator[bytes]:
        """The pieces of the body in *data*, the next bytes received."""
        self.is_overrun = len(data) > self._left
        data = data[: self._left]
        self._left -= len(data)
        self.is_over = not self._left
        yield data


class Chunked:
    """A body in chunks (RFC 9112, 7.1), as `Counted`; lines may end without CR."""

    may_be_closed = False

    def __init__(self) -> None:
        self.is_over = False
        self.is_overrun = False
        self._left = 0  # bytes of this chunk that have not come
        self._line = b""  # the beginning of a line whose end has not come
        self._is_behind_chunk = False  # whether an empty line must be next
        self._is_last = False  # whether the last chunk is over, so that trailers and an empty line remain

    def unframe(self, data: bytes) -> Iterator[bytes]:
        """The pieces of the body in *data*, the next bytes received; raises BadHttp after them."""
        data = self._line + data
        at = 0
        while not self.is_over:
            if self._left:
                piece = data[at : at + self._left]
                yield piece
                at += len(piece)
                self._left -= len(piece)
            end = data.find(b"\n", at)
            if self._left or end < 0:
                break
            self._end_line(data[at:end].rstrip(b"\r"))
            at = end + 1
        self._line = b"" if self.is_over else data[at:]
        self.is_overrun = self.is_over and at < len(data)
        if len(self._line) > MAX_CHUNK_LINE_BYTES:
            raise BadHttp(f"more than {MAX_CHUNK_LINE_BYTES} bytes in a line between chunks")

    def _end_line(self, line: bytes) -> None:
        if self._is_last:
            self.is_over = not line
        elif self._is_behind_chunk and not line:
            self._is_behind_chunk = False
        else:
            size = _CHUNK_SIZE.match(line)
            if size is None or self._is_behind_chunk:
                raise BadHttp(f"no chunk begins with {line[:80]!r}")
            self._left = int(size[1], 16)
            self._is_last = not self._left
            self._is_behind_chunk = True


Framing = Counted | Chunked

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
MAX_LAYERS = 2  # most codings of one body that are undone (chosen: honest content has no more)
RATIO_FROM_BYTES = 1_000_000  # decoded bytes from which the ratio to the received ones is limited (chosen)
MAX_RATIO = 100.0
"""Bytes decoded / received above which a body is a decompression bomb.  Chosen: pages and lists of URLs shrink to a
twentieth, and deflate makes at most 1,032 bytes of one."""
_NOT_ASKED_FOR = frozenset({"compress", "x-compress", "exi", "pack200-gzip", "aes128gcm", "dcb", "dcz"})
"""Registered codings that change the content, and that no request of ours allows; any other label is ignored."""
_BROKEN = (zlib.error, brotli.error, zstd.ZstdError, EOFError, ValueError)
_Codec = Callable[[bytes, int], bytes]


class BodyDecoder:
    """Undoes the Content-Encoding of one body, chunk by chunk, in bounded memory (RFC 9110, 8.4).

    `decode` raises DecodedTooBig for decompression bombs: when a layer gives out more than *limit* bytes, or when the
    content has more than RATIO_FROM_BYTES bytes and more than MAX_RATIO times those received.

    Servers err, so it is as lenient as browsers: data that breaks off or is damaged yields what was decoded before; a
    body that never was compressed, or has an unknown coding, is passed on as it is.
    """

    def __init__(self, content_encoding: bytes, limit: int) -> None:
        codings = entries_of(content_encoding.decode("latin-1").lower()) if content_encoding else []
        codings = [coding for coding in codings if coding != "identity"]  # in the order in which they were applied
        self.is_hopeless = len(codings) > MAX_LAYERS or not _NOT_ASKED_FOR.isdisjoint(codings)
        """Whether what comes out can only be noise."""
        self.understood = not self.is_hopeless and _CODECS.keys() >= set(codings)
        """Whether what comes out is the content itself."""
        self.changes = self.understood and bool(codings)  # whether what comes out may differ from what goes in
        self._received = self._given = 0
        self._layers = [_Layer(_CODECS[coding], limit) for coding in reversed(codings)] if self.changes else []

    def decode(self, data: bytes) -> bytes:
        """The content that *data*, the next bytes of the body, decodes to."""
        self._received += len(data)
        for layer in self._layers:
            data = layer.decode(data)
        self._given += len(data)
        if self._given > RATIO_FROM_BYTES and self._given > MAX_RATIO * self._received:
            raise DecodedTooBig
        return data


class _Layer:
    """One coding.  If its decoder fails before it has given anything out, the next one for the label is tried."""

    def __init__(self, readings: tuple[Callable[[], _Codec], ...], limit: int) -> None:
        self._readings = iter((*readings, _as_it_is))
        self._codec = next(self._readings)()
        self._pending = bytearray()
        self._left = limit
        self._begun = False

    def decode(self, data: bytes) -> bytes:
        if not self._begun:
            self._pending += data
        try:
            decoded = self._codec(data, self._left + 1)
        except _BROKEN:
            return self._after_error()
        if decoded and not self._begun:
            self._begun = True
            self._pending.clear()
        self._left -= len(decoded)
        if self._left < 0:
            raise DecodedTooBig
        return decoded

    def _after_error(self) -> bytes:
        if self._begun:
            self._codec = _nothing
            return b""
        self._codec = next(self._readings)()
        data = bytes(self._pending)
        self._pending.clear()
        return self.decode(data)


def _inflate(window_bits: int) -> Callable[[], _Codec]:
    """What makes a codec for deflate data; *window_bits* selects the wrapping, as in zlib."""

    def make() -> _Codec:
        stream = zlib.decompressobj(window_bits)

        def decode(data: bytes, most: int) -> bytes:
            if stream.eof:
                return b""
            before = stream.copy()  # after an error, what the call has decoded is lost
            try:
                return stream.decompress(data, most)
            except zlib.error:
                return _salvage(before, data, most)

        return decode

    return make


def _salvage(stream: zlib._Decompress, data: bytes, most: int) -> bytes:
    """The part of broken *data* that can be decoded, at most *most* bytes; raises zlib.error if there is none."""
    decoded = bytearray()
    try:
        for start in range(0, len(data), 8):
            decoded += stream.decompress(data[start : start + 8], most - len(decoded))
            if len(decoded) >= most:
                break
    except zlib.error:
        if not decoded:
            raise
    return bytes(decoded)


def _brotli() -> _Codec:
    stream = brotli.Decompressor()

    def decode(data: bytes, most: int) -> bytes:
        decoded = bytearray()
        while not stream.is_finished() and len(decoded) < most:
            piece = stream.process(data, output_buffer_limit=most - len(decoded))
            if not piece:
                break
            decoded += piece
            data = b""  # while input is missing, one call gives out at most 32 kB of what is ready: ask again
        return bytes(decoded)

    return decode


def _zstd() -> _Codec:
    # RFC 9659: no window beyond 8 MB may be asked of a receiver
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
    return lambda data, most: b"" if stream.eof else stream.decompress(data, most)


def _as_it_is() -> _Codec:
    return lambda data, most: data


def _nothing(data: bytes, most: int) -> bytes:
    return b""


_GZIP = (_inflate(31),)
_CODECS: dict[str, tuple[Callable[[], _Codec], ...]] = {
    "gzip": _GZIP,
    "x-gzip": _GZIP,
    "deflate": (_inflate(15), _inflate(-15)),  # zlib's wrapping by RFC 9110, none by some servers
    "br": (_brotli,),
    "zstd": (_zstd,),
}

MAX_PAGE_BYTES = 50_000  # bytes of a page that may be a challenge; chosen: those that we know have 1 to 40 kB
_HEAD_BYTES = 8192
"""Bytes in which marks are looked for (chosen: scripts and frames of a challenge stand at its beginning)."""
_MAX_TAGS = 120
"""Tags in these bytes that a challenge may have; chosen: that of Anubis has 76, and nine of ten usual pages have more,
or are larger, which spares the search."""
_MAX_LINKS = 10  # links in these bytes that a challenge may have: help, terms, the maker (chosen)
_MAX_TEXT_BYTES = 4000  # bytes of text on the whole page that it may have; chosen: Anubis explains itself in 1,500

_HEADERS: Mapping[bytes, tuple[str, tuple[bytes, ...], bool]] = {
    # https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
    b"Cf-Mitigated": ("cloudflare", (b"challenge",), False),
    # https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
    b"X-Amzn-Waf-Action": ("aws-waf", (b"challenge", b"captcha"), False),
    b"X-Vercel-Mitigated": ("vercel", (b"challenge",), False),
    b"X-Dd-B": ("datadome", (), True),
    b"X-Kpsdk-Ct": ("kasada", (), True),
}
"""Header -> maker, the values that mean a challenge (none: any), whether it means one only beside an error status."""
_NAMES = _HEADERS.keys()
_STATUSES = {468: "safeline"}  # statuses of their own that makers answer with
_MARKS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("cloudflare", (b"_cf_chl_opt",)),
    ("cloudflare", (b"__cf_chl_", b"challenge-form")),
    ("akamai", (b"sec-if-cpt-container",)),
    ("akamai", (b"/_sec/cp_challenge/",)),
    ("akamai", (b"?bm-verify=", b"http-equiv=")),
    ("datadome", (b"captcha-delivery.com/", b"var dd=")),
    ("imperva", (b"_Incapsula_Resource", b"ncident ID")),
    ("imperva", (b"_Incapsula_Resource", b"main-iframe")),
    ("anubis", (b"/.within.website/x/cmd/anubis/",)),
    ("anubis", (b'id="anubis_challenge"',)),
    ("aws-waf", (b"awsWafCookieDomainList", b"challenge.js")),
    ("aws-waf", (b"awsWafCookieDomainList", b"captcha.js")),
    ("human", (b"window._pxAppId", b"px-captcha")),
    ("kasada", (b"KPSDK", b"/ips.js")),
    ("f5", (b"/TSPD/", b"Your support ID is")),
    ("sucuri", (b"sucuri_cloudproxy_js",)),
    ("ddos-guard", (b"<title>DDoS-Guard</title>",)),
    ("fastly", (b"/_fs-ch-", b"<title>Client Challenge</title>")),
    ("vercel", (b"<title>Vercel Security Checkpoint</title>",)),
    ("safeline", (b"/.safeline/static/",)),
    ("go-away", (b"/.well-known/.git.gammaspectra.live/git/go-away/",)),
    ("reblaze", (b"window.rbzns",)),
)
"""Maker and what its challenges hold, all of it.  A maker's script that also runs on usual pages is not enough."""


def challenge_of(status: int, headers: Mapping[bytes, Any], body: bytes) -> str:
    """The maker of the challenge that this response is, shown in place of the page: prove that you are no robot.

    '' if it is none.  Headers count first.  Without one, a page is a challenge if it holds what its maker's challenges
    hold, not in its text, and has hardly any text or links: a page *about* challenges, a robots.txt that forbids the
    address of one, or a page on which such a service runs in the background is none.  What is looked for is what the
    makers document (Cloudflare, AWS, Vercel, Anubis), and what crawlers report of others.  Any bytes may come.
    """
    for name in _NAMES & headers.keys():
        maker, values, is_beside_error = _HEADERS[name]
        value = (headers.get(name) or b"").strip().lower()
        if (not values or value in values) and (status >= 400 or not is_beside_error):
            return maker
    return _STATUSES.get(status) or _by_marks(body)


def _by_marks(body: bytes) -> str:
    if len(body) > MAX_PAGE_BYTES:
        return ""
    head = body[:_HEAD_BYTES]
    if head.count(b"<") > _MAX_TAGS or head.count(b"<a ") > _MAX_LINKS:
        return ""
    for maker, marks in _MARKS:
        if marks[0] in head and all(mark in head for mark in marks):
            text = _text(body)
            if len(text) <= _MAX_TEXT_BYTES and marks[0] not in text:
                return maker
    return ""


def _text(body: bytes) -> bytes:
    """The text outside of tags, scripts and styles, about; in time linear in the page."""
    before, *pieces = body.split(b"<")
    words = before.split()
    is_hidden = False
    for piece in pieces:
        name = piece[:8].lower()
        if name.startswith((b"script", b"style", b"svg")):
            is_hidden = True
        elif name.startswith((b"/script", b"/style", b"/svg")):
            is_hidden = False
        if not is_hidden:
            words += piece.partition(b">")[2].split()
    return b" ".join(words)
