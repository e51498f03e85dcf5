"""Time limits of transfers: one timer looks at all of them, where asyncio makes and cancels three for each."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from spiderling.fetch.client import Wire
from spiderling.fetch.errors import TooSlow

LOOK_S = 0.25
"""Seconds between two looks, and so the longest that a limit is overdrawn (chosen: limits are seconds)."""


@dataclass(slots=True, eq=False)
class Transfer:
    """A context: when its time is over, what runs in it is cancelled, and it raises TimeoutError.

    Times are those of the event loop.
    """

    all: set[Transfer]
    task: asyncio.Task[Any]
    until: float = math.inf
    """When the time is over."""
    is_late: bool = False
    """Whether the task was cancelled for that."""
    goes_on: bool = False
    """Whether it is not the first over its connection."""
    wire: Wire | None = None
    """The connection, once the body is read; it is ended by TooSlow if that comes too slowly."""
    window_ends: float = math.inf
    before: int = 0
    """Bytes that had come when the window began."""

    def __enter__(self) -> Transfer:
        self.all.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.all.discard(self)
        if self.is_late and kind is asyncio.CancelledError:
            self.task.uncancel()
            raise TimeoutError from error


class TimeLimits:
    """The limits of all transfers of one event loop."""

    def __init__(self, bytes_per_s: float, window_s: float) -> None:
        """A body has to bring *bytes_per_s* in each window of *window_s* seconds; 0: any rate will do."""
        self._least = bytes_per_s * window_s
        self._window_s = window_s
        self._transfers: set[Transfer] = set()
        self._timer: asyncio.TimerHandle | None = None

    def transfer(self) -> Transfer:
        """A transfer of the task that runs now."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        task = asyncio.current_task()
        assert task is not None
        return Transfer(self._transfers, task)

    def body_begins(self, transfer: Transfer, wire: Wire) -> None:
        """From now on the minimum rate counts for the body that comes over *wire*."""
        if self._least > 0:
            transfer.wire = wire
            transfer.before = wire.body_bytes
            transfer.window_ends = asyncio.get_running_loop().time() + self._window_s

    def cancel_all(self) -> None:
        """Cancel the tasks of all transfers."""
        for transfer in self._transfers:
            transfer.task.cancel()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for transfer in self._transfers:
            if now >= transfer.until and not transfer.is_late:
                transfer.is_late = True
                transfer.task.cancel()
            elif now >= transfer.window_ends and transfer.wire is not None:
                self._look_at_rate(transfer, transfer.wire, now)
        self._timer = loop.call_later(LOOK_S, self._look) if self._transfers else None

    def _look_at_rate(self, transfer: Transfer, wire: Wire, now: float) -> None:
        """End a body that comes too slowly; a window does not count if the event loop was late."""
        came = wire.body_bytes - transfer.before
        if came < self._least and now < transfer.window_ends + self._window_s / 2 + LOOK_S:
            wire.end(TooSlow(f"{came} bytes in {self._window_s:g} s"))
        transfer.before = wire.body_bytes
        transfer.window_ends = now + self._window_s
