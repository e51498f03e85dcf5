"""Turns WARC records into pages, or gives the Reason why one is no page.

A page is a ``response`` (or a ``resource``: a page without headers) of status 200, with a
content type that the crawl takes, and within its limits; transfer and content codings are
undone.  ``conversion`` records (Common Crawl's WET) are refused: they lack the headers and
meta tags in which pages say how their text may be used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType
from scrapy.http import Headers
from w3lib.http import headers_raw_to_dict

from spiderling.archives.members import Ending, Member, Members
from spiderling.archives.places import Position
from spiderling.archives.sources import NoWarc, Raw
from spiderling.base import media_types
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.fetch.challenges import challenge_of
from spiderling.fetch.decoding import BodyDecoder, DecodedTooBig
from spiderling.fetch.errors import NotHttp
from spiderling.fetch.http1 import Chunked

_TYPES = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.revisit | WarcRecordType.conversion
_STATUS = re.compile(rb"HTTP/[\d.]+[ \t]+(\d{3})(?!\d)")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MAX_HEAD_BYTES = 1 << 17
"""Bytes of a response's headers (chosen)."""
_MOST_TRIES = 1000
"""False beginnings of records in a row after which a member is given up (chosen)."""


@dataclass(slots=True)
class Record:
    """One record, or one damaged part of an archive."""

    position: Position
    url: str = ""
    reason: Reason | None = None
    """Why it is no page; None if it is a page or a robots.txt."""
    status: int = 0
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    length: int = 0
    """Bytes of the body in the archive, still encoded."""
    captured: float | None = None
    """WARC-Date, as seconds since 1970."""
    address: IPv4Address | IPv6Address | None = None
    """WARC-IP-Address"""
    is_robots: bool = False
    is_cut: bool = False
    """Whether it states more bytes than there are."""


class Refused(Exception):
    """A record that is no page; the argument is the Reason."""


