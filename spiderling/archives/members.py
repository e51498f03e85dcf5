"""Decompresses an archive member by member: gzip, zstd (with or without a dictionary) or plain.

A *member* is a gzip member or a zstd frame.  By the WARC standard each record has its own, so reading can begin at any
of them; one member for the whole file is read as well.  Memory stays bounded whatever a member decompresses to.  Damage
ends a member; ``resync`` finds the next one that begins a record.

FastWARC, which parses the records, could decompress them, too.  But its iterator ends at the first damage, gives all
records of a member one position, so that none can be resumed alone, and does not tell that a file is cut.
"""

from __future__ import annotations

import re
import zlib
from enum import Enum

from spiderling.archives.places import Position
from spiderling.archives.sources import Raw
from spiderling.base.zstd import zstd

_PIECE_BYTES = 1 << 14
"""Compressed bytes that are read at a time (chosen)."""
_MOST_BYTES = 1 << 20
"""Decompressed bytes that ``read`` returns at most (chosen)."""
_TAIL_BYTES = 1 << 18
"""Returned bytes that are kept, to find the next record behind a damaged one (chosen: the parser reads less ahead)."""
_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_DICTIONARY = b"\x5d" + _SKIPPABLE
_MAX_DICTIONARY_BYTES = 100_000_000
"""Bytes above which a skippable frame is taken for no dictionary (chosen)."""
_MARK = b"WARC/"
_ARC = b"filedesc://"
"""The first URL of an ARC file, that of the file itself (the format's specification of 1996)."""
_PROBE_BYTES = {_GZIP: 4096, _ZSTD: 140_000}
"""Compressed bytes that are enough for a member's first decompressed ones; zstd needs a whole block."""
_MAGIC = re.compile(b"|".join(map(re.escape, _PROBE_BYTES)))
_BROKEN = (zlib.error, zstd.ZstdError, EOFError, ValueError)


class Ending(Enum):
    """How a member ended."""

    OPEN = "it has not"
    WHOLE = "as it should"
    CUT = "with the file"
    DAMAGED = "where it could not be decompressed"


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
        """Begin with the member at ``start.member``."""
        self._raw = raw
        self._ready = b""
        """Compressed bytes that were read and not yet taken."""
        self.offset = 0
        """Place in the archive of the next byte to take."""
        self._dictionary = self._read_dictionary()
        if start.member > self.offset:
            self._seek(start.member)

    def next(self, start: int = 0) -> Member | None:
        """The next member, from its decompressed byte *start* on; None at the end, or where none begins."""
        while (head := self._peek(4))[1:] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F:
            self._skip_frame()
        if head.startswith(_GZIP):
            return Member(self, _Gzip(), start)
        if head == _ZSTD:
            return Member(self, zstd.ZstdDecompressor(self._dictionary), start)
        if self.offset or not head:
            return None
        if start:
            self._seek(start)
        return Member(self, _Plain(), start)

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
            found = _MAGIC.search(self._ready)
            self._pass_over(found.start() if found else len(self._ready) - 3)
            if found and self._begins_with(_MARK):
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

    def is_arc(self) -> bool:
        """Whether it begins as an ARC file, the Internet Archive's format before WARC."""
        return self._begins_with(_ARC)

    def _begins_with(self, mark: bytes) -> bool:
        """Whether the next member begins with *mark*."""
        head = self._peek(len(mark))
        magic = next((magic for magic in _PROBE_BYTES if head.startswith(magic)), None)
        if magic is None:
            return head == mark
        codec = _Gzip() if magic is _GZIP else zstd.ZstdDecompressor(self._dictionary)
        try:
            return codec.decompress(self._peek(_PROBE_BYTES[magic]), len(mark)) == mark
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

    def _seek(self, offset: int) -> None:
        self._raw.seek(offset)
        self._ready = b""
        self.offset = offset

    def _skip_frame(self) -> bytes:
        """Skip a skippable zstd frame; returns its content, empty if too large for a dictionary."""
        length = int.from_bytes(self._peek(8)[4:], "little")
        self._pass_over(8)
        if length > _MAX_DICTIONARY_BYTES:
            self._seek(self.offset + length)
            return b""
        self._peek(length)
        return self._pass_over(length)

    def _read_dictionary(self) -> zstd.ZstdDict | None:
        """The dictionary, perhaps compressed, with which archives of Archive Team begin; else None."""
        if self._peek(4) != _DICTIONARY:
            return None
        content = self._skip_frame()
        try:
            if content.startswith(_ZSTD):
                content = zstd.ZstdDecompressor().decompress(content, _MAX_DICTIONARY_BYTES)
            dictionary: zstd.ZstdDict = zstd.ZstdDict(content)
            zstd.ZstdDecompressor(dictionary)
        except _BROKEN:
            return None  # the frames will show that they cannot be read
        return dictionary


class Member:
    """One member, with the two methods of a file that FastWARC calls: ``read`` and ``tell``."""

    def __init__(self, members: Members, codec: _Gzip | zstd.ZstdDecompressor | _Plain, start: int = 0) -> None:
        """Begin at the decompressed byte *start*; in a plain archive *members* is there already."""
        self._members = members
        self._codec = codec
        self._is_plain = isinstance(codec, _Plain)
        self.offset = 0 if self._is_plain else members.offset
        """Place in the archive at which it begins."""
        self.ending = Ending.OPEN
        self._ready = b""
        self._tail = b""
        """The last bytes that ``read`` returned, at most _TAIL_BYTES."""
        self._given = start if self._is_plain else 0
        while self._given < start and self.read(start - self._given):
            pass

    def tell(self) -> int:
        """Decompressed bytes that were read, without those that ``find`` took back."""
        return self._given

    def read(self, size: int = _MOST_BYTES) -> bytes:
        """Some of the next decompressed bytes, at most *size*; none where the member ends or is damaged."""
        while not self._ready and self.ending is Ending.OPEN:
            self._ready = self._decompressed()
        data = self._ready[:size]
        self._ready = self._ready[size:]
        self._given += len(data)
        self._tail = (self._tail + data)[-_TAIL_BYTES:] if len(data) < _TAIL_BYTES else data[-_TAIL_BYTES:]
        return data

    def find(self, start: int) -> int | None:
        """Go to the next beginning of a record from the decompressed byte *start* on; returns its place.

        None when there is none up to the member's end.
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
        codec = self._codec
        begin = self._members.offset
        taken = self._members.take() if codec.needs_input else b""
        try:
            data = codec.decompress(taken, _MOST_BYTES)
        except _BROKEN:
            is_first = begin == self.offset
            self._members.put_back(taken[1:] if is_first else taken)  # or resync would find this member again
            self.ending = Ending.DAMAGED
            return b""
        if codec.eof:
            self._members.put_back(codec.unused_data)
            self.ending = Ending.WHOLE
        elif not taken and not data and codec.needs_input:
            self.ending = Ending.WHOLE if self._is_plain else Ending.CUT
        return data
