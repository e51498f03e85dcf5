"""Looks at pages again, when the crawl is watched (docs/watch.md): takes up what has ended, and plans looks."""

from __future__ import annotations

from spiderling.crawl.watched_log import take_up
from spiderling.engine.component import Extension
from spiderling.frontier.watching.watch import SWEEPS_A_DAY

_LEAST_S, _MOST_S = 0.05, 60.0
"""Bounds of the seconds between two steps (chosen)."""
_BLOCK_PAUSE_S = 0.05
"""Seconds between two blocks of a sweep, so that other tasks have their turn.  Chosen."""


class LookAgain(Extension):
    """Does nothing unless the option ``watch`` is on."""

    _idle_until = 0.0

    def opened(self) -> None:
        crawl = self.crawl
        if not crawl.frontier.watch.is_on:
            return
        self._every_s = min(_MOST_S, max(_LEAST_S, crawl.options.watch_day_s / SWEEPS_A_DAY))
        self.repeat(self._take_up, self._every_s, "the watch's log")
        self.repeat(self._step, _BLOCK_PAUSE_S, "the watch")

    async def _take_up(self) -> None:
        await take_up(self.crawl)

    def _step(self) -> None:
        crawl = self.crawl
        now = crawl.clock.now()
        if now < self._idle_until or crawl.is_paused or crawl.stopping:
            return
        with crawl.errors.changing():
            goes_on = crawl.frontier.watch.step(now)
            self._idle_until = 0.0 if goes_on else now + self._every_s
        self.dispatcher.wake()