class RecordReader:
    """Reads archives by the options of a crawl."""

    def __init__(self, options: Options, documents: frozenset[str], refusal: Callable[[CanonicalUrl], Reason | None]):
        """*documents*: kinds that are converted; *refusal*: the Reason why a URL is not wanted, else None."""
        self._options = options
        self._documents = documents
        self._refusal = refusal
        self._most_bytes = max(options.max_body_bytes, options.max_document_bytes)
        self._wants_robots = options.archive_robots == "obey"

    def records(self, raw: Raw, last: Position) -> Iterator[Record]:
        """The records and damaged parts of an archive from *last* on, in order; raises ArchiveUnread or NoWarc."""
        start = Position(max(last.member, 0), last.inner)
        members = Members(raw, start)
        if members.is_arc():
            raise NoWarc("is an ARC file; make a WARC file of it: warcio recompress OLD.arc.gz NEW.warc.gz")
        inner = start.inner if members.offset in (0, start.member) else 0
        while True:
            member = members.next(inner)
            inner = 0
            if member is None:
                if members.is_at_end():
                    return
                yield Record(Position(members.offset), reason=Reason.DAMAGED)
            else:
                told = False
                for record in self._of_member(member):
                    told = record.reason is Reason.DAMAGED
                    yield record
                if member.ending is Ending.WHOLE:
                    continue
                if not told:
                    yield Record(Position(member.offset, member.tell()), reason=Reason.DAMAGED)
            if not members.resync():
                return

    def _of_member(self, member: Member) -> Iterator[Record]:
        """The records of *member*; behind a damaged head it goes on at the next record that can be found."""
        at: int | None = member.tell()
        tries = 0
        while at is not None and tries < _MOST_TRIES:
            behind = at
            record = None
            tries += 1
            try:
                stream: Any = member  # the parser calls read and tell only
                for found in ArchiveIterator(stream, _TYPES, parse_http=False, stream_detect=False):
                    record = self._record(found, Position(member.offset, found.stream_pos))
                    yield record
                    tries = 0
                    behind = found.stream_pos + (0 if record.is_cut else max(1, found.content_length))
                if behind > member.tell():
                    yield Record(Position(member.offset, member.tell()), reason=Reason.DAMAGED)
                if record is None or not record.is_cut:
                    return
            except BaseException as error:  # the parser's PanicException is a BaseException
                if not isinstance(error, (OSError, ValueError)) and type(error).__name__ != "PanicException":
                    raise
            if member.ending is not Ending.DAMAGED and not (record and record.reason is Reason.DAMAGED):
                yield Record(Position(member.offset, behind), reason=Reason.DAMAGED)
            at = member.find(behind + 1)

    def _record(self, found: Any, position: Position) -> Record:
        record = Record(position)
        try:
            self._fill(record, found)
        except Refused as refused:
            record.reason = refused.args[0]
        return record

    def _fill(self, record: Record, found: Any) -> None:
        """Read *found*, FastWARC's record, into *record*; raises Refused."""
        if found.record_type == WarcRecordType.revisit:
            raise Refused(Reason.REVISIT)
        target = canonicalize((found.headers.get("WARC-Target-URI") or "").strip("<> \t"))
        if target is None:
            raise Refused(Reason.BAD_URL)
        record.url = target.url
        record.is_robots = target.path == "/robots.txt"
        if found.record_type == WarcRecordType.conversion or (record.is_robots and not self._wants_robots):
            raise Refused(Reason.RECORD_KIND)
        refusal = self._refusal(target)
        if refusal is not None:
            raise Refused(refusal)
        record.captured = _seconds(found.headers.get("WARC-Date") or "")
        if address := found.headers.get("WARC-IP-Address"):
            with suppress(ValueError):
                record.address = ip_address(address)
        record.length = found.content_length
        if found.content_length > self._most_bytes + _MAX_HEAD_BYTES:
            raise Refused(Reason.TOO_BIG)
        body = self._answer(record, found)
        if record.status != 200 and not record.is_robots:
            raise Refused(Reason.RECORD_STATUS)
        record.body = self._content(record, body, target)
        if challenge_of(record.status, record.headers, record.body):
            raise Refused(Reason.CHALLENGED)

    def _answer(self, record: Record, found: Any) -> bytes:
        """Set status and headers; returns the body, still content-encoded, its chunks joined.  Raises Refused."""
        block: bytes = found.reader.read(found.content_length)
        record.is_cut = len(block) < found.content_length
        if record.is_cut:
            raise Refused(Reason.DAMAGED)
        media_type = found.headers.get("Content-Type") or ""
        if found.record_type == WarcRecordType.resource:
            record.status = 200
            record.headers = Headers({b"Content-Type": media_type.encode()})
            return block
        status = _STATUS.match(block)
        end = _HEAD_END.search(block, 0, _MAX_HEAD_BYTES)
        if status is None or end is None:
            raise Refused(Reason.RECORD_KIND if media_type and "http" not in media_type else Reason.DAMAGED)
        head = block[: end.start()].partition(b"\n")[2]
        record.status = int(status[1])
        record.headers = Headers(headers_raw_to_dict(head) or {})
        body = block[end.end() :]
        record.length = len(body)
        is_chunked = b"chunked" in (record.headers.get(b"Transfer-Encoding") or b"").lower()
        return _joined(body) if is_chunked else body

    def _content(self, record: Record, body: bytes, target: CanonicalUrl) -> bytes:
        """*body* without its content coding; raises Refused."""
        names = (b"Content-Type", b"Content-Disposition")
        content_type, disposition = ((record.headers.get(name) or b"").decode("latin-1") for name in names)
        kind = media_types.of_headers(content_type, disposition, target.path)
        is_document = kind in self._documents
        if not (record.is_robots or is_document or media_types.is_text(content_type, disposition)):
            raise Refused(Reason.NOT_TEXT)
        limit = self._options.max_document_bytes if is_document else self._options.max_body_bytes
        decoder = BodyDecoder(b",".join(record.headers.getlist(b"Content-Encoding")), limit, self._options.max_ratio)
        if decoder.is_hopeless:
            raise Refused(Reason.UNDECODABLE)
        try:
            content = decoder.decode(body)
        except DecodedTooBig:
            raise Refused(Reason.TOO_BIG) from None
        if len(content) > limit:
            raise Refused(Reason.TOO_BIG)
        if not record.is_robots and media_types.is_other_xml(content_type, content):
            raise Refused(Reason.NOT_TEXT)
        if decoder.understood:
            record.headers.pop(b"Content-Encoding", None)
        return content


def _joined(body: bytes) -> bytes:
    """The content of the chunks (RFC 9112, section 7.1) in *body*, as far as they go.

    Without chunks *body* itself: many archives join the chunks but leave the header.
    """
    content = bytearray()
    chunked = Chunked()
    with suppress(NotHttp):
        for piece in chunked.unframed(body):
            content += piece
    return bytes(content) if content or chunked.is_over else body


def _seconds(date: str) -> float | None:
    """A WARC-Date (W3CDTF, UTC) as seconds since 1970; None for anything else."""
    try:
        return datetime.fromisoformat(date.strip()).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None
