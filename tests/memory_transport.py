"""A transport between shards within one process, with the rules of Redis Streams, and with every fault on request."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from spiderling.cluster.exchange import Answer, Message, Round, TransportError

MAX_READ = 16  # messages of one sender in one answer


@dataclass
class Stream:
    entries: dict[int, bytes] = field(default_factory=dict)
    last: int = 0  # the number of the newest entry, also of one that is gone: later ones must be higher


class Streams:
    """What a server holds for all shards."""

    def __init__(self) -> None:
        self.streams: dict[tuple[int, int], Stream] = {}
        self.receipts: dict[int, bytes] = {}
        self.old_receipts: dict[int, list[bytes]] = {}
        self.is_away = False

    def forget_all(self) -> None:
        self.streams.clear()
        self.receipts.clear()

    def lose_some(self, chance: Random) -> None:
        """As after a crash whose log was not whole; a stream remembers its newest number, or has lost that too."""
        for stream in self.streams.values():
            for entry in [entry for entry in stream.entries if chance.random() < 0.4]:
                del stream.entries[entry]
            if chance.random() < 0.3:
                stream.last = max(stream.entries, default=0)
        for shard in [shard for shard in self.receipts if chance.random() < 0.3]:
            del self.receipts[shard]

    def longest(self) -> int:
        """Entries of the longest stream."""
        return max((len(stream.entries) for stream in self.streams.values()), default=0)

    def exchange(self, me: int, asked: Round) -> Answer:
        if self.is_away:
            raise TransportError("away")
        self.receipts[me] = asked.receipt
        self.old_receipts.setdefault(me, []).append(asked.receipt)
        for pair in asked.emptied:
            self.streams.pop(pair, None)
        lengths = {}
        for receiver, added in asked.messages.items():
            stream = self.streams.setdefault((me, receiver), Stream())
            for entry in [entry for entry in stream.entries if entry <= asked.acknowledged[receiver]]:
                del stream.entries[entry]
            is_whole = True
            for number, data in added:
                if number <= stream.last:
                    is_whole = False
                else:
                    stream.last = number
                    stream.entries[number] = data
            lengths[receiver] = len(stream.entries) if is_whole else -1
        messages = []
        for sender, after in asked.taken.items():
            entries = self.streams.get((sender, me), Stream()).entries
            found = sorted(entry for entry in entries if entry > after)[:MAX_READ]
            messages += [Message(sender, entry, entries[entry]) for entry in found]
        receipts = {sender: self.receipts[sender] for sender in asked.taken if sender in self.receipts}
        return Answer(receipts, lengths, messages)


class MemoryTransport:
    """One shard's connection to them."""

    def __init__(self, streams: Streams, me: int) -> None:
        self._streams = streams
        self._me = me

    async def exchange(self, asked: Round) -> Answer:
        return self._streams.exchange(self._me, asked)

    async def close(self) -> None:
        pass
