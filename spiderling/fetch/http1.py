"""Reads HTTP/1 responses as leniently as browsers do; bytes go in, a head and the bytes of a body come out.

Parsers for servers and proxies refuse what might be read in two ways, since a connection is used again after it, and
for others (request smuggling).  Here it is used again for the same host alone, and only if its last response cannot be
read in two ways.  Framing is that of RFC 9112, 6.3, and what is no header is passed over, as in the Fetch standard's
implementations.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from spiderling.base.digits import whole_number
from spiderling.fetch.errors import NotHttp

MAX_HEADERS = 256
"""Most lines in one head (chosen)."""
MAX_CHUNK_LINE_BYTES = 16_384
"""Most bytes of the line before a chunk (Chromium's limit)."""
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


class ResponseHead(NamedTuple):
    """A status line and the headers below it."""

    version: str
    status: int
    status_line: str
    """As received; bytes that are not UTF-8 as lone surrogates."""
    headers: list[tuple[bytes, bytes]]
    is_chunked: bool
    """Whether the body comes in chunks; then Content-Length counts for nothing."""
    length: int | None
    """The bytes of the body that Content-Length announces; None if it announces none, or by no number."""

    @classmethod
    def parsed(cls, head: bytes) -> ResponseHead:
        """*head* without the empty line at its end; raises NotHttp.

        A line without a colon, or with what is no token before it, is passed over.
        """
        if b"\0" in head:
            raise NotHttp("there is a NUL in the headers")
        lines = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if lines.count(b"\n") > MAX_HEADERS:
            raise NotHttp(f"more than {MAX_HEADERS} headers")
        status_line, _, fields = lines.partition(b"\n")
        found = _STATUS_LINE.match(status_line)
        if found is None:
            raise NotHttp(f"no status line: {status_line[:80]!r}")
        if b"\n " in fields or b"\n\t" in fields:
            fields = _FOLD.sub(b" ", fields)
        headers = [(name, value.strip(b" \t")) for name, value in _FIELD.findall(fields)]
        is_chunked = b"chunked" in _values(headers, b"transfer-encoding")
        lengths = set() if is_chunked else _values(headers, b"content-length")
        if len(lengths) > 1:
            raise NotHttp(f"contradicting lengths: {lengths}")
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
        self.is_over = length == 0
        """Whether the body is complete."""
        self.may_be_closed = length is None
        """Whether the end of the connection is the end of the body."""
        self.is_overrun = False
        """Whether more has come than the body."""

    def unframed(self, data: bytes) -> Iterator[bytes]:
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
        self._left = 0
        """Bytes of this chunk that have not come."""
        self._line = b""
        """The beginning of a line whose end has not come."""
        self._is_behind_chunk = False
        """Whether an empty line must be next."""
        self._is_last = False
        """Whether the last chunk is over, so that trailers and an empty line remain."""

    def unframed(self, data: bytes) -> Iterator[bytes]:
        """The pieces of the body in *data*, the next bytes received; raises NotHttp after them."""
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
            raise NotHttp(f"more than {MAX_CHUNK_LINE_BYTES} bytes in a line between chunks")

    def _end_line(self, line: bytes) -> None:
        if self._is_last:
            self.is_over = not line
        elif self._is_behind_chunk and not line:
            self._is_behind_chunk = False
        else:
            size = _CHUNK_SIZE.match(line)
            if size is None or self._is_behind_chunk:
                raise NotHttp(f"no chunk begins with {line[:80]!r}")
            self._left = int(size[1], 16)
            self._is_last = not self._left
            self._is_behind_chunk = True


Framing = Counted | Chunked
