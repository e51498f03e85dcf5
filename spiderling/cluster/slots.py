"""Reserves the starts at addresses over all shards: one call of a script in Redis for all that are wanted at a moment.

Redis holds, for each address, the time from which the next shard may use it.  A slot is open for a moment, since a
shard may be late; the next one of another shard opens when that moment and the interval are over.  The shard that holds
the last slot of an address gets the next one earlier: it keeps the interval between its own starts by itself.

The clock of Redis is that of the slots.  A shard knows from each call between which bounds that clock is ahead of its
own, and uses of a slot what is surely within it.  So neither the clocks of machines nor a slow answer matter.

Redis may lose all slots at any time.  None is given away further ahead than HORIZON_S, and an emptied Redis gives none
away until the last that it may have forgotten is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from spiderling.base.machine import elapsed_s
from spiderling.cluster.redis_transport import Script, StrangeValues
from spiderling.crawl.crawl import Crawl
from spiderling.frontier.intervals import LONGEST_S, SlotRequest

WINDOW_S = 0.05
"""Seconds that a slot takes of its address.  Chosen: some turns of a busy event loop; two shards that share an address
get interval + WINDOW_S between their starts."""
GUARD_S = 0.01
"""Seconds at a slot's end that stay unused: the packet leaves a moment after the last look at the time.  Chosen."""
HORIZON_S = 5.0
"""Seconds ahead of which no slot is given away, and for which a Redis that lost them gives none.  Chosen: at 10 starts
a second and address, some thirty shards may wait for one."""
TICK_S = 0.05  # seconds between two calls; chosen: 15 slots a call at 300 requests a second
_PAUSE_S = 1.0  # seconds until a call is repeated that Redis did not answer; chosen
_DRIFT = 0.001
"""Seconds by which two clocks may come apart in one second; twice what clocks are slewed by (adjtimex, 500 ppm)."""
_US = 1_000_000
MAX_KEPT = 10_000
"""Addresses whose last slot is remembered (chosen: 1 MB, and more than start within HORIZON_S and an interval)."""
MAX_INTERVAL_S = 3600.0  # the longest interval of an address (base/options.py)
PATIENCE_S = 15.0
"""Seconds without a slot after which that is what limits the crawl; chosen: more than the horizon and a slot take."""
_KEPT_MS = 3_600_000  # milliseconds for which Redis keeps the slots of a crawl that asks for none

BEGIN = f"""local t = redis.call('TIME')
redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', t[1] * {_US} + t[2]), '')
redis.call('PEXPIRE', KEYS[1], {_KEPT_MS})"""
"""Makes the slots of a new crawl, in which nothing can have been given away before.  The member '' says since when."""
RESERVE = f"""local t = redis.call('TIME')
local now = t[1] * {_US} + t[2]
local window, interval, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local slots = KEYS[1]
local function text(number) return string.format('%.0f', number) end
local latest = now + horizon + {LONGEST_S * _US:.0f} + interval
local strange = redis.call('ZCOUNT', slots, text(latest + {MAX_INTERVAL_S * _US:.0f}), '+inf')
for _, address in ipairs(redis.call('ZRANGEBYSCORE', slots, '(' .. text(latest), '+inf')) do
  redis.call('ZADD', slots, text(latest), address)
end
local since = tonumber(redis.call('ZSCORE', slots, '') or now + horizon + window + interval)
redis.call('ZREMRANGEBYSCORE', slots, '-inf', text(now))
redis.call('ZADD', slots, text(math.max(since, now)), '')
redis.call('PEXPIRE', slots, {_KEPT_MS})
local ours = {{}}
local told = {{text(now), strange}}
for address, after, last in string.gmatch(ARGV[4], '(%S+) (%S+) (%S+)') do
  local free = tonumber(redis.call('ZSCORE', slots, address) or since)
  if ours[address] or tonumber(last) == free then free = free - window end
  local at = math.max(free, since, now + tonumber(after))
  if at > now + horizon then
    told[#told + 1] = '-'
  else
    ours[address] = true
    redis.call('ZADD', slots, text(at + window + interval), address)
    told[#told + 1] = text(at)
  end
end
return table.concat(told, ' ')"""
"""Arguments in microseconds: how long a slot is open, the interval, the horizon; then, in one, for each slot the
address, in how long it may open, and from when on the address was free to others after the caller's last slot there.
An address that is free later than a slot at the horizon lets it be is free then: its interval was longer, or nobody of
the crawl has written that.  Answers when it is, how many addresses the latter holds for, and when each slot opens; '-'
for one beyond the horizon."""


class RedisClock:
    """How far the clock of Redis is ahead of this process's, in seconds: bounds, by each answer."""

    def __init__(self) -> None:
        self._least = 0.0
        self._most = 0.0
        self._noted_at: float | None = None

    def note(self, redis_s: float, sent: float, received: float) -> None:
        """The time of Redis was *redis_s* between *sent* and *received*."""
        least = redis_s - received
        most = redis_s - sent
        if self._noted_at is not None:
            apart = _DRIFT * (received - self._noted_at)
            narrowed = max(least, self._least - apart), min(most, self._most + apart)
            if narrowed[0] <= narrowed[1]:  # else one of the clocks was set
                least, most = narrowed
        self._least = least
        self._most = most
        self._noted_at = received

    @property
    def uncertainty_s(self) -> float:
        return self._most - self._least

    def window(self, opens: float, closes: float, now: float) -> tuple[float, float]:
        """What surely lies between *opens* and *closes* of Redis' time, in this process's, which is *now*."""
        apart = _DRIFT * max(0.0, closes - self._most - now)
        return opens - self._least + apart, closes - self._most - apart


