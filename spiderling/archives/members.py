"""The decompressed content of an archive, member by member: gzip, zstd (with or without a dictionary) or plain.

By the WARC standard each record is a gzip member or zstd frame of its own, so that reading can begin at any of them;
one member for the whole file is read as well.  Memory stays bounded whatever a member decompresses to.  Damage ends a
member; ``resync`` finds the next one that begins a record.

FastWARC, which parses the records, could decompress them too.  But its iterator ends at the first damage, gives all
records of one member the same position, from which none can be resumed alone, and does not tell that a file is cut.
"""

from __future__ import annotations

import re
import sys
import zlib
from enum import Enum
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from spiderling.archives.places import Position
from spiderling.archives.raw import Raw

_PIECE_BYTES = 1 << 14
"""Compressed bytes that are read at a time."""
_MOST_BYTES = 1 << 20
"""Decompressed bytes that are given out at a time."""
_TAIL_BYTES = 1 << 18
"""Decompressed bytes that are kept, to find the next record if one is damaged; the parser reads less ahead."""
_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_DICTIONARY = b"\x5d" + _SKIPPABLE
_MAX_DICTIONARY_BYTES = 100_000_000
_MARK = b"WARC/"
_PROBE_BYTES = {_GZIP: 4096, _ZSTD: 140_000}
"""Compressed bytes in which a member shows how it begins; zstd gives out whole blocks."""
_MAGIC = re.compile(b"|".join(map(re.escape, _PROBE_BYTES)))
_BROKEN = (zlib.error, zstd.ZstdError, EOFError, ValueError)


class Ending(Enum):
    """How a member ended."""

    OPEN = "it has not"
    WHOLE = "as it should"
    CUT = "with the file"
    DAMAGED = "where it could not be decompressed"


