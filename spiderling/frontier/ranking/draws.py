"""Draws the rank that is served next; better ranks are likelier.

After HeidiX (Schäfer et al. 2014, section 5), whose ranked queues are popped with a
probability inversely proportional to their rank.  Here it is 1 / (rank + 1) ** power:
power 1 is the paper's, 0 makes all ranks alike, infinity serves the best one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from spiderling.frontier.hosts.ranks import RANKS


def chance(seed: int) -> Callable[[], float]:
    """Numbers from 0 up to 1, the same ones with the same seed."""
    return random.Random(seed).random  # noqa: S311 - nothing secret


class Draw:
    """Called with the ranks in which hosts or URLs wait, it returns one of them, the same ones with the same seed."""

    def __init__(self, power: float, seed: int) -> None:
        self._weights = [] if math.isinf(power) else [(rank + 1) ** -power for rank in range(RANKS)]
        self._random = chance(seed)

    def __call__(self, ranks: Sequence[int]) -> int:
        """One of *ranks*, which ascend and are not empty."""
        if len(ranks) == 1 or not self._weights:
            return ranks[0]
        weights = self._weights
        at = self._random() * math.fsum(weights[rank] for rank in ranks)
        for rank in ranks:
            at -= weights[rank]
            if at < 0:
                return rank
        return ranks[-1]
