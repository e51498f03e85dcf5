"""Carries the messages of one shard while its crawl runs: one round of the transport after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from spiderling.base.errors import JobdirError
from spiderling.cluster.exchange import Exchange
from spiderling.cluster.transport import Transport, TransportError
from spiderling.crawl.internal_errors import InternalErrors
from spiderling.frontier import Frontier

logger = logging.getLogger(__name__)

ROUND_S = 0.5
"""Seconds between two rounds.  Chosen: a link waits longer for its message to fill; with 16 shards a round takes Redis
27 us and this process 360 us."""


class PostOffice:
    """Belongs to the event loop.  ``run`` lasts as long as the crawl; a task of it is to be watched."""

    away_since: float | None = None
    """Since when the transport fails; None while it works.  No request may start meanwhile: leases cannot be kept."""

    def __init__(
        self,
        exchange: Exchange,
        transport: Transport,
        frontier: Frontier,
        errors: InternalErrors,
        now: Callable[[], float],
        fail: Callable[[JobdirError], None],
        wake: Callable[[], None],
        may_take: Callable[[], bool] = lambda: True,
    ) -> None:
        """*fail* ends the crawl; *wake* lets it look again for what is due.

        While *may_take* says no, messages stay with their senders.
        """
        self._exchange = exchange
        self._transport = transport
        self._frontier = frontier
        self._errors = errors
        self._now = now
        self._fail = fail
        self._wake = wake
        self._may_take = may_take

    async def run(self) -> None:
        """Make rounds until it is cancelled, or the crawl fails."""
        while await self._round():
            await asyncio.sleep(ROUND_S)

    async def _round(self) -> bool:
        """One round; returns whether another one may follow."""
        try:
            answer = await self._transport.exchange(self._exchange.ask(self._now()))
            messages = self._exchange.take_answer(answer)
        except TransportError as error:
            self._note_away(str(error))
            return True
        except JobdirError as error:
            self._fail(error)
            return False
        self._note_back()
        if not self._may_take():
            return True
        for message in messages:
            name = f"message {message.number} of shard {message.sender}"
            frontier = None if name in self._frontier.next_fetch.shunned else self._frontier
            with self._errors.changing(name):
                self._exchange.deliver(message, frontier, self._now())
            if self._errors.is_broken:
                return False
            await asyncio.sleep(0)  # each message takes some milliseconds
        if messages:
            self._wake()
        return True

    def _note_away(self, why: str) -> None:
        if self.away_since is None:
            self.away_since = self._now()
            since = datetime.fromtimestamp(self.away_since).strftime("%H:%M:%S")
            logger.warning(
                "paused: %s, since %s. Nothing is asked for and nothing is lost; it goes on by itself.", why, since
            )

    def _note_back(self) -> None:
        if self.away_since is not None:
            logger.warning("The crawl goes on after %.0f s without Redis.", self._now() - self.away_since)
            self.away_since = None
            self._wake()

    async def close(self) -> None:
        """End the connection."""
        await self._transport.close()
