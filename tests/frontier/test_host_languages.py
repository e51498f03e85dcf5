"""What a host's pages say of its next one depends on how much the hosts of this crawl differ from each other."""

from __future__ import annotations

import random

import pytest

from spiderling.frontier.ranking.languages import HostLanguages


def crawled(alpha: float, beta: float, hosts: int = 400, pages: int = 8) -> HostLanguages:
    """What is known after pages of hosts whose shares of wanted pages are drawn from a beta distribution."""
    chance, known = random.Random(1), HostLanguages()
    for host in range(1, hosts + 1):
        share = chance.betavariate(alpha, beta)
        for _ in range(pages):
            known.count_page(host, chance.random() < share)
    return known


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.2), (0.3, 0.6), (0.5, 1.5)])
def test_the_spread_over_hosts_is_found(alpha: float, beta: float) -> None:
    known = crawled(alpha, beta)
    assert known.prior_pages == pytest.approx(alpha + beta, rel=0.3)
    assert known.mean == pytest.approx(alpha / (alpha + beta), abs=0.05)


def test_one_page_tells_the_more_the_more_hosts_keep_to_one_language() -> None:
    expected = []
    for known in (crawled(0.02, 0.04), crawled(1.0, 2.0)):
        assert known.expected(1000) is None
        known.count_page(1000, False)
        expected.append((known.expected(1000) or 0.0) / known.mean)
    assert expected[0] < 0.1 < 0.5 < expected[1]


def test_before_anything_is_known_the_published_locality_holds() -> None:
    known = HostLanguages()
    assert known.prior_pages == pytest.approx(0.3, abs=0.01)
    known.count_page(1, True)
    assert (known.foreign_pages(1), known.foreign_pages(2)) == (0, 0)
    known.count_page(2, False)
    assert known.foreign_pages(2) == 1
    assert (known.expected(1) or 0) > 0.8 > 0.2 > (known.expected(2) or 1)


def test_its_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spiderling.frontier.ranking.languages._MOST_HOSTS", 10)
    known = crawled(0.5, 0.5, hosts=50, pages=1)
    assert known.expected(40) is None and known.expected(41) is not None
