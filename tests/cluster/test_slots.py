"""Starts at an address that several shards share keep its interval, whatever happens to them, Redis and clocks."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import fields
from random import Random

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs
from redis import Redis
from redis.exceptions import RedisError
from redis_server import RedisServer

from spiderling.base.options import Options
from spiderling.cluster import redis_transport, slots
from spiderling.cluster.slots import (
    BEGIN,
    GUARD_S,
    HORIZON_S,
    MAX_INTERVAL_S,
    RESERVE,
    WINDOW_S,
    RedisClock,
    Reservations,
)
from spiderling.frontier.hosts import Host, HostStates
from spiderling.frontier.intervals import Intervals, Slots
from spiderling.frontier.workbench import Workbench

pytestmark = needs("redis")

ADDRESS = "192.0.2.1"
INTERVAL_S = 0.1
OPTIONS = Options(host_interval_s=0.0, ip_interval_s=INTERVAL_S, delay_factor=0.0)
LASTS_S = 15.0
CLOSEST_S = INTERVAL_S * (1 - 5e-4)  # as the fastest clock measures it


class SlotsInMemory:
    """What the script RESERVE does, in Python; times are microseconds of the clock of Redis."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        """Address -> from when on it is free to others; '' -> since when anything is known."""

    def begin(self, now: int) -> None:
        self.free.setdefault("", now)

    def reserve(self, now: int, arguments: tuple[int, int, int, str]) -> bytes:
        window, interval, horizon, slots = arguments
        words = slots.split(" ")
        latest = now + horizon + 2_000_000 + interval
        strange = sum(free > latest + 3_600_000_000 for free in self.free.values())
        self.free = {address: min(free, latest) for address, free in self.free.items()}
        since = self.free.get("", now + horizon + window + interval)
        self.free = {address: free for address, free in self.free.items() if free > now} | {"": max(since, now)}
        ours = set()
        told = [str(now), str(strange)]
        for address, after, last in zip(words[::3], words[1::3], words[2::3], strict=True):
            free = self.free.get(address, since)
            is_ours = address in ours or int(last) == free
            at = max(free - window if is_ours else free, since, now + int(after))
            if at > now + horizon:
                told.append("-")
                continue
            ours.add(address)
            self.free[address] = at + window + interval
            told.append(str(at))
        return " ".join(told).encode()


class Web:
    """True time, in which everything happens; Redis with its clock; and the starts at the one address."""

    def __init__(self, seed: int, latency_s: float, late_s: float, lost: float, redis_ahead_s: float) -> None:
        self.now = 0.0
        self.chance = Random(seed)
        self.starts: list[tuple[float, int]] = []  # (time, shard)
        self.slots = SlotsInMemory()
        self._latency_s, self._late_s, self._lost, self._redis_ahead_s = latency_s, late_s, lost, redis_ahead_s
        self._events: list[tuple[float, int, object, tuple]] = []
        self._serial = itertools.count()
        self.slots.begin(self.redis_us())

    def redis_us(self) -> int:
        return round((self.now + 1000 + self._redis_ahead_s) * 1_000_000)

    def later(self, after_s: float, action, *arguments) -> None:
        heapq.heappush(self._events, (self.now + after_s, next(self._serial), action, arguments))

    def latency(self) -> float:
        return self.chance.random() * self._latency_s

    def lateness(self) -> float:
        return self.chance.random() ** 3 * self._late_s

    def is_lost(self) -> bool:
        return self.chance.random() < self._lost

    def empty(self) -> None:
        self.slots = SlotsInMemory()

    def run(self) -> None:
        while self._events and self._events[0][0] < LASTS_S:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)

    def closest(self) -> float:
        """Seconds between the two starts that are closest to each other."""
        times = sorted(time for time, _ in self.starts)
        return min((later - sooner for sooner, later in itertools.pairwise(times)), default=1e9)


class Shard:
    """A process that always has requests for the address, some at once; its clock is its own."""

    def __init__(self, web: Web, number: int, ahead_s: float, drift: float) -> None:
        self.web, self.number, self.ahead_s, self.drift = web, number, ahead_s, drift
        self.life = 0
        self.begin()

    def clock(self) -> float:
        return self.ahead_s + self.web.now * (1 + self.drift)

    def begin(self) -> None:
        """A new process, which asks nothing for an interval (`Intervals.begin_anew`)."""
        self.life += 1
        self.intervals = Intervals(OPTIONS, Workbench())
        self.slots = self.intervals.slots = Slots(lambda: None)
        self.reservations = Reservations()
        self.wanted, self.is_asking = [], False
        for number in range(3):
            self.web.later(INTERVAL_S * 2, self.look, self.life, Host(number + 1, f"host{number}.cz", HostStates()))
        self.web.later(0.01, self.tick, self.life)

    def look(self, life: int, host: Host, goes_on: bool = False) -> None:
        """A request waits at the last gate; perhaps a visit goes on by it, which needs a slot as well."""
        if life != self.life:
            return
        now = self.clock()
        due = self.intervals.earliest_start(host, ADDRESS, now, goes_on)
        if due <= now:
            self.intervals.permitted(host, ADDRESS, now)
            self.web.later(self.web.lateness(), self.connect, life, host, goes_on)
        else:
            self.web.later(min(max(due - now, 1e-4), 0.02) + self.web.lateness(), self.look, life, host, goes_on)

    def connect(self, life: int, host: Host, goes_on: bool) -> None:
        if life != self.life:
            return
        wait_s = self.intervals.connect_in(host, ADDRESS, self.clock(), goes_on)
        if wait_s > 0:
            self.web.later(max(wait_s, 1e-4) + self.web.lateness(), self.connect, life, host, goes_on)
            return
        self.intervals.started(host, ADDRESS, self.clock())
        self.web.starts.append((self.web.now, self.number))
        self.intervals.released(host)
        self.web.later(0.0, self.look, life, host, not goes_on)

    # -- what SlotRequests does

    def tick(self, life: int) -> None:
        if life != self.life:
            return
        self.wanted += self.slots.take_wanted()
        if self.wanted and not self.is_asking:
            self.is_asking = True
            arguments = self.reservations.arguments(self.wanted, INTERVAL_S, self.clock())
            self.web.later(self.web.latency(), self.asked, life, list(self.wanted), arguments, self.clock())
        self.web.later(0.05, self.tick, life)

    def asked(self, life: int, wanted, arguments, sent: float) -> None:
        answer = b"" if self.web.is_lost() else self.web.slots.reserve(self.web.redis_us(), arguments)
        answer = b"" if self.web.is_lost() else answer
        self.web.later(self.web.latency() + self.web.lateness(), self.answered, life, wanted, answer, sent)

    def answered(self, life: int, wanted, answer: bytes, sent: float) -> None:
        if life != self.life:
            return
        self.is_asking = False
        if not answer:
            return
        slots = self.reservations.granted(answer, wanted, sent, self.clock())
        self.wanted = self.wanted[len(wanted) :] + [one for one, slot in zip(wanted, slots, strict=True) if not slot]
        for one, slot in zip(wanted, slots, strict=True):
            if slot is not None:
                self.intervals.slot_granted(one, *slot)


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 2**32),
    clocks=st.lists(st.tuples(st.floats(-60, 60), st.floats(-4e-4, 4e-4)), min_size=1, max_size=4),
    latency_s=st.sampled_from([0.001, 0.02, 0.3]),
    late_s=st.sampled_from([0.0, 0.02, 0.2]),
    lost=st.sampled_from([0.0, 0.1, 0.4]),
    faults=st.lists(st.tuples(st.floats(0, LASTS_S), st.sampled_from(["empty", "kill"])), max_size=6),
    max_kept=st.sampled_from([0, 10_000]),
)
def test_no_two_starts_are_closer_than_the_interval(seed, clocks, latency_s, late_s, lost, faults, max_kept):
    """Also if a shard remembers none of its last slots."""
    web = Web(seed, latency_s, late_s, lost, clocks[0][0] / 2)
    crawl = [Shard(web, number, *clock) for number, clock in enumerate(clocks)]
    for at, fault in faults:
        web.later(at, web.empty if fault == "empty" else web.chance.choice(crawl).begin)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(slots, "MAX_KEPT", max_kept)
        web.run()
    assert web.closest() >= CLOSEST_S
    if not faults:
        assert {shard for _, shard in web.starts} == set(range(len(crawl))), "each has its turn"


@pytest.mark.parametrize(("shards", "least"), [(1, 0.97), (2, 0.6), (4, 0.55)])
def test_an_address_is_used_as_often_as_may_be(shards: int, least: float) -> None:
    """One shard alone keeps the interval; several lose the moment for which each slot is open."""
    web = Web(1, 0.001, 0.0, 0.0, 0.0)
    crawl = [Shard(web, number, 0.0, 0.0) for number in range(shards)]
    web.run()
    assert crawl and web.closest() >= CLOSEST_S
    assert len(web.starts) >= least * LASTS_S / INTERVAL_S


def test_a_request_that_was_too_late_for_its_slot_meets_the_next_one():
    """With short intervals each new slot opens at once; looks at longer pauses than it lasts are all too late."""
    intervals = Intervals(Options(host_interval_s=0.0, ip_interval_s=0.0), Workbench())
    slots = intervals.slots = Slots(lambda: None)
    host = Host(1, "host.cz", HostStates())
    now = 100.0
    looks = 0
    while (wait_s := intervals.connect_in(host, ADDRESS, now)) > 0:
        for wanted in slots.take_wanted():
            intervals.slot_granted(wanted, now + 0.001, now + 0.001 + WINDOW_S - GUARD_S)
        now += wait_s
        looks += 1
        assert looks < 5


def test_after_redis_was_emptied_nothing_starts_until_all_slots_are_over():
    web = Web(1, 0.001, 0.0, 0.0, 0.0)
    crawl = [Shard(web, number, 0.0, 0.0) for number in range(2)]
    web.later(5, web.empty)
    web.run()
    lost = max(later - sooner for (sooner, _), (later, _) in itertools.pairwise(web.starts))
    assert crawl and HORIZON_S - 1 < lost < HORIZON_S + 1


def test_the_clock_of_redis_is_known_better_with_each_answer_and_anew_when_it_is_set():
    clock = RedisClock()
    clock.note(100.0, 0.0, 1.0)
    assert clock.uncertainty_s == 1.0
    clock.note(101.0, 1.5, 1.6)
    assert clock.uncertainty_s == pytest.approx(0.1)
    clock.note(102.0, 2.0, 4.0)
    assert clock.uncertainty_s == pytest.approx(0.1, abs=0.01), "a late answer takes nothing away"
    opens, closes = clock.window(110.0, 110.5, 4.0)
    assert 10.5 < opens < 10.7 and 10.9 < closes < 11.1
    clock.note(50.0, 5.0, 5.2)
    assert clock.uncertainty_s == pytest.approx(0.2)


def test_the_script_does_in_redis_what_it_does_in_memory():
    with RedisServer() as server:
        client = Redis.from_url(server.url)
        chance = Random(7)
        script = client.register_script(RESERVE)
        for is_new in (True, False):
            memory = SlotsInMemory()
            client.flushall()
            if is_new:
                client.eval(BEGIN, 1, "slots")
                memory.begin(int(client.zscore("slots", "")))
            last: dict[str, int] = {}
            for _ in range(150):
                window, interval, horizon = (chance.randrange(1, 4) * unit for unit in (1000, 3000, 30_000))
                asked = [f"192.0.2.{chance.randrange(3)}" for _ in range(chance.randrange(1, 6))]
                slots = " ".join(f"{address} {chance.randrange(20_000)} {last.get(address, 0)}" for address in asked)
                arguments = (window, interval, horizon, slots)
                answer = script(keys=["slots"], args=arguments)
                assert answer == memory.reserve(int(answer.split()[0]), arguments)
                for address, at in zip(asked, answer.split()[2:], strict=True):
                    if at != b"-" and chance.random() < 0.7:
                        last[address] = int(at) + window + interval
            assert b"-" in answer or last
            assert 0 < client.pttl("slots") <= 3_600_000
    assert WINDOW_S < HORIZON_S
    assert {spec.name: spec.metadata["high"] for spec in fields(Options)}["ip_interval_s"] == MAX_INTERVAL_S


async def test_a_late_answer_is_not_taken_for_that_to_another_call(monkeypatch):
    """Each answer is that of its own call, also when an earlier one came too late, and after a new start of Redis."""
    monkeypatch.setattr(redis_transport, "TIMEOUT_S", 0.2)
    with RedisServer() as server:
        client = redis_transport.connect(server.url)
        script = redis_transport.Script(client, RESERVE)
        try:
            assert len((await script.call(1, "slots", 0, 0, 10**6, "192.0.2.1 0 0")).split()) == 3
            server.pause(True)
            with pytest.raises(RedisError):
                await script.call(1, "slots", 0, 0, 10**6, "192.0.2.1 0 0 192.0.2.2 0 0")
            server.pause(False)
            assert len((await script.call(1, "slots", 0, 0, 10**6, "192.0.2.1 0 0")).split()) == 3
            server.kill()
            with pytest.raises((RedisError, OSError)):
                await script.call(1, "slots", 0, 0, 10**6, "192.0.2.1 0 0")
            server.start()
            assert len((await script.call(1, "slots", 0, 0, 10**6, "192.0.2.1 0 0 192.0.2.2 0 0")).split()) == 4
        finally:
            await script.close()
            await client.aclose()
