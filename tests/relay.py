"""A relay before a Redis, through which one shard reaches it: it can be cut, swallow everything, and be slow.

with Relay(server.socket) as relay:
    relay.url                   # for SPIDERLING_CLUSTER
    relay.state = "cut"         # "open", "cut": nobody is let in; "hole": no byte goes through; "slow"
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

SLOW_S = 0.2  # seconds by which each piece is late at most, while the relay is slow
_LOOK_S = 0.02


class Relay:
    """Listens on a Unix socket, in a thread of its own."""

    def __init__(self, server: Path) -> None:
        """*server*: the Unix socket of the Redis."""
        self.directory = Path(tempfile.mkdtemp(prefix="relay"))  # a socket's path must be short
        self.url = f"unix://{self.directory / 's'}"
        self._server = server
        self._state = "open"
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        listening = asyncio.start_unix_server(self._relay, self.directory / "s")
        asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def state(self) -> str:
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        self._state = state
        if state == "cut":
            self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._state == "cut":
            writer.transport.abort()
            return
        try:
            answers, server = await asyncio.open_unix_connection(self._server)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, server}
        self._writers |= both
        await asyncio.wait([asyncio.ensure_future(self._copy(*way)) for way in ((reader, server), (answers, writer))])
        self._writers -= both

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                while self._state == "hole":
                    await asyncio.sleep(_LOOK_S)
                if self._state == "slow":
                    await asyncio.sleep(random.random() * SLOW_S)
                writer.write(data)
                await writer.drain()
        writer.close()
