"""The connections of the live page: a bounded number, none of which keeps its place for long without a request."""

from __future__ import annotations

import asyncio
import socket
from typing import NamedTuple

from aiohttp import web

from spiderling.base.machine import is_reserved

MOST = 64
"""Connections at the same time (chosen: a browser opens up to six)."""
HEAD_S = 10.0
"""Seconds that a connection may take for the head of a request, from its beginning or the last answer on (chosen)."""
PAUSE_S = 0.5
"""Seconds until connections are accepted again after that has failed (chosen)."""


class _Connection(NamedTuple):
    socket: socket.socket
    """Has a descriptor until it is closed for good, which a client that reads nothing can delay."""
    transport: asyncio.Transport
    handler: web.RequestHandler


class Connections:
    """Accepts one connection after the other; asyncio's servers take all that have come, before any can be closed."""

    def __init__(self, listener: socket.socket, server: web.Server) -> None:
        """*server* serves what *listener* accepts."""
        listener.setblocking(False)
        self._listener = listener
        self._server = server
        self._held: list[_Connection] = []
        """The oldest first."""
        self._busy: set[web.RequestHandler] = set()
        """Those with a request that is being answered."""

    async def run(self) -> None:
        """Accept until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
                if is_reserved(accepted.fileno()) or not self._has_room():
                    accepted.close()
                    continue
                transport, handler = await loop.connect_accepted_socket(self._server, accepted)
            except OSError:  # no descriptor is left, or the other side has gone already
                await asyncio.sleep(PAUSE_S)
            else:
                self._held.append(_Connection(accepted, transport, handler))

    def _has_room(self) -> bool:
        """Whether there is a place, which the connection that has waited longest for a request may have to leave."""
        self._held = [one for one in self._held if one.socket.fileno() >= 0]
        if len(self._held) < MOST:
            return True
        idle = next((one for one in self._held if one.handler not in self._busy), None)
        if idle is not None:
            self._held.remove(idle)
            idle.transport.abort()
        return idle is not None

    def begin(self, request: web.Request) -> None:
        """Note that *request* is being answered, so that its connection stays."""
        self._busy.add(request.protocol)

    def end(self, request: web.Request) -> None:
        """Note that *request* is answered, but for what its client has not read yet."""
        self._busy.discard(request.protocol)
