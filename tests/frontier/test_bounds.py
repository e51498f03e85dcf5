"""What is kept in memory to save work has a bound, and a crawl gives the same without it."""

from __future__ import annotations

import pytest
from virtual_crawl import VirtualCrawl, page, robots

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.lifecycle.ledger import Ledger

HOSTS, PAGES, STEP_S = 30, 6, 20.0
BOUNDS = {
    "scheduling.names._MAX_NAMES": 6,
    "storage.host_table._MAX_RECENT_NAMES": 5,
    "robots_records._MAX_RECORDS": 6,
    "robots._MAX_PARSED": 4,
    "ranking.worth._SECTIONS": 5,
    "ranking.worth._WATCHED": 8,
    "ranking.host_languages._MOST_HOSTS": 5,
}


def crawled(bounds: dict[str, int]) -> tuple[set[str], dict[Reason, int]]:
    """What was fetched from hosts that all lead to each other, and how it ended; *bounds* are checked on the way."""
    urls = [f"http://h{host}.cz/cast{number}/a" for number in range(PAGES) for host in range(HOSTS)]
    web = {url: page(*urls[at + 1 : at + 40], *urls[: at // 9]) for at, url in enumerate(urls)}
    web |= {f"http://h{host}.cz/robots.txt": robots("User-agent: *\nDisallow: /x\n") for host in range(HOSTS)}
    crawl = VirtualCrawl(web, yield_profile="off", strategy="spiderling:haste=0", active_hosts=8)
    crawl.run(urls[0], until=crawl.now)
    while not crawl.frontier.is_finished:
        crawl.run(until=crawl.now + STEP_S)
        crawl.commit()
        sizes = sizes_of(crawl)
        assert all(sizes[name] <= most for name, most in bounds.items()), sizes
    return set(crawl.fetched()), crawl.ends


def sizes_of(crawl: VirtualCrawl) -> dict[str, int]:
    frontier = crawl.frontier
    worth, rules, names = frontier.strategy.worth, frontier._robots, frontier.schedule._names  # type: ignore[attr-defined]
    return {
        "scheduling.names._MAX_NAMES": len(names._names) - 1,  # looked through before the next one is entered
        "storage.host_table._MAX_RECENT_NAMES": len(frontier.hosts._recent_ids),
        "robots_records._MAX_RECORDS": len(rules.records.in_memory),
        "robots._MAX_PARSED": len(rules._parsed),
        "ranking.worth._SECTIONS": len(worth._sections),
        "ranking.worth._WATCHED": len(worth._watched),
        "ranking.host_languages._MOST_HOSTS": len(worth._languages._hosts),
    }


def test_crawl_with_little_memory_fetches_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are asked for again, robots.txt read from the store: nothing is lost."""
    usual = crawled({})
    for name, most in BOUNDS.items():
        monkeypatch.setattr(f"spiderling.frontier.{name}", most)
    assert crawled(BOUNDS) == usual
    assert usual[1] == {Reason.KEPT: HOSTS * PAGES}


def test_licences_that_nobody_has_heard_of_are_counted_together() -> None:
    """A page can name any."""
    ledger = Ledger()
    for number in range(2000):
        ledger.count_outcome(Outcome(number, f"http://a.cz/{number}", Reason.KEPT, facts=(f"licence/{number}",)))
    assert len(ledger.facts) <= 502
    assert ledger.facts["licence/other"] == 2000 - (len(ledger.facts) - 2)
