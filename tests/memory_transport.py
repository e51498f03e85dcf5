"""A transport between shards within one process, with the rules of the inboxes in Redis, and every fault on request."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from random import Random

from spiderling.cluster import redis_transport
from spiderling.cluster.exchange import TransportError

FRAME = struct.Struct("!HI")  # sender and bytes of an entry


def entries(inbox: bytes) -> list[bytes]:
    """The entries of *inbox*, which is whole."""
    found = []
    while inbox:
        size = FRAME.size + FRAME.unpack_from(inbox)[1]
        found.append(inbox[:size])
        inbox = inbox[size:]
    return found


class Inboxes:
    """What a server holds for all shards."""

    def __init__(self) -> None:
        self.held: dict[int, bytes] = {}
        self.is_away = False

    def forget_all(self) -> None:
        self.held.clear()

    def lose_some(self, chance: Random) -> None:
        """As if an inbox was put back from a while ago, or was lost."""
        self.held = {shard: chance.choice([b"", held, held + held]) for shard, held in self.held.items()}

    def longest(self) -> int:
        """Bytes of the fullest inbox."""
        return max(map(len, self.held.values()), default=0)

    def exchange(self, me: int, outgoing: Mapping[int, bytes], is_emptied: bool = True) -> tuple[bytes, list[int]]:
        if self.is_away:
            raise TransportError("away")
        full = [shard for shard in outgoing if len(self.held.get(shard, b"")) >= redis_transport.INBOX_BYTES]
        for shard in outgoing.keys() - {*full}:
            self.held[shard] = self.held.get(shard, b"") + outgoing[shard]
        return self.held.pop(me, b"") if is_emptied else b"", full


class MemoryTransport:
    """One shard's connection to them."""

    def __init__(self, inboxes: Inboxes, me: int) -> None:
        self._inboxes = inboxes
        self._me = me

    async def exchange(self, outgoing: Mapping[int, bytes], is_emptied: bool = True) -> tuple[bytes, list[int]]:
        return self._inboxes.exchange(self._me, outgoing, is_emptied)

    async def close(self) -> None:
        pass
