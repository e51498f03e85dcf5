"""How a shard connects to Redis: what is asked for is done at most once, and waits for no longer than TIMEOUT_S."""

from __future__ import annotations

from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from spiderling.base.errors import BadInput

TIMEOUT_S = 5.0
"""Seconds in which Redis must answer (chosen: a round takes it a millisecond)."""


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