class _Codec(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


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
    """A codec that changes nothing: an archive that is not compressed is one member."""

    eof = False
    needs_input = True
    unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return data


class Members:
    """The members of one archive in order."""

    def __init__(self, raw: Raw, start: Position) -> None:
        """Begin with the member that holds *start*."""
        self._raw = raw
        self._piece = b""
        self._at = 0
        self._before = 0
        self._dictionary: zstd.ZstdDict | None = None
        self._read_dictionary()
        if start.member > self.offset:
            self._seek(start.member)

    @property
    def offset(self) -> int:
        """Bytes of the archive before the next one that is read."""
        return self._before + self._at

    def next(self, start: int = 0) -> Member | None:
        """The next member, from its decompressed byte *start* on; None at the end, or where none begins."""
        self._need(4)
        head = self._piece[self._at : self._at + 4]
        while head[1:] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F:
            self._skip_frame()
            self._need(4)
            head = self._piece[self._at : self._at + 4]
        if head.startswith(_GZIP):
            return Member(self, _Gzip(), start)
        if head == _ZSTD:
            return Member(self, zstd.ZstdDecompressor(self._dictionary), start)
        if self.offset or not head:
            return None
        if start:
            self._seek(start)
        return Member(self, _Plain(), start, is_plain=True)

    def is_at_end(self) -> bool:
        """Whether nothing but padding follows; padding is passed over."""
        while self._need(1):
            rest = self._piece[self._at :].lstrip(b"\0\r\n")
            self._at = len(self._piece) - len(rest)
            if rest:
                return False
        return True

    def resync(self) -> bool:
        """Go on to the next member that begins a record; False when there is none."""
        while True:
            found = _MAGIC.search(self._piece, self._at)
            if found:
                self._at = found.start()
                if self._begins_record():
                    return True
                self._at += 1
                continue
            self._at = max(self._at, len(self._piece) - 3)
            if not self._more():
                self._at = len(self._piece)
                return False

    def take_bytes(self) -> bytes:
        """Some of the next compressed bytes; none at the end."""
        self._need(1)
        data = self._piece[self._at :]
        self._at = len(self._piece)
        return data

    def put_back(self, number: int) -> None:
        """Put back the last *number* bytes that ``take_bytes`` returned."""
        self._at = len(self._piece) - number

    def _begins_record(self) -> bool:
        magic = _GZIP if self._piece.startswith(_GZIP, self._at) else _ZSTD
        self._need(_PROBE_BYTES[magic])
        codec = _Gzip() if magic == _GZIP else zstd.ZstdDecompressor(self._dictionary)
        try:
            return codec.decompress(self._piece[self._at : self._at + _PROBE_BYTES[magic]], len(_MARK)) == _MARK
        except _BROKEN:
            return False

    def _need(self, number: int) -> bool:
        """Read until *number* bytes are ready; False if the archive ends before."""
        while len(self._piece) - self._at < number:
            if not self._more():
                return False
        return True

    def _more(self) -> bool:
        data = self._raw.read(_PIECE_BYTES)
        self._before += self._at
        self._piece = self._piece[self._at :] + data
        self._at = 0
        return bool(data)

    def _seek(self, offset: int) -> None:
        self._raw.seek(offset)
        self._piece = b""
        self._at = 0
        self._before = offset

    def _skip_frame(self) -> bytes:
        """Pass over a skippable frame of zstd; returns what it holds, if that may be a dictionary."""
        self._need(8)
        length = int.from_bytes(self._piece[self._at + 4 : self._at + 8], "little")
        self._at += 8
        if length > _MAX_DICTIONARY_BYTES:
            self._seek(self.offset + length)
            return b""
        self._need(length)
        content = self._piece[self._at : self._at + length]
        self._at += len(content)
        return content

    def _read_dictionary(self) -> None:
        """The archive's dictionary, if it begins with one (as Archive Team writes them), which may be compressed."""
        self._need(4)
        if not self._piece.startswith(_DICTIONARY):
            return
        content = self._skip_frame()
        try:
            if content.startswith(_ZSTD):
                content = zstd.ZstdDecompressor().decompress(content, _MAX_DICTIONARY_BYTES)
            dictionary = zstd.ZstdDict(content)
            zstd.ZstdDecompressor(dictionary)
        except _BROKEN:
            return  # the frames will show that they cannot be read
        self._dictionary = dictionary


class Member:
    """One member, with the two methods of a file that FastWARC calls: ``read`` and ``tell``."""

    def __init__(self, members: Members, codec: _Codec, start: int = 0, is_plain: bool = False) -> None:
        self._members = members
        self._codec = codec
        self._is_plain = is_plain
        self.offset = 0 if is_plain else members.offset
        """Bytes of the archive before it."""
        self.ending = Ending.OPEN
        self._has_begun = False
        self._ready = b""
        self._tail = b""
        self._given = start if is_plain else 0
        while self._given < start and self.read(start - self._given):
            pass
        self._tail = b""

    def tell(self) -> int:
        """Decompressed bytes that were given out, without those that ``find`` took back."""
        return self._given

    def read(self, size: int = -1) -> bytes:
        """Some of the next decompressed bytes, at most *size*; none where the member ends or is damaged."""
        while not self._ready and self.ending is Ending.OPEN:
            self._ready = self._decompressed()
        size = _MOST_BYTES if size < 0 else size
        data = self._ready[:size]
        self._ready = self._ready[size:]
        self._given += len(data)
        self._tail = (self._tail + data)[-_TAIL_BYTES:] if len(data) < _TAIL_BYTES else data[-_TAIL_BYTES:]
        return data

    def find(self, start: int) -> int | None:
        """Where the next record seems to begin, at the decompressed byte *start* or behind it; reading goes on there.

        None when there is none before the member ends.
        """
        begin = self._given - len(self._tail)
        data = self._tail
        at = max(0, start - begin)
        while (found := data.find(_MARK, at)) < 0:
            begin = begin + max(0, len(data) - len(_MARK))
            data = data[-len(_MARK) :]
            self._tail = b""
            more = self.read()
            if not more:
                return None
            data = data + more
            at = 0
        self._ready = data[found:] + self._ready
        self._tail = b""
        self._given = begin + found
        return self._given

    def _decompressed(self) -> bytes:
        members = self._members
        codec = self._codec
        taken = members.take_bytes() if codec.needs_input else b""
        try:
            data = codec.decompress(taken, _MOST_BYTES)
        except _BROKEN:
            members.put_back(
                max(0, len(taken) - (not self._has_begun))
            )  # without the beginning, or it would be found again
            self.ending = Ending.DAMAGED
            return b""
        self._has_begun = True
        if codec.eof:
            members.put_back(len(codec.unused_data))
            self.ending = Ending.WHOLE
        elif not taken and not data and codec.needs_input:
            self.ending = Ending.WHOLE if self._is_plain else Ending.CUT
        return data
