"""The one clock of a crawl: seconds of the epoch that never go back while it runs."""

from __future__ import annotations

import time


class Clock:
    """Wall time at the start plus monotonic time since: comparable over restarts, immune to clock changes."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()
