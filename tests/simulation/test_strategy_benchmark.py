"""What benchmarks of strategies keep of a crawl, and switches of mechanisms that change nothing by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ablation import COUNTED, MECHANISMS, switched
from benchmarks.simulated import Crawls, Job, code_of, summed_up
from simulator.comparison import Run, Task, Terms, crawl
from simulator.measures import Sample, Truth

TERMS = Terms(pages=1_000)


def sample(seconds: float, words: int, size: int) -> Sample:
    return Sample(seconds, 10, 5, 5, words, size, 100, 0, 0)


def test_a_share_of_the_words_is_read_between_two_samples() -> None:
    samples = [sample(3600, 20, 2_000_000), sample(7200, 40, 6_000_000), sample(9000, 60, 7_000_000)]
    found = summed_up(Run(Task("thai", "bfs", 1), Truth(10, 5, 100, 700), samples), 1.0, {})
    assert set(found.points) == {"25", "50"}
    assert found.points["25"] == pytest.approx((25 / 3, 1.25))
    assert found.points["50"] == pytest.approx((50 / 6.5, 2.25))
    assert found.recall == 0.6


@pytest.mark.slow
def test_counting_decisions_changes_no_crawl() -> None:
    task = Task("thai", "spiderling", 1)
    plain = crawl(task, TERMS)
    with switched(COUNTED) as counts:
        assert crawl(task, TERMS) == plain
    assert counts.keys() <= MECHANISMS.keys()
    assert sum(counts.values()) > 0
    assert crawl(task, TERMS) == plain


@pytest.mark.slow
def test_what_is_known_is_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job("thai", 500, 1, name) for name in ("bfs", "spiderling")]
    first = Crawls(tmp_path).results(jobs)
    monkeypatch.setattr("benchmarks.simulated.crawl", None)
    assert Crawls(tmp_path).results(jobs) == first


def test_docstrings_and_comments_are_nocode_of() -> None:
    assert code_of('def f():\n    """One."""\n    return 1  # so') == code_of("def f():\n    return 1")
    assert code_of("def f():\n    return 1") != code_of("def f():\n    return 2")
