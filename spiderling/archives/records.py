"""Turns WARC records into pages, or gives the Reason why one is no page.

A page is a ``response`` (or a ``resource``: a page without headers) of status 200, with a
content type that the crawl takes, and within its limits; transfer and content codings are
undone.  ``conversion`` records (Common Crawl's WET) are refused: they lack the headers and
meta tags in which pages say how their text may be used.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType
from scrapy.http import Headers
from w3lib.http import headers_raw_to_dict

from spiderling.archives.sources import Position, Raw
from spiderling.base import media_types
from spiderling.base.files import zstd
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.fetch.errors import BadHttp, DecodedTooBig
from spiderling.fetch.messages import BodyDecoder, Chunked, challenge_of

_TYPES = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.revisit | WarcRecordType.conversion
_STATUS = re.compile(rb"HTTP/[\d.]+[ \t]+(\d{3})(?!\d)")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MAX_HEAD_BYTES = 1 << 17  # bytes of a response's headers; chosen


@dataclass(slots=True)
class ArchiveRecord:
    """One record, or one damaged part of an archive."""

    position: Position
    url: str = ""
    reason: Reason | None = None  # why it is no page; None if it is a page or a robots.txt
    status: int = 0
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    length: int = 0  # bytes of the body in the archive, still encoded
    captured: float | None = None  # WARC-Date, as seconds since 1970
    address: IPv4Address | IPv6Address | None = None  # WARC-IP-Address
    is_robots: bool = False
    is_cut: bool = False  # whether the archive ends in it: there are fewer bytes than it states, or it states no number


class RecordRefused(Exception):
    """A record that is no page; the argument is the Reason."""


class RecordReader:
    """Reads archives by the options of a crawl."""

    def __init__(self, options: Options, documents: frozenset[str], refusal: Callable[[CanonicalUrl], Reason | None]):
        """*documents*: kinds that are converted; *refusal*: the Reason why a URL is not wanted, else None."""
        self._options = options
        self._documents = documents
        self._refusal = refusal
        self._max_bytes = max(options.max_body_bytes, media_types.MAX_DOCUMENT_BYTES)
        self._wants_robots = options.archive_robots == "obey"

    def records(self, raw: Raw, last: Position) -> Iterator[ArchiveRecord]:
        """The records and damaged parts of an archive from *last* on, in order; raises ArchiveUnread."""
        members = Members(raw, last.member)
        inner = last.inner
        while True:
            member = members.next(inner)
            inner = 0
            if member is None:
                if members.is_at_end():
                    return
                yield ArchiveRecord(Position(members.offset), reason=Reason.DAMAGED)
            else:
                yield from self._of_member(member)
                if member.is_whole:
                    continue
            if not members.resync():
                return

    def _of_member(self, member: Member) -> Iterator[ArchiveRecord]:
        """The records of *member* up to damage, which has a record and a place of its own."""
        stream: Any = member  # the parser calls read and tell only
        behind = member.tell()
        record = None
        try:
            for found in ArchiveIterator(stream, _TYPES, parse_http=False, stream_detect=False):
                record = self._record(found, member.position(found.stream_pos))
                yield record
                if record.is_cut:
                    member.give_up(found.stream_pos + 1)
                    return
                behind = found.stream_pos + max(1, found.content_length)
            is_whole = member.is_whole and behind <= member.tell()
        except BaseException as error:  # the parser's PanicException is a BaseException
            if not isinstance(error, (OSError, ValueError)) and type(error).__name__ != "PanicException":
                raise
            is_whole = False
        if is_whole:
            return
        if record is None or record.reason is not Reason.DAMAGED:
            yield ArchiveRecord(member.position(min(behind, member.tell())), reason=Reason.DAMAGED)
        if behind < member.tell():
            member.give_up(behind + 1)

    def _record(self, found: Any, position: Position) -> ArchiveRecord:
        record = ArchiveRecord(position)
        try:
            self._fill(record, found)
        except RecordRefused as refused:
            record.reason = refused.args[0]
        return record

    def _fill(self, record: ArchiveRecord, found: Any) -> None:
        """Read *found*, FastWARC's record, into *record*; raises RecordRefused."""
        size = found.content_length
        is_too_big = size > self._max_bytes + _MAX_HEAD_BYTES
        block: bytes = b"" if is_too_big else found.reader.read(size)
        record.is_cut = "Content-Length" not in found.headers or (len(block) < size and not is_too_big)
        if record.is_cut:
            raise RecordRefused(Reason.DAMAGED)
        if found.record_type == WarcRecordType.revisit:
            raise RecordRefused(Reason.REVISIT)
        target = canonicalize((found.headers.get("WARC-Target-URI") or "").strip("<> \t"))
        if target is None:
            raise RecordRefused(Reason.BAD_URL)
        record.url = target.url
        record.is_robots = target.path == "/robots.txt"
        if found.record_type == WarcRecordType.conversion or (record.is_robots and not self._wants_robots):
            raise RecordRefused(Reason.RECORD_KIND)
        refusal = self._refusal(target)
        if refusal is not None:
            raise RecordRefused(refusal)
        record.captured = _seconds(found.headers.get("WARC-Date") or "")
        if address := found.headers.get("WARC-IP-Address"):
            with suppress(ValueError):
                record.address = ip_address(address)
        record.length = size
        if is_too_big:
            raise RecordRefused(Reason.TOO_BIG)
        body = self._answer(record, found, block)
        if record.status != 200 and not record.is_robots:
            raise RecordRefused(Reason.RECORD_STATUS)
        record.body = self._content(record, body, target)
        if challenge_of(record.status, record.headers, record.body):
            raise RecordRefused(Reason.CHALLENGED)

    def _answer(self, record: ArchiveRecord, found: Any, block: bytes) -> bytes:
        """Set status and headers; returns the body, still content-encoded, its chunks joined.  Raises RecordRefused."""
        media_type = found.headers.get("Content-Type") or ""
        if found.record_type == WarcRecordType.resource:
            record.status = 200
            record.headers = Headers({b"Content-Type": media_type.encode()})
            return block
        status = _STATUS.match(block)
        end = _HEAD_END.search(block, 0, _MAX_HEAD_BYTES)
        if status is None or end is None:
            raise RecordRefused(Reason.RECORD_KIND if media_type and "http" not in media_type else Reason.DAMAGED)
        head = block[: end.start()].partition(b"\n")[2]
        record.status = int(status[1])
        record.headers = Headers(headers_raw_to_dict(head) or {})
        body = block[end.end() :]
        record.length = len(body)
        is_chunked = b"chunked" in (record.headers.get(b"Transfer-Encoding") or b"").lower()
        return _join_chunks(body) if is_chunked else body

    def _content(self, record: ArchiveRecord, body: bytes, target: CanonicalUrl) -> bytes:
        """*body* without its content coding; raises RecordRefused."""
        names = (b"Content-Type", b"Content-Disposition")
        content_type, disposition = ((record.headers.get(name) or b"").decode("latin-1") for name in names)
        kind = media_types.of_headers(content_type, disposition, target.path)
        is_document = kind in self._documents
        if not (record.is_robots or is_document or media_types.is_text(content_type, disposition)):
            raise RecordRefused(Reason.NOT_TEXT)
        limit = media_types.MAX_DOCUMENT_BYTES if is_document else self._options.max_body_bytes
        decoder = BodyDecoder(b",".join(record.headers.getlist(b"Content-Encoding")), limit)
        if decoder.is_hopeless:
            raise RecordRefused(Reason.UNDECODABLE)
        try:
            content = decoder.decode(body)
        except DecodedTooBig:
            raise RecordRefused(Reason.TOO_BIG) from None
        if len(content) > limit:
            raise RecordRefused(Reason.TOO_BIG)
        if not record.is_robots and media_types.is_other_xml(content_type, content):
            raise RecordRefused(Reason.NOT_TEXT)
        if decoder.understood:
            record.headers.pop(b"Content-Encoding", None)
        return content


