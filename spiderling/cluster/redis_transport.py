"""Messages and receipts over Redis, from version 6.2 on.  Redis may lose everything at any time, and need keep nothing.

The stream from a to b is ``spiderling:CRAWL:a:b``; an entry has the id epoch-number, so Redis itself refuses to add a
message twice.  The receipt of a is the string ``spiderling:CRAWL:a``.  A round is one call of a script, which answers
with one string: reading an answer for each stream takes a shard three times as long.
"""

from __future__ import annotations

from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, RedisError

from spiderling.cluster.redis_connection import Script, connected, place_of
from spiderling.cluster.transport import Answer, Message, Outgoing, Round, TransportError

MOST_READ = 16
"""Messages of each sender in one answer (chosen: some thousand links, which take the frontier some milliseconds)."""
ROUND = f"""local prefix, me, epoch, receipt, to, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local told, blobs, at = {{}}, {{}}, 6
local function tell(word) told[#told + 1] = word end
local function give(blob) blobs[#blobs + 1] = blob; tell(#blob) end
local function failed(answer) return type(answer) == 'table' and answer.err end
local full = redis.error_reply('OOM command not allowed, since its memory is used up')
local function is_full(failure) return failure and string.find(failure, 'OOM', 1, true) end
local failure = failed(redis.pcall('SET', prefix .. me, receipt))
if failure then return is_full(failure) and full or redis.error_reply(failure) end
for receiver, first, anew, numbers in string.gmatch(to, '(%d+) (%d+) (%d) ([%d,]*);') do
  local stream = prefix .. me .. ':' .. receiver
  local refused = false
  if anew == '1' then
    redis.call('DEL', stream)
  elseif first ~= '0' then
    refused = failed(redis.pcall('XTRIM', stream, 'MINID', epoch .. '-' .. first))
  end
  for number in string.gmatch(numbers, '%d+') do
    at = at + 1
    failure = failed(redis.pcall('XADD', stream, epoch .. '-' .. number, 'm', ARGV[at]))
    if is_full(failure) then return full end
    refused = refused or failure
  end
  tell(refused and -1 or redis.call('XLEN', stream))
end
local senders, streams, marks = {{}}, {{}}, {{}}
for sender, mark, spoilt in string.gmatch(after, '(%d+) (%d+%-%d+) (%d);') do
  if spoilt == '1' then redis.call('DEL', prefix .. sender .. ':' .. me) end
  senders[#senders + 1] = prefix .. sender
  streams[#streams + 1] = prefix .. sender .. ':' .. me
  marks[#marks + 1] = mark
end
if #senders > 0 then
  for _, found in ipairs(redis.call('MGET', unpack(senders))) do
    if found then give(found) else tell(-1) end
  end
  local asked = {{'COUNT', {MOST_READ}, 'STREAMS'}}
  for _, stream in ipairs(streams) do asked[#asked + 1] = stream end
  for _, mark in ipairs(marks) do asked[#asked + 1] = mark end
  for _, read in ipairs(redis.call('XREAD', unpack(asked)) or {{}}) do
    for _, entry in ipairs(read[2]) do
      tell(string.match(read[1], '(%d+):%d+$'))
      tell(entry[1])
      give(entry[2][2] or '')
    end
  end
end
return table.concat(told, ' ') .. string.char(10) .. table.concat(blobs)"""
"""Arguments: what all keys begin with, the shard, its epoch, its receipt; for each receiver its number, the first
number to be kept (0: all), whether its stream is emptied, and the numbers to be added; for each sender its number, the
last id that is known, and whether its stream is emptied; then the messages to be added.

Answers with numbers in text: the length of each stream (-1: an entry was refused); the bytes of each receipt (-1: there
is none); sender, id and bytes of each message.  Behind a newline follow receipts and messages themselves."""


class RedisTransport:
    """One shard's connection.  What it asks for is done at most once; it is the protocol that repeats."""

    def __init__(self, url: str, crawl_id: bytes, me: int) -> None:
        """*url*: that of a Redis; raises BadInput."""
        redis = connected(url)
        self.place = place_of(redis)
        self._script = Script(redis, ROUND)
        self._prefix = f"spiderling:{crawl_id.hex()}:"
        self._me = me
        self._trimmed: dict[int, int] = {}
        """Receiver -> number up to which entries were taken out of the stream to it, exclusively."""

    async def exchange(self, asked: Round) -> Answer:
        """Do one round; raises TransportError."""
        to = "".join([self._said(receiver, outgoing) for receiver, outgoing in asked.to.items()])
        known = asked.after.items()
        after = "".join([f"{sender} {epoch}-{last} {sender in asked.spoilt:d};" for sender, (epoch, last) in known])
        messages = [data for outgoing in asked.to.values() for _, data in outgoing.entries]
        arguments = 0, self._prefix, self._me, asked.epoch, asked.receipt, to, after, *messages
        try:
            answer = await self._script.call(*arguments)
        except (RedisError, OSError) as error:
            self._trimmed.clear()
            raise TransportError(self._told(error)) from error
        return _answer(answer, list(asked.to), list(asked.after))

    def _said(self, receiver: int, outgoing: Outgoing) -> str:
        """What becomes of the stream to *receiver*, for the script."""
        is_trimmed = outgoing.anew or outgoing.first == self._trimmed.get(receiver)
        self._trimmed[receiver] = outgoing.first
        numbers = ",".join([str(number) for number, _ in outgoing.entries])
        return f"{receiver} {0 if is_trimmed else outgoing.first} {outgoing.anew:d} {numbers};"

    def _told(self, error: Exception) -> str:
        if isinstance(error, OutOfMemoryError):
            return f"Redis at {self.place} is full ({error}): give it more maxmemory"
        if isinstance(error, (AuthenticationError, NoPermissionError)):
            return f"Redis at {self.place} refuses us ({error}): give user and password in SPIDERLING_CLUSTER"
        return f"Redis at {self.place} does not answer ({error})"

    async def close(self) -> None:
        """End the connection."""
        await self._script.close()


def _answer(answer: bytes, receivers: list[int], senders: list[int]) -> Answer:
    """What the script told of the streams to *receivers*, the receipts of *senders*, and messages."""
    head, _, blobs = answer.partition(b"\n")
    words = iter(head.split())
    at = 0

    def taken(size: int) -> bytes:
        nonlocal at
        at += size
        return blobs[at - size : at]

    lengths = {receiver: int(next(words)) for receiver in receivers}
    sizes = {sender: int(next(words)) for sender in senders}
    receipts = {sender: taken(size) for sender, size in sizes.items() if size >= 0}
    messages = []
    for sender, entry, size in zip(words, words, words, strict=True):
        epoch, _, number = entry.partition(b"-")
        messages.append(Message(int(sender), int(epoch), int(number), taken(int(size))))
    return Answer(receipts, lengths, messages)
