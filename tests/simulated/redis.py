"""A Redis in memory for simulated shards, in the virtual time: it may be away, lose everything, or hold anything."""

from __future__ import annotations

import importlib
import secrets
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
from tests.simulated.clock import Clock

TROUBLES = ("away", "emptied", "hostile")


class Redis:
    """What outlives the sessions of a history."""

    def __init__(self, clock: Clock, rng: Random, scratch: Path) -> None:
        self._fake = importlib.import_module("fakeredis")  # which only crawls with shards need
        self._server = self._fake.FakeServer(version=(7,))
        self._clock = clock
        self._rng = rng
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
        """*trouble* is one of TROUBLES, or "back"."""
        self._server.connected = True
        client = self._fake.FakeRedis(server=self._server)
        if trouble == "emptied":
            client.flushall()
        elif trouble == "hostile":
            for key in sorted(client.keys()):
                if self._rng.random() < 0.5:
                    client.delete(key)
                    client.rpush(key, "x") if self._rng.random() < 0.5 else client.set(key, self._rng.randbytes(99))
        self._server.connected = trouble != "away"
