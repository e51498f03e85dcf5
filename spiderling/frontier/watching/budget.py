"""How many looks a day of the watch allows, in requests and in words."""

from __future__ import annotations

from collections.abc import Sequence

from spiderling.base.option_values import parse_watch_requests
from spiderling.base.options import Options
from spiderling.frontier.lifecycle.url_states import UrlStates


class Budget:
    """The budget of the day that goes on; what a day leaves is lost."""

    def __init__(self, options: Options, url_states: UrlStates) -> None:
        """*url_states* count looks and words."""
        self._requests = parse_watch_requests(options.watch_requests)
        self._words = options.watch_words
        self._url_states = url_states
        self.day = 0
        """Number of the day; the watch begins with 0."""
        self._looks_before = 0
        self._words_before = 0

    def begin_day(self, day: int) -> None:
        """What was looked at and kept until now belongs to the days before *day*."""
        self.day = day
        self._looks_before = self._url_states.totals["looks"]
        self._words_before = self._url_states.totals["words"]

    def allowed(self, days: float, watched: int) -> int:
        """Looks that may still be made by *days* since the watch began.

        *watched*: number of pages, for a budget that is a share of them.
        """
        if self._words and self._url_states.totals["words"] - self._words_before >= self._words:
            return 0
        a_day = self._requests if self._requests >= 1 else self._requests * watched
        due = int(a_day * days + 0.5) - int(a_day * self.day + 0.5)  # so a day may have less than one
        return due - (self._url_states.totals["looks"] - self._looks_before)

    def state(self) -> tuple[int, int, int]:
        """What `restore` takes."""
        return self.day, self._looks_before, self._words_before

    def restore(self, state: Sequence[int] | None) -> None:
        """Take up what was committed, if there is anything."""
        self.day, self._looks_before, self._words_before = state or (0, 0, 0)
