"""A whole simulated crawl beside a link farm: text under thousands of made-up names, by the default strategy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farmweb import FarmWeb

from simulator.generated import RECIPES, generate
from simulator.replay import Replay, world
from spiderling.frontier import schedule


@pytest.mark.slow
def test_good_hosts_are_crawled_on_beside_a_farm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bound the farm, rich in text and links, has all requests but the first few hundred."""
    good = generate(replace(RECIPES["thai"], pages=5_000))
    words = []
    for share in (0.1, 1.0):
        monkeypatch.setattr(schedule, "MAX_SHARE", share)
        web = FarmWeb(good, hosts=4000, addresses=256)
        crawl = Replay(web, world(lang="th"), pages_per_s=20)
        crawl.run(good.seed_urls(), until=300)
        assert crawl.frontier.ledger.balance.error == 0
        words.append(web.good_words)
    assert words[0] > 1.8 * words[1]
