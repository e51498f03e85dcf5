"""Messages and receipts over Redis, from version 6.2 on.  Redis may lose everything at any time, and need keep nothing.

The stream from a to b is ``spiderling:CRAWL:a:b``; an entry has the id epoch-number, so Redis itself refuses to add a
message twice.  The receipt of a is the string ``spiderling:CRAWL:a``.  A round is one pipeline without transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, RedisError, ResponseError

from spiderling.cluster.redis_connection import connected, place_of
from spiderling.cluster.transport import Answer, Message, Round, TransportError

MOST_READ = 16
"""Messages of each sender in one answer (chosen: some thousand links, which take the frontier some milliseconds)."""
_FIELD = b"m"


class RedisTransport:
    """One shard's connection.  What it asks for is done at most once; it is the protocol that repeats."""

    def __init__(self, url: str, crawl_id: bytes, me: int) -> None:
        """*url*: that of a Redis; raises BadInput."""
        self._redis = connected(url)
        self.place = place_of(self._redis)
        self._prefix = f"spiderling:{crawl_id.hex()}:"
        self._me = me
        self._trimmed: dict[int, int] = {}
        """Receiver -> number up to which entries were taken out of the stream to it, exclusively."""

    async def exchange(self, asked: Round) -> Answer:
        """Do one round; raises TransportError."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.execute_command("SET", self._receipt(self._me), asked.receipt)
        sizes = {receiver: self._send(pipeline, asked, receiver) for receiver in asked.to}
        senders = list(asked.after)
        if senders:
            pipeline.execute_command("MGET", *map(self._receipt, senders))
            streams = [self._stream(sender, self._me) for sender in senders]
            marks = [f"{epoch}-{number}" for epoch, number in asked.after.values()]
            pipeline.execute_command("XREAD", "COUNT", MOST_READ, "STREAMS", *streams, *marks)
        try:
            results = iter(await pipeline.execute(raise_on_error=False))
        except (RedisError, OSError) as error:
            self._trimmed.clear()
            raise TransportError(self._told(error)) from error
        self._whole(next(results))
        lengths = {receiver: self._length([next(results) for _ in range(size)]) for receiver, size in sizes.items()}
        if not senders:
            return Answer({}, lengths, [])
        receipts = zip(senders, self._whole(next(results)), strict=True)
        found = dict(self._whole(next(results)) or ())
        streams_of = ((sender, found.get(stream.encode(), ())) for sender, stream in zip(senders, streams, strict=True))
        messages = [message for sender, entries in streams_of for message in _messages(sender, entries)]
        return Answer({sender: data for sender, data in receipts if data is not None}, lengths, messages)

    def _send(self, pipeline: Any, asked: Round, receiver: int) -> int:
        """Add the commands for the stream to *receiver*; returns how many."""
        outgoing = asked.to[receiver]
        stream = self._stream(self._me, receiver)
        commands: list[tuple[object, ...]] = []
        if outgoing.anew:
            commands.append(("DEL", stream))
        elif outgoing.first != self._trimmed.get(receiver):
            commands.append(("XTRIM", stream, "MINID", f"{asked.epoch}-{outgoing.first}"))
        self._trimmed[receiver] = outgoing.first
        commands += [("XADD", stream, f"{asked.epoch}-{number}", _FIELD, data) for number, data in outgoing.entries]
        commands.append(("XLEN", stream))
        for command in commands:
            pipeline.execute_command(*command)
        return len(commands)

    def _length(self, results: list[Any]) -> int:
        """The number of entries by the last of *results*; -1 if a command before it was refused."""
        for result in results:
            if isinstance(result, OutOfMemoryError) or (
                isinstance(result, RedisError) and not isinstance(result, ResponseError)
            ):
                raise TransportError(self._told(result))
        if any(isinstance(result, ResponseError) for result in results):
            return -1
        return int(results[-1])

    def _whole(self, result: Any) -> Any:
        """*result*; raises TransportError if it is an error."""
        if isinstance(result, RedisError):
            raise TransportError(self._told(result))
        return result

    def _told(self, error: Exception) -> str:
        if isinstance(error, OutOfMemoryError):
            return f"Redis at {self.place} is full ({error}): give it more maxmemory"
        if isinstance(error, (AuthenticationError, NoPermissionError)):
            return f"Redis at {self.place} refuses us ({error}): give user and password in SPIDERLING_CLUSTER"
        return f"Redis at {self.place} does not answer ({error})"

    def _stream(self, sender: int, receiver: int) -> str:
        return f"{self._prefix}{sender}:{receiver}"

    def _receipt(self, shard: int) -> str:
        return f"{self._prefix}{shard}"

    async def close(self) -> None:
        """End the connection."""
        await self._redis.aclose()


def _messages(sender: int, entries: list[Any]) -> Iterator[Message]:
    for entry, fields in entries:
        epoch, _, number = entry.partition(b"-")
        yield Message(sender, int(epoch), int(number), (fields or {}).get(_FIELD, b""))
