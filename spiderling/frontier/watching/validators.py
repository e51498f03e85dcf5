"""What is noted of a page's answer, by which the page can be asked again (RFC 9110, 8.8)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from spiderling.base.errors import DamageError

MAX_ETAG_BYTES = 40
"""Of an ETag; a longer one is not stored (chosen: those of usual servers have up to 35)."""
_FIXED = struct.Struct("<QIB")


class Validators(NamedTuple):
    """Of one version of a page."""

    text_key: int = 0
    """64 bits of the digest of its text; 0: unknown."""
    modified: int = 0
    """Last-Modified, seconds since 1970; 0: none."""
    etag: bytes = b""

    @property
    def are_sent(self) -> bool:
        """Whether there is something by which a server can say that the page is as it was."""
        return bool(self.etag or self.modified)

    def packed(self) -> bytes:
        return _FIXED.pack(self.text_key, self.modified, len(self.etag)) + self.etag


def unpacked(packed: bytes) -> Iterator[Validators]:
    """The validators whose packed forms stand in a row; raises DamageError."""
    at = 0
    while at < len(packed):
        try:
            text_key, modified, length = _FIXED.unpack_from(packed, at)
        except struct.error as error:
            raise DamageError(f"validators of pages are damaged: {error}.") from None
        at += _FIXED.size + length
        yield Validators(text_key, modified, packed[at - length : at])
