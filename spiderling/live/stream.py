"""The status of a running crawl as server-sent events, made once for all browsers that look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from spiderling.base.errors import SpiderlingError

logger = logging.getLogger(__name__)

MOST = 8
"""Streams at the same time (chosen: each is a connection that stays open)."""
EVERY_S = 3.0
"""Seconds between two events (chosen)."""
_WRITE_S = 30.0
"""Seconds after which a browser that takes nothing is given up (chosen)."""
_REPLACED = b"event: replaced\ndata: \n\n"
"""The last event of a stream whose place a newer one takes."""


@dataclass(eq=False, slots=True)
class _Listener:
    """A browser that listens."""

    request: web.Request
    is_slow: bool = False
    """Whether it has yet to read what was written last."""
    is_replaced: bool = False
    """Whether a newer one has its place."""


class Stream:
    """Hands the newest status to all who listen; nothing is made while nobody does."""

    def __init__(self, made: Callable[[], Awaitable[str]]) -> None:
        """*made*: the status as JSON."""
        self._made = made
        self._listeners: list[_Listener] = []
        """The oldest first."""
        self._latest = b": the next status comes soon\n\n"
        self._turn = asyncio.Event()
        self._farewell = b""
        """What all who listen are told last; empty until the crawl ends."""

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    async def run(self) -> None:
        """Make a status every EVERY_S seconds, until this is cancelled."""
        trouble = ""
        while True:
            await asyncio.sleep(EVERY_S)
            if not self.is_heard:
                continue
            try:
                self._latest = f"event: status\ndata: {await self._made()}\n\n".encode()
                trouble = ""
            except Exception as error:  # whatever it is, the next status may come
                said = str(error) if isinstance(error, SpiderlingError) else f"{type(error).__name__}: {error}"
                if said != trouble:
                    trouble = said
                    logger.warning("The live page stands still: %s", trouble)
            self._next_turn()  # also with the former status: only writing shows which browsers have gone

    def end(self, last: str) -> None:
        """Tell all who listen that the crawl has ended, and its *last* status as JSON, or nothing."""
        self._farewell = f"event: ended\ndata: {last}\n\n".encode()
        self._next_turn()

    def _next_turn(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send each status until the browser goes, a newer one takes its place, or the crawl ends."""
        self._make_room()
        listener = _Listener(request)
        self._listeners.append(listener)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.force_close()  # afterwards the connection is of no more use
        try:
            await response.prepare(request)
            await response.write(b"retry: 5000\n\n")
            while not (self._farewell or listener.is_replaced):
                listener.is_slow = True
                await asyncio.wait_for(response.write(self._latest), _WRITE_S)
                listener.is_slow = False
                await self._turn.wait()
            await asyncio.wait_for(response.write(self._farewell or _REPLACED), _WRITE_S)
        except (TimeoutError, ConnectionError):
            pass  # the browser has gone
        finally:
            if not listener.is_replaced:
                self._listeners.remove(listener)
        return response

    def _make_room(self) -> None:
        """End the stream of a browser that does not read, else the oldest one, if there are as many as there may be."""
        if len(self._listeners) < MOST:
            return
        leaving = next((one for one in self._listeners if one.is_slow), self._listeners[0])
        self._listeners.remove(leaving)
        leaving.is_replaced = True
        if leaving.is_slow and leaving.request.transport is not None:
            leaving.request.transport.abort()
        self._next_turn()