def _join_chunks(body: bytes) -> bytes:
    """The content of the chunks (RFC 9112, section 7.1) in *body*, as far as they go.

    Without chunks *body* itself: many archives join the chunks but leave the header.
    """
    content = bytearray()
    chunked = Chunked()
    with suppress(BadHttp):
        for piece in chunked.unframe(body):
            content += piece
    return bytes(content) if content or chunked.is_over else body


def _seconds(date: str) -> float | None:
    """A WARC-Date (W3CDTF, UTC) as seconds since 1970; None for anything else."""
    try:
        return datetime.fromisoformat(date.strip()).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


_PIECE_BYTES = 1 << 14  # compressed bytes that are read at a time; chosen
_MAX_BYTES = 1 << 20  # decompressed bytes that ``read`` returns at most; chosen
_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MARK = b"WARC/"
_PROBE_BYTES = 140_000  # compressed bytes that are enough for a member's first decompressed ones: a block of zstd
_PACKED = re.compile(b"|".join(map(re.escape, (_GZIP, _ZSTD))))
_ANY = re.compile(b"|".join(map(re.escape, (_GZIP, _ZSTD, _MARK))))
_BROKEN = (zlib.error, zstd.ZstdError, EOFError, ValueError)


class _Gzip:
    """zlib with the interface of zstd's decompressor."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max_length)


class _Plain:
    """A codec that changes nothing: an archive that is not compressed is one member, up to the first damage."""

    eof = False
    needs_input = True
    unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return data


class Members:
    """The members of one archive in order: gzip, zstd or plain.

    A *member* is a gzip member or a zstd frame.  By the WARC standard each record has its own, so reading can begin at
    any of them; one member for the whole file is read as well.  Memory stays bounded whatever a member decompresses to.
    Damage ends a member; ``resync`` finds the next one that begins a record, in a plain archive the next record.

    FastWARC, which parses the records, could decompress them, too.  But its iterator ends at the first damage, gives
    all records of a member one position, so that none can be resumed alone, and does not tell that a file is cut.
    """

    def __init__(self, raw: Raw, start: int) -> None:
        """Begin with the member at byte *start*."""
        self._raw = raw
        self._ready = b""  # compressed bytes that were read and not yet taken
        self.offset = 0  # place in the archive of the next byte to take
        self._is_plain = not self._peek(4).startswith((_GZIP, _ZSTD))
        if start > 0:
            self.seek(start)

    def next(self, start: int = 0) -> Member | None:
        """The next member, from its decompressed byte *start* on; None at the end, or where none begins."""
        head = self._peek(4)
        codec = self._codec(head) if head else None
        return None if codec is None else Member(self, codec, start)

    def is_at_end(self) -> bool:
        """Skip padding; return whether the archive ends there."""
        while data := self.take():
            rest = data.lstrip(b"\0\r\n")
            if rest:
                self.put_back(rest)
                return False
        return True

    def resync(self) -> bool:
        """Go to the next member that begins a record; False when there is none."""
        while True:
            found = (_ANY if self._is_plain else _PACKED).search(self._ready)
            self._pass_over(found.start() if found else len(self._ready) - len(_MARK) + 1)
            if found and self._begins_record():
                return True
            if found:
                self._pass_over(1)
            elif not self._more():
                self._pass_over(len(self._ready))
                return False

    def take(self) -> bytes:
        """Some of the next compressed bytes; none at the end."""
        self._peek(1)
        return self._pass_over(len(self._ready))

    def put_back(self, data: bytes) -> None:
        """Put back *data*, the last bytes that ``take`` returned."""
        self._ready = data + self._ready
        self.offset -= len(data)

    def _codec(self, head: bytes) -> _Gzip | _Plain | zstd.ZstdDecompressor | None:
        """What decompresses a member that begins with *head*; None if none does."""
        if head.startswith(_GZIP):
            return _Gzip()
        if head == _ZSTD:
            return zstd.ZstdDecompressor()
        return _Plain() if self._is_plain else None

    def _begins_record(self) -> bool:
        """Whether the next member begins a record."""
        codec = self._codec(self._peek(4))
        try:
            return codec is not None and codec.decompress(self._peek(_PROBE_BYTES), len(_MARK)).startswith(_MARK)
        except _BROKEN:
            return False

    def _peek(self, number: int) -> bytes:
        """The next *number* bytes, fewer only if the archive ends before."""
        while len(self._ready) < number and self._more():
            pass
        return self._ready[:number]

    def _more(self) -> bool:
        data = self._raw.read(_PIECE_BYTES)
        self._ready += data
        return bool(data)

    def _pass_over(self, number: int) -> bytes:
        """Take the next *number* bytes, as far as they are ready."""
        data = self._ready[: max(0, number)]
        self._ready = self._ready[len(data) :]
        self.offset += len(data)
        return data

    def seek(self, offset: int) -> None:
        self._raw.seek(offset)
        self._ready = b""
        self.offset = offset


class Member:
    """One member, with the two methods of a file that FastWARC calls: ``read`` and ``tell``."""

    def __init__(self, members: Members, codec: _Gzip | zstd.ZstdDecompressor | _Plain, start: int) -> None:
        """Begin at the decompressed byte *start*."""
        self._members = members
        self._codec = codec
        self._is_plain = isinstance(codec, _Plain)
        self.offset = members.offset  # place in the archive at which it begins
        self.is_over = False  # whether it ended, or cannot be decompressed further
        self.is_whole = False  # whether it ended as it should
        self._ready = b""
        self._given = 0
        while self._given < start and self.read(start - self._given):
            pass

    def position(self, at: int) -> Position:
        """Where the record at the decompressed byte *at* begins; in a plain archive, a member of its own."""
        return Position(self.offset + at) if self._is_plain else Position(self.offset, at)

    def give_up(self, at: int) -> None:
        """End it, because of damage before the decompressed byte *at*; a plain archive can be read on from there."""
        if self._is_plain:
            self._members.seek(self.offset + at)
            self.is_over = True
            self.is_whole = False

    def tell(self) -> int:
        """Decompressed bytes that were read."""
        return self._given

    def read(self, size: int = _MAX_BYTES) -> bytes:
        """Some of the next decompressed bytes, at most *size*; none where the member ends or is damaged."""
        while not self._ready and not self.is_over:
            self._ready = self._decompress()
        data = self._ready[:size]
        self._ready = self._ready[size:]
        self._given += len(data)
        return data

    def _decompress(self) -> bytes:
        codec = self._codec
        begin = self._members.offset
        taken = self._members.take() if codec.needs_input else b""
        try:
            data = codec.decompress(taken, _MAX_BYTES)
        except _BROKEN:
            is_first = begin == self.offset
            self._members.put_back(taken[1:] if is_first else taken)  # or resync would find this member again
            self.is_over = True
            return b""
        if codec.eof:
            self._members.put_back(codec.unused_data)
            self.is_over = True
            self.is_whole = True
        elif not taken and not data and codec.needs_input:
            self.is_over = True
            self.is_whole = self._is_plain
        return data
