"""What a crawl has in Redis, from version 6.2 on, and how messages and receipts go through it.

Redis may lose everything at any time, and need keep nothing.  What is asked for is done at most once, and waits for no
longer than TIMEOUT_S.

The stream from a to b is ``spiderling:CRAWL:a:b``; an entry has the id NUMBER-0, so Redis itself refuses to add a
message twice.  The receipt of a is the string ``spiderling:CRAWL:a``.  A round is one call of a script, which answers
with one string: reading an answer for each stream takes a shard three times as long.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import logging
import math
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
from spiderling.cluster.exchange import Answer, Message, Round, TransportError

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


def key_types(seal: Seal, map_key: str, me: int, shards: int) -> dict[str, str]:
    """Each key that shard *me* of a crawl of so many uses -> its type in Redis.

        spiderling:LANG:NAME:map       the shard map, which also stands in the state of each shard: *map_key*
        spiderling:CRAWL:shards        number -> machine and JOBDIR of the shard, for ever, and what it has done
        spiderling:CRAWL:lease:N       who runs shard N now, and its status; it runs out by itself
        spiderling:CRAWL:file:N:NUMBER a site file that shard N wants of others: a string, which is not listed here
        spiderling:CRAWL:slots         address -> when other shards may start there (slots.py)
        spiderling:CRAWL:over          for a minute after the end
        spiderling:CRAWL:N             the receipt of shard N
        spiderling:CRAWL:N:M           the messages from shard N to shard M

    Redis may lose them all: shards that run put back what they know.  So whatever else is found there counts as lost,
    and one line tells it.  All but the slots bear a code of authenticity (`Seal`).  Redis itself computes the slots,
    and a key that it is given is no secret; what cannot be a slot is cut down, and no slot replaces a shard's own
    intervals.
    """
    others = [shard for shard in range(shards) if shard != me]
    strings = [map_key, seal.key("over")]
    strings += [seal.key(*name, shard) for name in (("lease",), ()) for shard in range(shards)]
    streams = [seal.key(*pair) for other in others for pair in ((me, other), (other, me))]
    return {
        seal.key("slots"): "zset",
        seal.key("shards"): "hash",
        **dict.fromkeys(strings, "string"),
        **dict.fromkeys(streams, "stream"),
    }


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


MAX_READ = 16
"""Messages of each sender in one answer (chosen: some thousand links, which take the frontier some milliseconds)."""
ROUND = f"""local prefix, me, receipt, emptied, to, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local told, blobs, at = {{}}, {{}}, 6
local function tell(word) told[#told + 1] = word end
local function give(blob) blobs[#blobs + 1] = blob; tell(#blob) end
local function failed(answer) return type(answer) == 'table' and answer.err end
local full = redis.error_reply('OOM command not allowed, since its memory is used up')
local function is_full(failure) return failure and string.find(failure, 'OOM', 1, true) end
local failure = failed(redis.pcall('SET', prefix .. me, receipt))
if failure then return is_full(failure) and full or redis.error_reply(failure) end
for stream in string.gmatch(emptied, '%S+') do redis.call('DEL', prefix .. stream) end
for receiver, first, numbers in string.gmatch(to, '(%d+) (%d+) ([%d,]*);') do
  local stream = prefix .. me .. ':' .. receiver
  local refused = first ~= '0' and failed(redis.pcall('XTRIM', stream, 'MINID', first))
  for number in string.gmatch(numbers, '%d+') do
    at = at + 1
    failure = failed(redis.pcall('XADD', stream, number, 'm', ARGV[at]))
    if is_full(failure) then return full end
    refused = refused or failure
  end
  tell(refused and -1 or redis.call('XLEN', stream))
end
local senders, streams, marks = {{}}, {{}}, {{}}
for sender, mark in string.gmatch(after, '(%d+) (%d+);') do
  senders[#senders + 1] = prefix .. sender
  streams[#streams + 1] = prefix .. sender .. ':' .. me
  marks[#marks + 1] = mark
end
if #senders > 0 then
  for _, found in ipairs(redis.call('MGET', unpack(senders))) do
    if found then give(found) else tell(-1) end
  end
  local asked = {{'COUNT', {MAX_READ}, 'STREAMS'}}
  for _, stream in ipairs(streams) do asked[#asked + 1] = stream end
  for _, mark in ipairs(marks) do asked[#asked + 1] = mark end
  for _, read in ipairs(redis.call('XREAD', unpack(asked)) or {{}}) do
    for _, entry in ipairs(read[2]) do
      tell(string.match(read[1], '(%d+):%d+$'))
      tell(string.match(entry[1], '%d+'))
      give(entry[2][2] or '')
    end
  end
end
return table.concat(told, ' ') .. string.char(10) .. table.concat(blobs)"""
"""Arguments: what all keys begin with, the shard, its receipt, the streams that are emptied; for each receiver its
number, the first number to be kept (0: all), and the numbers to be added; for each sender its number and the last one
that is known; then the messages to be added.

Answers with numbers in text: the length of each stream (-1: an entry was refused); the bytes of each receipt (-1: there
is none); sender, number and bytes of each message.  Behind a newline follow receipts and messages themselves."""


class RedisTransport:
    """One shard's connection.  What it asks for is done at most once; it is the protocol that repeats."""

    def __init__(self, url: str, crawl_id: bytes, me: int) -> None:
        """*url*: that of a Redis; raises BadInput."""
        redis = connect(url)
        self.place = place_of(redis)
        self._script = Script(redis, ROUND)
        self._prefix = f"spiderling:{crawl_id.hex()}:"
        self._me = me
        self._trimmed: dict[int, int] = {}  # receiver -> number up to which messages are taken out of the stream to it

    async def exchange(self, asked: Round) -> Answer:
        acknowledged = asked.acknowledged
        emptied = " ".join([f"{sender}:{receiver}" for sender, receiver in asked.emptied])
        to = []
        for receiver, added in asked.messages.items():
            is_trimmed = acknowledged[receiver] == self._trimmed.get(receiver)
            numbers = ",".join([str(number) for number, _ in added])
            to.append(f"{receiver} {0 if is_trimmed else acknowledged[receiver] + 1} {numbers};")
        after = "".join([f"{sender} {last};" for sender, last in asked.taken.items()])
        data = [message for added in asked.messages.values() for _, message in added]
        self._trimmed = acknowledged
        try:
            answer = await self._script.call(
                0, self._prefix, self._me, asked.receipt, emptied, "".join(to), after, *data
            )
        except (RedisError, OSError) as error:
            self._trimmed = {}
            raise TransportError(self._explain(error)) from error
        return _read_answer(answer, list(asked.messages), list(asked.taken))

    def _explain(self, error: Exception) -> str:
        if isinstance(error, OutOfMemoryError):
            return f"Redis at {self.place} is full ({error}): give it more maxmemory"
        if isinstance(error, (AuthenticationError, NoPermissionError)):
            return f"Redis at {self.place} refuses us ({error}): give user and password in SPIDERLING_CLUSTER"
        return f"Redis at {self.place} does not answer ({error})"

    async def close(self) -> None:
        await self._script.close()


def _read_answer(answer: bytes, receivers: list[int], senders: list[int]) -> Answer:
    """What the script answered about the streams to *receivers*, the receipts of *senders*, and messages."""
    head, _, rest = answer.partition(b"\n")
    words = iter(map(int, head.split()))
    blobs = io.BytesIO(rest)
    lengths = {receiver: next(words) for receiver in receivers}
    sizes = {sender: next(words) for sender in senders}
    receipts = {sender: blobs.read(size) for sender, size in sizes.items() if size >= 0}
    messages = [
        Message(sender, number, blobs.read(size)) for sender, number, size in zip(words, words, words, strict=True)
    ]
    return Answer(receipts, lengths, messages)