class Reservations:
    """What one shard asks of RESERVE, and what it makes of the answer; times are the caller's, in seconds."""

    def __init__(self) -> None:
        self._clock = RedisClock()
        self._window_us = 0
        self._interval_us = 0
        self._last: dict[str, int] = {}
        """Address -> from when on it is free to others after the last slot there; the newest stand last."""

    def arguments(self, wanted: Sequence[SlotRequest], interval_s: float, now: float) -> tuple[int, int, int, str]:
        """The arguments of the script for the slots *wanted*, whose times are of the same clock as *now*."""
        self._window_us = round(min(WINDOW_S + self._clock.uncertainty_s, LONGEST_S) * _US)
        self._interval_us = round(interval_s * _US)
        last = self._last
        slots = [f"{to} {round(max(0.0, after - now) * _US)} {last.get(to, 0)}" for _, to, after in wanted]
        return self._window_us, self._interval_us, round(HORIZON_S * _US), " ".join(slots)

    def granted(
        self, answer: bytes, wanted: Sequence[SlotRequest], sent: float, received: float
    ) -> list[tuple[float, float] | None]:
        """From when to when each slot that was *wanted* is open, in this process's time; None for one to ask for again.

        *answer* is that of RESERVE to ``arguments``: the time of Redis, then for each slot when it opens, or '-'.
        The call was *sent* and its answer *received* at these times, which bound how far the two clocks are apart.
        """
        time_us, _, *slots = answer.split()
        self._clock.note(int(time_us) / _US, sent, received)
        return [self._open(one.address, slot, received) for one, slot in zip(wanted, slots, strict=True)]

    def _open(self, address: str, slot: bytes, now: float) -> tuple[float, float] | None:
        if slot == b"-":
            return None
        at = int(slot)
        self._last.pop(address, None)
        self._last[address] = at + self._window_us + self._interval_us
        if len(self._last) > MAX_KEPT:
            del self._last[next(iter(self._last))]
        return self._clock.window(at / _US, (at + self._window_us) / _US - GUARD_S, now)


class SlotRequests:
    """Asks for the slots of one shard while its crawl runs; ``run`` lasts as long."""

    refused = ""  # why Redis did not answer last; '': it did

    def __init__(self, crawl: Crawl, redis: Any, key: str, strange: StrangeValues) -> None:
        """*key* names the slots in *redis*, a client."""
        self._crawl = crawl
        self._script = Script(redis, RESERVE)
        self._key = key
        self._strange = strange
        self._granted_at = elapsed_s()
        self._is_wanted = asyncio.Event()
        self._slots = crawl.frontier.reserve_starts(self._is_wanted.set)
        self._reservations = Reservations()
        self._wanted: list[SlotRequest] = []
        self._waiting: dict[int, asyncio.Future[None]] = {}

    def granted(self, host_id: int) -> asyncio.Future[None]:
        """Done when the slot that the request to the host wants is granted, or the crawl stops."""
        future = self._waiting[host_id] = asyncio.get_running_loop().create_future()
        if self._crawl.stopping:
            future.set_result(None)
        return future

    def release(self) -> None:
        """Let all that wait look again, since the crawl stops."""
        for host_id in list(self._waiting):
            self._look_again(host_id)

    def forget(self) -> None:
        """Use none of the slots that are held: this process may have slept."""
        self._slots.forget()

    async def run(self) -> None:
        """Ask for slots until it is cancelled."""
        try:
            await self._ask()
        finally:
            await self._script.close()

    async def _ask(self) -> None:
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            if not self._wanted:
                self._granted_at = elapsed_s()
            self._wanted += self._slots.take_wanted()
            try:
                await self._reserve()
                self.refused = ""
            except (RedisError, OSError) as error:  # the shard says so; meanwhile no request starts
                self.refused = str(error)
                self._is_wanted.set()
                await asyncio.sleep(_PAUSE_S)
            await asyncio.sleep(TICK_S)

    async def _reserve(self) -> None:
        crawl = self._crawl
        wanted = self._wanted
        arguments = self._reservations.arguments(wanted, crawl.frontier.intervals.ip_s, crawl.now())
        sent = elapsed_s()
        answer = await self._script.call(1, self._key, *arguments)
        received = elapsed_s()
        ahead = crawl.now() - received
        if answer.split()[1] != b"0":
            self._strange.report("the slots of addresses")
        self._wanted = []
        for one, slot in zip(wanted, self._reservations.granted(answer, wanted, sent, received), strict=True):
            if slot is None:
                self._wanted.append(one)
                self._is_wanted.set()
            else:
                self._granted_at = received
                crawl.frontier.intervals.slot_granted(one, slot[0] + ahead, slot[1] + ahead)
                self._look_again(one.host_id)

    def is_stuck(self) -> bool:
        """Whether slots are wanted, and none was granted for long."""
        return bool(self._wanted) and elapsed_s() - self._granted_at > PATIENCE_S

    def _look_again(self, host_id: int) -> None:
        future = self._waiting.pop(host_id, None)
        if future is not None and not future.done():
            future.set_result(None)
