"""Resolves the names that the frontier wants; reports answers at once, failures when their cause is known."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

from spiderling.base.clock import running_time
from spiderling.crawl.crawl import Crawl
from spiderling.engine.offline import Offline, trouble_of
from spiderling.fetch.resolver import NameNotFound, NameServerFailure
from spiderling.frontier.reachability import Trouble


class Naming:
    """Resolves the names of one crawl; its dispatcher owns it."""

    def __init__(self, crawl: Crawl, offline: Offline, wake: Callable[[], None]) -> None:
        """*wake* is called after each answer."""
        self._crawl = crawl
        self._offline = offline
        self._wake = wake
        self._running: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Begin to resolve all names that are wanted."""
        for name in self._crawl.frontier.names_wanted():
            self._ask_for(name)

    def end(self) -> None:
        """Stop resolving names."""
        for task in self._running:
            task.cancel()

    def _ask_for(self, name: str) -> None:
        task = self._crawl.errors.watched(self._resolve(name), f"asking for the name {name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _resolve(self, name: str) -> None:
        frontier = self._crawl.frontier
        clock = self._crawl.clock
        running = running_time()
        stopped_s = running.stopped_s()
        begun = clock.now()
        try:
            answer = await self._offline.resolve(name)
        except (NameNotFound, NameServerFailure) as error:
            if isinstance(error, NameServerFailure) and running.stopped_s() > stopped_s:
                await self._resolve(name)  # the process was stopped meanwhile
                return
            trouble = trouble_of(error) or Trouble.NAME_SERVER
            self._offline.failed(name, trouble, begun, functools.partial(self._failed, name, trouble))
        except Exception as error:
            self._crawl.errors.note(error, f"the name {name}")
            self._failed(name, Trouble.NAME_SERVER, True)
        else:
            with self._crawl.errors.changing():
                frontier.resolved(name, answer.addresses, answer.ttl_s, clock.now())
        self._crawl.times.dns.add(max(0.0, clock.now() - begun))
        self._wake()

    def _failed(self, name: str, trouble: Trouble, is_theirs: bool) -> None:
        if is_theirs:
            with self._crawl.errors.changing():
                self._crawl.frontier.unresolved(name, trouble is Trouble.NO_SUCH_NAME, self._crawl.clock.now())
        elif not self._crawl.stopping:
            self._ask_for(name)
