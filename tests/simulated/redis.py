"""A Redis in memory for simulated shards, in the virtual time: it may be away, lose everything, or hold anything."""

from __future__ import annotations

import importlib
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from spiderling.cluster import redis_transport
from spiderling.cluster.claims import Claim
from tests.simulated import strange
from tests.simulated.clock import Clock

TROUBLES = ("away", "emptied", "hostile")
_ENTRY = struct.Struct("!HI")  # of an entry in an inbox: its sender, and the bytes that follow
_REMEMBERED = 30  # former values of a key that may come back; chosen
LATER = (0.0, 1.0, 1e9, 1e12, 1e300, float("inf"))  # microseconds by which a slot is said to open later


class Redis:
    """What outlives the sessions of a history."""

    def __init__(self, clock: Clock, rng: Random, scratch: Path) -> None:
        self._fake = importlib.import_module("fakeredis")  # which only crawls with shards need
        self._server = self._fake.FakeServer(version=(7,))
        self._clock = clock
        self._rng = rng
        self._strange: set[bytes] = set()  # keys that were overwritten
        self._former: dict[bytes, list[tuple[bytes, int]]] = {}
        """Key of a string -> what stood there, each with the millisecond at which it runs out; -1: never."""
        key = scratch / "key"
        key.write_bytes(rng.randbytes(64))
        key.chmod(0o600)
        self.options: dict[str, Any] = {
            "SPIDERLING_CLUSTER": "redis://127.0.0.1/0",
            "SPIDERLING_CLUSTER_KEY_FILE": str(key),
        }

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """Within it all clients are those of this one."""
        self._server.connected = True
        client = self._fake.FakeRedis(server=self._server)
        for key in self._strange:
            if key.endswith(b":map"):  # a process without a state refuses a map that it cannot read, and names it
                client.delete(key)
        with ExitStack() as stack:
            for name, kind in (("Redis", self._fake.FakeRedis), ("AsyncRedis", self._fake.FakeAsyncRedis)):
                made = SimpleNamespace(from_url=partial(self._client, kind))
                stack.enter_context(mock.patch.object(redis_transport, name, made))
            stack.enter_context(mock.patch.object(time, "sleep", self._sleep))
            stack.enter_context(mock.patch.object(secrets, "token_hex", lambda size: self._rng.randbytes(size).hex()))
            stack.enter_context(mock.patch.object(secrets, "randbits", self._rng.getrandbits))
            # it renews a lease while a crawl is being opened, which takes no time here
            stack.enter_context(mock.patch.object(Claim, "begin_keeping"))
            yield

    def _client(self, kind: Any, url: str, **options: Any) -> Any:
        return kind(server=self._server)

    def _sleep(self, seconds: float) -> None:
        self._clock.now += seconds

    def suffer(self, trouble: str) -> None:
        """*trouble* is one of TROUBLES, "damaged", or "back"."""
        if trouble == "damaged":
            if self._server.connected:
                self._damage()
            return
        self._server.connected = True
        client = self._fake.FakeRedis(server=self._server)
        if trouble == "emptied":
            client.flushall()
        elif trouble == "hostile":
            for key in sorted(client.keys()):
                if self._rng.random() < 0.5:
                    self._strange.add(key)
                    client.delete(key)
                    client.rpush(key, "x") if self._rng.random() < 0.5 else client.set(key, self._rng.randbytes(99))
        self._server.connected = trouble != "away"

    def _damage(self) -> None:
        """Change values, or put former ones back; each key keeps its type, and each value the time when it runs out.

        Slots only come later: what Redis itself computes is believed, and an earlier one breaks an interval.
        """
        client = self._fake.FakeRedis(server=self._server)
        rng = self._rng
        self._strange.update(client.keys(), self._former)
        for key in sorted({*client.keys(), *self._former}):
            kind = client.type(key)
            if kind == b"string":
                self._former.setdefault(key, []).append((client.get(key), client.pexpiretime(key)))
            values = [value for value in self._former.get(key, ()) if not 0 <= value[1] <= self._clock.wall() * 1000]
            if rng.random() < 0.5:
                continue
            if kind == b"zset":
                client.zincrby(key, rng.choice(LATER), rng.choice(client.zrange(key, 0, -1)))
            elif kind == b"hash":
                former = client.hgetall(key)
                client.hset(key, rng.choice([*former]), self._damaged(rng.choice([*former.values()])))
            elif values:
                value, at_ms = rng.choice(values[-_REMEMBERED:])
                client.set(key, self._damaged(value, rng.choice(values)[0]), **({} if at_ms < 0 else {"pxat": at_ms}))

    def _damaged(self, value: bytes, former: bytes = b"") -> bytes:
        """*value*, its bytes changed, its end cut off, or its entries and those of a *former* one in another order."""
        kind = self._rng.randrange(4)
        if kind == 0:
            return strange.garbled(self._rng, value, _ENTRY.size)
        if kind == 1:
            return value[: self._rng.randrange(len(value) + 1)]
        entries = [*_entries(value), *_entries(former)] if kind == 2 else []
        return b"".join(self._rng.choices(entries, k=len(entries))) or value


def _entries(inbox: bytes) -> Iterator[bytes]:
    while len(inbox) > _ENTRY.size:
        end = _ENTRY.size + _ENTRY.unpack_from(inbox)[1]
        yield inbox[:end]
        inbox = inbox[end:]
