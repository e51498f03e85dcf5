"""What the benchmark of strategies keeps of a simulated crawl."""

from __future__ import annotations

import pytest

from benchmarks.strategies import summed_up
from simulator.comparison import Run, Task
from simulator.measures import Sample, Truth


def sample(seconds: float, words: int, size: int) -> Sample:
    return Sample(seconds, 10, round(seconds / 180), 5, 5, words, size, 100, 0, 0)


def test_a_share_of_the_words_is_read_between_two_samples() -> None:
    samples = [sample(3600, 20, 2_000_000), sample(7200, 40, 6_000_000), sample(9000, 60, 7_000_000)]
    found = summed_up(Run(Task("thai", "bfs", 1), Truth(10, 5, 100, 700), samples), 1.0)
    assert set(found.points) == {"25", "50"}
    assert found.points["25"] == pytest.approx((25 / 3, 1.25, 2.5))
    assert found.points["50"] == pytest.approx((50 / 6.5, 2.25, 4.5))
    assert found.recall == 0.6
