"""The status of a running crawl as server-sent events, made once for all browsers that look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from spiderling.base.errors import SpiderlingError

logger = logging.getLogger(__name__)

MOST = 8
"""Streams at the same time (chosen: each is a connection that stays open)."""
EVERY_S = 3.0
"""Seconds between two events (chosen)."""
_WRITE_S = 30.0
"""Seconds after which a browser that takes nothing is given up (chosen)."""


class Stream:
    """Hands the newest status to all who listen; nothing is made while nobody does."""

    def __init__(self, made: Callable[[], Awaitable[str]]) -> None:
        """*made*: the status as JSON."""
        self._made = made
        self._listeners = 0
        self._latest = b": the next status comes soon\n\n"
        self._turn = asyncio.Event()
        self._has_ended = False

    async def run(self) -> None:
        """Make a status every EVERY_S seconds, until this is cancelled."""
        trouble = ""
        while True:
            await asyncio.sleep(EVERY_S)
            if not self._listeners:
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

    def end(self) -> None:
        """Tell all who listen that the crawl has ended."""
        self._has_ended = True
        self._next_turn()

    def _next_turn(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send each status until the browser goes or the crawl ends."""
        if self._listeners >= MOST:
            raise web.HTTPServiceUnavailable(text=f"{MOST} pages are open already.\n", headers={"Retry-After": "30"})
        self._listeners += 1
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b"retry: 5000\n\n")
            while not self._has_ended:
                await asyncio.wait_for(response.write(self._latest), _WRITE_S)
                await self._turn.wait()
            await response.write(b"event: ended\ndata: \n\n")
        except (TimeoutError, ConnectionError):
            pass  # the browser has gone
        finally:
            self._listeners -= 1
        return response
