"""Draws the rank that is served next; better ranks are likelier, and every rank has its turn.

After HeidiX (Schäfer et al. 2014, section 5), whose ranked queues are popped with a
probability inversely proportional to their rank.  Here it is 1 / (rank + 1) ** power:
power 1 is the paper's, 0 makes all ranks alike, infinity serves the best one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from spiderling.frontier.hosts.ranks import RANKS

FAIR = 64
"""Every 64th draw among hosts ignores the weights and goes round all ranks (chosen)."""


def chance(seed: int) -> Callable[[], float]:
    """Numbers from 0 up to 1, the same ones with the same seed."""
    return random.Random(seed).random  # noqa: S311 - nothing secret


class Draw:
    """Called with the ranks in which hosts or URLs wait, it returns one of them, the same ones with the same seed."""

    def __init__(self, power: float, seed: int, fair: int = 0) -> None:
        """*fair*: each draw of this number takes the next rank in turn, whatever the weights; 0: none does."""
        self._weights = [] if math.isinf(power) else [(rank + 1) ** -power for rank in range(RANKS)]
        self._random = chance(seed)
        self._fair = fair
        self._until_fair = fair
        self._last = -1

    def __call__(self, ranks: Sequence[int]) -> int:
        """One of *ranks*, which ascend and are not empty."""
        if len(ranks) == 1:
            return ranks[0]
        if self._fair:
            self._until_fair -= 1
            if not self._until_fair:
                self._until_fair = self._fair
                self._last = next((rank for rank in ranks if rank > self._last), ranks[0])
                return self._last
        if not self._weights:
            return ranks[0]
        weights = self._weights
        at = self._random() * math.fsum(weights[rank] for rank in ranks)
        for rank in ranks:
            at -= weights[rank]
            if at < 0:
                return rank
        return ranks[-1]
