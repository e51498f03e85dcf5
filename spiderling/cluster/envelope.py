"""What makes bytes in Redis a message of this crawl: its version, its addresses, its number, its code of authenticity.

Whoever can write to Redis can write anything there.  So each message ends with a keyed hash (BLAKE2b, RFC 7693) of all
that it says and of where it stands; one without the right code is not read any further.
Repeated messages are told by their numbers (inbox.py), those of another crawl by the crawl's id.
"""

from __future__ import annotations

import hmac
import struct
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

VERSION = 1
"""Version of the wire; shards of different versions never work together."""
CRAWL_ID_BYTES = 16
CODE_BYTES = 16
"""Chosen: 128 bits, which nobody guesses."""
_MAX_KEY_BYTES = 64
"""The longest key of BLAKE2b."""
_PLACE = struct.Struct("!BB16sHHIQ")


class Kind(IntEnum):
    """What the content is."""

    MESSAGE = 1
    RECEIPT = 2
    STATUS = 3
    END = 4
    """That the crawl is over, whoever says it."""
    FILES = 5
    """The site files that a shard wants of others."""
    FILE = 6
    """One of them."""
    TOTALS = 7
    """What a shard has done, whoever says it."""
    CONTROL = 8
    """The text of control.yaml."""
    CLAIM = 9
    """Machine and JOBDIR of a shard, whoever says it."""
    MAP = 10
    """The shard map, whoever says it."""


class Place(NamedTuple):
    """Where a message stands; receipts and statuses have no receiver and no number."""

    kind: Kind
    sender: int
    receiver: int = 0
    epoch: int = 1
    """How often the sender's shard was taken over, from 1 on; always 1 so far."""
    number: int = 0


class Refused(ValueError):
    """Bytes that are no message of this crawl, or not at this place."""


class Seal:
    """Seals and opens the messages of one crawl."""

    def __init__(self, crawl_id: bytes, key: bytes) -> None:
        """*key*: the content of the key file; b'': the code guards against damage alone."""
        assert len(crawl_id) == CRAWL_ID_BYTES
        self.refused: set[Place] = set()
        """Where something was found that is no message of this crawl; who tells it empties this."""
        self._crawl_id = crawl_id
        self._key = blake2b(key, digest_size=_MAX_KEY_BYTES).digest() if key else b""

    def sealed(self, place: Place, content: bytes) -> bytes:
        """*content* as bytes for Redis."""
        return bytes([VERSION]) + content + self._code(place, content)

    def opened(self, place: Place, data: bytes) -> bytes:
        """The content of *data*, which was found at *place*; raises Refused."""
        content = data[1:-CODE_BYTES]
        is_ours = len(data) > CODE_BYTES and hmac.compare_digest(data[-CODE_BYTES:], self._code(place, content))
        if is_ours and data[:1] == bytes([VERSION]):
            return content
        self.refused.add(place)
        if is_ours:
            raise Refused(f"a message of version {data[0]}, not {VERSION}")
        raise Refused("a message without the code of this crawl's key")

    def _code(self, place: Place, content: bytes) -> bytes:
        code = blake2b(
            _PLACE.pack(VERSION, place.kind, self._crawl_id, *place[1:]), key=self._key, digest_size=CODE_BYTES
        )
        code.update(content)
        return code.digest()
