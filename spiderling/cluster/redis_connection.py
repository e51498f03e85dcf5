"""How a shard connects to Redis: what is asked for is done at most once, and waits for no longer than TIMEOUT_S."""

from __future__ import annotations

import hashlib
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, BusyLoadingError, NoScriptError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from spiderling.base.errors import BadInput

TIMEOUT_S = 5.0
"""Seconds in which Redis must answer (chosen: a round takes it a millisecond)."""

_MAY_PASS = ("OOM", "OUTOFMEMORY", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "TRYAGAIN")
"""In what a Redis answers that is there and takes nothing for now: full, a replica, loading ..."""


def may_pass(error: RedisError) -> bool:
    """Whether Redis may be as it should a moment later."""
    if isinstance(error, AuthenticationError):
        return False
    is_away = isinstance(error, (RedisConnectionError, RedisTimeoutError, BusyLoadingError))
    return is_away or any(word in f"{type(error).__name__} {error}".upper() for word in _MAY_PASS)


def connected(url: str, blocks: bool = False) -> Any:
    """A client of the Redis at *url*: redis://, rediss:// (TLS) or unix://, as redis-py reads it; raises BadInput.

    *blocks*: it is used where no event loop waits for anything else.
    """
    kind: Any = Redis if blocks else AsyncRedis
    retry = Retry(NoBackoff(), 0) if blocks else AsyncRetry(NoBackoff(), 0)
    try:
        return kind.from_url(
            url,
            protocol=2,
            decode_responses=False,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=retry,
            driver_info=None,  # the command that would tell it is younger than 6.2
        )
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"SPIDERLING_CLUSTER is no address of a Redis: {error}. Give one such as redis://host:6379/0, "
            "rediss://host:6380/0 or unix:///run/redis.sock."
        ) from error


def place_of(client: Any) -> str:
    """The address of *client* as people may see it: without user and password."""
    address = client.connection_pool.connection_kwargs
    if "path" in address:
        return str(address["path"])
    return f"{address.get('host', 'localhost')}:{address.get('port', 6379)}"


class Script:
    """A script in Redis, over a connection of its own: what a client does around each call costs as much again."""

    def __init__(self, redis: Any, text: str) -> None:
        """*redis*: a client."""
        self._connection = redis.connection_pool.make_connection()
        self._text = text
        self._sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        """By which Redis knows the script once it has run."""

    async def call(self, *arguments: object) -> bytes:
        """The answer to *arguments*, the number of keys first; raises RedisError or OSError, and then connects anew."""
        try:
            return await self._answer("EVALSHA", self._sha, *arguments)
        except NoScriptError:  # of a Redis that has just started
            return await self._answer("EVAL", self._text, *arguments)

    async def _answer(self, *command: object) -> bytes:
        await self._connection.send_command(*command)
        return bytes(await self._connection.read_response())

    async def close(self) -> None:
        """End the connection, also in the middle of a call."""
        await self._connection.disconnect(nowait=True)
