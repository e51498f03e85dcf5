"""What a crawl has in Redis, from version 6.2 on, and how messages go through it.

Redis may lose everything at any time, and need keep nothing.  What is asked for is done at most once, and waits for no
longer than TIMEOUT_S.  A shard has one inbox, a string to which others append, and a round is one call of a script.  So
a round costs by what is sent in it, however many shards there are.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections.abc import Mapping
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, NoScriptError, OutOfMemoryError, RedisError
from redis.retry import Retry

from spiderling.base.errors import BadInput
from spiderling.base.machine import elapsed_s
from spiderling.cluster.content import Seal
from spiderling.cluster.exchange import TransportError

logger = logging.getLogger(__name__)

_REPORTED_S = 600.0  # seconds in which the same is reported once; chosen
_MEND = """local thrown = {}
for at, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= ARGV[at] then
    redis.call('DEL', key)
    thrown[#thrown + 1] = key
  end
end
return thrown"""
"""Arguments: the type of each key.  Throws away those of another type, and answers with their names."""


def key_types(seal: Seal, map_key: str, shards: int) -> dict[str, str]:
    """Each key that a crawl of so many *shards* has -> its type in Redis.

        spiderling:LANG:NAME:map       the shard map, which also stands in the state of each shard: *map_key*
        spiderling:CRAWL:shards        number -> machine and JOBDIR of the shard, for ever, and what it has done
        spiderling:CRAWL:lease:N       who runs shard N now, and its status; it runs out by itself
        spiderling:CRAWL:file:N:NUMBER a site file that shard N wants of others: a string, which is not listed here
        spiderling:CRAWL:slots         address -> when other shards may start there (slots.py)
        spiderling:CRAWL:over          for a minute after the end
        spiderling:CRAWL:inbox:N       what others say to shard N (exchange.py)

    Redis may lose them all: shards that run put back what they know.  So whatever else is found there counts as lost,
    and one line tells it.  All but the slots bear a code of authenticity (`Seal`).  Redis itself computes the slots,
    and a key that it is given is no secret; what cannot be a slot is cut down, and no slot replaces a shard's own
    intervals.
    """
    strings = [seal.key(name, shard) for name in ("lease", "inbox") for shard in range(shards)]
    others = {seal.key("slots"): "zset", seal.key("shards"): "hash"}
    return others | dict.fromkeys([map_key, seal.key("over"), *strings], "string")


class StrangeValues:
    """Reports what a Redis held that no shard of this crawl can have written."""

    def __init__(self, server: str) -> None:
        """*server*: its address, as people may see it."""
        self._server = server
        self._reported: dict[str, float] = {}

    def report(self, key: str) -> None:
        """Something else stood under *key*, and counts as lost; reported once in a while."""
        now = elapsed_s()
        if now - self._reported.get(key, -math.inf) >= _REPORTED_S:
            self._reported[key] = now
            logger.warning(
                "Redis at %s held something else in the place of %s: it is thrown away, and nothing is lost by that. "
                "Who else writes to that Redis?", self._server, key
            )  # fmt: skip


def mend(redis: Any, types: dict[str, str]) -> Any:
    """Throw away each of the keys in *types* that has another type there; returns what eval of *redis* does: names."""
    return redis.eval(_MEND, len(types), *types, *types.values())


TIMEOUT_S = 5.0  # seconds in which Redis must answer; chosen: a round takes it a millisecond
_CANCEL_AGAIN_S = 0.1  # seconds after which a task that goes on is cancelled again; chosen


def may_pass(error: Exception) -> bool:
    """Whether Redis may be as it should a moment later: it is away, full, a replica, loading ..."""
    return not isinstance(error, (AuthenticationError, NoPermissionError))


def connect(url: str, blocks: bool = False) -> Any:
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


async def end_tasks(*tasks: asyncio.Task[None]) -> None:
    """Cancel *tasks* that call Redis, and wait for them.

    redis-py 8.1 sends within ``asyncio.wait_for``, which in Python 3.11 loses a cancellation that comes when the
    sending has just ended.  So they are cancelled until they have ended.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=_CANCEL_AGAIN_S)


class Script:
    """A script in Redis, over a connection of its own: what a client does around each call costs as much again."""

    def __init__(self, redis: Any, text: str) -> None:
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


INBOX_BYTES = 1 << 20
"""Bytes in an inbox from which on it takes no more.  Chosen: what a shard takes in a second; a thousand shards that do
not run have 1 GB."""
MOST_BYTES = 32 << 20  # bytes that are read of one: more than the longest message above those
ROUND = """local first = redis.pcall('APPEND', KEYS[1], '')
if type(first) == 'table' then
  if not string.find(first.err, 'OOM', 1, true) then return first end
  return redis.error_reply('OOM command not allowed, since its memory is used up')
end
local told = {}
for at = 2, #KEYS do
  if redis.call('STRLEN', KEYS[at]) < tonumber(ARGV[2]) then
    redis.call('APPEND', KEYS[at], ARGV[at + 1])
  else
    told[#told + 1] = at - 2
  end
end
local inbox = ''
if ARGV[1] ~= '0' then
  inbox = redis.call('GETRANGE', KEYS[1], 0, ARGV[1] - 1)
  redis.call('DEL', KEYS[1])
end
return table.concat(told, ' ') .. string.char(10) .. inbox"""
"""Keys: the own inbox, and others.  Arguments: how many bytes of the own one are read, at how many another one is full,
and what each of the others is given.  Empties the own one.  Answers with the places of the others that are full, and
behind a newline with what was in the own one.  The first command fails if Redis is full."""


class RedisTransport:
    """One shard's connection.  What it asks for is done at most once; it is the protocol that repeats."""

    def __init__(self, url: str, crawl_id: bytes, me: int) -> None:
        """*url*: that of a Redis; raises BadInput."""
        redis = connect(url)
        self.place = place_of(redis)
        self._script = Script(redis, ROUND)
        self._prefix = f"spiderling:{crawl_id.hex()}:inbox:"
        self._me = me

    async def exchange(self, outgoing: Mapping[int, bytes], is_emptied: bool = True) -> tuple[bytes, list[int]]:
        """Add to the inboxes of others; returns what the own one held, if it *is_emptied*, and whose were full."""
        keys = [f"{self._prefix}{shard}" for shard in (self._me, *outgoing)]
        most = MOST_BYTES if is_emptied else 0
        try:
            answer = await self._script.call(len(keys), *keys, most, INBOX_BYTES, *outgoing.values())
        except (RedisError, OSError) as error:
            raise TransportError(self._explain(error)) from error
        full, _, inbox = answer.partition(b"\n")
        receivers = list(outgoing)
        return inbox, [receivers[int(at)] for at in full.split()]

    def _explain(self, error: Exception) -> str:
        if isinstance(error, OutOfMemoryError):
            return f"Redis at {self.place} is full ({error}): give it more maxmemory"
        if isinstance(error, (AuthenticationError, NoPermissionError)):
            return f"Redis at {self.place} refuses us ({error}): give user and password in SPIDERLING_CLUSTER"
        return f"Redis at {self.place} does not answer ({error})"

    async def close(self) -> None:
        await self._script.close()
