"""What carries messages between shards, as the protocol sees it: one round trip at a time.

For each pair of shards there is a stream, which its sender alone writes: it adds messages in the order of their
numbers, and takes out what was acknowledged.  For each shard there is a receipt, which it alone replaces.  A transport
may lose all of this at any time, and may be late with it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Outgoing(NamedTuple):
    """What becomes of the stream to one shard."""

    first: int
    """Messages with lower numbers are taken out."""
    entries: list[tuple[int, bytes]]
    """Numbers and messages to be added."""
    anew: bool = False
    """Whether the stream is emptied before."""


class Message(NamedTuple):
    """A message as it was found in a stream."""

    sender: int
    epoch: int
    number: int
    data: bytes


class Round(NamedTuple):
    """What a shard asks of the transport."""

    epoch: int
    receipt: bytes
    to: dict[int, Outgoing]
    """By the number of the receiver."""
    after: dict[int, tuple[int, int]]
    """For each other shard, epoch and number of the last message that is known of it."""
    spoilt: frozenset[int] = frozenset()
    """Those whose stream holds another message than their next; it is emptied, and they fill it anew."""


class Answer(NamedTuple):
    """What a shard gets."""

    receipts: dict[int, bytes]
    """By the shard that gave it; those that there are."""
    lengths: dict[int, int]
    """Receiver -> number of entries in the stream to it; -1: an entry could not be added."""
    messages: list[Message]


class TransportError(Exception):
    """The transport is away or refuses; what was asked may have been done, in part or not at all."""


class Transport(Protocol):
    """Carries messages; tests/contract/test_transport.py tests each implementation."""

    async def exchange(self, asked: Round) -> Answer:
        """Do what is *asked*, and return what there is for this shard; raises TransportError."""

    async def close(self) -> None:
        """End the connection."""
