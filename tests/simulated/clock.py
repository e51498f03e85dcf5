"""Virtual time: an event loop that sleeps by setting its clock forward, and the clocks of ``time`` set by it.

What runs in threads runs here in the loop's one thread: in order for each executor, each after a while of virtual time.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from random import Random
from typing import Any
from unittest import mock

BEGIN_S = 1.7e9  # seconds since 1970 at which a simulated crawl begins; chosen
TURN_S = 1e-6  # seconds that a turn of the loop takes at least; chosen: no clock stands still
MOST_TURNS = 200_000  # turns of the loop in one session; chosen: a session of 60 pages takes 3,000
MOST_TURNS_A_SECOND = 1000  # chosen: sessions take up to 200 in a second of theirs


class Killed(KeyboardInterrupt):
    """The simulated process is gone.  No handler of the product, nor of asyncio, holds it up."""


class Hung(Exception):
    """Nothing will ever happen any more, for too long nothing has ended, or the loop is busy without an effect."""


class Clock:
    """Seconds of the simulated world; they go on while no process runs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wall_ahead_s = 0.0  # how wrong the machine's wall clock is

    def seconds(self, which: int = 0) -> float:
        return self.now

    def wall(self) -> float:
        return BEGIN_S + self.now + self.wall_ahead_s

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Let the clocks of Python show this one within the block."""
        with (
            mock.patch.object(time, "time", self.wall),
            mock.patch.object(time, "monotonic", self.seconds),
            mock.patch.object(time, "clock_gettime", self.seconds),
        ):
            yield


class _Sleep:
    """Takes the place of the loop's selector: no file is ever ready, and to wait is to set the clock forward."""

    def __init__(self, selector: Any, clock: Clock, until: float, is_killed: Callable[[], bool]) -> None:
        self._selector = selector
        self._clock = clock
        self._until = until
        self.is_killed = is_killed
        self._turns = 0
        self._second = (0, 0)  # of the clock, and how many turns had been when it began

    def select(self, timeout: float | None = None) -> list[Any]:
        self._turns += 1
        if self.is_killed():
            raise Killed
        if timeout is None or self._clock.now > self._until or self._turns > MOST_TURNS:
            raise Hung("nothing is planned any more" if timeout is None else "it does not end")
        if int(self._clock.now) != self._second[0]:
            self._second = (int(self._clock.now), self._turns)
        if self._turns - self._second[1] > MOST_TURNS_A_SECOND:
            raise Hung("the loop does not come to rest")
        self._clock.now += max(TURN_S, timeout)
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, which ends with Hung *most_s* seconds from now at the latest."""

    current: VirtualLoop

    def __init__(self, clock: Clock, rng: Random, most_s: float, is_killed: Callable[[], bool]) -> None:
        super().__init__()
        self._selector = _Sleep(self._selector, clock, clock.now + most_s, is_killed)
        self._clock = clock
        self.rng = rng
        VirtualLoop.current = self

    def end(self) -> None:
        """Close the loop with all tasks over, and none of their code run; the product keeps lists of tasks."""
        for task in asyncio.all_tasks(self):
            with suppress(BaseException):
                task.get_coro().close()  # type: ignore[union-attr]
            task.cancel()
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # as a kill leaves some
        self._selector.is_killed = bool
        for _ in range(3):
            with suppress(BaseException):
                self.call_soon(self.stop)
                self.run_forever()
        asyncio.set_event_loop(None)
        self.close()

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        executor = executor or VirtualExecutor()
        return asyncio.wrap_future(executor.submit(function, *arguments), loop=self)

    def call_soon_threadsafe(self, callback: Any, *arguments: Any, context: Any = None) -> Any:
        return self.call_soon(callback, *arguments, context=context)


class VirtualExecutor:
    """A pool of one thread: its calls run in order, each a moment or some seconds after it was given."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._calls: deque[Callable[[], None]] = deque()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        loop = VirtualLoop.current
        ended: Future[Any] = Future()

        def run() -> None:
            if not ended.set_running_or_notify_cancel():
                return
            try:
                ended.set_result(function(*arguments))
            except Exception as error:
                ended.set_exception(error)

        self._calls.append(run)
        slow_s = loop.rng.choice((0.0, 0.0, 0.01, 0.01, 0.3, 4.0))
        loop.call_later(slow_s, self._run_next)
        return ended

    def _run_next(self) -> None:
        if self._calls:
            self._calls.popleft()()

    def shutdown(self, wait: bool = True) -> None:
        while self._calls:
            self._run_next()
